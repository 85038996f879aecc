"""What servers print: kept in memory for the window, in files for later, and told to whoever listens."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from callboard.api.schema import LogLine, LogPage, LogStream, Notice
from callboard.core.errors import FIXES
from callboard.core.log_level import guess_level
from callboard.engine.output_files import LogFiles, written
from callboard.engine.output_text import LineReader, neutralise

MAX_LINES = 5_000
MAX_BYTES = 1024 * 1024
MAX_TOTAL = 32 * 1024 * 1024
_LINE_COST = 64  # bytes that a line takes beside its text
_PAUSE = 0.05  # seconds between two batches
_FLOOD_PAUSE = 0.25  # the same, after one in which lines were dropped: whoever looks on has enough to paint
_SIGN = {"stderr": "err", "stdout": "out", "mark": "---"}


class OutputLog:
    """The output of all servers. Used on the engine's loop only.

    ``on_lines(server, lines)`` hears new lines in batches, at most one every 50 ms for each server, and every 250 ms
    for one that floods its log; it must not raise.
    """

    def __init__(
        self,
        folder: Path,
        on_lines: Callable[[str, list[LogLine]], None],
        redact: Callable[[str], str] | None = None,
        on_problem: Callable[[], None] = lambda: None,
    ) -> None:
        """``redact`` is for all servers that :meth:`set_redact` gave none of their own; text may be many lines.
        ``on_problem`` hears, on the loop, that :attr:`notices` have changed.
        """
        self.files = LogFiles(folder, self._problem_changed)
        self._on_problem = on_problem
        self._loop: asyncio.AbstractEventLoop | None = None
        self._redact = redact
        self._on_lines = on_lines
        self._servers: dict[str, _ServerLog] = {}
        self._total = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing = self._closed = False

    @property
    def notices(self) -> list[Notice]:
        """What a person should know: that the files cannot be written now."""
        if not self.files.problem:
            return []
        message = f"The servers' logs cannot be written ({self.files.problem}): they are kept in memory only."
        return [Notice(code="logs-unwritable", message=message, fix=FIXES["logs-unwritable"])]

    def set_redact(self, server: str, redact: Callable[[str], str]) -> None:
        """From now on the server's output passes through ``redact`` before it is stored."""
        log = self._log(server)
        self._take(server, log)
        for reader in log.readers.values():
            reader.redact = redact

    def append(self, server: str, stream: LogStream, data: bytes) -> None:
        """Take what a process wrote ("stderr"), or one line that is no protocol ("stdout"). Cheap at any rate."""
        log = self._log(server)
        if stream == "stdout" and not data.endswith(b"\n"):
            data += b"\n"
        log.last_output = time.monotonic()
        log.readers[stream].add(data)
        self._schedule()

    def mark(self, server: str, text: str) -> None:
        """A separator between runs; ends the line that is open."""
        log = self._log(server)
        self._take(server, log, ended=True)
        self._store(server, log, [("mark", neutralise(text))])
        self._schedule()

    def begin_run(self, server: str) -> None:
        """A new run begins: :meth:`tail` and :meth:`last_lines` look no further back."""
        log = self._log(server)
        self._take(server, log, ended=True)
        log.run = log.next
        log.last_output = 0.0

    def page(self, server: str, after: int, limit: int) -> LogPage:
        """At most ``limit`` lines with numbers above ``after``, oldest first; a negative ``after``: the newest ones.

        ``next`` is what to ask for as ``after`` the next time; ``dropped`` tells how many lines in between are gone.
        """
        log = self._servers.get(server)
        if log is None:
            return LogPage(lines=[], first=1, next=max(after, 0))
        self._take(server, log)
        first = log.next - len(log.lines)
        start = max(log.next - limit, first) if after < 0 else max(after + 1, first)
        lines = list(islice(log.lines, start - first, start - first + max(limit, 0)))
        gone = 0 if after < 0 else max(0, first - 1 - after)
        return LogPage(lines=lines, first=first, next=lines[-1].n if lines else log.next - 1, dropped=gone)

    def tail(self, server: str, chars: int = 4000) -> str:
        """The end of what the present (or last) run printed on stderr, at most ``chars`` characters."""
        text = "\n".join(self.last_lines(server, MAX_LINES))
        return text[-chars:]

    def last_lines(self, server: str, count: int) -> list[str]:
        """The last lines, not empty ones, that the present (or last) run printed on stderr."""
        log = self._servers.get(server)
        if log is None:
            return []
        self._take(server, log)
        lines: list[str] = []
        if count and (open_line := log.readers["stderr"].open_line).strip():
            lines.append(open_line)
        for line in reversed(log.lines):
            if line.n < log.run or len(lines) >= count:
                break
            if line.stream == "stderr" and line.text.strip():
                lines.append(line.text)
        return lines[::-1]

    def silent_for(self, server: str) -> float:
        """Seconds since the present run printed anything; infinite if it never did."""
        log = self._servers.get(server)
        return time.monotonic() - log.last_output if log is not None and log.last_output else float("inf")

    def close(self) -> None:
        """Give out what is left, write it, and stop. Nothing is taken afterwards."""
        if self._closed:
            return
        self._closing = True
        for server, log in self._servers.items():
            self._take(server, log, ended=True)
        self._flush()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.files.close()

    def _log(self, server: str) -> "_ServerLog":
        log = self._servers.get(server)
        if log is None:
            log = self._servers[server] = _ServerLog()
            for reader in log.readers.values():
                reader.redact = self._redact or reader.redact
        return log

    def _schedule(self) -> None:
        if self._timer is None and not self._closed:
            self._loop = asyncio.get_running_loop()
            self._timer = self._loop.call_later(_PAUSE, self._flush)

    def _problem_changed(self) -> None:
        """In the writer's thread."""
        if self._loop is not None and not self._closed:
            with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
                self._loop.call_soon_threadsafe(self._on_problem)

    def _flush(self) -> None:
        self._timer = None
        now = time.monotonic()
        for server, log in list(self._servers.items()):
            if now < log.rests_until and not self._closing:
                self._schedule()
                continue
            self._take(server, log)
            if log.unsent:
                lines, log.unsent = log.unsent, []
                self.files.write(server, "".join(written(line.at, _SIGN[line.stream], line.text) for line in lines))
                self._on_lines(server, lines)

    def _take(self, server: str, log: "_ServerLog", *, ended: bool = False) -> None:
        for stream, reader in log.readers.items():
            if not reader.waiting and not ended:
                continue
            first, skipped, last = reader.take(ended=ended)
            lines: list[tuple[LogStream, str]] = [(stream, text) for text in first]
            if skipped:
                log.dropped += skipped
                log.rests_until = time.monotonic() + _FLOOD_PAUSE
                lines.append(("mark", f"{skipped:,} lines dropped: they came too fast; {log.dropped:,} in all"))
            lines += [(stream, text) for text in last]
            # Nobody reads a flood line by line, and it must not cost more than it does.
            self._store(server, log, lines, guess=not skipped)

    def _store(
        self, server: str, log: "_ServerLog", lines: list[tuple[LogStream, str]], *, guess: bool = False
    ) -> None:
        if not lines or self._closed:
            return
        now = time.time()
        before = log.size
        for stream, text in lines:
            level = guess_level(text) if guess else ""
            line = LogLine(n=log.next, at=now, stream=stream, text=text, level=level)
            log.next += 1
            log.lines.append(line)
            log.unsent.append(line)
            log.size += len(text) + _LINE_COST
        while len(log.lines) > MAX_LINES or log.size > MAX_BYTES:
            log.drop_oldest()
        self._total += log.size - before
        while self._total > MAX_TOTAL:
            largest = max(self._servers.values(), key=lambda other: other.size)
            self._total -= largest.drop_oldest()
        self._schedule()


class _ServerLog:
    """The lines of one server. ``next`` is the number that the next line gets, ``run`` the first of this run."""

    def __init__(self) -> None:
        self.lines: deque[LogLine] = deque()
        self.unsent: list[LogLine] = []
        self.size = 0
        self.next = 1
        self.run = 1
        self.dropped = 0
        self.rests_until = 0.0  # of the monotonic clock
        self.last_output = 0.0
        self.readers: dict[LogStream, LineReader] = {"stderr": LineReader(), "stdout": LineReader()}

    def drop_oldest(self) -> int:
        """Forget the oldest line and say how many bytes that gives back."""
        size = len(self.lines.popleft().text) + _LINE_COST
        self.size -= size
        return size

"""Log files of the servers, written by a thread of their own so that a slow or full disk holds nobody up."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

_MAX_FILE = 1024 * 1024
_FILES = 3
_MAX_QUEUED = 4 * 1024 * 1024  # bytes that wait for the disk; what comes on top is not written

_logger = logging.getLogger(__name__)


class LogFiles:
    """One rotated file per server in ``folder``: NAME.log, NAME.log.1, NAME.log.2, of 1 MiB each.

    :meth:`write` never waits and never raises; where it had to leave something out, the file says how much.
    ``problem`` says why the last write failed, empty if it did not; ``on_problem`` is called, in the writer's thread,
    when that has changed.
    """

    def __init__(self, folder: Path, on_problem: Callable[[], None] = lambda: None) -> None:
        self.folder = folder
        self.problem = ""
        self._on_problem = on_problem
        self._queue: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._queued = 0
        self._left_out: dict[str, int] = {}  # lines, by server, since the last write
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def write(self, server: str, text: str) -> None:
        """Append ``text``; lone surrogates in it are replaced."""
        data = text.encode("utf-8", "replace")
        with self._lock:
            if self._queued + len(data) > _MAX_QUEUED:
                self._left_out[server] = self._left_out.get(server, 0) + text.count("\n")
                return
            if left_out := self._left_out.pop(server, 0):
                data = written(time.time(), "---", f"{left_out:,} lines left out: the disk is too slow").encode() + data
            self._queued += len(data)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
            self._thread.start()
        self._queue.put((server, data))

    def close(self, *, timeout: float = 2.0) -> None:
        """Write what waits and end the thread; gives up after ``timeout`` seconds. Idempotent."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            server, data = item
            with self._lock:
                self._queued -= len(data)
            try:
                self._append(self.folder / f"{server}.log", data)
            except OSError as error:
                if not self.problem:
                    _logger.warning("The log of %s cannot be written: %s", server, error)
                self._set_problem(error.strerror or str(error))
            else:
                self._set_problem("")

    def _set_problem(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self._on_problem()

    def _append(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if path.exists() and path.stat().st_size >= _MAX_FILE:
            _rotate(path)  # now, and not when it became full: who looks in between finds a file of this name
        with path.open("ab") as file:
            file.write(data)


def _rotate(path: Path) -> None:
    for number in range(_FILES - 1, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if newer.exists():
            newer.replace(older)


def written(at: float, sign: str, text: str) -> str:
    """A line as it stands in a file. ``at``: seconds since the epoch."""
    moment = datetime.fromtimestamp(at).isoformat(timespec="milliseconds")
    return f"{moment} {sign} {text}\n"

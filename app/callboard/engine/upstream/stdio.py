"""A server as a child process that speaks JSON lines on its standard streams."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch
from callboard.core.protocol import INTERNAL_ERROR
from callboard.engine.process import ChildProcess, ExitStatus
from callboard.engine.relay.envelope import error_answer
from callboard.engine.upstream.answers import gone
from callboard.engine.upstream.base import Closed, Peer
from callboard.engine.upstream.rpc import RpcConnection

MAX_LINE = 64 * 1024 * 1024
_EDGE = 4096  # bytes kept of both ends of a line that is dropped
# the id of an answer, where it stands before or after the result
_LEADING_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+)\s*,')
_TRAILING_ID = re.compile(rb'"id"\s*:\s*(\d+)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')
_MESSAGE = re.compile(rb'\{\s*"(?:jsonrpc|id|result|error)"\s*:')
_BOM = b"\xef\xbb\xbf"


class StdioUpstream(RpcConnection):
    """See :class:`~callboard.engine.upstream.base.Upstream`. Owns the child process it starts."""

    def __init__(
        self,
        peer: Peer,
        *,
        environment: Mapping[str, str],
        on_stderr: Callable[[bytes], None],
        modern: bool | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        """``environment`` is what every child gets; ``on_stderr`` takes its standard error as it comes."""
        super().__init__(peer, modern=modern, capabilities=capabilities)
        self._environment = environment
        self._on_stderr = on_stderr
        self._process: ChildProcess | None = None

    async def open(self, launch: Launch) -> None:
        """Start the process and shake hands; raises ``command-not-found``, ``exited-early``, ``handshake-failed``."""
        if not isinstance(launch, LocalLaunch):
            raise TypeError("a local server is needed")
        await self._start(launch)
        try:
            await self.shake_hands()
        except CallboardError as error:
            if error.code != "upstream-gone":
                raise
            if not self.closed.done():  # it bears no request before initialize
                await self._start(launch)
                await self._initialize_only()
                return
            raise self._early() from None

    async def _initialize_only(self) -> None:
        self._era = False
        try:
            await self.shake_hands()
        except CallboardError as error:
            raise self._early() if error.code == "upstream-gone" else error from None

    def _early(self) -> CallboardError:
        closed = self.closed.result()
        message = f"The server {closed.reason} before it answered."
        return CallboardError("exited-early", message, data=gone(closed).data)

    async def _start(self, launch: LocalLaunch) -> None:
        lines = LineSplitter(self._on_line, self._on_giant)
        process = self._process = await ChildProcess.spawn(
            launch, environment=self._environment, on_stdout=lines.feed, on_stderr=self._on_stderr
        )
        self.pid = process.pid
        process.exited.add_done_callback(lambda future: self._on_exit(process, lines, future.result()))

    def transmit(self, message: bytes) -> None:
        """Write one line to the server's standard input."""
        if self._process is not None:
            # a line break inside a message is insignificant white space, but would split the line
            if b"\n" in message:
                message = message.replace(b"\r", b" ").replace(b"\n", b" ")
            self._process.write(message + b"\n")

    async def close(self) -> None:
        """Stop the process and everything it started."""
        if self._process is not None:
            status = await self._process.stop()
            self.end(Closed(status.sentence(), status.code, status.signal))
        self.end(Closed("stopped before it was started"))

    def _on_exit(self, process: ChildProcess, lines: "LineSplitter", status: ExitStatus) -> None:
        rest = lines.rest()
        if rest and not self.received(rest):
            self.peer.on_noise(rest)
        closed = Closed(status.sentence(), status.code, status.signal)
        if self._process is not process or self.closed.done():
            return
        if self.probing and not process.input_left:
            self.fail_pending(closed)  # it read the probe and ended: see open()
        else:
            self.end(closed)

    def _on_line(self, line: bytes) -> None:
        line = line.removeprefix(_BOM)
        if not self.received(line) and line.strip():
            self.peer.on_noise(self._recover(line))

    def _recover(self, line: bytes) -> bytes:
        """Make something of a line that is no message; returns what of it is not protocol."""
        for found in _MESSAGE.finditer(line):
            answer = line[found.start() :]
            if found.start() and self.is_answer(answer) and self.received(answer):
                return line[: found.start()]  # a message behind other text
        self._refuse(line, line, "is not valid JSON")
        return line

    def _on_giant(self, head: bytes, tail: bytes) -> None:
        self._refuse(head, tail, "is larger than 64 MiB")
        self.peer.on_noise(head[:200])

    def _refuse(self, head: bytes, tail: bytes, reason: str) -> None:
        """Fail the request whose answer this would have been, if it can be told."""
        found = _LEADING_ID.match(head) or _TRAILING_ID.search(tail, max(0, len(tail) - _EDGE))
        call = self.pending.pop(int(found[1]), None) if found else None
        if call is not None:
            call.listener.on_answer(error_answer(INTERNAL_ERROR, f"The server's answer {reason}."))


class LineSplitter:
    """Cuts a stream of chunks into lines of at most ``MAX_LINE`` bytes; a longer one is dropped."""

    def __init__(self, on_line: Callable[[bytes], None], on_giant: Callable[[bytes, bytes], None]) -> None:
        """``on_giant`` gets the first and the last bytes of a line that was dropped."""
        self._on_line = on_line
        self._on_giant = on_giant
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._tail = b""
        self._dropping = False

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk."""
        end = chunk.find(b"\n")
        if end < 0:
            self._keep(chunk)
            return
        if end == len(chunk) - 1 and not self._parts and not self._dropping:
            self._on_line(chunk[:-1])  # one whole line, as most are
            return
        first, *rest = chunk.split(b"\n")
        last = rest.pop()
        if self._parts or self._dropping:
            self._keep(first)
            self._finish()
        else:
            self._on_line(first)
        for line in rest:
            self._on_line(line)
        if last:
            self._keep(last)

    def rest(self) -> bytes:
        """What came after the last line's end."""
        return b"".join(self._parts)

    def _finish(self) -> None:
        if self._dropping:
            self._dropping = False
            self._on_giant(self._head, self._tail)
        else:
            line = b"".join(self._parts)
            self._parts, self._size = [], 0
            self._on_line(line)

    def _keep(self, chunk: bytes) -> None:
        if self._dropping:
            self._tail = (self._tail + chunk)[-_EDGE:]
            return
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size > MAX_LINE:
            whole = b"".join(self._parts)
            self._head, self._tail = whole[:_EDGE], whole[-_EDGE:]
            self._parts, self._size, self._dropping = [], 0, True

"""A server as a child process that speaks JSON lines on its standard streams."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch
from callboard.core.protocol import INTERNAL_ERROR
from callboard.engine.process import ChildProcess, ExitStatus
from callboard.engine.relay.envelope import error_answer
from callboard.engine.upstream.base import Closed, Peer
from callboard.engine.upstream.rpc import RpcConnection

MAX_LINE = 64 * 1024 * 1024
_ID = re.compile(rb'"id"\s*:\s*(\d+)')


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
        self._lines = LineSplitter(self._on_line, self._on_giant)

    async def open(self, launch: Launch) -> None:
        """Start the process and shake hands; raises ``command-not-found``, ``exited-early``, ``handshake-failed``."""
        if not isinstance(launch, LocalLaunch):
            raise TypeError("a local server is needed")
        self._process = await ChildProcess.spawn(
            launch, environment=self._environment, on_stdout=self._lines.feed, on_stderr=self._on_stderr
        )
        self.pid = self._process.pid
        self._process.exited.add_done_callback(lambda future: self._on_exit(future.result()))
        try:
            await self.shake_hands()
        except CallboardError as error:
            if error.code == "upstream-gone":
                closed = self.closed.result()
                raise CallboardError(
                    "exited-early", f"The server {closed.reason} before it answered.", data=error.data
                ) from None
            raise

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
            self._on_exit(await self._process.stop())
        self.end(Closed("stopped before it was started"))

    def _on_exit(self, status: ExitStatus) -> None:
        self.end(Closed(status.sentence(), status.code, status.signal))

    def _on_line(self, line: bytes) -> None:
        if not line.isascii():
            try:
                line.decode()
            except UnicodeDecodeError:
                line = line.decode("utf-8", "replace").encode()
        if not self.received(line) and line.strip():
            self.peer.on_noise(line)

    def _on_giant(self, head: bytes) -> None:
        found = _ID.search(head)
        call = self.pending.pop(int(found[1]), None) if found else None
        if call is not None:
            call.listener.on_answer(error_answer(INTERNAL_ERROR, "The server's answer is larger than 64 MiB."))
        self.peer.on_noise(head[:200])


class LineSplitter:
    """Cuts a stream of chunks into lines of at most ``MAX_LINE`` bytes; a longer one is dropped."""

    def __init__(self, on_line: Callable[[bytes], None], on_giant: Callable[[bytes], None]) -> None:
        """``on_giant`` gets the first bytes of a line that was dropped."""
        self._on_line = on_line
        self._on_giant = on_giant
        self._parts: list[bytes] = []
        self._size = 0
        self._dropping = False

    def feed(self, chunk: bytes) -> None:
        """Take the next chunk."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return
        first, *rest = chunk.split(b"\n")
        last = rest.pop()
        if self._parts or self._dropping:
            self._keep(first)
            first = b"".join(self._parts)
            dropped, self._dropping = self._dropping, False
            self._parts, self._size = [], 0
            if not dropped:
                self._on_line(first)
        else:
            self._on_line(first)
        for line in rest:
            self._on_line(line)
        if last:
            self._keep(last)

    def _keep(self, chunk: bytes) -> None:
        if self._dropping:
            return
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size > MAX_LINE:
            head = self._parts[0][:4096]
            self._parts, self._size, self._dropping = [], 0, True
            self._on_giant(head)

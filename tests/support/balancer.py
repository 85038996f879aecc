"""A plain TCP load balancer, and the wire that a test cuts: connections go round the targets, one after the other."""

import asyncio
import contextlib
import itertools
from pathlib import Path
from types import TracebackType
from typing import Self

from callboard.engine.tasks import cancel_and_wait

Target = tuple[str, int] | Path  # a host and a port, or the path of a socket


class Balancer:
    """Listens on a port of loopback and hands each connection to the next target that takes it; knows no sessions.

    Use as an async context manager, on the test's loop.
    """

    def __init__(self, *targets: Target) -> None:
        self.targets = list(targets)
        self.port = 0
        self.taken: list[Target] = []  # the targets of all connections so far
        self._turn = itertools.count()
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    async def __aenter__(self) -> Self:
        await self.restore()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.cut()

    async def restore(self) -> None:
        """Take connections, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections and refuse new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await cancel_and_wait(*self._connections)
            await server.wait_closed()

    def hang(self) -> None:
        """Take connections and bytes, and pass nothing on."""
        self._flowing.clear()

    def flow(self) -> None:
        """Pass on again."""
        self._flowing.set()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="a balanced connection")
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other: asyncio.StreamWriter | None = None
        try:
            found = await self._connect()
            if found is not None:
                inward, other = found
                ways = [
                    asyncio.ensure_future(self._pass(reader, other)),
                    asyncio.ensure_future(self._pass(inward, writer)),
                ]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await cancel_and_wait(*ways)
        finally:
            for end in (writer, other):
                if end is not None:
                    end.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the next target that takes one."""
        for _ in range(len(self.targets)):
            target = self.targets[next(self._turn) % len(self.targets)]
            with contextlib.suppress(OSError):
                if isinstance(target, Path):
                    found = await asyncio.open_unix_connection(target)
                else:
                    found = await asyncio.open_connection(*target)
                self.taken.append(target)
                return found
        return None

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()

"""Connections of a server beside its shared one: a process for each client or session."""

import asyncio

from callboard.core.errors import CallboardError
from callboard.engine import tasks
from callboard.engine.connector import Connector
from callboard.engine.upstream.base import Upstream


class Instances:
    """The extra connections of one server, each under a key. Engine loop only; owned by the server's runner.

    One that ends by itself is forgotten; the next :meth:`open` makes a new one. All end with the server.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._opening: dict[str, asyncio.Task[Upstream]] = {}
        self._open: dict[str, Upstream] = {}
        self._ending: set[asyncio.Task[None] | asyncio.Task[Upstream]] = set()

    async def open(self, key: str) -> Upstream:
        """The connection under ``key``, made if there is none; one however many ask. Raises as a start does."""
        if (upstream := self._open.get(key)) is not None:
            return upstream
        task = self._opening.get(key)
        if task is None:
            name = f"open {self._connector.name} for {key}"
            task = self._opening[key] = asyncio.get_running_loop().create_task(self._make(key), name=name)
            task.add_done_callback(lambda done: self._opened(key, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                message = f"The server {self._connector.name} was stopped while it started."
                raise CallboardError("server-not-ready", message) from None
            raise

    def pids(self) -> list[int]:
        """The processes of the open connections."""
        return [upstream.pid for upstream in self._open.values() if upstream.pid is not None]

    async def close_one(self, key: str) -> None:
        """End the connection under ``key``, if there is one, and wait until it is gone."""
        if (task := self._opening.get(key)) is not None:
            self._abandon(key)
            await asyncio.wait([task])
        if (upstream := self._open.pop(key, None)) is not None:
            await asyncio.wait([self._end(upstream)])

    def close_soon(self) -> None:
        """Begin to end all connections; :meth:`close` waits for that."""
        for key in list(self._opening):
            self._abandon(key)
        while self._open:
            self._end(self._open.popitem()[1])

    async def close(self) -> None:
        """End all connections and wait until they are gone."""
        self.close_soon()
        while self._ending:
            await asyncio.wait(self._ending)

    async def _make(self, key: str) -> Upstream:
        upstream: Upstream | None = None
        try:
            launch = await self._connector.prepare(_ignore)
            upstream = self._connector.connect(launch, key)
            await self._connector.open(upstream, launch, _ignore, _ignore)
        except BaseException:
            if upstream is not None:
                await self._connector.close(upstream)
            raise
        return upstream

    def _opened(self, key: str, task: "asyncio.Task[Upstream]") -> None:
        self._ending.discard(task)
        wanted = self._opening.get(key) is task
        if wanted:
            del self._opening[key]
        if task.cancelled() or task.exception() is not None:
            return
        upstream = task.result()
        if not wanted:
            self._end(upstream)
            return
        self._open[key] = upstream
        upstream.closed.add_done_callback(lambda _: self._closed(key, upstream))

    def _closed(self, key: str, upstream: Upstream) -> None:
        if self._open.get(key) is upstream:
            del self._open[key]
            self._end(upstream)

    def _abandon(self, key: str) -> None:
        task = self._opening.pop(key)
        self._ending.add(task)
        task.cancel()

    def _end(self, upstream: Upstream) -> "asyncio.Task[None]":
        task = tasks.spawn(self._connector.close(upstream), f"close {self._connector.name}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


def _ignore(_: object) -> None:
    """The state of an extra connection is nobody's concern but the caller's."""

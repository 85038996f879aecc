"""CPU and memory of the servers, read from the engine only while somebody looks at them."""

import asyncio
import contextlib

from PySide6.QtCore import QObject, Signal

from callboard.api.client import EngineClient
from callboard.api.schema import Figures
from callboard.core.errors import CallboardError
from callboard.ui.engine_link import EngineLink


class FiguresReader(QObject):
    """Follows the engine's samples between :meth:`start` and :meth:`stop`, over lost connections too.

    Belongs to the window's loop.
    """

    changed = Signal()

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._wanted = False
        self._task: asyncio.Task[None] | None = None
        self._servers: dict[str, Figures] = {}
        link.connected.connect(self._open)

    def of(self, server: str) -> Figures | None:
        """What a server's processes use, as of the last sample; None while it is not known."""
        return self._servers.get(server)

    def start(self) -> None:
        """Somebody looks."""
        self._wanted = True
        self._open()

    def stop(self) -> None:
        """Nobody looks any more; what was known is forgotten."""
        self._wanted = False
        self._forget()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def _open(self) -> None:
        client = self._link.client
        if self._wanted and client is not None and (self._task is None or self._task.done()):
            self._task = self._link.tasks.spawn(self._follow(client), "figures")

    async def _follow(self, client: EngineClient) -> None:
        with contextlib.suppress(CallboardError):  # the link tells of a lost connection
            async with contextlib.aclosing(client.figures()) as samples:
                async for sample in samples:
                    self._servers = sample.servers
                    self.changed.emit()
        self._forget()

    def _forget(self) -> None:
        self._servers = {}
        self.changed.emit()

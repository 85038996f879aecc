"""Keeps an engine running for as long as the window does."""

import asyncio
import contextlib
import logging

from PySide6.QtCore import QObject, Signal

from callboard.system.engine_child import EngineChild, describe_exit
from callboard.ui.engine_link import EngineLink

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.2  # seconds between looks while nothing is connected
FIRST_DELAY = 0.2  # seconds before the first restart; doubles
LAST_DELAY = 30.0
CALM = 60.0  # seconds of connection after which delays begin anew


class EngineKeeper(QObject):
    """Watches the engine while :meth:`run` runs, and starts another one when it died.

    An engine that ended in order (exit code 0, or its engine file taken away) was ended by a person: it is not
    started again until :meth:`start_now`. An engine that lives but does not answer is left alone; only the person
    may end it.
    """

    restarting = Signal(str, float)  # how it ended ("" if not known); seconds until the next start
    restarted = Signal(str)  # connected again after a restart; how the engine before had ended
    attached = Signal()  # connected without one
    stopped = Signal()  # ended in order, not by us

    def __init__(self, link: EngineLink, child: EngineChild, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._child = child
        self._lost = asyncio.Event()
        self._wanted = asyncio.Event()
        self._delay = FIRST_DELAY
        self._was_connected = False
        self._connected_at = 0.0
        self._died = False
        self._ended = ""
        link.connected.connect(self._on_connected)
        link.disconnected.connect(lambda _reason: self._lost.set())

    def start_now(self) -> None:
        """Start an engine at once if none lives: the person asked for it."""
        self._delay = FIRST_DELAY
        self._wanted.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            if self._link.is_connected:
                self._lost.clear()
                await self._lost.wait()
                continue
            if await asyncio.to_thread(self._child.is_alive):
                await asyncio.sleep(LOOK_AGAIN)
                continue
            await self._replace()

    async def _replace(self) -> None:
        """No engine lives: start one, now or after a pause or when told to."""
        self._link.engine_ended()
        code = self._child.take_exit()
        in_order = code == 0 or (code is None and self._was_connected and not self._child.left_a_file())
        if in_order:
            self._wanted.clear()
            self.stopped.emit()
            await self._pause(None)
        else:
            self._died = True
            if code is not None:
                self._ended = describe_exit(code)
            if self._loop_time() - self._connected_at > CALM:
                self._delay = FIRST_DELAY
            log.warning("The engine ended (%s); starting it again in %.1f s", self._ended or "unknown how", self._delay)
            self.restarting.emit(self._ended, self._delay)
            self._wanted.clear()
            await self._pause(self._delay)
            self._delay = min(self._delay * 2, LAST_DELAY)
        if self._link.is_connected or await asyncio.to_thread(self._child.is_alive):
            return
        try:
            self._child.start()
        except OSError as error:
            self._ended = str(error)
            log.error("The engine cannot be started: %s", error)

    async def _pause(self, seconds: float | None) -> None:
        """Wait for the time to pass, for the person, or for an engine that somebody else started."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()

    def _on_connected(self) -> None:
        self._connected_at = self._loop_time()
        self._wanted.set()
        if self._was_connected and self._died:
            self.restarted.emit(self._ended)
        else:
            self.attached.emit()
        self._died = False
        self._ended = ""
        self._was_connected = True

    @staticmethod
    def _loop_time() -> float:
        return asyncio.get_running_loop().time()

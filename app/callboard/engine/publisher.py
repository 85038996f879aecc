"""What the engine tells on its event stream: views that changed, many changes at once as one event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from callboard.api.schema import CallEvent, CallView, EngineView, LogLine, ServerView
from callboard.engine import tasks
from callboard.engine.bus import LINE, Bus

COALESCE_SECONDS: Final = 0.1
COUNT_SECONDS: Final = 2.0  # between two counts of the calls while calls come


class Publisher:
    """Turns changes into events of a bus. Engine loop only; owned by the engine.

    ``engine_view`` and ``server_view`` make what is told; the latter gives None for a server that is gone.
    """

    def __init__(
        self,
        bus: Bus,
        engine_view: Callable[[], Awaitable[EngineView]],
        server_view: Callable[[str], ServerView | None],
    ) -> None:
        self._bus = bus
        self._engine_view = engine_view
        self._server_view = server_view
        self._changed: dict[str, None] = {}
        self._flushing: asyncio.TimerHandle | None = None
        self._counting: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Tell nothing more."""
        for timer in (self._flushing, self._counting):
            if timer is not None:
                timer.cancel()

    def engine_changed(self) -> None:
        """The engine's view is another one."""
        self.server_changed("")

    def server_changed(self, name: str) -> None:
        """A server's view (or, for "", the engine's) is another one; it is told soon."""
        self._changed[name] = None
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(COALESCE_SECONDS, self._flush)

    def lists_read(self, name: str) -> None:
        """What a server offers was read anew."""
        self._bus.publish("tools", {"server": name})
        self.server_changed(name)

    def lines(self, name: str, lines: list[LogLine]) -> None:
        """A server printed these lines."""
        weight = sum(1 + len(line.text) // LINE for line in lines)
        self._bus.publish("log", {"server": name, "lines": lines}, weight=weight)

    def calls(self, calls: list[CallView]) -> None:
        """These rows of the call log are new, or changed."""
        self._bus.publish("calls", {"calls": calls}, weight=len(calls))
        if self._counting is None:
            self._counting = asyncio.get_running_loop().call_later(COUNT_SECONDS, self._count_calls)

    def call_events(self, events: list[CallEvent]) -> None:
        """Calls began and ended."""
        # they are small: a listener that comes late should find other things still there
        self._bus.publish("call-events", {"events": events}, weight=1 + len(events) // 4)

    def _count_calls(self) -> None:
        self._counting = None
        self.engine_changed()

    def _flush(self) -> None:
        self._flushing = None
        names, self._changed = self._changed, {}
        for name in names:
            if not name:
                tasks.spawn(self._publish_engine(), name="tell of the engine")
            elif (view := self._server_view(name)) is not None:
                self._bus.publish("server", view)

    async def _publish_engine(self) -> None:
        self._bus.publish("engine", await self._engine_view())

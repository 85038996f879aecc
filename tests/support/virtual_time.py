"""An event loop whose clock runs only while nothing else does: hours of back-off take no time."""

import asyncio
import heapq
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """Waits for nothing outside itself: no processes, threads or sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self._clock_resolution = 1e-9
        selector = self._selector  # type: ignore[attr-defined]  # asyncio's own
        look = selector.select

        def select(timeout: float | None = None) -> Any:
            assert timeout is not None, "everything waits, and nothing will ever happen"
            self.now += max(0.0, timeout)
            return look(0)

        selector.select = select

    def time(self) -> float:
        return self.now

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end."""
        return self.run_until_complete(work)

    def pass_time(self, seconds: float) -> None:
        """Let so much time pass, and everything happen that happens in it."""
        self.run_until_complete(asyncio.sleep(seconds))

    def settle(self) -> None:
        """Do all that can be done without time passing."""
        for _ in range(50):
            self.run_until_complete(asyncio.sleep(0))

    @property
    def timers(self) -> list[asyncio.TimerHandle]:
        """What still waits for its time."""
        return [timer for timer in heapq.nsmallest(1000, self._scheduled) if not timer.cancelled()]  # type: ignore[attr-defined]


class Clock:
    """Stands for the module time: its monotonic clock is the loop's, its wall clock can be set."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.offset = 1_700_000_000.0

    def monotonic(self) -> float:
        """The loop's own time."""
        return self._loop.now

    def time(self) -> float:
        """The time on the wall."""
        return self._loop.now + self.offset

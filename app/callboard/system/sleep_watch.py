"""Noticing that the computer slept: timers stood still meanwhile, and connections to other computers are gone."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

TICK: Final = 10.0  # seconds between two looks at the clocks
SHORTEST: Final = 5.0  # seconds of sleep that matter
_LATE: Final = 30.0  # seconds that a look may come late on a busy computer, where there is no exact way


def _clock_with_sleep() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SleepWatch:
    """Calls ``on_wake`` on the running loop after each sleep of the computer. Owned by the engine.

    On Linux one clock goes on during sleep and the other does not: a clock that somebody sets is no sleep. Elsewhere
    a look that comes far too late, by the wall clock, is taken for one.
    """

    def __init__(
        self,
        on_wake: Callable[[], None],
        *,
        running: Callable[[], float] = time.monotonic,
        total: Callable[[], float] | None = None,
    ) -> None:
        """``running`` stands still during sleep, ``total`` does not (both in seconds)."""
        self._on_wake = on_wake
        self._running = running
        self._exact = total is not None or hasattr(time, "CLOCK_BOOTTIME")
        self._total = total or (_clock_with_sleep if self._exact else time.time)
        self._timer: asyncio.TimerHandle | None = None
        self._last = (0.0, 0.0)

    def start(self) -> None:
        """Begin to look."""
        self._last = (self._running(), self._total())
        self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)

    def look(self) -> None:
        """Compare the clocks with what they were at the last look."""
        before, self._last = self._last, (self._running(), self._total())
        ran, passed = self._last[0] - before[0], self._last[1] - before[1]
        if passed - ran >= SHORTEST if self._exact else passed >= TICK + _LATE:
            self._on_wake()

    def close(self) -> None:
        """Stop looking. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK, self._tick)
        self.look()

"""The window's asyncio loop: Qt's own, with timers that go away when they are cancelled."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Any, TypeVar

import qasync
from PySide6.QtCore import Qt, QTimer

T = TypeVar("T")
_LONGEST_MS = 3_600_000  # QTimer counts in 32 bits


class DisplayLostError(RuntimeError):
    """Qt has stopped the loop by itself, as it does when its connection to the screen breaks."""


class WindowLoop(qasync.QEventLoop):
    """qasync's loop with one QTimer for all deadlines.

    qasync makes a Qt timer for each ``call_later`` and keeps it until its time even when it was cancelled: every
    time limit around every request of the window would leave one behind for half a minute.
    """

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._deadlines: list[asyncio.TimerHandle] = []
        self._cancelled = 0
        self._clock = QTimer()
        self._clock.setSingleShot(True)
        self._clock.setTimerType(Qt.TimerType.PreciseTimer)
        self._clock.timeout.connect(self._run_due)

    def run_until_complete(self, future: Awaitable[T]) -> T:
        """Run until there is a result. Raises DisplayLostError when the screen goes away before."""
        task = asyncio.ensure_future(future, loop=self)
        try:
            result: T = super().run_until_complete(task)
        except RuntimeError:
            if task.done():
                raise
            raise DisplayLostError("The screen is gone.") from None
        return result

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back after ``delay`` seconds; the returned handle can be cancelled."""
        if delay <= 0:
            handle: asyncio.Handle = super().call_later(0, callback, *args, context=context)
            return handle
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back when the loop's clock shows ``when``."""
        self._check_closed()
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._deadlines, timer)
        if self._deadlines[0] is timer:
            self._set_clock()
        return timer

    def close(self) -> None:
        """Close the loop; timers still running are forgotten."""
        self._clock.stop()
        self._deadlines.clear()
        super().close()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        self._cancelled += 1
        if self._cancelled > 64 and self._cancelled * 2 > len(self._deadlines):
            self._deadlines = [timer for timer in self._deadlines if not timer.cancelled()]
            heapq.heapify(self._deadlines)
            self._cancelled = 0
            self._set_clock()

    def _run_due(self) -> None:
        now = self.time()
        while self._deadlines and (self._deadlines[0].when() <= now or self._deadlines[0].cancelled()):
            timer = heapq.heappop(self._deadlines)
            if timer.cancelled():
                self._cancelled = max(0, self._cancelled - 1)
            else:
                timer._run()
        self._set_clock()

    def _set_clock(self) -> None:
        if not self._deadlines or self.is_closed():
            self._clock.stop()
            return
        wait = (self._deadlines[0].when() - self.time()) * 1000
        self._clock.start(min(max(0, int(wait) + 1), _LONGEST_MS))

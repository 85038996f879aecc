"""What a caller hears while a call runs: a number that grows, text joined to a few messages a second, a heartbeat."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

INTERVAL: Final = 0.25  # seconds between two messages at least
MAX_MESSAGE: Final = 2000  # characters of one message; what is more is left out at its beginning
Report = Callable[[float, float | None, str], Awaitable[None]]


class Progress:
    """One call's progress. Made and used on the event loop; :meth:`close` it with the call.

    Remarks are sent as they come, text as it is written is joined; neither more often than four times a second.
    """

    def __init__(self, report: Report, *, heartbeat: float = 0.0) -> None:
        """``report`` takes progress, total and message; ``heartbeat`` is in seconds, 0 for none."""
        self._report = report
        self._heartbeat = heartbeat
        self._lines: list[str] = []
        self._in_text = False
        self._number = 0.0
        self._total: float | None = None
        self._wanted: float | None = None
        self._begun = time.monotonic()
        self._sent = 0.0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(self._run())

    def take(self, message: dict[str, Any]) -> None:
        """A "progress" message of the contract."""
        is_text = message["kind"] == "delta"
        text = message["text"]
        if is_text and self._in_text and self._lines:
            self._lines[-1] += text
        elif text:
            self._lines.append(text)
        self._in_text = is_text
        current, total = message.get("current"), message.get("total")
        if current is not None and current > self._number:
            self._wanted = current
            self._total = total if total is not None and total >= current else None
        self._wake.set()

    async def close(self) -> None:
        """Send what is left."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
            if self._lines or self._wanted is not None:
                await self._flush()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._heartbeat or None):
                    await self._wake.wait()
            except TimeoutError:
                self._lines.append(f"still working, {time.monotonic() - self._begun:.0f} s so far")
            pause = self._sent + INTERVAL - time.monotonic()
            if pause > 0:
                await asyncio.sleep(pause)
            await self._flush()

    async def _flush(self) -> None:
        """Send what has come since the last message."""
        self._wake.clear()
        lines, self._lines, self._in_text = self._lines, [], False
        wanted, self._wanted = self._wanted, None
        text = "\n".join(lines)
        if len(text) > MAX_MESSAGE:
            text = "…" + text[-MAX_MESSAGE:]
        self._number = self._next(wanted)
        self._sent = time.monotonic()
        await self._report(self._number, self._total, text)

    def _next(self, wanted: float | None) -> float:
        """The next number: always more than the last one, and never more than a total that is known."""
        if wanted is not None:
            return wanted
        if self._total is not None and self._number >= self._total:
            self._total = None  # there is more to do than was thought
        if self._total is not None:
            return self._number + (self._total - self._number) / 1000
        return self._number + 1

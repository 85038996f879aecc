"""The event stream: one ring of the newest events, read by any number of listeners at their own pace.

A listener is a number, the last event it has seen; nothing is queued for it. One that is too slow finds that its place
is gone, is told so by an event of kind "reset", and reads everything anew.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator
from itertools import islice
from typing import Any, Final

from callboard.api.schema import Event, EventKind

KEPT: Final = 5_000  # calls, lines and other things that the kept events tell of
LINE: Final = 500  # characters that count as one line
BATCH: Final = 500


class Bus:
    """Engine loop only."""

    def __init__(self) -> None:
        self._events: deque[tuple[Event, int]] = deque()
        self._weight = 0
        self._last = 0
        self._wake: asyncio.Event = asyncio.Event()
        self._listeners = 0
        self._closed = False

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self._last

    @property
    def is_read(self) -> bool:
        """Whether somebody reads events."""
        return self._listeners > 0

    def publish(self, kind: EventKind, data: Any, *, weight: int = 1) -> None:
        """Add an event that tells of ``weight`` things; costs the same whoever listens."""
        self._last += 1
        self._events.append((Event(seq=self._last, at=time.time(), kind=kind, data=data), weight))
        self._weight += weight
        while self._weight > KEPT and len(self._events) > 1:
            self._weight -= self._events.popleft()[1]
        if self._listeners:
            self._wake.set()
            self._wake = asyncio.Event()

    async def read(
        self, after: int, kinds: frozenset[str] | None = None, *, pause: float = 15.0
    ) -> AsyncGenerator[list[Event], None]:
        """Batches of events after a number (negative: from now on); an empty one after ``pause`` seconds without any.

        With ``kinds`` the others are left out, but for "reset".
        """
        self._listeners += 1
        loop = asyncio.get_running_loop()
        try:
            if after < 0 or after > self._last:
                # a number of another engine's life means that everything must be read anew
                yield [Event(seq=self._last, at=time.time(), kind="reset", data={})]
                after = self._last
            quiet_until = loop.time() + pause
            while not self._closed:
                batch = self._after(after)
                if batch is None:
                    batch = [Event(seq=self._last, at=time.time(), kind="reset", data={})]
                elif not batch:
                    wake = self._wake
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout_at(quiet_until):
                            await wake.wait()
                if batch:
                    after = batch[-1].seq
                wanted = [event for event in batch if kinds is None or event.kind in kinds or event.kind == "reset"]
                if wanted or loop.time() >= quiet_until:
                    yield wanted
                    quiet_until = loop.time() + pause
        finally:
            self._listeners -= 1

    def _after(self, number: int) -> list[Event] | None:
        """The events after a number, at most ``BATCH``; None if some of them are gone."""
        missing = self._last - number
        if missing > len(self._events):
            return None
        start = len(self._events) - missing
        return [event for event, _ in islice(self._events, start, start + BATCH)]

    def close(self) -> None:
        """End all readings."""
        self._closed = True
        self._wake.set()

"""Tells of every call as it begins and ends: who called which tool of which server, and for how long; nothing else.

Arguments and results are the call log's, under its own bounds and redaction.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from callboard.api.schema import CallEvent
from callboard.engine.calls.record import NAME, CallRecord

INTERVAL: Final = 0.05  # seconds between two batches


class CallEvents:
    """Hears of calls and hands on what is to be told in batches, in order. Engine loop only."""

    def __init__(self, publish: Callable[[list[CallEvent]], None], mask: Callable[[str], str]) -> None:
        """``mask`` takes credentials out of a resource's URI."""
        self._publish = publish
        self._mask = mask
        self._waiting: list[CallEvent] = []
        self._timer: asyncio.TimerHandle | None = None

    def began(self, record: CallRecord) -> None:
        """A call began."""
        self._tell(CallEvent(record.id, "started", record.started, *self._identity(record)))

    def ended(self, record: CallRecord) -> None:
        """A call ended."""
        if record.status == "running":
            return
        duration = record.duration_ms or 0.0
        at = record.started + duration / 1e3
        identity = self._identity(record)
        self._tell(CallEvent(record.id, record.status, at, *identity, duration, record.error_type))

    def close(self) -> None:
        """Tell what is left."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _identity(self, record: CallRecord) -> tuple[str, str, str, str]:
        tool = self._mask(record.tool) if record.method == "resources/read" else record.tool
        return record.server, record.method, tool[:NAME], record.client[:NAME]

    def _tell(self, event: CallEvent) -> None:
        self._waiting.append(event)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL, self._flush)

    def _flush(self) -> None:
        self._timer = None
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._publish(waiting)

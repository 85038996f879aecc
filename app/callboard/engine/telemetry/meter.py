"""Counts and durations of all calls since the engine's start, by server, method, tool and client.

The number of combinations is bounded whatever names servers and clients come up with: what is too much is counted
under :data:`OTHER`.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from callboard.engine.calls.record import CallRecord

# seconds; those of the semantic conventions for MCP, and three more, because a local tool answers within the first
BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
OTHER: Final = "_other"
NAME: Final = 100  # characters
MAX_TOOLS: Final = 250  # names for each server
MAX_CLIENTS: Final = 50
MAX_SERIES: Final = 2_000
STATUSES: Final = ("completed", "failed", "cancelled")
Key = tuple[str, str, str, str]  # server, method, tool or prompt ("" for resources), client


@dataclass(slots=True)
class Series:
    """The ended calls of one combination. ``buckets`` has one number for each of BOUNDS and one for all above."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(STATUSES, 0))
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    seconds: float = 0.0
    shortest: float = float("inf")
    longest: float = 0.0

    def add(self, status: str, seconds: float) -> None:
        """Count one call."""
        self.counts[status] += 1
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds
        if seconds < self.shortest:
            self.shortest = seconds
        if seconds > self.longest:
            self.longest = seconds

    def merge(self, other: "Series") -> None:
        """Add the calls of another one."""
        for status, count in other.counts.items():
            self.counts[status] += count
        self.buckets = [mine + more for mine, more in zip(self.buckets, other.buckets, strict=True)]
        self.seconds += other.seconds
        self.shortest = min(self.shortest, other.shortest)
        self.longest = max(self.longest, other.longest)

    def copy(self) -> "Series":
        """The numbers of this moment."""
        return Series(self.counts.copy(), self.buckets.copy(), self.seconds, self.shortest, self.longest)


class CallMeter:
    """Hears of every call. Engine loop only."""

    def __init__(self, is_known: Callable[[str, str, str], bool]) -> None:
        """``is_known`` tells whether a server lists a tool or prompt: server, method, name."""
        self._is_known = is_known
        self._series: dict[Key, Series] = {}
        self._tools: dict[str, set[str]] = {}
        self._clients: set[str] = set()
        self._in_flight: dict[str, int] = {}

    def began(self, record: CallRecord) -> None:
        """A call began."""
        self._in_flight[record.server] = self._in_flight.get(record.server, 0) + 1

    def ended(self, record: CallRecord) -> None:
        """A call ended."""
        self._in_flight[record.server] -= 1
        key = (record.server, record.method, "" if record.method == "resources/read" else record.tool, record.client)
        series = self._series.get(key)
        if series is None:
            series = self._open(key, record.status)
        series.add(record.status, (record.duration_ms or 0.0) / 1e3)

    def series(self) -> dict[Key, Series]:
        """The numbers of this moment."""
        return {key: series.copy() for key, series in self._series.items()}

    def in_flight(self) -> dict[str, int]:
        """Calls that have begun and not ended, by server."""
        return dict(self._in_flight)

    def _open(self, key: Key, status: str) -> Series:
        server, method, tool, client = key
        tool, client = tool[:NAME], client[:NAME]
        if tool and not self._may_name(server, method, tool, status):
            tool = OTHER
        if client not in self._clients:
            if len(self._clients) < MAX_CLIENTS:
                self._clients.add(client)
            else:
                client = OTHER
        for fitting in ((server, method, tool, client), (server, method, OTHER if tool else "", OTHER)):
            if fitting in self._series or len(self._series) < MAX_SERIES:
                return self._series.setdefault(fitting, Series())
        return self._series.setdefault((OTHER, OTHER, OTHER, OTHER), Series())

    def _may_name(self, server: str, method: str, tool: str, status: str) -> bool:
        """A name that no server has, and that only failed, is a client's invention."""
        named = self._tools.setdefault(server, set())
        if tool in named:
            return True
        if len(named) >= MAX_TOOLS or (status != "completed" and not self._is_known(server, method, tool)):
            return False
        named.add(tool)
        return True

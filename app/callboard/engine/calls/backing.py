"""What the call log asks of the place where calls are kept: a file of this engine's, or a database that it shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from callboard.api.schema import CallDetail, CallPage, Notice
from callboard.engine.calls.record import Limits, Row


class QuestionInterruptedError(Exception):
    """A question was interrupted; perhaps the interrupt was meant for the one before."""


@dataclass(frozen=True)
class Filter:
    """Which calls are wanted; an empty field means any. ``text`` is looked for in tool, error, arguments, result.

    ``engine`` is the name of an engine, where several share their log.
    """

    server: str = ""
    tool: str = ""
    client: str = ""
    status: str = ""
    text: str = ""
    engine: str = ""


class CallStore(Protocol):
    """Keeps calls. Opened, written, trimmed and closed by the call log's thread; nothing raises for a place that fails.

    ``last_id`` is the highest id in use once it is open. ``engine`` names this engine in what it keeps. ``limits`` may
    be replaced, and ``notices`` be read, by any thread.
    """

    limits: Limits
    last_id: int

    @property
    def engine(self) -> str:
        """The name under which this engine's calls stand here; empty where no other engine's do."""

    @property
    def notices(self) -> Mapping[str, Notice]:
        """What a person should know, by code."""

    @property
    def is_awaited(self) -> bool:
        """True where an answer goes to its client only once the call stands here. Any thread."""

    def open(self) -> None:
        """Make ready for calls."""

    def write(self, rows: list[Row]) -> Sequence[Row]:
        """Keep calls, or the outcome of calls that are kept already; returns them under the ids that others see."""

    def trim(self) -> bool:
        """Do a little of what is to be done beside writing; true if there is more to do at once."""

    def idle(self) -> float | None:
        """For how many seconds :meth:`trim` need not be called while no calls come; None: for ever."""

    def close(self) -> None:
        """Mark calls still running as ended, and close."""


class CallReader(Protocol):
    """Answers questions about kept calls in the reader's thread; :meth:`interrupt` comes from the loop.

    Methods raise :class:`QuestionInterruptedError`, and CallboardError for a place that cannot be read.
    """

    def page(self, wanted: Filter, offset: int, limit: int) -> CallPage:
        """Calls from ``offset`` on, oldest first; a negative offset means the last ``limit`` ones."""

    def detail(self, call_id: int) -> CallDetail:
        """One call with its payloads; raises ``not-found``."""

    def count_since(self, moment: float) -> int:
        """How many calls began at ``moment`` (seconds since the epoch) or later."""

    def interrupt(self) -> None:
        """Stop the question that runs; never waits."""

    def close(self) -> None:
        """Let go of the place."""

"""Whether a server that is ready still answers.

A server that has been silent for a while is asked for a sign of life. One missed check changes nothing, a second one
is told, and only the third in a row ends the connection. Silence is no fault of a server that is at work: while calls
are in flight it is not asked, and a call that was given up may go on inside it for as long as a call may take.
"""

import time
from dataclasses import dataclass
from typing import Final

from callboard.core.errors import CallboardError
from callboard.core.supervision import Event, Failed, ProblemFound, ProblemGone
from callboard.engine.upstream.base import Upstream

NOT_RESPONDING: Final = "not-responding"
_SILENCE: Final = frozenset({"call-timeout", "upstream-gone"})
# The server has answered, only not to its liking: it lives.
_ANSWERED: Final = frozenset({400, 402, 405, 406, 409, 415, 422, 429, 501})


@dataclass(frozen=True)
class HealthPlan:
    """When a server is asked and how long it may take to answer; seconds of the monotonic clock.

    ``silence`` without a word makes a check due, ``again`` after a missed one. ``told`` missed checks in a row are
    told, ``most`` end the connection. ``patience`` is for one answer, ``short`` for one after an interruption.
    """

    silence: float = 60.0
    again: float = 5.0
    patience: float = 10.0
    short: float = 5.0
    told: int = 2
    most: int = 3


class Health:
    """The checks of one ready connection; made anew for each. Engine loop only, owned by the server's runner."""

    def __init__(self, upstream: Upstream, plan: HealthPlan, *, stretch: float) -> None:
        """``stretch``, from 0 up to 1, makes the silence up to a quarter longer, so that not all are asked at once."""
        self._upstream = upstream
        self._plan = plan
        self._silence = plan.silence * (1 + stretch / 4)
        self._missed = 0
        self._checked = upstream.last_heard
        self._soon: float | None = None

    @property
    def due(self) -> float:
        """When the next check is due, of the monotonic clock."""
        if self._soon is not None:
            return self._soon
        if self._missed:
            return self._checked + self._plan.again
        return max(self._checked, self._upstream.last_heard) + self._silence

    def check_at(self, moment: float) -> None:
        """Something may have cut the connection (the computer slept): look at ``moment``, and do not look twice."""
        self._soon = moment

    async def check(self, call_limit: float) -> Event | None:
        """Ask the server; what that means for its state, None for nothing. ``call_limit``: how long a call may take.

        ``Failed`` means that the connection is of no use any more and must be closed.
        """
        interrupted, self._soon = self._soon is not None, None
        began = self._checked = time.monotonic()
        if self._upstream.busy and not interrupted:
            return None
        try:
            await self._upstream.ping(seconds=self._plan.short if interrupted else self._plan.patience)
        except CallboardError as error:
            self._checked = time.monotonic()
            if self._is_alive(error, began):
                return self._on_answer()
            if interrupted and "status" not in error.data:
                return self._on_interruption(error)
            return self._on_miss(error, call_limit)
        return self._on_answer()

    def _is_alive(self, error: CallboardError, began: float) -> bool:
        if self._upstream.closed.done():
            return False
        if status := error.data.get("status"):
            return status in _ANSWERED
        return self._upstream.last_heard > began

    def _on_answer(self) -> Event | None:
        missed, self._missed = self._missed, 0
        return ProblemGone(NOT_RESPONDING) if missed else None

    def _on_interruption(self, error: CallboardError) -> Event | None:
        if self._upstream.closed.done():
            return None
        if self._upstream.busy:
            self._soon = self._checked + self._plan.again  # its calls are not cut off for that
            return None
        if error.code in _SILENCE:
            return Failed("remote-unreachable", "the connection did not survive an interruption of the network")
        return Failed(error.code, error.message)

    def _on_miss(self, error: CallboardError, call_limit: float) -> Event | None:
        if self._upstream.closed.done():
            return None  # its end is told by itself
        if error.code == "remote-sign-in":  # an answer, and a clear one
            return Failed(error.code, error.message)
        self._missed += 1
        if self._missed < self._plan.told:
            return None
        given_up = self._upstream.given_up
        if given_up is not None and self._checked < given_up + call_limit:
            return ProblemFound(NOT_RESPONDING, "does not answer; a call that was given up may still be at work in it")
        reason = f"has not answered {self._missed} health checks in a row"
        if error.code not in _SILENCE:
            reason = f"has failed {self._missed} health checks in a row: {error.message.rstrip('.')}"
        if self._missed < self._plan.most:
            return ProblemFound(NOT_RESPONDING, reason)
        return Failed(NOT_RESPONDING if error.code in _SILENCE else error.code, reason)

"""The life of one server as a pure function of (status, event, now).

The supervisor turns what happens into events and acts on the state that comes out; it never writes a state itself.
An event that does not fit the state (it comes too late) changes nothing.
"""

from dataclasses import dataclass, replace
from datetime import date
from enum import Enum

from callboard.core.backoff import LONGEST, LONGEST_WHEN_FAILED, delay_before
from callboard.core.errors import FIXES
from callboard.core.health import State

HEALTHY_AFTER = 300.0  # seconds of health after which failed tries no longer count
CONNECTED = frozenset({State.READY, State.DEGRADED})
_WITH_PROCESS = frozenset({State.STARTING, State.READY, State.DEGRADED})


class Recovery(Enum):
    """What can help against a failure."""

    NOTHING = "nothing"  # only a person
    CONFIG = "config"  # a person who fills something in
    SIGN_IN = "sign-in"
    RETRY = "retry"  # a few more tries
    PERSIST = "persist"  # more tries, then slow ones for as long as it takes


_RECOVERY = {
    "env-unset": Recovery.CONFIG,
    "secret-missing": Recovery.CONFIG,
    "secrets-unavailable": Recovery.CONFIG,
    "secrets-locked": Recovery.CONFIG,
    "secrets-refused": Recovery.CONFIG,
    "remote-certificate": Recovery.CONFIG,
    "sign-in-client-id": Recovery.CONFIG,
    "remote-sign-in": Recovery.SIGN_IN,
    "remote-scope": Recovery.SIGN_IN,
    "exited-early": Recovery.RETRY,
    "exited": Recovery.RETRY,
    "not-responding": Recovery.RETRY,
    "start-refused": Recovery.RETRY,
    "remote-unreachable": Recovery.PERSIST,
    "remote-dns": Recovery.PERSIST,
    "remote-refused": Recovery.PERSIST,
    "remote-proxy": Recovery.PERSIST,
    "remote-not-found": Recovery.PERSIST,
    "remote-failed": Recovery.PERSIST,
    "remote-status": Recovery.PERSIST,
    "remote-timeout": Recovery.PERSIST,
    "upstream-gone": Recovery.PERSIST,
}
_EXITS = frozenset({"exited", "exited-early"})


def recovery(code: str) -> Recovery:
    """What can help against the failure with this code."""
    return _RECOVERY.get(code, Recovery.NOTHING)


@dataclass(frozen=True)
class Exit:
    """How a server's process ended. Exactly one of ``code`` and ``signal`` is set. ``at``: seconds since the epoch."""

    at: float
    code: int | None = None
    signal: str | None = None
    stderr: tuple[str, ...] = ()


@dataclass(frozen=True)
class Problem:
    """Why a server is ready and yet not as it should be."""

    code: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """All that is known of a server's health. Times are seconds since the epoch.

    ``attempt`` counts the tries since the server was last healthy; ``restarts`` all that were made without a person,
    ``day_restarts`` those of the day ``restart_day`` (see :func:`restarts_today`).
    ``reason`` is one sentence, without a full stop where it goes on from the state's name.
    """

    state: State
    since: float
    enabled: bool = True
    reason: str = ""
    error_code: str = ""
    fix: str = ""
    pid: int | None = None
    ready_since: float | None = None
    restarts: int = 0
    restart_day: int = 0
    day_restarts: int = 0
    attempt: int = 0
    max_attempts: int = 5
    first_delay: float = 1.0
    next_retry: float | None = None
    last_exit: Exit | None = None
    problems: tuple[Problem, ...] = ()


def initial(now: float, *, enabled: bool = True) -> ServerStatus:
    """A server about which nothing is known yet."""
    return ServerStatus(state=State.STOPPED if enabled else State.DISABLED, since=now, enabled=enabled)


@dataclass(frozen=True)
class Configured:
    """The roster's say: whether the server may run, and how restarts are limited."""

    enabled: bool
    max_attempts: int = 5
    first_delay: float = 1.0


@dataclass(frozen=True)
class StartWanted:
    """A person, the launch or a call wants the server; earlier failures no longer count."""


@dataclass(frozen=True)
class Waiting:
    """Why the start takes long: what it waits for, or the last thing that the server said."""

    reason: str


@dataclass(frozen=True)
class Spawned:
    """The process runs, the handshake is not done."""

    pid: int


@dataclass(frozen=True)
class Connected:
    """The handshake is done. ``pid`` None: there is no process of ours."""

    pid: int | None = None


@dataclass(frozen=True)
class Failed:
    """A start did not succeed, or a ready server is gone. The state follows from ``code`` (see :func:`recovery`)."""

    code: str
    reason: str
    fix: str = ""
    exit: Exit | None = None


@dataclass(frozen=True)
class Ended:
    """The process behind a failure is gone, and this is how it ended."""

    exit: Exit


@dataclass(frozen=True)
class RetryDue:
    """The pause before the next try is over."""


@dataclass(frozen=True)
class RetryBy:
    """There is a reason to try earlier, at ``moment`` (the network is back). A pause that ends before that, or is over
    already, stays as it is.
    """

    moment: float


@dataclass(frozen=True)
class StopWanted:
    """The server shall not run. ``reason`` for display ("not used for 10 min")."""

    reason: str = ""


@dataclass(frozen=True)
class Stopped:
    """After a stop, nothing of the server runs any more."""

    exit: Exit | None = None


@dataclass(frozen=True)
class Healthy:
    """The server has been ready for long enough; earlier failures no longer count."""


@dataclass(frozen=True)
class ProblemFound:
    """The server works, but something is odd. One problem for each code."""

    code: str
    reason: str


@dataclass(frozen=True)
class ProblemGone:
    """What was odd is no more."""

    code: str


Event = (
    Configured
    | StartWanted
    | Waiting
    | Spawned
    | Connected
    | Failed
    | Ended
    | RetryDue
    | RetryBy
    | StopWanted
    | Stopped
    | Healthy
    | ProblemFound
    | ProblemGone
)


def transition(status: ServerStatus, event: Event, now: float, *, chance: float = 0.0) -> ServerStatus:
    """The status after ``event``; the same object if the event changes nothing. ``chance`` is for the jitter."""
    match event:
        case Configured():
            return _configured(status, event, now)
        case StartWanted():
            if status.state in _WITH_PROCESS or status.state in (State.DISABLED, State.STOPPING):
                return status
            return replace(_enter(status, State.STARTING, now), attempt=0)
        case RetryDue():
            if status.next_retry is None:
                return status
            return _restarted(_enter(status, State.STARTING, now), now)
        case RetryBy(moment):
            earliest = max(moment, now)
            if status.next_retry is None or status.next_retry <= earliest:
                return status
            return replace(status, next_retry=earliest)
        case Ended(exit_):
            return status if status.last_exit == exit_ else replace(status, last_exit=exit_)
        case Waiting(reason):
            if status.state is not State.STARTING or status.reason == reason:
                return status
            return replace(status, reason=reason)
        case Spawned(pid):
            return replace(status, pid=pid) if status.state is State.STARTING else status
        case Connected(pid):
            if status.state is not State.STARTING:
                return status
            ready = replace(_enter(status, State.READY, now), pid=pid, ready_since=now)
            return _with_problems(ready, status.problems, now)
        case Failed():
            return _failed(status, event, now, chance) if status.state in _WITH_PROCESS else status
        case StopWanted(reason):
            return _stop_wanted(status, reason, now)
        case Stopped(exit_):
            if status.state is not State.STOPPING:
                return status
            rest = State.STOPPED if status.enabled else State.DISABLED
            stopped = _enter(status, rest, now, reason=status.reason if status.enabled else "")
            return replace(stopped, attempt=0, last_exit=exit_ or status.last_exit)
        case Healthy():
            return replace(status, attempt=0) if status.state in CONNECTED and status.attempt else status
        case ProblemFound(code, reason):
            if status.state not in _WITH_PROCESS or Problem(code, reason) in status.problems:
                return status
            others = tuple(problem for problem in status.problems if problem.code != code)
            return _with_problems(status, (*others, Problem(code, reason)), now)
        case ProblemGone(code):
            others = tuple(problem for problem in status.problems if problem.code != code)
            return status if others == status.problems else _with_problems(status, others, now)


def restarts_today(status: ServerStatus, now: float) -> int:
    """How often the server was started again without a person since midnight, local time."""
    return status.day_restarts if status.restart_day == _day(now) else 0


def _restarted(status: ServerStatus, now: float) -> ServerStatus:
    count = restarts_today(status, now) + 1
    return replace(status, restarts=status.restarts + 1, restart_day=_day(now), day_restarts=count)


def _day(now: float) -> int:
    return date.fromtimestamp(now).toordinal()


def _enter(status: ServerStatus, state: State, now: float, *, reason: str = "") -> ServerStatus:
    """The state anew, free of what belonged to the one before; counters and the last exit stay."""
    return replace(
        status,
        state=state,
        since=now,
        reason=reason,
        error_code="",
        fix="",
        pid=status.pid if state is State.STOPPING else None,
        ready_since=None,
        next_retry=None,
        problems=(),
    )


def _configured(status: ServerStatus, event: Configured, now: float) -> ServerStatus:
    configured = replace(status, enabled=event.enabled, max_attempts=event.max_attempts, first_delay=event.first_delay)
    if event.enabled:
        if status.state is State.DISABLED:
            return replace(_enter(configured, State.STOPPED, now), attempt=0)
    elif status.state in _WITH_PROCESS:
        return _enter(configured, State.STOPPING, now)
    elif status.state not in (State.DISABLED, State.STOPPING):
        return replace(_enter(configured, State.DISABLED, now), attempt=0)
    return status if configured == status else configured


def _stop_wanted(status: ServerStatus, reason: str, now: float) -> ServerStatus:
    if status.state in _WITH_PROCESS:
        return _enter(status, State.STOPPING, now, reason=reason)
    if status.state in (State.DISABLED, State.STOPPED, State.STOPPING):
        return status
    return replace(_enter(status, State.STOPPED, now, reason=reason), attempt=0)


def _with_problems(status: ServerStatus, problems: tuple[Problem, ...], now: float) -> ServerStatus:
    status = replace(status, problems=problems)
    if status.state not in CONNECTED:
        return status
    state = State.DEGRADED if problems else State.READY
    worst = problems[-1] if problems else Problem("", "")
    return replace(
        status,
        state=state,
        since=status.since if status.state is state else now,
        reason=worst.reason,
        error_code=worst.code,
        fix=FIXES.get(worst.code, ""),
    )


def _failed(status: ServerStatus, event: Failed, now: float, chance: float) -> ServerStatus:
    code, reason, fix = event.code, event.reason, event.fix or FIXES.get(event.code, "")
    helps = recovery(code)
    attempt, next_retry = status.attempt, None
    if helps is Recovery.CONFIG:
        state = State.NEEDS_CONFIG
    elif helps is Recovery.SIGN_IN:
        state = State.NEEDS_SIGN_IN
    elif helps is Recovery.NOTHING:
        state = State.FAILED
    elif attempt < status.max_attempts:
        state, attempt = State.RESTARTING, attempt + 1
        next_retry = now + delay_before(attempt, first=status.first_delay, longest=LONGEST, chance=chance)
    else:
        state = State.FAILED
        if attempt and code in _EXITS:
            code, reason = "crash-loop", f"{reason}; given up after {_times(attempt, 'restart')}"
            fix = FIXES[code]
        if helps is Recovery.PERSIST:
            attempt += 1
            first = max(status.first_delay, 1.0)
            next_retry = now + delay_before(attempt, first=first, longest=LONGEST_WHEN_FAILED, chance=chance)
    return replace(
        _enter(status, state, now, reason=reason),
        error_code=code,
        fix=fix,
        attempt=attempt,
        next_retry=next_retry,
        last_exit=event.exit or status.last_exit,
    )


def _times(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"

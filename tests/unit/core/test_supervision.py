from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from callboard.core.errors import FIXES
from callboard.core.health import State
from callboard.core.supervision import (
    Configured,
    Connected,
    Ended,
    Event,
    Exit,
    Failed,
    Healthy,
    ProblemFound,
    ProblemGone,
    Recovery,
    RetryBy,
    RetryDue,
    ServerStatus,
    Spawned,
    StartWanted,
    Stopped,
    StopWanted,
    Waiting,
    initial,
    recovery,
    restarts_today,
    transition,
)

CRASH = Failed("exited", "exited with code 1: boom", exit=Exit(5.0, code=1, stderr=("boom",)))


def after(events: Sequence[Event], status: ServerStatus | None = None, *, now: float = 100.0) -> ServerStatus:
    """The status after the events, one second apart."""
    status = status or initial(0.0)
    for number, event in enumerate(events):
        status = transition(status, event, now + number)
    return status


def test_a_start_that_works():
    status = after([StartWanted(), Spawned(7), Connected(7)])
    assert (status.state, status.pid, status.since, status.ready_since) == (State.READY, 7, 102.0, 102.0)
    assert not status.reason
    assert not status.error_code


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("env-unset", State.NEEDS_CONFIG),
        ("secret-missing", State.NEEDS_CONFIG),
        ("secrets-locked", State.NEEDS_CONFIG),
        ("sign-in-client-id", State.NEEDS_CONFIG),
        ("remote-certificate", State.NEEDS_CONFIG),
        ("remote-sign-in", State.NEEDS_SIGN_IN),
        ("remote-scope", State.NEEDS_SIGN_IN),
        ("remote-forbidden", State.FAILED),
        ("remote-tls", State.FAILED),
        ("command-not-found", State.FAILED),
        ("handshake-failed", State.FAILED),
        ("start-timeout", State.FAILED),
        ("exited-early", State.RESTARTING),
        ("remote-status", State.RESTARTING),
        ("remote-not-found", State.RESTARTING),
        ("remote-failed", State.RESTARTING),
        ("remote-dns", State.RESTARTING),
        ("remote-refused", State.RESTARTING),
        ("remote-unreachable", State.RESTARTING),
    ],
)
def test_each_cause_leads_to_its_own_state_and_keeps_its_code(code: str, state: State):
    status = after([StartWanted(), Failed(code, "the reason")])
    assert (status.state, status.error_code, status.reason, status.fix) == (state, code, "the reason", FIXES[code])
    assert (status.next_retry is not None) == (state is State.RESTARTING)


def test_a_crash_is_followed_by_pauses_that_double():
    status = after([StartWanted(), Connected()])
    pauses = []
    for _ in range(5):
        status = transition(status, CRASH, 200.0)
        assert status.state is State.RESTARTING
        assert status.next_retry is not None
        pauses.append(status.next_retry - 200.0)
        status = after([RetryDue(), Spawned(8)], status)
    assert pauses == [1, 2, 4, 8, 16]
    assert (status.attempt, status.restarts, status.state) == (5, 5, State.STARTING)


def test_after_the_last_restart_it_is_a_crash_loop_that_tells_the_cause():
    status = after([Configured(True, max_attempts=1), StartWanted(), CRASH, RetryDue(), CRASH])
    assert (status.state, status.error_code, status.next_retry) == (State.FAILED, "crash-loop", None)
    assert status.reason == "exited with code 1: boom; given up after 1 restart"
    assert status.last_exit == CRASH.exit


def test_without_restarts_the_exit_itself_is_the_failure():
    status = after([Configured(True, max_attempts=0), StartWanted(), Connected(), CRASH])
    assert (status.state, status.error_code, status.reason) == (State.FAILED, "exited", CRASH.reason)


def test_a_remote_server_is_tried_on_after_it_was_given_up():
    down = Failed("remote-status", "HTTP 502")
    status = after([Configured(True, max_attempts=1), StartWanted(), down, RetryDue(), down], now=0.0)
    pauses = []
    for _ in range(12):
        assert (status.state, status.error_code, status.reason) == (State.FAILED, "remote-status", "HTTP 502")
        assert status.next_retry is not None
        pauses.append(status.next_retry - status.since)
        status = after([RetryDue(), down], status)
    assert pauses[0] == 2
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300
    assert after([RetryDue(), Connected()], status).state is State.READY


def test_a_reason_to_try_earlier_shortens_the_pause_and_never_makes_it_longer():
    status = transition(after([StartWanted()]), Failed("remote-unreachable", "no route"), 200.0)
    for _ in range(4):
        status = after([RetryDue(), Failed("remote-unreachable", "no route")], status, now=200.0)
    assert status.next_retry == 217.0
    sooner = transition(status, RetryBy(210.0), 205.0)
    assert (sooner.next_retry, sooner.attempt, sooner.state) == (210.0, 5, State.RESTARTING)
    assert transition(sooner, RetryBy(212.0), 206.0) is sooner
    assert transition(sooner, RetryBy(100.0), 206.0).next_retry == 206.0
    assert transition(after([StartWanted(), Connected()]), RetryBy(1.0), 205.0).next_retry is None


def test_a_try_that_is_due_already_is_not_put_off_by_a_reason_to_try_earlier():
    status = transition(transition(initial(1001.0), StartWanted(), 1001.0), Failed("exited-early", "why"), 1002.0)
    assert (status.state, status.since, status.attempt, status.next_retry) == (State.RESTARTING, 1002.0, 1, 1003.0)
    for moment in (900.0, 1002.5, 1003.0, 1004.0, 1100.0):
        assert transition(status, RetryBy(moment), 1004.0) is status


def test_how_a_process_ended_may_be_known_later_than_its_failure():
    ended = Ended(Exit(12.0, signal="SIGKILL", stderr=("still here",)))
    status = after([StartWanted(), Connected(3), Failed("not-responding", "has not answered"), ended])
    assert (status.state, status.error_code, status.last_exit) == (State.RESTARTING, "not-responding", ended.exit)


def test_restarts_are_counted_for_each_day():
    noon = 1_700_000_000.0
    status = initial(noon)
    for moment in (noon, noon + 1, noon + 86_400):
        status = transition(transition(status, StartWanted(), moment), CRASH, moment)
        status = transition(status, RetryDue(), moment)
        status = transition(transition(status, StopWanted(), moment), Stopped(), moment)
        expected = 2 if moment == noon + 1 else 1
        assert restarts_today(status, moment) == expected
    assert status.restarts == 3
    assert restarts_today(status, noon + 3 * 86_400) == 0


def test_health_forgives_earlier_crashes():
    status = after([StartWanted(), Connected(), CRASH, RetryDue(), Connected()])
    assert status.attempt == 1
    status = transition(status, Healthy(), 500.0)
    assert (status.attempt, status.restarts, status.state) == (0, 1, State.READY)


def test_nothing_of_an_error_outlives_its_cause():
    status = after([StartWanted(), Failed("command-not-found", "no npx"), StartWanted(), Connected(3)])
    assert (status.reason, status.error_code, status.fix, status.attempt) == ("", "", "", 0)


def test_a_person_who_retries_gets_all_tries_anew():
    status = after([StartWanted(), CRASH, StartWanted()])
    assert (status.state, status.attempt, status.next_retry) == (State.STARTING, 0, None)


@pytest.mark.parametrize("before", [[StartWanted()], [StartWanted(), Connected(4)]])
def test_stopping_is_told_until_nothing_runs_any_more(before: list[Event]):
    status = after([*before, StopWanted("not used for 10 min")])
    assert (status.state, status.reason) == (State.STOPPING, "not used for 10 min")
    status = transition(status, Stopped(Exit(9.0, code=0)), 300.0)
    assert (status.state, status.pid, status.reason) == (State.STOPPED, None, "not used for 10 min")
    assert status.last_exit == Exit(9.0, code=0)


def test_stopping_during_a_pause_starts_nothing():
    status = after([StartWanted(), CRASH, StopWanted()])
    assert (status.state, status.next_retry) == (State.STOPPED, None)
    assert transition(status, RetryDue(), 500.0) is status


def test_what_comes_after_a_stop_changes_nothing():
    status = after([StartWanted(), Spawned(4), StopWanted()])
    for late in (Connected(4), CRASH, RetryDue(), ProblemFound("stdout-noise", "x"), Waiting("x"), StartWanted()):
        assert transition(status, late, 500.0) is status


def test_disabling_a_running_server_stops_it_first():
    status = after([StartWanted(), Connected(4), Configured(False)])
    assert status.state is State.STOPPING
    status = after([Stopped()], status)
    assert status.state is State.DISABLED
    assert transition(status, StartWanted(), 500.0) is status
    assert after([Configured(True)], status).state is State.STOPPED


def test_problems_make_a_ready_server_degraded_and_each_has_its_own_end():
    noise, tools = ProblemFound("stdout-noise", "prints on stdout"), ProblemFound("tool-unknown", "odd tool")
    status = after([StartWanted(), noise])
    assert status.state is State.STARTING
    status = after([Connected(4), tools], status)
    assert (status.state, status.error_code, status.pid) == (State.DEGRADED, "tool-unknown", 4)
    status = after([ProblemGone("tool-unknown")], status, now=200.0)
    assert (status.state, status.error_code, status.since) == (State.DEGRADED, "stdout-noise", 100.0)
    status = after([ProblemGone("stdout-noise")], status, now=300.0)
    assert (status.state, status.error_code, status.since, status.ready_since) == (State.READY, "", 300.0, 100.0)


def test_problems_end_with_the_process():
    noise = ProblemFound("stdout-noise", "prints on stdout")
    status = after([StartWanted(), Connected(), noise, CRASH, RetryDue(), Connected()])
    assert status.state is State.READY


def test_a_long_start_tells_what_it_waits_for():
    status = after([StartWanted(), Spawned(5), Waiting("downloading")])
    assert (status.state, status.reason, status.since) == (State.STARTING, "downloading", 100.0)


def test_no_failure_code_is_without_a_fix():
    for code in FIXES:
        assert recovery(code) in Recovery


FAILURES = ["env-unset", "remote-sign-in", "command-not-found", "exited-early", "exited", "remote-status"]


class Life(RuleBasedStateMachine):
    """Any order of events keeps the promises that row, tray and supervisor rely on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.status = initial(self.now)
        self.before = self.status

    def feed(self, event: Event, chance: float = 0.0) -> None:
        self.now += 1
        self.before = self.status
        self.status = transition(self.status, event, self.now, chance=chance)
        # Hearing the same thing at the same moment once more says nothing new.
        if not isinstance(event, Failed | RetryDue | StartWanted):
            assert transition(self.status, event, self.now, chance=chance) == self.status

    @rule(enabled=st.booleans(), most=st.integers(0, 3), delay=st.floats(0, 5))
    def configured(self, enabled: bool, most: int, delay: float) -> None:
        self.feed(Configured(enabled, most, delay))

    @rule()
    def start_wanted(self) -> None:
        self.feed(StartWanted())

    @rule(pid=st.integers(1, 99))
    def spawned(self, pid: int) -> None:
        self.feed(Spawned(pid))

    @rule(pid=st.none() | st.integers(1, 99))
    def connected(self, pid: int | None) -> None:
        self.feed(Connected(pid))

    @rule(code=st.sampled_from(FAILURES), chance=st.floats(0, 1, exclude_max=True))
    def failed(self, code: str, chance: float) -> None:
        self.feed(Failed(code, "why"), chance)

    @rule(ahead=st.floats(-50, 50))
    def retry_by(self, ahead: float) -> None:
        self.feed(RetryBy(self.now + ahead))
        assert self.status.next_retry == self.before.next_retry or self.status.next_retry < self.before.next_retry

    @precondition(lambda self: self.status.next_retry is not None)
    @rule()
    def retry_due(self) -> None:
        self.feed(RetryDue())
        assert self.status.state is State.STARTING

    @rule(
        event=st.sampled_from(
            [
                StopWanted(),
                Stopped(),
                Healthy(),
                RetryDue(),
                Waiting("x"),
                Ended(Exit(3.0, code=1)),
                ProblemFound("stdout-noise", "x"),
                ProblemGone("stdout-noise"),
            ]
        )
    )
    def other(self, event: Event) -> None:
        self.feed(event)

    @invariant()
    def facts_fit_the_state(self) -> None:
        status = self.status
        running = {State.STARTING, State.READY, State.DEGRADED, State.STOPPING}
        assert status.pid is None or status.state in running
        assert (status.ready_since is not None) == (status.state in {State.READY, State.DEGRADED})
        assert (status.next_retry is not None) or status.state is not State.RESTARTING
        assert status.next_retry is None or status.state in {State.RESTARTING, State.FAILED}
        assert status.next_retry is None or status.next_retry >= status.since
        assert bool(status.problems) or status.state is not State.DEGRADED
        assert not status.problems or status.state in {State.STARTING, State.DEGRADED}
        told = {State.DEGRADED, State.RESTARTING, State.FAILED, State.NEEDS_CONFIG, State.NEEDS_SIGN_IN}
        assert bool(status.error_code) == (status.state in told)
        assert not status.error_code or status.fix
        if not status.enabled:
            assert status.state in {State.DISABLED, State.STOPPING}

    @invariant()
    def a_new_moment_means_a_new_state(self) -> None:
        if self.status.state is not self.before.state:
            assert self.status.since == self.now
        if self.status.since == self.before.since:
            assert self.status.state is self.before.state

    @invariant()
    def restarts_are_only_made_without_a_person(self) -> None:
        assert self.status.restarts - self.before.restarts in (0, 1)


TestLife = Life.TestCase

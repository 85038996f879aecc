"""Words and numbers: the one line about all servers, and how times and sizes read."""

import pytest

from callboard.core.health import Action, Severity, State
from callboard.ui import formats, words
from callboard.ui.summary import needing_attention, summarize
from tests.ui.conftest import NOW, server_view


@pytest.mark.parametrize(
    ("states", "line", "severity"),
    [
        ([], "No servers yet", Severity.OFF),
        ([State.STOPPED, State.DISABLED], "All stopped", Severity.OFF),
        ([State.READY, State.READY, State.STOPPED], "2 running", Severity.FINE),
        ([State.STARTING], "1 starting", Severity.BUSY),
        ([State.READY, State.STOPPING], "1 running · 1 stopping", Severity.BUSY),
        ([State.READY, State.DEGRADED], "2 running · 1 needs attention", Severity.ATTENTION),
        ([State.NEEDS_CONFIG, State.NEEDS_SIGN_IN], "2 need attention", Severity.ATTENTION),
        ([State.READY, State.FAILED, State.RESTARTING], "1 running · 1 needs attention · 1 failed", Severity.FAILED),
    ],
)
def test_the_line_about_all_servers(states: list[State], line: str, severity: Severity) -> None:
    summary = summarize(server_view(f"s{number}", state) for number, state in enumerate(states))
    assert (summary.line(), summary.severity) == (line, severity)


def test_failed_servers_come_before_those_that_need_attention() -> None:
    views = [server_view("a", State.NEEDS_CONFIG), server_view("b"), server_view("c", State.FAILED)]
    assert [view.name for view in needing_attention(views)] == ["c", "a"]


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_word(state: State) -> None:
    assert words.state_word(state)
    assert words.state_line(server_view("a", state, reason="It did. Twice."), NOW).startswith(words.state_word(state))


@pytest.mark.parametrize("action", Action)
def test_every_action_has_a_verb(action: Action) -> None:
    assert bool(words.action_verb(action)) is (action is not Action.NONE)


def test_a_restart_counts_down() -> None:
    view = server_view("a", State.RESTARTING, attempt=2, max_attempts=5, next_retry=NOW + 4)
    assert words.state_phrase(view, NOW) == "Restarting (2 of 5, next in 4 s)"
    assert words.state_phrase(view, NOW + 5) == "Restarting (2 of 5)"
    given_up = server_view("a", State.FAILED, attempt=7, max_attempts=5, next_retry=NOW + 100)
    assert words.state_phrase(given_up, NOW) == "Failed (next try in 1 min 40 s)"
    assert words.state_phrase(given_up, NOW + 100) == "Failed"


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("command not found: npx (searched /bin). Install it.", "command not found: npx (searched /bin)"),
        ("exited 5 times in 40 s; last: exit 1", "exited 5 times in 40 s"),
        ("HTTP 503 - retry in 30 s", "HTTP 503"),
        ("version 1.2.3 is too old", "version 1.2.3 is too old"),
        ("", ""),
    ],
)
def test_the_first_clause_of_a_reason(text: str, clause: str) -> None:
    assert formats.first_clause(text) == clause


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "just now"), (30, "30 s ago"), (90, "1 min ago"), (7200, "2 h ago"), (200_000, "2 d ago")],
)
def test_relative_times(seconds: float, text: str) -> None:
    assert formats.relative_time(NOW - seconds, NOW) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5 s"), (65, "1 min 5 s"), (3_700, "1 h 1 min"), (90_000, "1 d 1 h"), (-3, "0 s")]
)
def test_spans(seconds: float, text: str) -> None:
    assert formats.uptime(seconds) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(None, "\N{EN DASH}"), (1.25, "1.3 ms"), (250.4, "250 ms"), (1500, "1.50 s"), (61_000, "1 min 1 s")],
)
def test_durations(ms: float | None, text: str) -> None:
    assert formats.duration(ms) == text

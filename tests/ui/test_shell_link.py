"""The link: what widgets are told, in which order, and how often."""

import asyncio

import pytest
from PySide6.QtCore import QObject

from callboard.api.schema import LogLine, SecretsView, ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity, State
from tests.ui.conftest import HandLink, call_view, engine_view, roster_view, server_view


def record(signal: object) -> list[object]:
    """What a signal says from now on."""
    told: list[object] = []
    signal.connect(lambda *values: told.append(values[0] if len(values) == 1 else values))  # type: ignore[attr-defined]
    return told


def test_a_new_connection_tells_everything(link: HandLink) -> None:
    resets, connected, resynced = record(link.serversReset), record(link.connected), record(link.resynced)
    engines, rosters, secrets = record(link.engineChanged), record(link.rosterChanged), record(link.secretsChanged)
    link.connect_by_hand(server_view("b"), server_view("a"))
    assert [view.name for view in resets[0]] == ["b", "a"]  # type: ignore[attr-defined]
    assert list(link.servers) == ["b", "a"]
    assert (len(connected), len(resynced)) == (1, 1)
    assert engines == [link.engine]
    assert rosters == [link.roster]
    assert secrets == [link.secrets]
    assert link.is_connected


def test_of_many_changes_in_one_batch_only_the_newest_is_told(link: HandLink) -> None:
    link.connect_by_hand(server_view("a"))
    changed = record(link.serverChanged)
    from callboard.api.schema import Event

    for number, state in enumerate((State.STOPPING, State.STOPPED, State.STARTING)):
        link.feed(Event(seq=number, at=0.0, kind="server", data=server_view("a", state)))
    assert changed == []
    link.flush()
    assert [view.state for view in changed] == [State.STARTING]  # type: ignore[attr-defined]


async def test_batches_are_told_without_being_asked(link: HandLink) -> None:
    from callboard.api.schema import Event

    link.connect_by_hand(server_view("a"))
    told: asyncio.Future[ServerView] = asyncio.get_running_loop().create_future()
    link.serverChanged.connect(told.set_result)
    link.feed(Event(seq=1, at=0.0, kind="server", data=server_view("a", State.FAILED)))
    assert (await asyncio.wait_for(told, 5)).state is State.FAILED


def test_events_as_they_come_over_the_wire_are_understood(link: HandLink) -> None:
    link.connect_by_hand(server_view("a"))
    lines, calls, tools = record(link.logLines), record(link.callsChanged), record(link.toolsChanged)
    link.say("log", {"server": "a", "lines": [{"n": 1, "at": 2.0, "stream": "stderr", "text": "hi", "newer": True}]})
    link.say("tools", {"server": "a"})
    link.say(
        "calls",
        {
            "calls": [
                {
                    "id": 3,
                    "started": 1.0,
                    "client": "x",
                    "server": "a",
                    "method": "tools/call",
                    "tool": "t",
                    "status": "running",
                }
            ]
        },
    )
    assert lines == [("a", [LogLine(n=1, at=2.0, stream="stderr", text="hi")])]
    assert tools == ["a"]
    assert [call.id for call in calls[0]] == [3]  # type: ignore[attr-defined]
    assert link.recent_calls[-1].status == "running"


def test_a_call_that_ends_replaces_its_running_row(link: HandLink) -> None:
    link.connect_by_hand(calls=[call_view(1), call_view(2, status="running", duration_ms=None)])
    link.say("calls", {"calls": [call_view(2), call_view(3)]})
    assert [(call.id, call.status) for call in link.recent_calls] == [
        (1, "completed"),
        (2, "completed"),
        (3, "completed"),
    ]


def test_removed_servers_go_and_new_ones_take_their_place_in_the_roster(link: HandLink) -> None:
    link.connect_by_hand(server_view("a"), server_view("c"))
    removed, resets = record(link.serverRemoved), record(link.serversReset)
    link.say("server-removed", {"name": "a"})
    assert removed == ["a"]
    link.say("roster", roster_view(["b", "c"]))
    link.say("server", server_view("b"))
    assert list(link.servers) == ["b", "c"]
    assert [view.name for view in resets[-1]] == ["b", "c"]  # type: ignore[attr-defined]


def test_the_last_known_state_survives_a_lost_connection(link: HandLink) -> None:
    link.connect_by_hand(server_view("a"), engine=engine_view(version="9"))
    link.disconnect_by_hand()
    assert not link.is_connected
    assert list(link.servers) == ["a"]
    assert link.engine is not None
    assert link.engine.version == "9"


def test_servers_end_with_the_engine(link: HandLink) -> None:
    link.connect_by_hand(
        server_view("a", State.STOPPING, pid=7, tools=3, reason="Stopping"),
        server_view("b", State.FAILED, error_code="crash-loop", next_retry=1.0),
        server_view("c", State.DISABLED),
    )
    link.disconnect_by_hand()
    resets = record(link.serversReset)
    link.engine_ended()
    assert [view.state for view in link.servers.values()] == [State.STOPPED, State.STOPPED, State.DISABLED]
    first, second, _ = link.servers.values()
    assert (first.severity, first.pid, first.tools, first.cached, first.reason) == (Severity.OFF, None, 3, True, "")
    assert (second.error_code, second.next_retry) == ("", None)
    link.engine_ended()
    assert resets == [list(link.servers.values())], "told once"


def test_secrets_and_engine_are_told_when_they_change(link: HandLink) -> None:
    link.connect_by_hand()
    engines, secrets = record(link.engineChanged), record(link.secretsChanged)
    link.say("engine", engine_view(port=4471))
    link.say("secrets", SecretsView(kind="keyring", backend="x", waiting=True))
    assert [view.port for view in engines] == [4471]  # type: ignore[attr-defined]
    assert [view.waiting for view in secrets] == [True]  # type: ignore[attr-defined]


class TestRequests:
    async def test_without_an_engine_the_caller_is_told(self, link: HandLink) -> None:
        errors: list[CallboardError] = []
        await link.request(lambda client: client.servers(), None, errors.append)
        assert [error.code for error in errors] == ["engine-not-running"]

    async def test_an_error_that_nobody_takes_is_shown_by_the_window(self, link: HandLink) -> None:
        shown = record(link.tasks.failed)
        await asyncio.wait([link.request(lambda client: client.servers())])
        await asyncio.sleep(0)
        assert [error.code for error in shown] == ["engine-not-running"]  # type: ignore[attr-defined]

    async def test_answers_for_deleted_widgets_are_dropped(self, link: HandLink) -> None:
        link.connect_by_hand()
        owner, answers = QObject(), []
        gate = asyncio.Event()

        async def ask(_client: object) -> int:
            await gate.wait()
            return 1

        import shiboken6

        task = link.request(ask, answers.append, owner=owner)
        await asyncio.sleep(0)
        shiboken6.delete(owner)
        gate.set()
        await task
        assert answers == []

    async def test_closing_ends_requests_under_way(self, link: HandLink) -> None:
        link.connect_by_hand()

        async def never(_client: object) -> None:
            await asyncio.Event().wait()

        task = link.request(never)
        await asyncio.sleep(0)
        await link.close()
        assert task.cancelled()

    async def test_a_fault_of_ours_is_logged_with_its_trace_and_shown(
        self, link: HandLink, caplog: pytest.LogCaptureFixture
    ) -> None:
        shown = record(link.tasks.failed)
        link.connect_by_hand()

        async def broken(_client: object) -> None:
            raise ZeroDivisionError

        await asyncio.wait([link.request(broken, name="sum")])
        await asyncio.sleep(0)
        assert [error.code for error in shown] == ["internal"]  # type: ignore[attr-defined]
        assert "sum failed" in caplog.text
        assert "ZeroDivisionError" in caplog.text

"""What a click on an action comes to, and what is said of it."""

import pytest
from PySide6.QtGui import QGuiApplication

from callboard.api.schema import SnippetView
from callboard.core.errors import CallboardError
from callboard.core.health import Action, State
from callboard.ui import actions as actions_module
from callboard.ui.actions import ServerActions
from tests.ui.conftest import HandLink, server_view, until

ASKED_OF_ENGINE = [Action.ENABLE, Action.START, Action.STOP, Action.CANCEL, Action.RETRY]


@pytest.mark.parametrize("action", ASKED_OF_ENGINE)
async def test_actions_of_the_engine_are_asked_of_it(link: HandLink, actions: ServerActions, action: Action) -> None:
    link.connect_by_hand(server_view("a"))
    link.hand.answers[f"/servers/a/{action}"] = server_view("a")
    actions.run("a", action)
    await until(lambda: ("POST", f"/servers/a/{action}", None) in link.hand.asked)


@pytest.mark.parametrize("action", [Action.EDIT, Action.FILL_IN])
def test_what_needs_a_person_opens_the_editor(link: HandLink, actions: ServerActions, action: Action) -> None:
    edited: list[str] = []
    actions.editRequested.connect(edited.append)
    actions.run("a", action)
    assert edited == ["a"]


def test_a_sign_in_is_begun_by_the_button_alone(link: HandLink, actions: ServerActions) -> None:
    shown: list[tuple[str, bool]] = []
    actions.signInRequested.connect(lambda name, begin: shown.append((name, begin)))
    actions.run("a", Action.SIGN_IN)
    actions.show_sign_in("a")
    assert shown == [("a", True), ("a", False)]


def test_a_degraded_server_shows_its_log(link: HandLink, actions: ServerActions) -> None:
    shown: list[str] = []
    actions.logRequested.connect(shown.append)
    actions.run_primary(server_view("a", State.DEGRADED))
    assert shown == ["a"]


async def test_what_the_engine_refuses_is_told(link: HandLink, actions: ServerActions) -> None:
    failed: list[CallboardError] = []
    actions.failed.connect(failed.append)
    link.connect_by_hand(server_view("a"))
    link.hand.answers["/servers/a/restart"] = CallboardError("disabled", "The server a is disabled.")
    actions.restart("a")
    await until(lambda: failed)
    assert (failed[0].code, failed[0].fix) == ("disabled", "Enable the server (`callboard enable NAME`).")


async def test_a_configuration_is_copied_and_where_it_belongs_is_said(link: HandLink, actions: ServerActions) -> None:
    said: list[str] = []
    actions.said.connect(said.append)
    link.connect_by_hand()
    link.hand.answers["/snippet/vscode"] = SnippetView(
        client="vscode", text='{"servers": {}}', file=".vscode/mcp.json", format="json"
    )
    actions.copy_vscode_config()
    await until(lambda: said)
    assert QGuiApplication.clipboard().text() == '{"servers": {}}'
    assert said == ["Configuration copied. Paste it into .vscode/mcp.json."]


def test_without_an_engine_there_is_no_address_to_copy(link: HandLink, actions: ServerActions) -> None:
    failed: list[CallboardError] = []
    actions.failed.connect(failed.append)
    actions.copy_gateway_url()
    assert [error.code for error in failed] == ["engine-not-running"]


async def test_on_wayland_the_clipboard_waits_for_a_window_with_the_focus(
    link: HandLink, actions: ServerActions, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    actions.openRequested.connect(opened.append)
    monkeypatch.setattr(QGuiApplication, "platformName", staticmethod(lambda: "wayland"))
    monkeypatch.setattr(actions_module, "_has_focus", lambda: False)
    QGuiApplication.clipboard().setText("before")
    actions.copy_text("new", "Copied")
    assert (opened, QGuiApplication.clipboard().text()) == ([""], "before")
    app = QGuiApplication.instance()
    assert isinstance(app, QGuiApplication)
    app.focusWindowChanged.emit(None)
    assert QGuiApplication.clipboard().text() == "before"
    actions._copy(object())  # what the signal calls with the window that has it
    assert QGuiApplication.clipboard().text() == "new"

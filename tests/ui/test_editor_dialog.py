"""The dialog: adding, duplicating, and closing without losing anything."""

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QLineEdit
from shiboken6 import isValid

from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.editor.auth_fields import AuthFields
from callboard.ui.editor.dialog import EditorDialog
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from tests.ui.conftest import HandLink, server_view, until
from tests.ui.editor_fakes import MemoryEngine, enter, press

SERVERS: dict[str, dict[str, Any]] = {
    "github": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${secret:github-token}"}, "cwd": "/srv"}
}


@pytest.fixture
def engine(link: HandLink) -> MemoryEngine:
    """An engine with one server."""
    engine = MemoryEngine(SERVERS)
    engine.secrets_kept["github-token"] = "value"
    engine.join(link)
    return engine


@pytest.fixture
def editor(link: HandLink, theme: Theme, icons: Icons, engine: MemoryEngine) -> Iterator[ServerEditor]:
    """The editor of a window."""
    editor = ServerEditor(link, theme, icons)
    yield editor
    editor.deleteLater()


def edit_of(dialog: EditorDialog, name: str) -> QLineEdit:
    """The line in which a field is typed."""
    field: Any = dialog.form.fields.rows[(name,)].field
    edit = getattr(field, "edit", None) or field.editor.edit
    assert isinstance(edit, QLineEdit)
    return edit


async def closed(dialog: EditorDialog) -> None:
    """Wait until the dialog is gone."""
    await until(lambda: not isValid(dialog) or not dialog.isVisible(), "closing")
    await until(lambda: not isValid(dialog), "deletion")


async def test_a_local_server_is_added(editor: ServerEditor, engine: MemoryEngine) -> None:
    saved: list[str] = []
    editor.saved.connect(saved.append)
    dialog = editor.add_server()
    assert dialog.isModal()
    assert dialog.form.footer.status == "Still needed: Name, Command."
    assert not dialog.form.fields.rows[("command",)].problem, "nothing is accused before it was touched"
    assert dialog.form.focusWidget() is edit_of(dialog, "name")
    QTest.keyClicks(edit_of(dialog, "name"), "time")
    QTest.keyClicks(edit_of(dialog, "command"), "uvx")
    await until(lambda: not dialog.form.is_checking, "validation")
    QTest.keyClick(edit_of(dialog, "command"), Qt.Key.Key_Return)
    await closed(dialog)
    assert engine.servers["time"] == {"command": "uvx"}
    assert engine.edits[-1][1].create
    assert saved == ["time"]
    assert editor.drafts.names == []


async def test_another_kind_takes_the_name_along_and_keeps_the_rest(
    editor: ServerEditor, engine: MemoryEngine, link: HandLink
) -> None:
    dialog = editor.add_server()
    assert dialog.chooser is not None
    enter(edit_of(dialog, "name"), "docs")
    enter(edit_of(dialog, "command"), "uvx")
    await until(dialog.isActiveWindow, "activation")
    dialog.chooser.cards["local"].setFocus()
    QTest.keyClick(dialog.chooser.cards["local"], Qt.Key.Key_Right)
    assert dialog.form.fields.kind == "remote"
    assert edit_of(dialog, "name").text() == "docs"
    QTest.keyClick(dialog.chooser.cards["remote"], Qt.Key.Key_Right)
    assert dialog.form.fields.kind == "agent"
    dialog.chooser.cards["local"].click()
    assert edit_of(dialog, "command").text() == "uvx"
    dialog.chooser.cards["remote"].click()
    enter(edit_of(dialog, "url"), "https://example.com/mcp")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["docs"] == {"url": "https://example.com/mcp"}


async def test_a_remote_server_is_added_with_its_token(editor: ServerEditor, engine: MemoryEngine) -> None:
    dialog = editor.add_server("remote")
    auth = dialog.form.fields.rows[("auth",)].field
    assert isinstance(auth, AuthFields)
    auth.type.box.setCurrentIndex(auth.type.box.findData("bearer"))
    assert auth.rows["secret"].problem == "Enter the value that the server expects."
    enter(edit_of(dialog, "name"), "docs")
    enter(edit_of(dialog, "url"), "https://example.com/mcp")
    enter(auth.secret.editor.edit, "t0ken")
    assert "docs-token" in auth.secret.editor.remarks.note
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["docs"] == {
        "url": "https://example.com/mcp",
        "auth": {"type": "bearer", "secret": "docs-token"},
    }
    assert engine.secrets_kept["docs-token"] == "t0ken"


async def test_closing_asks_only_if_something_would_be_lost(editor: ServerEditor, engine: MemoryEngine) -> None:
    untouched = editor.add_server()
    QTest.keyClick(untouched, Qt.Key.Key_Escape)
    await closed(untouched)

    dialog = editor.add_server()
    enter(edit_of(dialog, "name"), "docs")
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    assert "would be lost" in dialog.form.notices.text("leave")
    press(dialog.form.notices, "Keep editing")
    assert edit_of(dialog, "name").text() == "docs"
    assert dialog.form.notices.text("leave") == ""
    dialog.close()
    assert dialog.isVisible(), "the window's own close button asks as well"
    press(dialog.form.notices, "Discard")
    await closed(dialog)
    assert list(engine.servers) == ["github"]


async def test_a_duplicate_has_a_free_name_and_the_same_secrets(editor: ServerEditor, engine: MemoryEngine) -> None:
    engine.write_outside({**SERVERS, "github-copy": {"command": "x"}})
    dialog = editor.duplicate_server("github")
    assert dialog is not None
    assert dialog.windowTitle() == "Duplicate github"
    assert edit_of(dialog, "name").text() == "github-copy-2"
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["github-copy-2"] == SERVERS["github"]
    assert engine.secrets_kept == {"github-token": "value"}
    assert editor.duplicate_server("nobody") is None


async def test_a_dialog_without_changes_can_be_closed_by_its_button(editor: ServerEditor) -> None:
    dialog = editor.edit_server("github")
    assert dialog.form.footer.leave_button.isEnabled()
    enter(edit_of(dialog, "command"), "bunx")
    press(dialog.form.footer, "Discard")
    assert edit_of(dialog, "command").text() == "npx"
    press(dialog.form.footer, "Close")
    await closed(dialog)


async def test_a_dialog_says_what_is_wrong_and_begins_there(
    editor: ServerEditor, engine: MemoryEngine, link: HandLink
) -> None:
    reason = "The address is none."
    link.say("server", server_view("github", State.FAILED, reason=reason, fix="Correct it."))
    engine.write_outside({"github": {"url": "nowhere"}})
    dialog = editor.edit_server("github")
    assert reason in [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()]
    await until(lambda: not dialog.form.is_checking, "validation")
    assert dialog.form.focusWidget() is edit_of(dialog, "url")
    link.say("server", server_view("github"))
    assert reason not in [label.text() for label in dialog.findChildren(QLabel) if label.isVisible()]
    press(dialog.form.footer, "Close")
    await closed(dialog)


async def test_a_server_is_edited_in_a_dialog(editor: ServerEditor, engine: MemoryEngine) -> None:
    dialog = editor.edit_server("github")
    enter(edit_of(dialog, "command"), "bunx")
    dialog.reject()
    press(dialog.form.notices, "Discard")
    await closed(dialog)
    assert editor.drafts.names == []
    dialog = editor.edit_server("github")
    assert edit_of(dialog, "command").text() == "npx"
    enter(edit_of(dialog, "command"), "bunx")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Save")
    await closed(dialog)
    assert engine.servers["github"]["command"] == "bunx"


async def test_a_taken_name_comes_back_from_the_engine(editor: ServerEditor, engine: MemoryEngine) -> None:
    dialog = editor.add_entry("docs", {"url": "https://example.com/mcp", "description": "From a list"})
    await until(lambda: not dialog.form.is_checking, "validation")
    engine.fail_with = CallboardError("name-taken", "A server named docs exists already.")
    press(dialog.form.footer, "Add server")
    await until(lambda: not dialog.form.is_saving, "saving")
    assert dialog.form.fields.rows[("name",)].problem == "A server named docs exists already."
    assert dialog.form.focusWidget() is edit_of(dialog, "name")
    enter(edit_of(dialog, "name"), "docs-2")
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)
    assert engine.servers["docs-2"] == {"url": "https://example.com/mcp", "description": "From a list"}


async def test_escape_ends_the_waiting_before_the_dialog(editor: ServerEditor, engine: MemoryEngine) -> None:
    dialog = editor.add_entry("docs", {"url": "https://example.com/mcp"})
    await until(lambda: not dialog.form.is_checking, "validation")
    engine.gate.clear()
    press(dialog.form.footer, "Add server")
    assert dialog.form.is_saving
    dialog.reject()
    assert dialog.isVisible()
    assert not dialog.form.is_saving
    dialog.reject()
    await closed(dialog)

"""Beginning a new server with one that comes with Callboard."""

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit
from shiboken6 import isValid

from callboard.api.schema import NeedView, ShippedView
from callboard.ui.editor.dialog import EditorDialog
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from tests.ui.conftest import HandLink, until
from tests.ui.editor_fakes import MemoryEngine, enter, press

FILES = ShippedView(
    name="filesystem",
    display_name="Files",
    description="Reads files",
    kind="local",
    entry={"display_name": "Files", "command": "${python}", "args": ["-m", "callboard.servers.filesystem"]},
    needs=[NeedView(kind="folders", title="folders", state="asked", message="It needs folders.", fix="Name them.")],
)
EXA = ShippedView(
    name="exa",
    display_name="Exa",
    description="Searches the web",
    kind="remote",
    entry={"url": "https://mcp.exa.ai/mcp", "auth": "none"},
    needs=[
        NeedView(
            kind="secret",
            name="exa-api-key",
            state="met",
            message="The secret has a value.",
            fields={"auth": {"type": "api_key", "secret": "exa-api-key", "header": "x-api-key"}},
        )
    ],
)
BROWSER = ShippedView(
    name="playwright",
    display_name="Playwright",
    description="Drives a browser",
    kind="local",
    entry={"command": "npx", "args": ["-y", "@playwright/mcp@latest"]},
    needs=[NeedView(kind="browser", state="missing", message="Chrome is not here.", fix="Install it.")],
    can_run=False,
)


@pytest.fixture
def engine(link: HandLink) -> MemoryEngine:
    """An engine with a catalogue, and with a server that has the name of one of them."""
    engine = MemoryEngine({"filesystem": {"command": "x"}})
    engine.secrets_kept["exa-api-key"] = "value"
    engine.answers["/shipped"] = [FILES, EXA, BROWSER]
    engine.join(link)
    return engine


@pytest.fixture
def editor(link: HandLink, theme: Theme, icons: Icons, engine: MemoryEngine) -> Iterator[ServerEditor]:
    """The editor of a window."""
    editor = ServerEditor(link, theme, icons)
    yield editor
    editor.deleteLater()


async def opened(editor: ServerEditor) -> EditorDialog:
    """The dialog for a new server, once it knows the catalogue."""
    dialog = editor.add_server()
    catalogue = dialog.catalogue
    assert catalogue is not None
    await until(catalogue.box.isEnabled, "the catalogue")
    return dialog


def choose(dialog: EditorDialog, index: int) -> None:
    """Choose from the list as a person with a keyboard would."""
    assert dialog.catalogue is not None
    box = dialog.catalogue.box
    box.setFocus()
    while box.currentIndex() < index:
        QTest.keyClick(box, Qt.Key.Key_Down)
    assert box.currentIndex() == index


def text_of(dialog: EditorDialog, name: str) -> str:
    """What stands in a field."""
    return edit_of(dialog, name).text()


def edit_of(dialog: EditorDialog, name: str) -> QLineEdit:
    """The line in which a field is typed."""
    field: Any = dialog.form.fields.rows[(name,)].field
    edit = getattr(field, "edit", None) or field.editor.edit
    assert isinstance(edit, QLineEdit)
    return edit


async def closed(dialog: EditorDialog) -> None:
    """Wait until the dialog is gone."""
    await until(lambda: not isValid(dialog), "deletion")


async def test_a_server_of_the_catalogue_is_added(editor: ServerEditor, engine: MemoryEngine) -> None:
    dialog = await opened(editor)
    assert dialog.catalogue is not None
    assert dialog.catalogue.box.itemText(1) == "Files - Reads files"
    assert dialog.catalogue.box.itemText(3) == "Playwright - Drives a browser (cannot run here yet)"

    choose(dialog, 1)
    assert text_of(dialog, "name") == "filesystem-2"
    assert dialog.form.notices.text("shipped") == "It needs folders. Name them."
    choose(dialog, 2)
    assert dialog.form.fields.kind == "remote"
    assert dialog.chooser is not None
    assert dialog.chooser.cards["remote"].isChecked()
    assert dialog.form.notices.text("shipped") == ""
    await until(lambda: not dialog.form.is_checking, "validation")
    press(dialog.form.footer, "Add server")
    await closed(dialog)

    assert engine.servers["exa"] == {
        "url": "https://mcp.exa.ai/mcp",
        "auth": {"type": "api_key", "secret": "exa-api-key", "header": "x-api-key"},
    }


async def test_what_this_machine_lacks_is_said_before_it_is_added(editor: ServerEditor) -> None:
    dialog = await opened(editor)

    choose(dialog, 3)

    assert dialog.form.notices.text("shipped") == "Chrome is not here. Install it."
    dialog.reject()
    await closed(dialog)


async def test_what_was_entered_is_not_lost_without_a_question(editor: ServerEditor) -> None:
    dialog = await opened(editor)
    enter(edit_of(dialog, "command"), "uvx")

    choose(dialog, 1)
    assert text_of(dialog, "command") == "uvx"
    assert dialog.form.notices.text("shipped") == "Begin anew with Files? What you entered would be lost."
    press(dialog.form.notices, "Keep editing")
    assert text_of(dialog, "command") == "uvx"
    choose(dialog, 3)
    press(dialog.form.notices, "Begin anew")
    assert text_of(dialog, "command") == "npx"
    dialog.reject()
    await closed(dialog)


async def test_without_a_catalogue_there_is_no_list(editor: ServerEditor, engine: MemoryEngine) -> None:
    del engine.answers["/shipped"]
    dialog = editor.add_server()
    catalogue = dialog.catalogue
    assert catalogue is not None

    await until(lambda: not catalogue.isVisible(), "the list going")

    dialog.reject()
    await closed(dialog)

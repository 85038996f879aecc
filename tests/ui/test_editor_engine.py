"""The editor over a real engine: what then stands in the file, byte for byte."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QLineEdit
from shiboken6 import isValid

from callboard.core.health import State
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.editor.key_value_table import KeyValueTable
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from tests.support.engine import EngineProcess
from tests.ui.conftest import until
from tests.ui.editor_fakes import enter, press

LIMIT = 25.0
SECRET = "correct-horse-battery-staple"
ROSTER = """\
# my servers, by hand
version: 1
gateway: {port: 0}   # any port

servers:
  # the first one
  local-tools:
    command: ${python}      # ours
    args: [-m, callboard.servers.local_tools]

  quiet:   # never starts by itself
    command: ${python}
    args:
      - -m
      - callboard.servers.local_tools   # last one
    start: manual
"""

pytestmark = pytest.mark.timeout(90)


@dataclass
class Running:
    """An engine, a link that follows it, and the editor of a window."""

    engine: EngineProcess
    link: EngineLink
    editor: ServerEditor

    @property
    def text(self) -> str:
        """The roster's file."""
        return self.engine.paths.roster.read_text(encoding="utf-8")


@contextlib.asynccontextmanager
async def running(home: Path, theme: Theme, icons: Icons) -> AsyncIterator[Running]:
    """All of it, with a roster that a person wrote, and without a keyring.

    Entered by the test itself: around a fixture there are moments in which Qt turns but asyncio does not.
    """
    engine = EngineProcess(home)
    engine.paths.roster.parent.mkdir(parents=True, exist_ok=True)
    engine.paths.roster.write_text(ROSTER, encoding="utf-8")
    async with engine:
        link = EngineLink(engine.paths.engine_file)
        following = asyncio.ensure_future(link.run())
        await until(lambda: link.is_connected and link.roster, "the connection", seconds=LIMIT)
        editor = ServerEditor(link, theme, icons)
        try:
            yield Running(engine, link, editor)
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
            await link.close()
            editor.deleteLater()
            link.deleteLater()


def edit_of(field: Any) -> QLineEdit:
    """The line in which a field is typed."""
    assert isinstance(field.edit, QLineEdit)
    return field.edit


def files_with(folder: Path, text: str) -> list[str]:
    """Files below ``folder`` that hold ``text``."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


async def test_a_server_is_added_with_a_secret_and_the_rest_of_the_file_stays(
    callboard_home: Path, theme: Theme, icons: Icons
) -> None:
    async with running(callboard_home, theme, icons) as run:
        dialog = run.editor.add_server()
        fields = dialog.form.fields
        enter(edit_of(fields.rows[("name",)].field), "tools-2")
        command: Any = fields.rows[("command",)].field
        command.edit.setText("${python} -m callboard.servers.local_tools")
        press(command, "Split")
        env = fields.rows[("env",)].field
        assert isinstance(env, KeyValueTable)
        row = env.add_row()
        enter(row.name, "DEMO_TOKEN")
        enter(row.editor.edit, SECRET)
        row.secret.click()
        await until(lambda: dialog.form.footer.save_button.isEnabled() and not dialog.form.is_checking, "validation")
        await until(lambda: dialog.form.notices.text("store"), "there is no keyring here: said before saving")
        press(dialog.form.footer, "Add server")
        await until(lambda: not isValid(dialog), "saving", seconds=LIMIT)

        text = run.text
        assert text.startswith(ROSTER), "all that was there is there, comments and all"
        assert "DEMO_TOKEN: ${secret:tools-2-demo-token}" in text[len(ROSTER) :].replace('"', "").replace("'", "")
        assert run.link.roster is not None
        await until(lambda: "tools-2" in run.link.servers, "the event", seconds=LIMIT)
        await until(lambda: run.link.servers["tools-2"].state is State.READY, "its start", seconds=LIMIT)
        assert files_with(run.engine.home, SECRET) == [], "the value stands in no file"
        assert run.link.roster.servers["tools-2"] == {
            "command": "${python}",
            "args": ["-m", "callboard.servers.local_tools"],
            "env": {"DEMO_TOKEN": "${secret:tools-2-demo-token}"},
        }
        await until(lambda: run.editor.undo.can_undo, "undo")
        run.editor.undo.undo()
        await until(lambda: run.text == ROSTER, "undo", seconds=LIMIT)


async def test_a_removal_is_undone_byte_for_byte(callboard_home: Path, theme: Theme, icons: Icons) -> None:
    async with running(callboard_home, theme, icons) as run:
        removed: list[str] = []
        run.editor.undo.removed.connect(removed.append)
        run.editor.remove_server("local-tools")
        await until(lambda: removed == ["local-tools"], "removal", seconds=LIMIT)
        await until(lambda: "local-tools" not in run.link.servers, "the event", seconds=LIMIT)
        without = run.text
        assert "local-tools:" not in without
        assert "quiet:   # never starts by itself" in without
        run.editor.undo.undo()
        await until(lambda: not run.editor.undo.is_busy, "undo", seconds=LIMIT)
        assert run.engine.paths.roster.read_bytes() == ROSTER.encode()
        await until(lambda: "local-tools" in run.link.servers, "the event", seconds=LIMIT)
        assert run.editor.undo.can_redo
        run.editor.undo.redo()
        await until(lambda: run.text == without, "redo", seconds=LIMIT)
        await until(lambda: not run.editor.undo.is_busy, "redo", seconds=LIMIT)


async def test_an_edit_keeps_comments_and_is_refused_where_the_engine_says_so(
    callboard_home: Path, theme: Theme, icons: Icons
) -> None:
    async with running(callboard_home, theme, icons) as run:
        form = run.editor.make_form("quiet")
        form.resize(480, 800)
        form.show()
        cwd = form.fields.rows[("cwd",)]
        enter(edit_of(cwd.field), "${HOME}/x")
        await until(lambda: "${HOME} is not known here" in cwd.problem, "validation", seconds=LIMIT)
        assert not form.footer.save_button.isEnabled()
        enter(edit_of(cwd.field), "~")
        enter(edit_of(form.fields.rows[("timeouts", "call")].field), "90")
        await until(lambda: not form.is_checking and not cwd.problem, "validation", seconds=LIMIT)
        press(form.footer, "Save")
        await until(lambda: form.footer.status == "Saved.", "saving", seconds=LIMIT)
        text = run.text
        assert [line for line in ROSTER.splitlines() if line not in text.splitlines()] == []
        assert run.link.roster is not None
        await until(lambda: run.link.roster.servers["quiet"].get("timeouts") == {"call": 90}, "event", seconds=LIMIT)
        assert not form.is_dirty
        assert form.fields.filled().entry == run.link.roster.servers["quiet"]

        enter(edit_of(form.fields.rows[("command",)].field), "uvx")
        run.engine.paths.roster.write_text(text.replace("callboard.servers.local_tools   # last one", "json.tool"))
        args: Any = form.fields.rows[("args",)].field
        await until(lambda: args.rows[1].editor.text == "json.tool", "the change from outside", seconds=LIMIT)
        assert edit_of(form.fields.rows[("command",)].field).text() == "uvx"
        form.discard()
        form.hide()
        form.deleteLater()

"""The form of one entry: what it shows, keeps, refuses and saves."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QApplication,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolButton,
    QWidget,
)
from shiboken6 import isValid

from callboard.api.agent_schema import AgentLook, FoundAgent, InterpreterView, OfferedTool
from callboard.api.schema import RosterProblem, RosterView
from callboard.core.errors import CallboardError
from callboard.ui.editor.argument_list import ArgumentList
from callboard.ui.editor.auth_fields import AuthFields
from callboard.ui.editor.command_field import CommandField
from callboard.ui.editor.editor import ServerEditor
from callboard.ui.editor.entry_fields import NAME
from callboard.ui.editor.form import EntryForm
from callboard.ui.editor.json_field import JsonField
from callboard.ui.editor.key_value_table import KeyValueTable
from callboard.ui.editor.saver import Saved
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from tests.ui.conftest import HandLink, until
from tests.ui.editor_fakes import MemoryEngine, enter, paste, press

TOKEN = "ghp_a8Kd93kfLs02mfkW9dkQpZ81hsYt63bVnXc4"
SERVERS: dict[str, dict[str, Any]] = {
    "github": {
        "command": "npx",
        "args": ["-y", "server", ""],
        "env": {"GITHUB_TOKEN": "${secret:github-token}", "LEVEL": "info"},
        "x-mine": {"kept": [1, 2]},
        "timeouts": {"call": 60},
    },
    "gitlab": {"command": "uvx", "args": ["mcp-gitlab"], "env": {"TOKEN": "${secret:github-token}"}},
    "remote": {"url": "https://example.com/mcp", "auth": {"type": "bearer", "secret": "github-token"}},
    "greeter": {"agent": "agents.greeter:Greeter", "params": {"silent": True}, "expose": "whole"},
}

MakeForm = Callable[[str], EntryForm]


@pytest.fixture
def engine(link: HandLink) -> MemoryEngine:
    """An engine with these servers, one secret, and rules that allow the field of the person's own."""
    engine = MemoryEngine({name: dict(entry) for name, entry in SERVERS.items()})
    engine.allowed.add("x-mine")
    engine.secrets_kept["github-token"] = TOKEN
    engine.join(link)
    return engine


@pytest.fixture
def editor(link: HandLink, theme: Theme, icons: Icons, engine: MemoryEngine) -> Iterator[ServerEditor]:
    """The editor of a window."""
    editor = ServerEditor(link, theme, icons)
    yield editor
    editor.deleteLater()


@pytest.fixture
def make_form(editor: ServerEditor) -> Iterator[MakeForm]:
    """Makes forms that are shown, and deletes them after the test."""
    forms: list[EntryForm] = []

    def make(name: str) -> EntryForm:
        form = editor.make_form(name)
        form.resize(480, 900)
        form.show()
        forms.append(form)
        return form

    yield make
    for form in filter(isValid, forms):
        form.hide()
        form.deleteLater()


def field(form: EntryForm, dotted: str) -> Any:
    """The field at a path."""
    return form.fields.rows[tuple(dotted.split("."))].field


def problem(form: EntryForm, dotted: str) -> str:
    """What stands below the field."""
    return form.fields.rows[tuple(dotted.split("."))].problem


def edit_of(form: EntryForm, dotted: str) -> QLineEdit:
    """The line in which the field is typed."""
    edit = field(form, dotted).edit
    assert isinstance(edit, QLineEdit)
    return edit


def env(form: EntryForm) -> KeyValueTable:
    """The environment."""
    table = field(form, "env")
    assert isinstance(table, KeyValueTable)
    return table


async def checked(engine: MemoryEngine, form: EntryForm) -> None:
    """Wait until the engine has judged what the form shows now."""
    now = (form.fields.filled().name, form.fields.filled().entry)
    await until(lambda: engine.validated and engine.validated[-1][:2] == now, "validation")
    await until(lambda: not form.is_checking, "the answer")


async def save(form: EntryForm) -> None:
    """Press Save and wait for the end."""
    assert form.footer.save_button.isEnabled(), form.footer.status
    form.footer.save_button.click()
    await until(lambda: not form.is_saving, "saving")


# what it shows


async def test_an_entry_is_shown_and_nothing_of_it_changed(make_form: MakeForm, engine: MemoryEngine) -> None:
    for name, entry in SERVERS.items():
        form = make_form(name)
        await checked(engine, form)
        assert form.fields.filled().entry == entry
        assert not form.is_dirty
        assert not form.footer.save_button.isEnabled()
    github = make_form("github")
    arguments = field(github, "args")
    assert [row.editor.text for row in arguments.rows] == ["-y", "server", ""]
    assert field(github, "timeouts.call").state() == "60"


async def test_values_that_the_form_cannot_show_stay_as_they_are(make_form: MakeForm, engine: MemoryEngine) -> None:
    engine.write_outside({"odd": {"command": "x", "args": "not a list", "tools": {"allow": [{"a": 1}]}}})
    form = make_form("odd")
    assert not field(form, "args").isEnabled()
    enter(edit_of(form, "command"), "y")
    assert form.fields.filled().entry == {"command": "y", "args": "not a list", "tools": {"allow": [{"a": 1}]}}


async def test_a_stored_secret_is_named_and_never_read(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    row = env(form).rows[0]
    assert row.secret.isChecked()
    assert "Stored in keyring as <b>github-token</b>" in row.editor.remarks.note
    assert "Also used by gitlab, remote." in row.editor.remarks.note
    shown = " ".join(label.text() for label in form.findChildren(QLabel)) + " ".join(
        edit.text() for edit in form.findChildren(QLineEdit)
    )
    assert TOKEN not in shown


async def test_a_secret_without_a_value_asks_for_it(make_form: MakeForm, engine: MemoryEngine, link: HandLink) -> None:
    engine.secrets_kept.clear()
    link.say("secrets", engine.secrets_view(missing=("github-token",)))
    form = make_form("github")
    editor = env(form).rows[0].editor
    assert "has no value yet" in editor.remarks.note
    form.focus_missing()
    assert QApplication.focusWidget() is editor.edit or form.focusWidget() is editor.edit
    enter(editor.edit, "value")
    await checked(engine, form)
    await save(form)
    assert engine.secrets_kept == {"github-token": "value"}
    assert engine.servers["github"] == SERVERS["github"]


# saving


async def test_save_writes_only_what_was_changed(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    enter(edit_of(form, "timeouts.call"), "1.5")
    await checked(engine, form)
    await save(form)
    assert engine.servers["github"] == {**SERVERS["github"], "command": "bunx", "timeouts": {"call": 1.5}}
    assert form.footer.status == "Saved."
    assert not form.is_dirty
    name, edit = engine.edits[-1]
    assert (name, edit.create, edit.rename, edit.revision) == ("github", False, "", "1")


async def test_a_new_secret_goes_to_the_store_and_its_reference_to_the_file(
    make_form: MakeForm, engine: MemoryEngine
) -> None:
    form = make_form("gitlab")
    row = env(form).add_row()
    enter(row.name, "API_KEY")
    enter(row.editor.edit, "s3cret-value")
    row.secret.click()
    assert row.editor.edit.echoMode() is QLineEdit.EchoMode.Password
    assert "gitlab-api-key" in row.editor.remarks.note
    await checked(engine, form)
    assert all("s3cret-value" not in str(entry) for _, entry, _ in engine.validated[-1:])
    await save(form)
    assert engine.servers["gitlab"]["env"] == {"TOKEN": "${secret:github-token}", "API_KEY": "${secret:gitlab-api-key}"}
    assert engine.secrets_kept["gitlab-api-key"] == "s3cret-value"
    assert "Stored in keyring as <b>gitlab-api-key</b>" in env(form).rows[1].editor.remarks.note
    assert env(form).rows[1].editor.edit.text() == ""


async def test_a_new_secret_never_takes_the_name_of_another(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("gitlab")
    for name in ("GITHUB_TOKEN", "github token"):
        row = env(form).add_row()
        enter(row.name, name)
        row.secret.click()
        enter(row.editor.edit, f"value of {name}")
    form.fields.restore({NAME: "github"})  # the name from which theirs would be made
    for row in env(form).rows[1:]:
        row.editor.rename_secret()
    secrets = form.fields.filled().secrets
    assert secrets == {"github-token-2": "value of GITHUB_TOKEN", "github-token-3": "value of github token"}


async def test_a_stored_secret_is_replaced(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    row = env(form).rows[0]
    press(row, "Replace…")
    assert not form.footer.save_button.isEnabled(), "nothing was entered yet"
    enter(row.editor.edit, "new")
    press(row, "Keep the stored value")
    assert not form.is_dirty
    press(row, "Replace…")
    enter(row.editor.edit, "newer")
    await checked(engine, form)
    await save(form)
    assert engine.secrets_kept == {"github-token": "newer"}
    assert engine.servers["github"] == SERVERS["github"]


async def test_a_secret_made_plain_is_not_read_back(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    row = env(form).rows[0]
    row.secret.click()
    assert row.editor.text == ""
    row.secret.click()
    assert not form.is_dirty, "the reference is there again"
    row.secret.click()
    enter(row.editor.edit, "plain")
    await checked(engine, form)
    await save(form)
    assert engine.servers["github"]["env"]["GITHUB_TOKEN"] == "plain"
    assert engine.secrets_kept == {"github-token": TOKEN}


async def test_typing_a_reference_uses_the_stored_secret(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("gitlab")
    row = env(form).add_row()
    enter(row.name, "SAME")
    paste(row.editor.edit, "${secret:github-token}")
    row.editor.edit.textEdited.emit(row.editor.edit.text())
    assert row.secret.isChecked()
    assert form.fields.filled().entry["env"]["SAME"] == "${secret:github-token}"
    assert not form.fields.filled().secrets


@pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard", extend=True)
async def test_a_stored_secret_is_chosen_from_a_menu(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("gitlab")
    row = env(form).add_row()
    enter(row.name, "SAME")
    row.secret.click()
    choose = next(action for action in row.editor.edit.actions() if action.text() == "Use a stored secret…")
    choose.trigger()
    menu = row.editor.edit.findChild(QMenu)
    assert menu is not None
    menu.actions()[0].trigger()
    menu.close()
    assert form.fields.filled().entry["env"]["SAME"] == "${secret:github-token}"
    assert not form.fields.filled().secrets


@pytest.mark.parametrize("accept", [True, False])
async def test_a_value_that_looks_like_a_token_is_offered_to_the_keyring(
    make_form: MakeForm, engine: MemoryEngine, accept: bool
) -> None:
    engine.write_outside({"plain": {"command": "x", "args": ["--api-key", TOKEN], "env": {"GH_TOKEN": TOKEN}}})
    form = make_form("plain")
    await until(lambda: env(form).rows[0].editor.remarks.offer, "the offer")
    arguments = field(form, "args")
    assert isinstance(arguments, ArgumentList)
    assert arguments.rows[1].editor.remarks.offer is not None
    assert arguments.rows[0].editor.remarks.offer is None
    answer = "Keep in keyring" if accept else "Leave"
    press(arguments.rows[1], answer)
    press(env(form).rows[0], answer)
    if not accept:
        assert not form.is_dirty
        enter(edit_of(form, "command"), "y")
        await checked(engine, form)
        assert env(form).rows[0].editor.remarks.offer is None, "it was asked and answered"
        return
    await checked(engine, form)
    await save(form)
    assert engine.servers["plain"] == {
        "command": "x",
        "args": ["--api-key", "${secret:plain-api-key}"],
        "env": {"GH_TOKEN": "${secret:plain-gh-token}"},
    }
    assert {engine.secrets_kept[name] for name in ("plain-api-key", "plain-gh-token")} == {TOKEN}


async def test_the_key_in_an_agents_parameters_is_offered_too(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("greeter")
    params = field(form, "params")
    assert isinstance(params, JsonField)
    params.edit.setPlainText('{"silent": true, "model": {"api_key": "' + TOKEN + '"}}')
    await until(lambda: "Keep as a secret" in _buttons(params), "the offer")
    press(params, "Keep as a secret")
    await checked(engine, form)
    await save(form)
    assert engine.servers["greeter"]["params"] == {"silent": True, "model": {"api_key": "${secret:greeter-api-key}"}}
    assert engine.secrets_kept["greeter-api-key"] == TOKEN


async def test_authentication_of_a_remote_server(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("remote")
    auth = field(form, "auth")
    assert isinstance(auth, AuthFields)
    assert "github-token" in auth.secret.editor.remarks.note
    auth.type.box.setCurrentIndex(auth.type.box.findData("api_key"))
    header = auth.rows["header"].field
    enter(header.edit, "X-Key")  # type: ignore[attr-defined]
    await checked(engine, form)
    assert form.fields.filled().entry["auth"] == {"type": "api_key", "secret": "github-token", "header": "X-Key"}
    auth.type.box.setCurrentIndex(auth.type.box.findData(""))
    assert "auth" not in form.fields.filled().entry
    auth.type.box.setCurrentIndex(auth.type.box.findData("none"))
    assert form.fields.filled().entry["auth"] == {"type": "none"}
    auth.type.box.setCurrentIndex(auth.type.box.findData("api_key"))
    assert form.fields.filled().entry["auth"]["header"] == "X-Key", "what was entered is there again"
    await checked(engine, form)
    await save(form)
    assert engine.servers["remote"]["auth"] == {"type": "api_key", "secret": "github-token", "header": "X-Key"}


async def test_a_sign_in_with_a_client_of_ones_own(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("remote")
    auth = field(form, "auth")
    assert isinstance(auth, AuthFields)
    auth.type.box.setCurrentIndex(auth.type.box.findData("oauth"))
    assert auth.rows["client_id"].problem == "Enter the client ID that belongs to the secret."
    enter(auth.rows["client_id"].field.edit, "mine")  # type: ignore[attr-defined]
    enter(auth.rows["issuer"].field.edit, "https://as.example.com")  # type: ignore[attr-defined]
    grant = auth.rows["grant"].field
    grant.box.setCurrentIndex(grant.box.findData("client-credentials"))  # type: ignore[attr-defined]
    await checked(engine, form)
    await save(form)
    assert engine.servers["remote"]["auth"] == {
        "type": "oauth",
        "grant": "client-credentials",
        "client_id": "mine",
        "secret": "github-token",
        "issuer": "https://as.example.com",
    }


def found_agents(agent: str, *names: str, python: str = "", origin: str = "callboard") -> AgentLook:
    agents = [FoundAgent(agent=f"{agent}:{name}", name=name, kind="own") for name in names]
    return AgentLook(python=python, interpreters=[InterpreterView(path=python, origin=origin)], agents=agents, tools=[])


def found_tools(*names: str, error: str = "") -> AgentLook:
    tools = [OfferedTool(name=name, whole=name == "greeter") for name in names]
    return AgentLook(python="", interpreters=[], agents=[], tools=tools, error=error)


async def test_the_agents_of_a_chosen_file(make_form: MakeForm, engine: MemoryEngine, tmp_path: Path) -> None:
    file, venv = str(tmp_path / "agent.py"), str(tmp_path / ".venv/bin/python")
    engine.looks = {
        file: found_agents(file, "Greeter", "Counter", python=venv, origin="environment"),
        f"{file}:Counter": found_tools("count", "reset", "greeter"),
    }
    form = make_form("greeter")
    agent = field(form, "agent")
    agent.take_path(file)
    await until(lambda: agent.notice is not None and "Which one?" in agent.notice.text, "the agents")
    assert edit_of(form, "python").text() == venv, "the environment beside the file is entered"
    (button,) = [each for each in agent.notice.findChildren(QPushButton) if each.text() == "Counter"]
    button.click()
    assert agent.state() == f"{file}:Counter"
    await until(lambda: "Its tools" in agent.notice.text, "the tools")
    assert agent.notice.text == "Its tools: count, reset. As a single tool: greeter."
    assert engine.looked[-1] == (f"{file}:Counter", venv, {"silent": True}, "")
    enter(agent.edit, "other:Thing")
    assert agent.notice is None, "what was found is no longer of what stands there"


async def test_the_only_agent_of_a_file_is_taken(make_form: MakeForm, engine: MemoryEngine, tmp_path: Path) -> None:
    file = str(tmp_path / "agent.py")
    engine.looks = {file: found_agents(file, "Only"), f"{file}:Only": found_tools(error="No module named x.")}
    form = make_form("greeter")
    agent = field(form, "agent")
    enter(edit_of(form, "python"), "/my/python")
    agent.take_path(file)
    await until(lambda: agent.notice is not None and agent.notice.text == "No module named x.", "the mistake")
    assert agent.state() == f"{file}:Only"
    assert edit_of(form, "python").text() == "/my/python"


async def test_agents_and_lists(make_form: MakeForm, engine: MemoryEngine, tmp_path: Path) -> None:
    form = make_form("greeter")
    expose = field(form, "expose")
    expose.choice.box.setCurrentIndex(expose.choice.box.findData("named"))
    assert problem(form, "expose") == "Enter at least one tool."
    expose.names.edit.setPlainText("hello\n\n  bye ")
    aliases = field(form, "aliases")
    aliases.choice.box.setCurrentIndex(aliases.choice.box.findData("own"))
    assert problem(form, "aliases") == "Enter at least one name."
    aliases.names.edit.setPlainText("directory = path\nfolder")
    assert problem(form, "aliases") == "Write it as other = argument: folder"
    aliases.names.edit.setPlainText("directory = path\nfolder=path")
    field(form, "agent").take_path(str(tmp_path / "agent.py"))
    field(form, "cwd").take_path(str(tmp_path))
    field(form, "tools.allow").edit.setPlainText("read_*\nlist")
    field(form, "enabled").box.click()
    field(form, "start").box.setCurrentIndex(2)
    field(form, "params").edit.setPlainText('{"silent": fals}')
    assert problem(form, "params") == "Line 1, column 12: Expecting value."
    assert form.fields.filled().entry["params"] == {"silent": True}, "what is no JSON yet stands for what was there"
    field(form, "params").edit.setPlainText('{"silent": false}')
    await checked(engine, form)
    await save(form)
    assert engine.servers["greeter"] == {
        "agent": f"{tmp_path}/agent.py",
        "params": {"silent": False},
        "expose": ["hello", "bye"],
        "aliases": {"directory": "path", "folder": "path"},
        "cwd": str(tmp_path),
        "tools": {"allow": ["read_*", "list"]},
        "enabled": False,
        "start": "manual",
    }


async def test_the_folder_button_opens_no_loop_of_its_own(make_form: MakeForm) -> None:
    form = make_form("gitlab")
    cwd = field(form, "cwd")
    cwd.findChild(QToolButton).click()
    dialog = cwd.findChild(QFileDialog)
    assert dialog.isVisible()
    assert dialog.isModal()
    dialog.reject()


async def test_a_server_is_renamed(make_form: MakeForm, engine: MemoryEngine, editor: ServerEditor) -> None:
    renamed: list[tuple[str, str]] = []
    editor.renamed.connect(lambda old, new: renamed.append((old, new)))
    form = make_form("gitlab")
    enter(edit_of(form, "name"), "lab")
    await checked(engine, form)
    await save(form)
    assert list(engine.servers) == ["github", "lab", "remote", "greeter"]
    assert renamed == [("gitlab", "lab")]
    engine.tell()
    assert form.name == "lab"
    assert not form.is_dirty


# problems


async def test_problems_stand_below_their_fields_and_keep_save_off(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "name"), "gitlab")
    assert problem(form, "name") == "There is a server of this name already.", "at once"
    enter(edit_of(form, "timeouts.start"), "-5")
    enter(edit_of(form, "restart.delay"), "-1")
    env(form).add_row().editor.set_text("lost")
    await checked(engine, form)
    assert "must be more than 0" in problem(form, "timeouts.start").lower()
    assert "must be at least 0" in problem(form, "restart.delay").lower()
    assert env(form).rows[2].name_problem.text == "Enter a name, or remove the row."
    assert form.fields.advanced.is_open
    assert not form.footer.save_button.isEnabled()
    assert form.footer.status.startswith("To mend: Name, Environment, Start within and 1 more")
    press(form.footer, "Show")
    assert form.focusWidget() is edit_of(form, "name")
    assert edit_of(form, "name").accessibleDescription() == problem(form, "name")
    QTest.keySequence(form.focusWidget(), "Ctrl+S")
    assert not form.is_saving
    assert not engine.edits


async def test_problems_inside_lists_and_tables(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    field(form, "args").rows[1].editor.set_text("${nonsense}")
    env(form).rows[1].editor.set_text("${env:}")
    await checked(engine, form)
    assert "${nonsense}" in field(form, "args").rows[1].editor.remarks.problem
    assert "${env:}" in env(form).rows[1].editor.remarks.problem
    twice = env(form).add_row()
    enter(twice.name, "LEVEL")
    assert twice.name_problem.text == "This name stands twice."


async def test_what_the_engine_refuses_goes_to_the_field(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    await checked(engine, form)
    problems = [{"field": "cwd", "message": "No such folder."}, {"field": "", "message": "Something else."}]
    engine.fail_with = CallboardError("entry-invalid", "No.", data={"problems": problems})
    await save(form)
    assert problem(form, "cwd") == "No such folder."
    assert form.notices.text("entry") == "Something else."
    assert form.focusWidget() is edit_of(form, "cwd")
    assert edit_of(form, "command").text() == "bunx"


async def test_only_the_newest_entry_is_judged(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    await checked(engine, form)
    before = len(engine.validated)
    edit_of(form, "command").end(False)
    QTest.keyClicks(edit_of(form, "command"), "abcdef")
    await checked(engine, form)
    assert len(engine.validated) == before + 1
    assert engine.validated[-1][1]["command"] == "npxabcdef"


async def test_a_broken_roster_is_told(make_form: MakeForm, engine: MemoryEngine, link: HandLink) -> None:
    form = make_form("github")
    view = engine.view()
    broken = RosterProblem(code="roster-unreadable", message="Line 3: what is this.", fix="Correct it.", line=3)
    link.say("roster", RosterView(path=view.path, revision="x", servers=view.servers, problem=broken))
    assert "Line 3" in form.notices.text("roster")
    link.say("roster", view)
    assert form.notices.text("roster") == ""


# nothing is lost


@pytest.mark.parametrize("code", ["secrets-locked", "roster-unwritable", "engine-unreachable"])
async def test_a_failed_save_keeps_everything_and_says_the_fix(
    make_form: MakeForm, engine: MemoryEngine, code: str
) -> None:
    form = make_form("github")
    press(env(form).rows[0], "Replace…")
    enter(env(form).rows[0].editor.edit, "new")
    enter(edit_of(form, "command"), "bunx")
    await checked(engine, form)
    error = engine.fail_with = CallboardError(code, "It did not work.")
    await save(form)
    assert form.notices.text("error") == f"It did not work.\n{error.fix}"
    assert form.fields.filled().entry["command"] == "bunx"
    assert form.fields.filled().secrets == {"github-token": "new"}
    await save(form)
    assert engine.servers["github"]["command"] == "bunx"
    assert form.notices.text("error") == ""


async def test_waiting_for_the_keyring_can_be_ended(make_form: MakeForm, engine: MemoryEngine, link: HandLink) -> None:
    form = make_form("github")
    press(env(form).rows[0], "Replace…")
    enter(env(form).rows[0].editor.edit, "new")
    await checked(engine, form)
    engine.gate.clear()
    form.footer.save_button.click()
    assert form.footer.status == "Saving…"
    link.say("secrets", engine.secrets_view(waiting=True))
    assert form.footer.status == "Waiting for your keyring…"
    assert not form.fields.isEnabled()
    press(form.footer, "Cancel")
    assert not form.is_saving
    assert form.fields.isEnabled()
    assert env(form).rows[0].editor.text == "new"
    assert "still here" in form.notices.text("error")
    engine.gate.set()
    await save(form)
    assert engine.secrets_kept["github-token"] == "new"


async def test_a_draft_outlives_its_form(make_form: MakeForm, engine: MemoryEngine, editor: ServerEditor) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    row = env(form).add_row()
    row.editor.set_text("without a name yet")
    assert editor.drafts.names == ["github"]
    form.hide()
    form.deleteLater()
    other = make_form("github")
    assert edit_of(other, "command").text() == "bunx"
    assert env(other).rows[2].editor.text == "without a name yet"
    env(other).remove_row(env(other).rows[2])
    await checked(engine, other)
    await save(other)
    assert editor.drafts.names == []


async def test_discarded_changes_can_be_brought_back(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    press(form.footer, "Discard")
    assert edit_of(form, "command").text() == "npx"
    press(form.notices, "Bring my changes back")
    assert edit_of(form, "command").text() == "bunx"
    assert form.is_dirty


# changes from outside


async def test_an_untouched_form_follows_the_file(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    engine.write_outside({**SERVERS, "github": {"command": "deno"}})
    assert edit_of(form, "command").text() == "deno"
    engine.write_outside({**SERVERS, "github": {"url": "https://example.com/x"}})
    assert field(form, "url").state().text == "https://example.com/x"
    assert not form.is_dirty


async def test_changes_elsewhere_in_the_entry_are_taken_along(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    engine.write_outside({**SERVERS, "github": {**SERVERS["github"], "cwd": "/srv"}})
    assert edit_of(form, "cwd").text() == "/srv"
    assert edit_of(form, "command").text() == "bunx"
    await checked(engine, form)
    await save(form)
    assert engine.servers["github"]["cwd"] == "/srv"
    assert engine.servers["github"]["command"] == "bunx"


async def test_a_file_that_changed_unseen_is_not_overwritten(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    await checked(engine, form)
    engine.link = None  # the event has not come yet
    engine.write_outside({**SERVERS, "github": {**SERVERS["github"], "command": "deno"}})
    await save(form)
    assert engine.servers["github"]["command"] == "deno"
    assert edit_of(form, "command").text() == "bunx"
    assert "changed in the roster meanwhile: Command" in form.notices.text("version")
    assert not form.footer.save_button.isEnabled()
    press(form.notices, "Load the new version")
    assert edit_of(form, "command").text() == "deno"
    press(form.notices, "Bring my changes back")
    assert edit_of(form, "command").text() == "bunx"
    await checked(engine, form)
    await save(form)
    assert engine.servers["github"]["command"] == "bunx"


async def test_a_file_that_changed_elsewhere_is_saved_to_all_the_same(
    make_form: MakeForm, engine: MemoryEngine
) -> None:
    form = make_form("github")
    enter(edit_of(form, "command"), "bunx")
    await checked(engine, form)
    engine.link = None
    engine.write_outside({**SERVERS, "gitlab": {"command": "other"}})
    form.footer.save_button.click()
    await until(lambda: engine.servers["github"]["command"] == "bunx", "saving")
    await until(lambda: not form.is_saving, "the end")
    assert engine.servers["gitlab"] == {"command": "other"}


async def test_a_removed_server_can_be_saved_again(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("gitlab")
    enter(edit_of(form, "command"), "bunx")
    engine.write_outside({name: entry for name, entry in SERVERS.items() if name != "gitlab"})
    assert "no longer in the roster" in form.notices.text("version")
    await checked(engine, form)
    await save(form)
    assert engine.servers["gitlab"]["command"] == "bunx"
    assert engine.edits[-1][1].create


async def test_without_an_engine_the_form_keeps_and_waits(
    make_form: MakeForm, engine: MemoryEngine, link: HandLink
) -> None:
    form = make_form("github")
    link.disconnect_by_hand()
    enter(edit_of(form, "command"), "bunx")
    assert "engine is not running" in form.footer.status
    assert not form.footer.save_button.isEnabled()
    engine.join(link)
    await checked(engine, form)
    await save(form)
    assert engine.servers["github"]["command"] == "bunx"


# hands and eyes


async def test_a_pasted_command_line_is_split_when_agreed(make_form: MakeForm, engine: MemoryEngine) -> None:
    engine.write_outside({"new": {"command": "x", "args": ["old"]}})
    form = make_form("new")
    command = field(form, "command")
    assert isinstance(command, CommandField)
    paste(command.edit, "KEY='a b' npx -y '@x/y z' --flag")
    assert form.fields.filled().entry["command"] == "KEY='a b' npx -y '@x/y z' --flag"
    press(command, "Split")
    assert form.fields.filled().entry == {
        "command": "npx",
        "args": ["-y", "@x/y z", "--flag", "old"],
        "env": {"KEY": "a b"},
    }
    assert command.question is None
    paste(command.edit, "/opt/My App/run")
    press(command, "Keep as one command")
    assert form.fields.filled().entry["command"] == "/opt/My App/run"


async def test_arguments_by_keyboard(make_form: MakeForm) -> None:
    form = make_form("github")
    arguments = field(form, "args")
    assert isinstance(arguments, ArgumentList)
    first = arguments.rows[0].editor.edit
    first.setFocus()
    QTest.keyClick(first, Qt.Key.Key_Return)
    QTest.keyClicks(arguments.rows[1].editor.edit, "two words")
    assert form.fields.filled().entry["args"] == ["-y", "two words", "server", ""]
    QTest.keyClick(arguments.rows[1].editor.edit, Qt.Key.Key_Down, Qt.KeyboardModifier.AltModifier)
    assert form.fields.filled().entry["args"] == ["-y", "server", "two words", ""]
    arguments.remove_row(arguments.rows[0])
    assert form.fields.filled().entry["args"] == ["server", "two words", ""]
    for row in list(arguments.rows):
        arguments.remove_row(row)
    assert "args" not in form.fields.filled().entry


async def test_an_environment_file_is_pasted(make_form: MakeForm) -> None:
    form = make_form("gitlab")
    row = env(form).add_row()
    paste(row.name, "# mine\nexport A=1\nB='two words'\n")
    press(env(form), "Split")
    assert form.fields.filled().entry["env"] == {"TOKEN": "${secret:github-token}", "A": "1", "B": "two words"}


async def test_tab_goes_through_the_form_as_it_is_seen(make_form: MakeForm) -> None:
    form = make_form("github")
    arguments = field(form, "args")
    arguments.move_row(arguments.rows[0], 1)
    QApplication.processEvents()
    form.order_tabs()
    form.activateWindow()
    start = edit_of(form, "command")
    start.setFocus()
    order: list[QWidget] = []
    widget: QWidget | None = start
    for _ in range(40):
        widget = widget.nextInFocusChain() if widget is not None else None
        if widget is not None and widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            order.append(widget)
    edits = [item for item in order if isinstance(item, QLineEdit)]
    assert edits[:3] == [row.editor.edit for row in arguments.rows]
    assert edits[3] is env(form).rows[0].name


async def test_everything_has_a_name_for_screen_readers(make_form: MakeForm) -> None:
    for name in SERVERS:
        form = make_form(name)
        form.fields.advanced.set_open(True)
        for widget in form.findChildren(QWidget):
            if not widget.focusPolicy() & Qt.FocusPolicy.TabFocus or not widget.isVisibleTo(form):
                continue
            if widget is form.fields or widget.objectName().startswith("qt_"):
                continue
            text = getattr(widget, "text", lambda: "")() if not isinstance(widget, QLineEdit) else ""
            assert widget.accessibleName() or text, f"{name}: {widget!r} has no name"


async def test_without_a_keyring_the_form_says_so(make_form: MakeForm, engine: MemoryEngine, link: HandLink) -> None:
    engine.kind = "session"
    link.say("secrets", engine.secrets_view())
    form = make_form("github")
    assert form.notices.text("store").startswith("No keyring: secrets are kept until the engine ends.")
    assert make_form("greeter").notices.text("store") == "", "nothing here is secret"


async def test_who_saved_is_told(make_form: MakeForm, engine: MemoryEngine) -> None:
    form = make_form("github")
    told: list[Saved] = []
    form.saved.connect(told.append)
    enter(edit_of(form, "command"), "bunx")
    await checked(engine, form)
    await save(form)
    assert [(item.original, item.filled.name, item.edit.undo) for item in told] == [("github", "github", "undo-1")]


def _buttons(widget: QWidget) -> list[str]:
    return [button.text() for button in widget.findChildren(QPushButton) if button.isVisibleTo(widget)]


@pytest.mark.parametrize("written", ["gaia", {"directory": "path"}, {"greet": {"who": "name"}}])
async def test_other_names_of_arguments_stay_as_they_were_written(
    make_form: MakeForm, engine: MemoryEngine, written: Any
) -> None:
    engine.write_outside({"greeter": {"agent": "m:A", "aliases": written}})
    form = make_form("greeter")
    field(form, "python").edit.setText("/usr/bin/python3")
    await checked(engine, form)
    await save(form)
    assert engine.servers["greeter"] == {"agent": "m:A", "aliases": written, "python": "/usr/bin/python3"}

"""An engine for tests of the editor: keeps a roster and secrets in memory, and judges entries by the real rules."""

import asyncio
from copy import deepcopy
from typing import Any

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QPushButton, QWidget

from callboard.api.agent_schema import AgentLook
from callboard.api.schema import (
    EntryEdit,
    FieldProblem,
    RosterEdit,
    RosterView,
    SecretHint,
    SecretsView,
    SecretView,
    Validation,
)
from callboard.core.credentials import find_credentials
from callboard.core.errors import CallboardError
from callboard.core.roster_parse import check_entry, name_problem
from tests.ui.conftest import HandClient, HandLink

Servers = dict[str, dict[str, Any]]


class MemoryEngine(HandClient):
    """Answers what the editor asks of :class:`~callboard.api.client.EngineClient`.

    ``gate`` holds saving back while it is not set, as the keyring's prompt does; ``fail_with`` fails the next save.
    """

    def __init__(self, servers: Servers, kind: str = "keyring") -> None:
        super().__init__()
        self.servers = deepcopy(servers)
        self.secrets_kept: dict[str, str] = {}
        self.kind = kind
        self.allowed: set[str] = set()  # fields that this engine knows beside the roster's own
        self.edits: list[tuple[str, EntryEdit]] = []
        self.validated: list[tuple[str, dict[str, Any], str]] = []
        self.looks: dict[str, AgentLook] = {}  # what is found of Python agents
        self.looked: list[tuple[str, str, dict[str, Any] | None, str]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fail_with: CallboardError | None = None
        self._number = 1
        self._tokens: dict[str, Servers] = {}
        self.link: HandLink | None = None

    @property
    def revision(self) -> str:
        """Of the roster as it is now."""
        return str(self._number)

    def view(self) -> RosterView:
        """The roster as the API answers it."""
        return RosterView(path="roster.yaml", revision=self.revision, servers=deepcopy(self.servers))

    def secrets_view(self, *, waiting: bool = False, missing: tuple[str, ...] = ()) -> SecretsView:
        """The store as the API answers it."""
        secrets = [SecretView(name=name, present=True) for name in self.secrets_kept]
        secrets += [SecretView(name=name, present=False) for name in missing]
        return SecretsView(kind=self.kind, backend=self.kind, waiting=waiting, secrets=secrets)

    def join(self, link: HandLink) -> None:
        """Become the engine of this link."""
        self.link = link
        link.hand = self
        link.connect_by_hand(roster=self.view(), secrets=self.secrets_view())

    def write_outside(self, servers: Servers) -> None:
        """Change the file as a person with a text editor would."""
        self._write(servers)
        self.tell()

    def tell(self) -> None:
        """Send the roster's event."""
        if self.link is not None:
            self.link.say("roster", self.view())

    def forget_undo(self) -> None:
        """Behave as if all tokens were too old."""
        self._tokens.clear()

    # what the editor asks

    async def validate(self, name: str, entry: dict[str, Any], *, editing: str = "") -> Validation:
        self.validated.append((name, deepcopy(entry), editing))
        problems = []
        if why := name_problem(name, [other for other in self.servers if other != editing]):
            problems.append(FieldProblem(field="name", message=why))
        known = {key: value for key, value in entry.items() if key not in self.allowed}
        problems += [FieldProblem(field=item.field, message=item.text) for item in check_entry(known)[1]]
        found = find_credentials(name, entry)
        hints = [SecretHint(field=hint.field, secret=hint.secret, why=hint.why) for hint in found]
        return Validation(problems=problems, hints=hints)

    async def look_at_agent(
        self, agent: str, *, python: str = "", params: dict[str, Any] | None = None, cwd: str = ""
    ) -> AgentLook:
        self.looked.append((agent, python, params, cwd))
        nothing = AgentLook(python=python, interpreters=[], agents=[], tools=[])
        return self.looks.get(agent, nothing)

    async def save_entry(self, name: str, edit: EntryEdit) -> RosterEdit:
        self.edits.append((name, edit))
        await self.gate.wait()
        if self.fail_with is not None:
            error, self.fail_with = self.fail_with, None
            raise error
        if edit.revision and edit.revision != self.revision:
            raise CallboardError("roster-changed", "The roster was changed meanwhile.")
        self.secrets_kept.update(edit.secrets)
        servers = {edit.rename or name if key == name else key: value for key, value in self.servers.items()}
        servers[edit.rename or name] = deepcopy(edit.entry)
        return self._write(servers)

    async def remove_entry(self, name: str, *, revision: str = "") -> RosterEdit:
        return self._write({key: value for key, value in self.servers.items() if key != name})

    async def undo(self, token: str) -> RosterEdit:
        await self.gate.wait()
        if token not in self._tokens:
            raise CallboardError("not-found", "This change cannot be taken back any more.")
        return self._write(self._tokens.pop(token))

    async def roster(self) -> RosterView:
        return self.view()

    async def secrets(self) -> SecretsView:
        return self.secrets_view()

    def _write(self, servers: Servers) -> RosterEdit:
        token = f"undo-{self._number}"
        self._tokens[token] = self.servers
        self.servers = deepcopy(servers)
        self._number += 1
        return RosterEdit(revision=self.revision, undo=token)


def enter(edit: QLineEdit, text: str) -> None:
    """Type ``text`` in place of what is there, as a person would."""
    edit.selectAll()
    if text:
        QTest.keyClicks(edit, text)
    else:
        edit.clear()
        edit.textEdited.emit("")


def paste(edit: QLineEdit, text: str) -> None:
    """Paste ``text`` in place of what is there."""
    QApplication.clipboard().setText(text)
    edit.selectAll()
    edit.paste()


def press(parent: QWidget, text: str) -> None:
    """Press the shown button of that text."""
    buttons = [b for b in parent.findChildren(QPushButton) if b.text() == text and b.isVisibleTo(parent)]
    assert len(buttons) == 1, f"{len(buttons)} buttons {text!r}"
    assert buttons[0].isEnabled(), f"{text!r} is off"
    buttons[0].click()

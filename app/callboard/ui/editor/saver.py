"""Hands an entry to the engine, and waits with the person while the keyring asks."""

import asyncio
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Signal

from callboard.api.client import EngineClient
from callboard.api.schema import EntryEdit, RosterEdit, RosterView, SecretsView
from callboard.core.errors import CallboardError
from callboard.ui.editor.entry_model import Entry
from callboard.ui.engine_link import EngineLink


@dataclass(frozen=True)
class Filled:
    """What a form holds when it is saved. ``secrets``: names and values to be stored."""

    name: str
    entry: Entry
    secrets: dict[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Saved:
    """What became of it."""

    filled: Filled
    original: str  # the name it had before, "" for a new one
    edit: RosterEdit


class EntrySaver(QObject):
    """Saves one entry at a time. Lives on the window's loop, as long as its form."""

    changed = Signal()  # saving began or ended, or what it waits for is another
    saved = Signal(object)  # Saved
    failed = Signal(object)  # CallboardError
    outdated = Signal(object)  # RosterView: the file was changed meanwhile, nothing was saved

    def __init__(self, link: EngineLink, parent: QObject) -> None:
        super().__init__(parent)
        self._link = link
        self._task: asyncio.Task[None] | None = None
        self._stores = False
        link.secretsChanged.connect(self._secrets_changed)

    @property
    def is_busy(self) -> bool:
        """Whether an entry is being saved."""
        return self._task is not None

    @property
    def waits_for_keyring(self) -> bool:
        """Whether the keyring's own prompt is what it waits for."""
        return self.is_busy and self._stores and self._link.secrets is not None and self._link.secrets.waiting

    def save(self, filled: Filled, *, original: str, revision: str) -> None:
        """Save; one of the signals tells the end."""
        edit = EntryEdit(
            entry=filled.entry,
            revision=revision if original else "",  # a new entry changes nothing that somebody else wrote
            secrets=filled.secrets,
            rename=filled.name if original and filled.name != original else "",
            create=not original,
        )

        async def ask(client: EngineClient) -> RosterEdit | RosterView:
            try:
                return await client.save_entry(original or filled.name, edit)
            except CallboardError as error:
                if error.code != "roster-changed":
                    raise
                return await client.roster()

        def done(answer: RosterEdit | RosterView) -> None:
            self._end()
            if isinstance(answer, RosterView):
                self.outdated.emit(answer)
            else:
                self.saved.emit(Saved(filled, original, answer))

        def failed(error: CallboardError) -> None:
            self._end()
            self.failed.emit(error)

        self._stores = bool(filled.secrets)
        self._task = self._link.request(ask, done, failed, owner=self, name=f"save {filled.name}")
        self.changed.emit()

    def cancel(self) -> None:
        """Wait no longer. What the engine has already taken may still be written; the roster's events tell."""
        if self._task is not None:
            self._task.cancel()
            self._end()

    def _end(self) -> None:
        self._task = None
        self.changed.emit()

    def _secrets_changed(self, _view: SecretsView) -> None:
        if self.is_busy:
            self.changed.emit()

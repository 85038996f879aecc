"""Taking changes of the roster back."""

import asyncio
from collections.abc import Collection
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QKeySequence, QUndoCommand, QUndoStack

from callboard.api.schema import EngineView, RosterEdit, RosterView
from callboard.core.errors import CallboardError
from callboard.ui.editor.saver import Saved
from callboard.ui.engine_link import EngineLink

LOST = frozenset({"roster-changed", "not-found", "server-unknown", "name-taken"})  # can never be taken back


class RosterCommand(QUndoCommand):
    """One change of the roster that the engine has made; it alone knows how to go back, by the token."""

    def __init__(self, text: str, edit: RosterEdit, names: Collection[str]) -> None:
        super().__init__(text)
        self.token = edit.undo
        self.revision = edit.revision  # of the file after the change, or after it was taken back
        self._names = tuple(names)
        self._left: dict[str, Any] | None = None  # the entries as the change left them, once the roster has told

    def move(self, edit: RosterEdit) -> None:
        """The engine has taken the change back, or made it again."""
        self.token, self.revision, self._left = edit.undo, edit.revision, None

    def still_holds(self, roster: RosterView) -> bool:
        """Whether the entries are as the change left them, as far as is known."""
        now = {name: roster.servers.get(name) for name in self._names}
        if self._left is None:
            if roster.revision == self.revision:
                self._left = now
            return True
        return now == self._left


class RosterUndo(QObject):
    """Adds, edits and removals of servers that can be taken back and made again, newest first.

    The engine does the work; a step counts once it has answered, and meanwhile nothing else can be undone. A change
    from outside to one of the servers concerned, or another engine, ends what can be undone. One per window, on its
    loop. Starting and stopping servers is not undone here.
    """

    removed = Signal(str)  # a server was taken out; undo() brings it back
    said = Signal(str)  # what was undone or done again
    failed = Signal(object)  # CallboardError

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._stack = QUndoStack(self)
        self._task: asyncio.Task[None] | None = None
        self._late: RosterView | None = None  # a roster that came during a step
        self._pid = link.engine.pid if link.engine is not None else 0
        self.undo_action = self._make_action("undo", QKeySequence.StandardKey.Undo)
        self.redo_action = self._make_action("redo", QKeySequence.StandardKey.Redo)
        self.undo_action.triggered.connect(lambda _checked=False: self.undo())
        self.redo_action.triggered.connect(lambda _checked=False: self.redo())
        self._stack.indexChanged.connect(self._refresh)
        link.connected.connect(self._refresh)
        link.disconnected.connect(self._refresh)
        link.rosterChanged.connect(self._roster_changed)
        link.engineChanged.connect(self._engine_changed)
        self._refresh()

    @property
    def is_busy(self) -> bool:
        """Whether a step is under way."""
        return self._task is not None

    @property
    def can_undo(self) -> bool:
        """Whether there is a change to take back now."""
        return self._stack.canUndo() and not self.is_busy and self._link.is_connected

    @property
    def can_redo(self) -> bool:
        """Whether there is a change to make again now."""
        return self._stack.canRedo() and not self.is_busy and self._link.is_connected

    def record(self, saved: Saved) -> None:
        """A form has saved an entry."""
        name, original = saved.filled.name, saved.original
        if not original:
            text = self.tr("Add {name}").format(name=name)
        elif name != original:
            text = self.tr("Rename {original} to {name}").format(original=original, name=name)
        else:
            text = self.tr("Edit {name}").format(name=name)
        self._push(text, saved.edit, {name, original} - {""})

    def remove_server(self, name: str) -> None:
        """Take a server out of the roster, without asking: :attr:`removed` follows, and undo brings it back."""

        def done(edit: RosterEdit) -> None:
            self._push(self.tr("Remove {name}").format(name=name), edit, [name])
            self.removed.emit(name)

        self._link.request(
            lambda client: client.remove_entry(name), done, self.failed.emit, owner=self, name=f"remove {name}"
        )

    def undo(self) -> None:
        """Take the newest change back; nothing happens while a step is under way."""
        if self.can_undo:
            self._step(self._stack.command(self._stack.index() - 1), self._stack.undo, self.tr("Undone: {what}"))

    def redo(self) -> None:
        """Make the change again that was taken back last."""
        if self.can_redo:
            self._step(self._stack.command(self._stack.index()), self._stack.redo, self.tr("Done again: {what}"))

    # inside

    def _make_action(self, icon_text: str, key: QKeySequence.StandardKey) -> QAction:
        action = QAction(self)
        action.setObjectName(icon_text)
        action.setShortcuts(QKeySequence.keyBindings(key))
        return action

    def _push(self, text: str, edit: RosterEdit, names: Collection[str]) -> None:
        command = RosterCommand(text, edit, names)
        self._stack.push(command)
        if self._link.roster is not None:
            command.still_holds(self._link.roster)  # the event may have been faster than the answer

    def _step(self, command: Any, move: Any, said: str) -> None:
        def done(edit: RosterEdit) -> None:
            command.move(edit)
            move()
            self._end()
            self.said.emit(said.format(what=command.text()))

        def failed(error: CallboardError) -> None:
            if error.code in LOST:
                self._stack.clear()
            self._end()
            self.failed.emit(error)

        self._task = self._link.request(
            lambda client: client.undo(command.token), done, failed, owner=self, name=f"undo: {command.text()}"
        )
        self._refresh()

    def _end(self) -> None:
        self._task = None
        late, self._late = self._late, None
        if late is not None:
            self._roster_changed(late)
        self._refresh()

    def _roster_changed(self, view: RosterView) -> None:
        if self.is_busy:
            self._late = view
            return
        index = self._stack.index()
        near = [self._stack.command(at) for at in (index - 1, index) if 0 <= at < self._stack.count()]
        if not all(command.still_holds(view) for command in near if isinstance(command, RosterCommand)):
            self._stack.clear()

    def _engine_changed(self, engine: EngineView) -> None:
        if self._pid not in (0, engine.pid):
            self._stack.clear()  # tokens belong to the engine that gave them
        self._pid = engine.pid

    def _refresh(self, *_change: object) -> None:
        undo, redo = self._stack.undoText(), self._stack.redoText()
        self.undo_action.setText(self.tr("&Undo: {what}").format(what=undo) if undo else self.tr("&Undo"))
        self.redo_action.setText(self.tr("&Redo: {what}").format(what=redo) if redo else self.tr("&Redo"))
        self.undo_action.setEnabled(self.can_undo)
        self.redo_action.setEnabled(self.can_redo)

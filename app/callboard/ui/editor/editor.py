"""What the window calls to have servers added, edited, duplicated and removed."""

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from callboard.api.schema import EntryKind
from callboard.ui.editor.commands import RosterUndo
from callboard.ui.editor.dialog import EditorDialog
from callboard.ui.editor.drafts import Drafts
from callboard.ui.editor.entry_model import Entry, copy_name
from callboard.ui.editor.form import EntryForm
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.saver import Saved
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme


class ServerEditor(QObject):
    """Makes forms and dialogs, and keeps what they share: drafts and undo.

    One per window, on its loop. Dialogs open over ``window`` and never block: nothing here waits.
    """

    saved = Signal(str)  # the name under which a server was added or changed
    renamed = Signal(str, str)  # old and new name

    def __init__(
        self, link: EngineLink, theme: Theme, icons: Icons, window: QWidget | None = None, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.drafts = Drafts(self)
        self.undo = RosterUndo(link, self)
        self._kit = Kit(link, theme, icons, self.drafts)
        self._window = window

    def set_window(self, window: QWidget) -> None:
        """The window over which dialogs open."""
        self._window = window

    def make_form(self, name: str) -> EntryForm:
        """The form of a server, for a place of its own in the window."""
        form = EntryForm(self._kit, name)
        form.saved.connect(self._saved)
        return form

    def add_server(self, kind: EntryKind = "local") -> EditorDialog:
        """Open the dialog for a new server."""
        return self._open(EditorDialog.to_add(self._kit, kind, self._window))

    def search_registry(self) -> EditorDialog:
        """Open the dialog for a new server with the search of a registry."""
        dialog = self.add_server()
        dialog.search_registry()
        return dialog

    def open_bundle(self, path: str) -> EditorDialog:
        """Open the dialog for a new server with the bundle in a file."""
        dialog = self.add_server()
        dialog.open_bundle(path)
        return dialog

    def add_entry(self, name: str, entry: Entry) -> EditorDialog:
        """Open the dialog for a new server with values that come from elsewhere."""
        return self._open(EditorDialog.to_add_entry(self._kit, name, entry, self.tr("Add server"), self._window))

    def duplicate_server(self, name: str) -> EditorDialog | None:
        """Open the dialog on a copy of a server; None if there is no such server."""
        roster = self._kit.link.roster
        entry = roster.servers.get(name) if roster is not None else None
        if roster is None or entry is None:
            return None
        title = self.tr("Duplicate {name}").format(name=name)
        copy = copy_name(name, roster.servers)
        return self._open(EditorDialog.to_add_entry(self._kit, copy, entry, title, self._window))

    def edit_server(self, name: str) -> EditorDialog:
        """Open the dialog on a server."""
        return self._open(EditorDialog.to_edit(self._kit, name, self._window))

    def remove_server(self, name: str) -> None:
        """Take a server out of the roster; see :attr:`RosterUndo.removed`."""
        self.undo.remove_server(name)

    def _open(self, dialog: EditorDialog) -> EditorDialog:
        dialog.saved.connect(self._saved)
        dialog.open()
        return dialog

    def _saved(self, saved: Saved) -> None:
        self.undo.record(saved)
        name = saved.filled.name
        if saved.original and saved.original != name:
            self.renamed.emit(saved.original, name)
        self.saved.emit(name)

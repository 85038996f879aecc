"""The dialog that holds a form: to add, duplicate or edit a server."""

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QDialog, QStackedWidget, QVBoxLayout, QWidget

from callboard.api.schema import EntryKind, ServerView, ShippedView
from callboard.core.health import Severity
from callboard.core.registry import Way
from callboard.core.registry_fill import Filling
from callboard.ui.bundle_drop import bundle_in
from callboard.ui.editor.begin_row import BeginRow
from callboard.ui.editor.catalogue_list import CatalogueList, entry_of, needs_of, severity_of
from callboard.ui.editor.entry_fields import NAME
from callboard.ui.editor.entry_model import Entry, free_name, kind_of
from callboard.ui.editor.form import EntryForm
from callboard.ui.editor.kind_chooser import KindChooser
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import clear_margins
from callboard.ui.editor.saver import Saved
from callboard.ui.registry.flow import RegistryFlow
from callboard.ui.widgets.reason_bar import ReasonBar

translate = QCoreApplication.translate


class EditorDialog(QDialog):
    """One server under edit. Show it with ``open()``; it deletes itself when it is closed.

    Closing asks, inside the dialog, if something was entered that would be lost.
    """

    saved = Signal(object)  # Saved

    def __init__(self, kit: Kit, form: EntryForm, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setMinimumSize(480, 420)
        self.resize(640, 680)
        self._kit = kit
        self._is_sure = False
        self._forms: dict[EntryKind, EntryForm] = {}
        self.chooser: KindChooser | None = None
        self.begin_row: BeginRow | None = None
        self._reason = ReasonBar(kit.theme, self)
        outer = QVBoxLayout(self)
        clear_margins(outer)
        self._pages = QStackedWidget()
        outer.addWidget(self._pages)
        self._form_page = QWidget()
        self._pages.addWidget(self._form_page)
        self._column = QVBoxLayout(self._form_page)
        clear_margins(self._column)
        self._column.setSpacing(0)
        self._stack = QStackedWidget()
        self._column.addWidget(self._stack)
        self.flow: RegistryFlow | None = None
        self._show_form(form)

    @classmethod
    def to_add(cls, kit: Kit, kind: EntryKind = "local", parent: QWidget | None = None) -> "EditorDialog":
        """A dialog for a new server, in which the kind can be chosen."""
        dialog = cls(kit, EntryForm(kit, None, kind), translate("EditorDialog", "Add server"), parent)
        dialog._add_chooser(kind)
        return dialog

    @classmethod
    def to_add_entry(
        cls, kit: Kit, name: str, entry: Entry, title: str, parent: QWidget | None = None
    ) -> "EditorDialog":
        """A dialog for a new server that begins with the values of ``entry``."""
        return cls(kit, EntryForm(kit, None, kind_of(entry), start_name=name, start=entry), title, parent)

    @classmethod
    def to_edit(cls, kit: Kit, name: str, parent: QWidget | None = None) -> "EditorDialog":
        """A dialog for a server of the roster."""
        title = translate("EditorDialog", "Edit {name}").format(name=name)
        dialog = cls(kit, EntryForm(kit, name, closes=True), title, parent)
        dialog._add_reason(name)
        return dialog

    @property
    def catalogue(self) -> CatalogueList | None:
        """The list of servers that come with Callboard, where a new server can begin."""
        return self.begin_row.catalogue if self.begin_row is not None else None

    def search_registry(self) -> None:
        """Show the search of a registry in place of the form."""
        flow = self._open_flow()
        flow.search()

    def open_bundle(self, path: str) -> None:
        """Show what the bundle in a file would become in place of the form."""
        flow = self._open_flow()
        flow.open_bundle(path)

    @property
    def form(self) -> EntryForm:
        """The form that is shown."""
        form = self._stack.currentWidget()
        assert isinstance(form, EntryForm)
        return form

    def reject(self) -> None:
        """Go back from a search, or close, unless something would be lost: then ask first."""
        if self.flow is not None and self._pages.currentWidget() is self.flow:
            self.flow.back()
        elif self.form.is_saving:
            self.form.stop_saving()
        elif self._is_sure or not any(form.is_dirty for form in self._forms.values()):
            super().reject()
        else:
            self._ask()

    def closeEvent(self, event: QCloseEvent) -> None:
        """The same as :meth:`reject`."""
        if self.result() or self._is_sure or not any(form.is_dirty for form in self._forms.values()):
            event.accept()
            return
        event.ignore()
        self._pages.setCurrentWidget(self._form_page)
        self.reject()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A bundle may be dropped where a new server begins."""
        if self.begin_row is not None and bundle_in(event.mimeData()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Begin with the bundle."""
        if path := bundle_in(event.mimeData()):
            event.acceptProposedAction()
            self.open_bundle(path)

    def _add_reason(self, name: str) -> None:
        """What is wrong with the server stands on top, as long as it holds."""
        self._column.insertWidget(0, self._reason)
        link = self._kit.link
        if name in link.servers:
            self._show_reason(link.servers[name])
        link.serverChanged.connect(self._show_reason)

    def _show_reason(self, view: ServerView) -> None:
        if view.name == self.form.name:
            self._reason.show_reason(view.reason, view.fix, view.severity)

    def _add_chooser(self, kind: EntryKind) -> None:
        top = QWidget()
        margins = QVBoxLayout(top)
        margins.setContentsMargins(16, 16, 16, 2)
        margins.setSpacing(10)
        self.chooser = KindChooser(self._kit, kind)
        self.chooser.chosen.connect(self._choose)
        margins.addWidget(self.chooser)
        self.setAcceptDrops(True)
        self.begin_row = BeginRow(self._kit)
        self.begin_row.catalogue.chosen.connect(self._choose_shipped)
        self.begin_row.registry_wanted.connect(self.search_registry)
        self.begin_row.bundle_chosen.connect(self.open_bundle)
        margins.addWidget(self.begin_row)
        self._column.insertWidget(0, top)

    def _choose(self, kind: EntryKind) -> None:
        """Show the form of another kind; the name goes along, the rest waits in its own form."""
        before = self.form
        before.notices.drop("leave")
        form = self._forms.get(kind) or EntryForm(self._kit, None, kind)
        if before.fields.name:
            form.fields.restore({NAME: before.fields.name})
        self._show_form(form)

    def _choose_shipped(self, shipped: ShippedView) -> None:
        """Begin with a server of the catalogue, unless something was entered that would be lost: then ask first."""
        self._begin(shipped.kind, shipped.display_name, lambda: self._show_shipped(shipped))

    def _begin(self, kind: EntryKind, title: str, show: Callable[[], None]) -> None:
        form = self._forms.get(kind)
        if form is None or not form.is_dirty:
            show()
            return
        self._show_form(form)

        def keep() -> None:
            form.notices.drop("shipped")
            form.focus_first()

        text = self.tr("Begin anew with {name}? What you entered would be lost.").format(name=title)
        answers = [(self.tr("Begin anew"), show), (self.tr("Keep editing"), keep)]
        form.notices.put("shipped", text, Severity.ATTENTION, answers).focus_last_button()

    def _show_shipped(self, shipped: ShippedView) -> None:
        roster = self._kit.link.roster
        name = free_name(shipped.name, roster.servers if roster is not None else ())
        form = EntryForm(self._kit, None, shipped.kind, start_name=name, start=entry_of(shipped))
        self._replace_form(form)
        if needs := needs_of(shipped):
            form.notices.put("shipped", needs, severity_of(shipped))
        form.focus_missing()

    def _replace_form(self, form: EntryForm) -> None:
        kind = form.fields.kind
        before = self._forms.pop(kind, None)
        self._show_form(form)
        if before is not None:
            self._stack.removeWidget(before)
            before.deleteLater()
        if self.chooser is not None:
            self.chooser.cards[kind].setChecked(True)

    # registries and bundles

    def _open_flow(self) -> RegistryFlow:
        if self.flow is None:
            self.flow = RegistryFlow(self._kit)
            self.flow.left.connect(lambda: self._pages.setCurrentWidget(self._form_page))
            self.flow.filled.connect(self._take_filling)
            self.finished.connect(self.flow.release)
            self._pages.addWidget(self.flow)
        self._pages.setCurrentWidget(self.flow)
        return self.flow

    def _take_filling(self, name: str, way: Way, filling: Filling) -> None:
        """Begin with what was filled in, unless something else was entered that would be lost."""
        kind: EntryKind = "remote" if way.kind == "remote" else "local"
        self._pages.setCurrentWidget(self._form_page)
        self._begin(kind, name, lambda: self._show_filling(name, kind, filling))

    def _show_filling(self, name: str, kind: EntryKind, filling: Filling) -> None:
        form = EntryForm(self._kit, None, kind, start_name=name, filling=filling)
        self._replace_form(form)
        if filling.open:
            titles = list(dict.fromkeys(need.input.title for need in filling.open))
            text = self.tr("Still needed: {fields}. It is marked below.").format(fields=", ".join(titles))
            form.notices.put("shipped", text, Severity.ATTENTION, [(self.tr("Back to the questions"), self._ask_again)])
        else:
            text = self.tr("Filled in. Look at it, then add the server; nothing of it runs before.")
            form.notices.put("shipped", text, Severity.BUSY)
        form.focus_missing()

    def _ask_again(self) -> None:
        if self.flow is not None:
            self._pages.setCurrentWidget(self.flow)
            self.flow.resume()

    def _show_form(self, form: EntryForm) -> None:
        kind = form.fields.kind
        if kind not in self._forms:
            self._forms[kind] = form
            self._stack.addWidget(form)
            form.saved.connect(self._saved)
            form.left.connect(self.reject)
            form.changed.connect(lambda: form.notices.drop("leave"))
        self._stack.setCurrentWidget(form)
        if self.chooser is None:
            form.focus_missing()

    def _saved(self, saved: Saved) -> None:
        self._is_sure = True
        self.saved.emit(saved)
        self.accept()

    def _ask(self) -> None:
        form = self.form

        def discard() -> None:
            self._is_sure = True
            for each in self._forms.values():
                each.forget_draft()
            self.reject()

        def keep() -> None:
            form.notices.drop("leave")
            form.focus_first()

        answers = [(self.tr("Discard"), discard), (self.tr("Keep editing"), keep)]
        text = self.tr("Close without saving? What you entered would be lost.")
        notice = form.notices.put("leave", text, Severity.ATTENTION, answers)
        notice.focus_last_button()

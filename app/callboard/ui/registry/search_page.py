"""Searching a registry."""

import asyncio
from collections.abc import Callable

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFileDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from callboard.api.registry_schema import OfferPage, OfferView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.editor.form_notices import FormNotices
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, ToneLabel, icon_button
from callboard.ui.models.roles import Role
from callboard.ui.notice_bar import announce
from callboard.ui.registry.offer_list import OfferDelegate, OfferModel
from callboard.ui.theme import Token
from callboard.ui.widgets.empty_state import EmptyState


class SearchPage(QWidget):
    """A line to search with, where it is searched, and what was found. The network is used when the person searches."""

    left = Signal()
    chosen = Signal(object)  # OfferView

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._task: asyncio.Task[None] | None = None
        self._cursor = ""
        self._source = ""  # what was searched last
        self._words = ""
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(GAP + 2)
        column.addLayout(self._make_head())
        column.addLayout(self._make_place())
        self.notices = FormNotices(kit)
        column.addWidget(self.notices)
        self.model = OfferModel()
        self.list = self._make_list()
        self.empty = EmptyState(kit.theme)
        self._middle = QStackedWidget()
        self._middle.addWidget(self.empty)
        self._middle.addWidget(self.list)
        column.addWidget(self._middle, 1)
        column.addLayout(self._make_foot())
        self._say("")
        self.empty.show_message(
            self.tr("Search for a server"),
            self.tr("Or press Search to see all there are. Nothing is asked over the network before that."),
        )

    def begin(self) -> None:
        """Let the person type."""
        self.words.setFocus(Qt.FocusReason.OtherFocusReason)
        self.words.selectAll()

    def search(self) -> None:
        """Search for what is entered."""
        self._words, self._source, self._cursor = self.words.text().strip(), self.place.text().strip(), ""
        self._ask(self._show)

    def show_more(self) -> None:
        """Ask for the next page."""
        if self._cursor:
            self._ask(self._append)

    # building

    def _make_head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(GAP)
        row.addWidget(icon_button(self._kit.icons, "chevron-left", self.tr("Back"), self.left.emit))
        self.words = QLineEdit()
        self.words.setPlaceholderText(self.tr("Search servers, for instance: weather"))
        self.words.setAccessibleName(self.tr("Search"))
        self.words.setClearButtonEnabled(True)
        self.words.returnPressed.connect(self.search)
        row.addWidget(self.words, 1)
        self.search_button = QPushButton(self.tr("Search"))
        self.search_button.setAutoDefault(False)
        self.search_button.clicked.connect(lambda _checked=False: self.search())
        row.addWidget(self.search_button)
        return row

    def _make_place(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(GAP)
        label = QLabel(self.tr("&In:"))
        self.place = QLineEdit()
        self.place.setPlaceholderText(self.tr("the registry that the roster names, or an address, file or folder"))
        self.place.setAccessibleName(self.tr("Where to search"))
        self.place.returnPressed.connect(self.search)
        label.setBuddy(self.place)
        row.addWidget(label)
        row.addWidget(self.place, 1)
        button = icon_button(self._kit.icons, "folder", self.tr("Choose a file or a folder"), self._open_menu)
        row.addWidget(button)
        self._choose_button = button
        return row

    def _make_list(self) -> QListView:
        view = QListView()
        view.setModel(self.model)
        view.setItemDelegate(OfferDelegate(self._kit.theme, view))
        view.setUniformItemSizes(True)
        view.setFrameShape(QFrame.Shape.StyledPanel)
        view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        view.setAccessibleName(self.tr("Servers found"))
        view.setMouseTracking(True)
        view.activated.connect(self._activated)
        view.clicked.connect(self._activated)
        return view

    def _make_foot(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(GAP)
        self.status = ToneLabel(self._kit.theme, Token.MUTED)
        row.addWidget(self.status, 1)
        self.more_button = QPushButton(self.tr("Show more"))
        self.more_button.setAutoDefault(False)
        self.more_button.clicked.connect(lambda _checked=False: self.show_more())
        row.addWidget(self.more_button)
        return row

    # what happens

    def _ask(self, done: Callable[[OfferPage], object]) -> None:
        if self._task is not None:
            self._task.cancel()
        self.notices.drop("error")
        self._say(self.tr("Searching…"))
        words, source, cursor = self._words, self._source, self._cursor

        def answered(page: OfferPage) -> None:
            self._task = None
            self._cursor = page.cursor
            done(page)

        self._task = self._kit.link.request(
            lambda client: client.search_registry(words, source=source, cursor=cursor),
            answered,
            self._failed,
            owner=self,
            name="search the registry",
        )

    def _show(self, page: OfferPage) -> None:
        self.model.show(page.offers)
        self._count(page)
        if page.offers:
            self.list.setCurrentIndex(self.model.index(0))
            self.list.setFocus(Qt.FocusReason.OtherFocusReason)

    def _append(self, page: OfferPage) -> None:
        self.model.append(page.offers)
        self._count(page)

    def _count(self, page: OfferPage) -> None:
        count = len(self.model.offers)
        self._middle.setCurrentWidget(self.list if count else self.empty)
        if not count:
            text = self.tr("Try a shorter word: most registries look at names only.") if self._words else ""
            self.empty.show_message(self.tr("Nothing found"), text)
        text = self.tr("{count} found in {source}.") if count else self.tr("Nothing found in {source}.")
        if page.cursor:
            text = self.tr("{count} shown of what there is in {source}.")
        self._say(text.format(count=count, source=page.source), more=bool(page.cursor))
        announce(self, self.status.text())

    def _failed(self, error: CallboardError) -> None:
        self._task = None
        self._say("")
        self.notices.put("error", f"{error.message}\n{error.fix}".strip(), Severity.FAILED)

    def _say(self, text: str, *, more: bool = False) -> None:
        self.status.setText(text)
        self.more_button.setVisible(more)
        self.search_button.setEnabled(self._task is None)

    def _activated(self, index: QModelIndex) -> None:
        view = index.data(Role.VIEW)
        if isinstance(view, OfferView):
            self.chosen.emit(view)

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for text, folder in ((self.tr("Choose a file…"), False), (self.tr("Choose a folder…"), True)):
            action = QAction(text, menu)
            action.triggered.connect(lambda _checked=False, folder=folder: self._choose(folder))
            menu.addAction(action)
        menu.popup(self._choose_button.mapToGlobal(self._choose_button.rect().bottomLeft()))

    def _choose(self, folder: bool) -> None:
        dialog = QFileDialog(self, self.tr("Where to search"))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory if folder else QFileDialog.FileMode.ExistingFile)
        if not folder:
            dialog.setNameFilter(self.tr("Registry documents (*.json)"))
        dialog.fileSelected.connect(self.place.setText)
        dialog.open()

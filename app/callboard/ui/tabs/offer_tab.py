"""A server's tools, resources or prompts: a list with a search, and a page for the one that is chosen."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QSplitter,
    QStackedLayout,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from callboard.api.client import EngineClient
from callboard.api.schema import ServerView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.delegates.offer_row import OfferRowDelegate
from callboard.ui.engine_link import EngineLink
from callboard.ui.models.offers import Offer, OfferListModel
from callboard.ui.models.roles import Role
from callboard.ui.theme import Theme
from callboard.ui.widgets.empty_state import EmptyState


@dataclass(frozen=True)
class OfferWords:
    """What a tab says. ``missing`` has a place ``{text}`` for what was searched."""

    name: str
    search: str
    missing: str
    unreadable: str
    none: str
    none_offered: str
    unknown: str


@dataclass(frozen=True)
class OfferKind:
    """One kind of offers: its words, how it is asked for and shown in the list, and how many a server has."""

    words: OfferWords
    read: Callable[[EngineClient, str], Awaitable[Sequence[Any]]]
    offer: Callable[[Any], Offer]
    count: Callable[[ServerView], int]


class OfferPage(Protocol):
    """What shows one offer; a widget."""

    def show_offer(self, server: str, view: Any | None) -> None:
        """Show one of a server, or none."""


class OfferTab(QWidget):
    """List and page. Read when the tab is shown, and again when the engine says that a list changed."""

    def __init__(
        self, link: EngineLink, theme: Theme, kind: OfferKind, page: OfferPage, parent: QWidget | None = None
    ) -> None:
        """``page`` is a widget."""
        super().__init__(parent)
        self._link = link
        self._kind = kind
        self._view: ServerView | None = None
        self._question = 0
        self._fresh = False  # what is shown is what the server has now
        self._error: CallboardError | None = None
        self._model = OfferListModel(self)
        self._found = QSortFilterProxyModel(self)
        self._found.setFilterRole(Role.SEARCH)
        self._found.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._found.setSourceModel(self._model)
        self._search = QLineEdit(placeholderText=kind.words.search, clearButtonEnabled=True)
        self._search.setAccessibleName(kind.words.search)
        self.list = QListView()
        self.page = page
        self._nothing = EmptyState(theme)
        self._empty = EmptyState(theme)
        self._lay_out(theme)
        self._connect()

    def _lay_out(self, theme: Theme) -> None:
        self.list.setModel(self._found)
        self.list.setItemDelegate(OfferRowDelegate(theme, self.list))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setAccessibleName(self._kind.words.name)
        theme.changed.connect(self.list.viewport().update)
        left = QWidget()
        side = QVBoxLayout(left)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(0)
        box = QHBoxLayout()
        box.setContentsMargins(8, 8, 8, 8)
        box.addWidget(self._search)
        side.addLayout(box)
        rows = QStackedWidget()
        rows.addWidget(self.list)
        rows.addWidget(self._nothing)
        self._rows = rows
        side.addWidget(rows, 1)
        split = QSplitter()
        split.addWidget(left)
        assert isinstance(self.page, QWidget)
        split.addWidget(self.page)
        split.setStretchFactor(0, 2)
        split.setStretchFactor(1, 3)
        split.setHandleWidth(1)
        split.setChildrenCollapsible(False)
        split.setSizes([220, 360])
        self.split = split
        self._stack = QStackedLayout(self)
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._stack.addWidget(split)
        self._stack.addWidget(self._empty)

    def _connect(self) -> None:
        self._link.toolsChanged.connect(self._tools_changed)
        self._link.resynced.connect(self._stale)
        self._link.connected.connect(self._connected)
        self._search.textChanged.connect(self._narrow)
        self.list.selectionModel().currentChanged.connect(self._current_changed)

    # for the detail

    def show_server(self, view: ServerView) -> None:
        """Show a server's offers; called again whenever its state changes."""
        old, self._view = self._view, view
        if old is None or old.name != view.name:
            self._search.clear()
            self._model.reset([])
            self._stale()
        elif (self._kind.count(old), old.cached, old.state) != (self._kind.count(view), view.cached, view.state):
            self._stale()
        self._show_place()

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape clears the search."""
        if event.key() == Qt.Key.Key_Escape and self._search.text():
            self._search.clear()
        else:
            super().keyPressEvent(event)

    # reading

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._fresh:
            self._read()

    def _tools_changed(self, name: str) -> None:
        if self._view is not None and name == self._view.name:
            self._stale()

    def _connected(self) -> None:
        """Ask again what failed."""
        if not self._fresh and self.isVisible():
            self._read()

    def _stale(self) -> None:
        self._fresh = False
        if self.isVisible():
            self._read()

    def _read(self) -> None:
        if self._view is None or not self._link.is_connected:
            self._show_place()
            return
        self._question += 1
        question, name = self._question, self._view.name
        self._fresh = True

        def done(views: Sequence[Any]) -> None:
            if question == self._question:
                self._take(views)

        def fail(error: CallboardError) -> None:
            if question == self._question:
                self._fresh, self._error = False, error
                self._show_place()

        self._link.request(lambda client: self._kind.read(client, name), done, fail, owner=self, name="read offers")

    def _take(self, views: Sequence[Any]) -> None:
        self._error = None
        chosen = self._current()
        self._model.reset([self._kind.offer(view) for view in views])
        self._choose(chosen.key if chosen else "")
        self._show_place()

    # showing

    def _current(self) -> Offer | None:
        offer = self.list.currentIndex().data(Role.OFFER)
        return offer if isinstance(offer, Offer) else None

    def _choose(self, key: str) -> None:
        """Make an offer current, the first one if there is none of that key."""
        rows = range(self._found.rowCount())
        found = next((row for row in rows if self._found.index(row, 0).data(Role.OFFER).key == key), 0)
        index = self._found.index(found, 0)
        if index.isValid():
            self.list.setCurrentIndex(index)
            self._current_changed(index, QModelIndex())
        else:
            self.page.show_offer(self._server, None)

    @property
    def _server(self) -> str:
        return self._view.name if self._view is not None else ""

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        offer = current.data(Role.OFFER)
        self.page.show_offer(self._server, offer.view if isinstance(offer, Offer) else None)

    def _narrow(self, text: str) -> None:
        chosen = self._current()
        self._found.setFilterFixedString(text)
        self._choose(chosen.key if chosen else "")
        self._show_place()

    def _show_place(self) -> None:
        words = self._kind.words
        if self._model.rowCount():
            nothing = words.missing.format(text=self._search.text())
            self._nothing.show_message("", nothing, self.tr("Clear search"), self._search.clear)
            self._rows.setCurrentWidget(self.list if self._found.rowCount() else self._nothing)
            self._stack.setCurrentWidget(self.split)
            return
        if self._error is not None:
            self._empty.show_message(words.unreadable, self._error.message, self.tr("Try again"), self._read)
        elif self._view is not None and self._view.state in (State.READY, State.DEGRADED):
            self._empty.show_message(words.none, words.none_offered)
        else:
            self._empty.show_message(words.unknown, self.tr("They are listed here once the server has run."))
        self._stack.setCurrentWidget(self._empty)

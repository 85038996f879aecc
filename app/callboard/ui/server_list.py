"""The left side of the servers page: a search field and the list."""

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QPushButton,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import ServerView
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.roles import Role
from callboard.ui.models.servers import ServerListModel, ServerOrder
from callboard.ui.server_list_view import ServerListView
from callboard.ui.theme import Theme
from callboard.ui.widgets.empty_state import EmptyState


class ServerList(QWidget):
    """All servers, narrowed by a search; :attr:`chosen` tells which one is current ("" for none).

    Follows the engine's state by itself. Keys in the list: Enter or Space does what the row's button says, S starts
    or stops, R restarts, L shows the log, Delete removes.
    """

    chosen = Signal(str)

    def __init__(
        self, link: EngineLink, actions: ServerActions, theme: Theme, icons: Icons, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._model = ServerListModel(self)
        self._order = ServerOrder(self._model, self)
        self._wanted = ""  # chosen, but not (or no longer) in the list
        self._search = QLineEdit(placeholderText=self.tr("Search servers"), clearButtonEnabled=True)
        self._search.setAccessibleName(self.tr("Search servers"))
        self._add = QPushButton(self.tr("Add server…"))
        self.view = ServerListView(actions, theme, self)
        self.view.setModel(self._order)
        self._empty = EmptyState(theme)
        self._lay_out()
        QWidget.setTabOrder(self._search, self._add)
        QWidget.setTabOrder(self._add, self.view)
        self._connect()
        self._take_all(list(link.servers.values()))

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.addWidget(self._search, 1)
        top.addWidget(self._add)
        top.setContentsMargins(8, 8, 8, 8)
        top.setSpacing(8)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addLayout(self._stack, 1)
        self.setMinimumWidth(280)

    def _connect(self) -> None:
        link = self._link
        link.serversReset.connect(self._take_all)
        link.serverChanged.connect(self._model.change)
        link.serverRemoved.connect(self._model.remove)
        link.connected.connect(self._show_connection)
        link.disconnected.connect(self._show_connection)
        self._add.clicked.connect(self._actions.add)
        self._search.textChanged.connect(self._order.setFilterFixedString)
        self._search.returnPressed.connect(self.view.setFocus)
        self.view.selectionModel().currentChanged.connect(self._current_changed)
        for model in (self._order, self._model):  # the order tells of a removal before the row is gone
            for changed in (model.rowsInserted, model.rowsRemoved, model.modelReset):
                changed.connect(self._rows_changed)

    # for the page

    @property
    def current(self) -> str:
        """The chosen server's name, "" for none."""
        view = self.view.currentIndex().data(Role.VIEW)
        return view.name if isinstance(view, ServerView) else ""

    def choose(self, name: str) -> None:
        """Make a server current, clearing a search that hides it; one that comes later is chosen then."""
        if not name:
            return
        self._wanted = name
        if not self._order.mapFromSource(self._model.index_of(name)).isValid():
            self._search.clear()
        self._restore()

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape in the search field clears it; down goes to the list."""
        if event.key() == Qt.Key.Key_Escape and self._search.hasFocus() and self._search.text():
            self._search.clear()
        elif event.key() == Qt.Key.Key_Down and self._search.hasFocus():
            self.view.setFocus()
        else:
            super().keyPressEvent(event)

    # following

    def _take_all(self, views: list[ServerView]) -> None:
        self._model.reset(views)
        self._restore()
        self._show_connection()

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        view = current.data(Role.VIEW)
        if isinstance(view, ServerView):
            self._wanted = view.name
            self.chosen.emit(view.name)
        elif self._model.rowCount() == 0:
            self.chosen.emit("")

    def _rows_changed(self) -> None:
        self._restore()
        self._show_place()

    def _restore(self) -> None:
        """Keep a server chosen while there is one to choose."""
        index = self._order.mapFromSource(self._model.index_of(self._wanted))
        if not index.isValid():
            if self.view.currentIndex().isValid() or self._search.text():
                return
            index = self._order.index(0, 0)
        if index.isValid() and index != self.view.currentIndex():
            self.view.setCurrentIndex(index)
        elif not index.isValid():
            self.chosen.emit("")

    def _show_connection(self) -> None:
        self.view.set_actions_enabled(self._link.is_connected)
        self._add.setEnabled(self._link.is_connected)
        self._show_place()

    def _show_place(self) -> None:
        if self._order.rowCount():
            self._stack.setCurrentWidget(self.view)
            return
        text = self.tr("No server has “{text}” in its name, command or address.").format(text=self._search.text())
        self._empty.show_message(self.tr("Nothing found"), text, self.tr("Clear search"), self._search.clear)
        self._stack.setCurrentWidget(self._empty)

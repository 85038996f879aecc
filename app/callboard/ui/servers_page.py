"""The page of servers: the list at the left, the chosen one at the right."""

from PySide6.QtCore import QByteArray, QSettings, Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QApplication, QSplitter, QStackedLayout, QWidget

from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.server_detail import MakeForm, ServerDetail
from callboard.ui.server_list import ServerList
from callboard.ui.theme import Theme
from callboard.ui.widgets.empty_state import EmptyState

_SPLIT = "servers/split"


class ServersPage(QWidget):
    """Master and detail. ``make_form`` makes the form of the Configuration tab for a server's name."""

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
        make_form: MakeForm,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._settings = settings
        self.list = ServerList(link, actions, theme, icons)
        self.detail = ServerDetail(link, actions, theme, icons, make_form)
        self._nothing = EmptyState(theme)  # while there is no server at all
        self.split = QSplitter()
        self.split.addWidget(self.list)
        self.split.addWidget(self.detail)
        self.split.setStretchFactor(0, 0)
        self.split.setStretchFactor(1, 1)
        self.split.setHandleWidth(1)
        self.split.setChildrenCollapsible(False)
        if not self.split.restoreState(_stored(settings)):
            self.split.setSizes([360, 640])
        self.split.splitterMoved.connect(self._save_layout)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.split)
        self._stack.addWidget(self._nothing)
        for key in (QKeySequence(QKeySequence.StandardKey.Find), QKeySequence(Qt.Key.Key_Slash)):
            shortcut = QShortcut(key, self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self._focus_search)
        self.list.chosen.connect(self._show)
        for signal in (link.connected, link.disconnected):
            signal.connect(self._connection_changed)
        self._show(self.list.current)

    def show_server(self, name: str, tab: int | None = None) -> None:
        """Choose a server, and bring a tab of :class:`ServerDetail` to the front if one is given."""
        self.list.choose(name)
        if tab is not None:
            self.detail.show_tab(tab)

    def show_log(self, name: str) -> None:
        """Show a server's log."""
        self.show_server(name, ServerDetail.LOG)

    def show_configuration(self, name: str) -> None:
        """Show a server's form."""
        self.show_server(name, ServerDetail.CONFIGURATION)

    def _show(self, name: str) -> None:
        view = self._link.servers.get(name)
        if view is not None:
            self.detail.show_server(view)
        if self._link.servers:
            self._stack.setCurrentWidget(self.split)
            return
        if self._link.is_connected:
            self._nothing.show_message(
                self.tr("No servers yet"),
                self.tr("Add an MCP server, and every connected client can use its tools."),
                self.tr("Add server…"),
                self._actions.add,
            )
        else:
            self._nothing.show_message(
                self.tr("Waiting for the engine"),
                self.tr("The engine runs your servers. They appear here as soon as it answers."),
            )
        self._stack.setCurrentWidget(self._nothing)

    def _connection_changed(self, *_why: object) -> None:
        self._show(self.list.current)

    def _save_layout(self) -> None:
        self._settings.setValue(_SPLIT, self.split.saveState())

    def _focus_search(self) -> None:
        """In a tab with a search field of its own that one, else the list's."""
        focus = QApplication.focusWidget()
        if focus is None or not self.detail.isAncestorOf(focus) or not self.detail.focus_search():
            self.list.focus_search()


def _stored(settings: QSettings) -> QByteArray:
    state = settings.value(_SPLIT)
    return state if isinstance(state, QByteArray) else QByteArray()

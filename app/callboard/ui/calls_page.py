"""The page of the call log."""

from PySide6.QtCore import QByteArray, QCoreApplication, QItemSelection, QPoint, QSettings, Qt, QTimer
from PySide6.QtGui import QHideEvent, QKeySequence, QResizeEvent, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.actions import ServerActions
from callboard.ui.call_drawer import CallDrawer
from callboard.ui.call_filters import CallFilters
from callboard.ui.call_table import CallTable
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.calls import CallFilter, CallsModel
from callboard.ui.theme import Theme
from callboard.ui.widgets.empty_state import EmptyState
from callboard.ui.widgets.jump_button import JumpButton
from callboard.ui.widgets.reason_bar import ReasonBar

_WIDE = 980  # from this width on, in pixels, the drawer stands beside the table
_SPLIT = "calls/split"
_COLUMNS = "calls/columns"


class CallsPage(QWidget):
    """Live call log: filters, table, and a drawer with the chosen call."""

    def __init__(
        self,
        link: EngineLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._settings = settings
        self.model = CallsModel(link, self)
        self.filters = CallFilters(link, self.model)
        self.table = CallTable(self.model, theme)
        self.drawer = CallDrawer(link, theme, icons)
        self._count = QLabel()
        self._clear = QPushButton(self.tr("Clear filters"))
        self._pause = QPushButton(self.tr("Pause"))
        self._error = ReasonBar(theme)
        self._empty = EmptyState(theme)
        self._jump = JumpButton(icons, self.table)
        self._stack = QStackedWidget()
        self._split = QSplitter(Qt.Orientation.Horizontal)
        self._chosen = 0  # id of the call in the drawer
        self._icons = icons
        self._clock = QTimer(self, interval=5000)
        self._lay_out()
        self._connect()
        self._show_place()

    def _lay_out(self) -> None:
        self._pause.setCheckable(True)
        self._icons.set_on(self._pause, "pause")
        bar = QHBoxLayout()
        bar.addWidget(self._count)
        bar.addWidget(self._clear)
        bar.addStretch(1)
        bar.addWidget(self._pause)
        top = QVBoxLayout()
        top.setContentsMargins(8, 8, 8, 6)
        top.setSpacing(6)
        top.addWidget(self.filters)
        top.addLayout(bar)
        self._stack.addWidget(self.table)
        self._stack.addWidget(self._empty)
        self._stack.setContentsMargins(6, 0, 0, 0)  # the first column's text stands below the fields above
        self._split.addWidget(self._stack)
        self._split.addWidget(self.drawer)
        self._split.setStretchFactor(0, 3)
        self._split.setStretchFactor(1, 2)
        self._split.setHandleWidth(1)
        self._split.setChildrenCollapsible(False)
        if not self._split.restoreState(_stored(self._settings, _SPLIT)):
            self._split.setSizes([600, 400])
        self.table.restore_columns(_stored(self._settings, _COLUMNS))
        self.drawer.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(top)
        layout.addWidget(self._error)
        layout.addWidget(self._split, 1)

    def _connect(self) -> None:
        model, table = self.model, self.table
        self.filters.changed.connect(self._set_filter)
        self._clear.clicked.connect(self.clear_filters)
        self._pause.toggled.connect(self._set_paused)
        self._jump.clicked.connect(table.jump_to_end)
        model.totalChanged.connect(self._show_place)
        model.loaded.connect(self._loaded)
        model.failed.connect(self._show_error)
        model.unseenChanged.connect(self._show_unseen)
        model.callsSeen.connect(self.drawer.update_calls)
        model.modelReset.connect(self._restore_choice)
        table.atEndChanged.connect(lambda at_end: self._jump.set_needed(not at_end))
        table.selectionModel().selectionChanged.connect(self._selection_changed)
        table.opened.connect(self._open)
        table.closed.connect(self.close_drawer)
        table.menuRequested.connect(self._open_menu)
        table.columnsChanged.connect(lambda: self._settings.setValue(_COLUMNS, table.save_columns()))
        self.drawer.closed.connect(self.close_drawer)
        self._split.splitterMoved.connect(lambda: self._settings.setValue(_SPLIT, self._split.saveState()))
        self._link.connected.connect(self._connection_changed)
        self._link.disconnected.connect(self._connection_changed)
        self._clock.timeout.connect(table.viewport().update)
        for key in (QKeySequence(QKeySequence.StandardKey.Find), QKeySequence(Qt.Key.Key_Slash)):
            shortcut = QShortcut(key, self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self.filters.focus_search)
        escape = QShortcut(QKeySequence(Qt.Key.Key_Escape), self.drawer)
        escape.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        escape.activated.connect(self.close_drawer)

    # for other parts

    def show_call(self, call_id: int) -> None:
        """Open the drawer on a call, and choose its row if it is here."""
        row = self.model.row_of(call_id)
        if row is not None:
            self.table.choose_row(row)
            return
        self.table.clearSelection()
        self._chosen = call_id
        self.drawer.show_id(call_id)
        self._show_drawer()

    def filter_server(self, name: str) -> None:
        """Show the calls of one server, whatever was filtered before."""
        self.filters.show_filter(CallFilter(server=name))

    def clear_filters(self) -> None:
        """Show all calls."""
        self.filters.show_filter(CallFilter())

    def close_drawer(self) -> None:
        """Hide the drawer and leave the log as it is."""
        focus = QApplication.focusWidget()
        had_focus = focus is not None and self.drawer.isAncestorOf(focus)
        self._chosen = 0
        self.drawer.hide()
        self.table.clearSelection()
        if had_focus:
            self.table.setFocus()

    # the log

    def _set_filter(self, narrowed: CallFilter) -> None:
        self.model.set_filter(narrowed)
        self._show_place()

    def _loaded(self) -> None:
        self._error.show_reason("", "", Severity.OFF)
        self.table.jump_to_end()
        self._show_place()

    def _show_error(self, error: CallboardError) -> None:
        self._error.show_reason(error.message, error.fix, Severity.ATTENTION)

    def _connection_changed(self) -> None:
        self._error.show_reason("", "", Severity.OFF)
        self._show_place()

    def _set_paused(self, paused: bool) -> None:
        self._pause.setText(self.tr("Resume") if paused else self.tr("Pause"))
        self._icons.set_on(self._pause, "play" if paused else "pause")
        self.model.set_paused(paused)
        if not paused:
            self.table.jump_to_end()

    def _show_unseen(self, unseen: int) -> None:
        if unseen:
            self._pause.setText(self.tr("Resume ({n} new)").format(n=f"{unseen:,}"))
        else:
            self._pause.setText(self.tr("Resume") if self.model.is_paused else self.tr("Pause"))

    def _show_place(self) -> None:
        total, narrowed = self.model.total, bool(self.filters.filter)
        self._count.setText(_count_text(total, narrowed))
        self._count.setVisible(self.model.is_loaded and bool(total))
        self._clear.setVisible(narrowed)
        if total or not self.model.is_loaded:
            waiting = not total and not self._link.is_connected
            if waiting:
                self._empty.show_message(
                    self.tr("Waiting for the engine"), self.tr("The call log appears here as soon as it answers.")
                )
            self._stack.setCurrentWidget(self._empty if waiting else self.table)
            return
        if narrowed:
            self._empty.show_message(
                self.tr("No call matches"),
                self.tr("New calls that match appear here."),
                self.tr("Clear filters"),
                self.clear_filters,
            )
        else:
            self._empty.show_message(
                self.tr("No calls yet"),
                self.tr(
                    "Every tool call of a connected client is listed here. To connect VS Code, copy its configuration "
                    "and paste it into .vscode/mcp.json of a project."
                ),
                self.tr("Copy VS Code config"),
                self._actions.copy_vscode_config,
            )
        self._stack.setCurrentWidget(self._empty)

    # the drawer

    def _selection_changed(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        rows = self.table.selectionModel().selectedRows()
        if rows:
            self._open(rows[0].row())

    def _open(self, row: int) -> None:
        call = self.model.call_at(row)
        if call is None:
            return
        if call.id != self._chosen or not self.drawer.isVisible():
            self._chosen = call.id
            self.drawer.show_call(call)
        self._show_drawer()

    def _show_drawer(self) -> None:
        if not self.drawer.isVisible():
            self.drawer.show()
            self.table.scroll_to_chosen()

    def _restore_choice(self) -> None:
        """Rows have other numbers now: choose the row of the call in the drawer again."""
        row = self.model.row_of(self._chosen) if self._chosen else None
        if row is not None:
            self.table.choose_row(row)

    def _open_menu(self, row: int, at: QPoint) -> None:
        call = self.model.call_at(row)
        if call is None:
            return
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._add_filter(menu, self.tr("Only server {name}"), call.server, CallFilter(server=call.server))
        tool = CallFilter(server=call.server, tool=call.tool)
        self._add_filter(menu, self.tr("Only tool {name}"), call.tool, tool)
        self._add_filter(menu, self.tr("Only client {name}"), call.client, CallFilter(client=call.client))
        self._add_filter(menu, self.tr("Only engine {name}"), call.engine, CallFilter(engine=call.engine))
        menu.addSeparator()
        menu.addAction(self.tr("Show server"), lambda: self._actions.open(call.server))
        menu.addAction(self.tr("Show log of server"), lambda: self._actions.show_log(call.server))
        menu.popup(at)

    def _add_filter(self, menu: QMenu, text: str, name: str, narrowed: CallFilter) -> None:
        if name:
            menu.addAction(text.format(name=name), lambda: self.filters.show_filter(narrowed))

    # the room

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = self.width() >= _WIDE
        orientation = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        if self._split.orientation() != orientation:
            self._split.setOrientation(orientation)
        self.drawer.set_beside(beside)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._clock.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._clock.stop()


def _count_text(total: int, narrowed: bool) -> str:
    tr = QCoreApplication.translate
    if narrowed:
        if total == 1:
            return tr("CallsPage", "1 call matches")
        return tr("CallsPage", "{n} calls match").format(n=f"{total:,}")
    return tr("CallsPage", "1 call") if total == 1 else tr("CallsPage", "{n} calls").format(n=f"{total:,}")


def _stored(settings: QSettings, key: str) -> QByteArray:
    state = settings.value(key)
    return state if isinstance(state, QByteArray) else QByteArray()

"""A server's tools and what each takes."""

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QPushButton,
    QSplitter,
    QStackedLayout,
    QStackedWidget,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import ServerView, ToolView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.delegates.tool_row import ToolRowDelegate
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.pretty import dump
from callboard.ui.models.roles import Role
from callboard.ui.models.tools import ToolListModel
from callboard.ui.tabs.tool_page import tool_html
from callboard.ui.theme import Theme
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.elided_label import ElidedLabel
from callboard.ui.widgets.empty_state import EmptyState
from callboard.ui.widgets.json_view import JsonView


class ToolsTab(QWidget):
    """List and description. Read when the tab is shown, and again when the engine says that the tools changed."""

    countChanged = Signal(int)

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._view: ServerView | None = None
        self._question = 0
        self._fresh = False  # the tools shown are those of the server as it is now
        self._error: CallboardError | None = None
        self._model = ToolListModel(self)
        self._found = QSortFilterProxyModel(self)
        self._found.setFilterRole(Role.SEARCH)
        self._found.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self._found.setSourceModel(self._model)
        self._search = QLineEdit(placeholderText=self.tr("Search tools"), clearButtonEnabled=True)
        self._search.setAccessibleName(self.tr("Search tools"))
        self.list = QListView()
        self.page = _ToolPage(theme, icons)
        self._nothing = EmptyState(theme)
        self._empty = EmptyState(theme)
        self._lay_out(theme)
        self._connect()

    def _lay_out(self, theme: Theme) -> None:
        self.list.setModel(self._found)
        self.list.setItemDelegate(ToolRowDelegate(theme, self.list))
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setFrameShape(QFrame.Shape.NoFrame)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.list.setAccessibleName(self.tr("Tools"))
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
        """Show a server's tools; called again whenever its state changes."""
        old, self._view = self._view, view
        if old is None or old.name != view.name:
            self._search.clear()
            self._model.reset([])
            self._stale()
        elif (old.tools, old.cached, old.state) != (view.tools, view.cached, view.state):
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

        def done(tools: list[ToolView]) -> None:
            if question == self._question:
                self._take(tools)

        def fail(error: CallboardError) -> None:
            if question == self._question:
                self._fresh, self._error = False, error
                self._show_place()

        self._link.request(lambda client: client.tools(name), done, fail, owner=self, name="read tools")

    def _take(self, tools: list[ToolView]) -> None:
        self._error = None
        chosen = self._current()
        self._model.reset(tools)
        self.countChanged.emit(len(tools))
        self._choose(chosen.name if chosen else "")
        self._show_place()

    # showing

    def _current(self) -> ToolView | None:
        tool = self.list.currentIndex().data(Role.VIEW)
        return tool if isinstance(tool, ToolView) else None

    def _choose(self, name: str) -> None:
        """Make a tool current, the first one if there is none of that name."""
        rows = range(self._found.rowCount())
        found = next((row for row in rows if self._found.index(row, 0).data(Role.VIEW).name == name), 0)
        index = self._found.index(found, 0)
        if index.isValid():
            self.list.setCurrentIndex(index)
            self._current_changed(index, QModelIndex())
        else:
            self.page.show_tool(None)

    def _current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        tool = current.data(Role.VIEW)
        self.page.show_tool(tool if isinstance(tool, ToolView) else None)

    def _narrow(self, text: str) -> None:
        chosen = self._current()
        self._found.setFilterFixedString(text)
        self._choose(chosen.name if chosen else "")
        self._show_place()

    def _show_place(self) -> None:
        if self._model.rowCount():
            nothing = self.tr("No tool has “{text}” in its name or description.").format(text=self._search.text())
            self._nothing.show_message("", nothing, self.tr("Clear search"), self._search.clear)
            self._rows.setCurrentWidget(self.list if self._found.rowCount() else self._nothing)
            self._stack.setCurrentWidget(self.split)
            return
        if self._error is not None:
            self._empty.show_message(
                self.tr("The tools cannot be read"), self._error.message, self.tr("Try again"), self._read
            )
        elif self._view is not None and self._view.state in (State.READY, State.DEGRADED):
            self._empty.show_message(self.tr("No tools"), self.tr("This server offers no tools."))
        else:
            self._empty.show_message(
                self.tr("Tools are not known yet"), self.tr("They are listed here once the server has run.")
            )
        self._stack.setCurrentWidget(self._empty)


class _ToolPage(QWidget):
    """One tool: description and parameters, or its JSON."""

    def __init__(self, theme: Theme, icons: Icons) -> None:
        super().__init__()
        self._theme = theme
        self._tool: ToolView | None = None
        self._name = ElidedLabel()
        self._copy = CopyButton(icons, self.tr("Copy wire name"), self._wire_name)
        self._text = QTextBrowser()
        self._text.setOpenLinks(False)
        self._text.setFrameShape(QFrame.Shape.NoFrame)
        self._text.setAccessibleName(self.tr("Description of the tool"))
        self._text.document().setDocumentMargin(10)
        self._json = JsonView(theme, self.tr("Schema of the tool as JSON"))
        self._switch = QPushButton(self.tr("JSON"))
        self._switch.setCheckable(True)
        self._switch.setToolTip(self.tr("Show the schema as JSON"))
        self._views = QStackedWidget()
        self._views.addWidget(self._text)
        self._views.addWidget(self._json)
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 8, 8, 8)
        bar.setSpacing(6)
        bar.addWidget(self._name, 1)
        bar.addWidget(self._copy)
        bar.addWidget(self._switch)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self._views, 1)
        self._switch.toggled.connect(lambda on: self._views.setCurrentIndex(int(on)))
        theme.changed.connect(self._show)

    def show_tool(self, tool: ToolView | None) -> None:
        if tool != self._tool:
            self._tool = tool
            self._show()

    def _wire_name(self) -> str:
        return self._tool.wire_name if self._tool else ""

    def _show(self) -> None:
        tool = self._tool
        self._copy.setEnabled(tool is not None)
        self._name.setText(self._wire_name())
        tip = self.tr("The name under which clients of /mcp see this tool")
        self._copy.setToolTip(f"{self._copy.accessibleName()}\n{tip}")
        if tool is None:
            self._text.clear()
            self._json.show_text("")
            return
        self._text.setHtml(tool_html(tool, self._theme))
        schema = {"inputSchema": tool.input_schema, "outputSchema": tool.output_schema, "annotations": tool.annotations}
        self._json.show_text(dump({key: value for key, value in schema.items() if value}))

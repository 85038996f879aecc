"""The table of the call log."""

from PySide6.QtCore import QByteArray, QPoint, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QPalette, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QFrame, QHeaderView, QTableView, QWidget

from callboard.ui.delegates.call_cells import CallStatusDelegate
from callboard.ui.models.calls import CallsModel
from callboard.ui.theme import Theme, Token

_ROOM_FOR_SIZE, _ROOM_FOR_ERROR = 640, 860  # pixels


class CallTable(QTableView):
    """Rows of one height; follows the newest row while the end can be seen."""

    atEndChanged = Signal(bool)
    opened = Signal(int)  # row
    closed = Signal()
    menuRequested = Signal(int, QPoint)  # row, place on the screen
    columnsChanged = Signal()

    def __init__(self, model: CallsModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._following = True
        self.setModel(model)
        self.setItemDelegateForColumn(CallsModel.STATUS, CallStatusDelegate(theme, self))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setAlternatingRowColors(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setTabKeyNavigation(False)
        self.setAccessibleName(self.tr("Calls"))
        self._set_headers()
        bar = self.verticalScrollBar()
        bar.valueChanged.connect(self._scrolled)
        bar.rangeChanged.connect(self._range_changed)
        self.doubleClicked.connect(lambda index: self.opened.emit(index.row()))
        theme.changed.connect(self._set_colors)
        self._set_colors()

    def _set_headers(self) -> None:
        metrics = self.fontMetrics()
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(metrics.height() + 12)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setSectionsMovable(True)
        header.setStretchLastSection(False)
        header.setMinimumSectionSize(48)
        for column, sample in (
            (CallsModel.TIME, "59 min ago"),
            (CallsModel.CLIENT, "Claude Code"),
            (CallsModel.SERVER, "local-tools-x"),
            (CallsModel.TOOL, "list_directory_with"),
            (CallsModel.STATUS, "● Completed"),
            (CallsModel.DURATION, "Duration x"),
            (CallsModel.SIZE, "1023.9 KB"),
        ):
            header.resizeSection(column, metrics.horizontalAdvance(sample) + 20)
        self._tool_width = header.sectionSize(CallsModel.TOOL)  # while there is room for the error
        header.setSectionResizeMode(CallsModel.ERROR, QHeaderView.ResizeMode.Stretch)
        header.sectionResized.connect(self.columnsChanged)
        header.sectionMoved.connect(self.columnsChanged)

    def _set_colors(self) -> None:
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.Highlight, self._theme.color(Token.ACCENT_SOFT))
        palette.setColor(QPalette.ColorRole.HighlightedText, self._theme.color(Token.TEXT))
        self.setPalette(palette)

    def _give_room(self) -> None:
        """Hide what the drawer tells too where there is no room for it; the last text that is left fills the row."""
        self.setColumnHidden(CallsModel.SIZE, self.width() < _ROOM_FOR_SIZE)
        narrow = self.width() < _ROOM_FOR_ERROR
        if narrow == self.isColumnHidden(CallsModel.ERROR):
            return
        self.setColumnHidden(CallsModel.ERROR, narrow)
        header, modes = self.horizontalHeader(), QHeaderView.ResizeMode
        if narrow:
            self._tool_width = header.sectionSize(CallsModel.TOOL)
        header.setSectionResizeMode(CallsModel.TOOL, modes.Stretch if narrow else modes.Interactive)
        if not narrow:
            header.resizeSection(CallsModel.TOOL, self._tool_width)

    # for the page

    def save_columns(self) -> QByteArray:
        """Widths and order of the columns."""
        return self.horizontalHeader().saveState()

    def restore_columns(self, state: QByteArray) -> None:
        """Widths and order as they were saved; nothing happens if ``state`` is empty or of another version."""
        self.horizontalHeader().restoreState(state)

    @property
    def is_following(self) -> bool:
        """Whether new rows are scrolled to."""
        return self._following

    def jump_to_end(self) -> None:
        """Show the newest row, and follow from now on."""
        self.scrollToBottom()
        self._set_following(True)

    def choose_row(self, row: int) -> None:
        """Select a row and make sure that it can be seen."""
        index = self.model().index(row, 0)
        self.setCurrentIndex(index)
        self.scrollTo(index)

    def scroll_to_chosen(self) -> None:
        """Make sure that the selected row can be seen after the table has become smaller."""
        if self.selectionModel().hasSelection() and not self._following:
            self.scrollTo(self.currentIndex())

    # following

    def _scrolled(self, value: int) -> None:
        self._set_following(value >= self.verticalScrollBar().maximum())

    def _range_changed(self, _minimum: int, maximum: int) -> None:
        if self._following:
            self.verticalScrollBar().setValue(maximum)

    def _set_following(self, following: bool) -> None:
        if following != self._following:
            self._following = following
            self.atEndChanged.emit(following)

    # keys and menu

    def keyPressEvent(self, event: QKeyEvent) -> None:
        index = self.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and index.isValid():
            self.opened.emit(index.row())
        elif event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        by_mouse = event.reason() == QContextMenuEvent.Reason.Mouse
        index = self.indexAt(event.pos()) if by_mouse else self.currentIndex()
        if index.isValid():
            at = event.globalPos() if by_mouse else self.viewport().mapToGlobal(self.visualRect(index).center())
            self.menuRequested.emit(index.row(), at)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give_room()
        if self._following:
            self.scrollToBottom()

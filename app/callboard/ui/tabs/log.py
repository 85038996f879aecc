"""A server's output, live."""

from collections.abc import Iterable

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent, QShowEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QStackedLayout,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import LogLine, LogPage
from callboard.core.errors import CallboardError
from callboard.ui import formats
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from callboard.ui.widgets.empty_state import EmptyState
from callboard.ui.widgets.jump_button import JumpButton
from callboard.ui.widgets.log_view import LogView


class LogTab(QWidget):
    """The log of one server. It is read when the tab is shown, and followed while it can be seen."""

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._name = ""
        self._last = 0  # number of the newest line taken
        self._engine: tuple[int, float] | None = None  # whose numbers these are
        self._question = 0
        self._loading = False
        self._early: list[LogLine] = []  # came while the log was being read
        self.view = LogView(theme)
        self._search = QLineEdit(placeholderText=self.tr("Search log"), clearButtonEnabled=True)
        self._search.setAccessibleName(self.tr("Search log"))
        self._matches = QLabel()
        self._previous = self._tool(icons, "chevron-up", self.tr("Previous match"))
        self._next = self._tool(icons, "chevron-down", self.tr("Next match"))
        self._wrap = QPushButton(self.tr("Wrap"))
        self._wrap.setCheckable(True)
        self._wrap.setToolTip(self.tr("Break long lines"))
        self._copy = QPushButton(self.tr("Copy all"))
        self._newest = JumpButton(icons, self.view)
        self._empty = EmptyState(theme)
        self._lay_out()
        self._connect()
        self._show_search()
        self._show_place()

    def _tool(self, icons: Icons, icon: str, text: str) -> QToolButton:
        button = QToolButton(autoRaise=True)
        icons.set_on(button, icon)
        button.setToolTip(text)
        button.setAccessibleName(text)
        return button

    def _lay_out(self) -> None:
        bar = QHBoxLayout()
        bar.setContentsMargins(8, 8, 8, 8)
        bar.setSpacing(6)
        for widget in (self._search, self._previous, self._next, self._matches, self._wrap, self._copy):
            bar.addWidget(widget, 1 if widget is self._search else 0)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.view)
        self._stack.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addLayout(self._stack, 1)

    def _connect(self) -> None:
        self._link.logLines.connect(self._take_live)
        self._link.resynced.connect(self._resync)
        self._link.connected.connect(self._resync)
        self._link.serverRemoved.connect(self._removed)
        self._search.textChanged.connect(self._show_search)
        self._search.returnPressed.connect(self._find)
        self._previous.clicked.connect(lambda: self._find(backward=True))
        self._next.clicked.connect(lambda: self._find())
        self._wrap.toggled.connect(self._set_wrap)
        self._copy.clicked.connect(self._copy_all)
        self._newest.clicked.connect(self.view.jump_to_end)
        self.view.atEndChanged.connect(lambda at_end: self._newest.set_needed(not at_end))
        self.view.linesChanged.connect(self._lines_changed)

    # for the detail

    def show_server(self, name: str) -> None:
        """Show another server's log."""
        if name == self._name:
            return
        self._name = name
        self._start_anew()
        if self.isVisible():
            self._read()

    def focus_search(self) -> None:
        """Put the cursor into the search field."""
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    # reading

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._read()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._question += 1  # an answer that comes now is of no use
        self._loading = False

    def _start_anew(self) -> None:
        self._question += 1
        self._last = 0
        self._engine = None
        self._loading = False
        self._early.clear()
        self.view.clear_lines()

    def _removed(self, name: str) -> None:
        if name == self._name:
            self._start_anew()

    def _resync(self) -> None:
        if self.isVisible():
            self._read()

    def _read(self) -> None:
        """Read what we do not have yet; all of it if another engine answers now."""
        engine = self._link.engine
        if not self._name or not self._link.is_connected or engine is None:
            self._show_place()
            return
        identity = (engine.pid, engine.started)
        if identity != self._engine:
            self._start_anew()
            self._engine = identity
        self._question += 1
        question, name, after = self._question, self._name, self._last
        self._loading = True
        self._early.clear()

        def done(page: LogPage) -> None:
            if question == self._question:
                self._take_page(page)

        def fail(error: CallboardError) -> None:
            if question == self._question:
                self._loading = False
                self._show_place(error)

        self._link.request(
            lambda client: client.log(name, after=after, limit=LogView.KEPT), done, fail, owner=self, name="read log"
        )
        self._show_place()

    def _take_page(self, page: LogPage) -> None:
        self._loading = False
        if page.next < self._last:  # the server was removed and added again: its lines are counted anew
            self._start_anew()
            self._read()
            return
        if page.dropped and page.lines:
            text = self.tr("{n} earlier lines are only in the log's file").format(n=page.dropped)
            self.view.append_lines([LogLine(n=0, at=page.lines[0].at, stream="mark", text=text)])
        self._take(page.lines)
        early, self._early = self._early, []
        self._take(early)
        self._show_place()

    def _take_live(self, name: str, lines: list[LogLine]) -> None:
        if name != self._name or not self.isVisible():
            return
        if self._loading:
            self._early.extend(lines)
        else:
            self._take(lines)

    def _take(self, lines: Iterable[LogLine]) -> None:
        fresh = [line for line in lines if line.n > self._last]
        if fresh:
            self._last = fresh[-1].n
            self.view.append_lines(fresh)

    # showing

    def _lines_changed(self) -> None:
        if self._search.text():
            self._show_matches(self.view.count_matches())
        self._show_place()

    def _show_place(self, error: CallboardError | None = None) -> None:
        if self.view.lines and error is None:
            self._stack.setCurrentWidget(self.view)
            return
        if error is not None:
            self._empty.show_message(self.tr("The log cannot be read"), error.message, self.tr("Try again"), self._read)
        elif self._loading:
            self._empty.show_message(self.tr("Reading the log…"))
        elif not self._link.is_connected:
            self._empty.show_message(self.tr("Waiting for the engine"))
        else:
            self._empty.show_message(
                self.tr("No output yet"), self.tr("What the server writes to its standard error appears here.")
            )
        self._stack.setCurrentWidget(self._empty)

    def _show_search(self) -> None:
        self._show_matches(self.view.search(self._search.text()))
        for widget in (self._previous, self._next, self._matches):
            widget.setVisible(bool(self._search.text()))

    def _show_matches(self, count: int) -> None:
        if not count:
            self._matches.setText(self.tr("no match"))
        elif count == 1:
            self._matches.setText(self.tr("1 line"))
        else:
            self._matches.setText(self.tr("{n} lines").format(n=f"{count:,}"))

    def _find(self, *, backward: bool = False) -> None:
        self.view.find_next(backward=backward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape clears the search; F3 and Shift+F3 go through the matches."""
        if event.key() == Qt.Key.Key_Escape and self._search.text():
            self._search.clear()
        elif event.key() == Qt.Key.Key_F3:
            self._find(backward=bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier))
        else:
            super().keyPressEvent(event)

    def _set_wrap(self, wrap: bool) -> None:
        mode = QPlainTextEdit.LineWrapMode
        self.view.setLineWrapMode(mode.WidgetWidth if wrap else mode.NoWrap)

    def _copy_all(self) -> None:
        lines = (f"{formats.exact_time(line.at)} {line.text}" for line in self.view.lines)
        QGuiApplication.clipboard().setText("\n".join(lines))

"""What the window has to say by itself: standing notices above the page, and toasts that go away."""

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QAccessible, QAccessibleAnnouncementEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from callboard.core.health import Severity
from callboard.ui import words
from callboard.ui.icons import Icons
from callboard.ui.theme import SEVERITY_TOKENS, Theme

MOST_ROWS = 3
TOAST_MS = 5_000
UNDO_TOAST_MS = 12_000
_ICONS = {
    Severity.OFF: "info",
    Severity.BUSY: "info",
    Severity.FINE: "success",
    Severity.ATTENTION: "warning",
    Severity.FAILED: "error",
}
_RANK = (Severity.FAILED, Severity.ATTENTION, Severity.BUSY, Severity.OFF, Severity.FINE)


@dataclass(frozen=True)
class NoticeAction:
    """A button of a notice or toast."""

    label: str
    run: Callable[[], object]


@dataclass(frozen=True)
class Notice:
    """Something that stands above the page until it no longer holds or the person closes it.

    A notice of the same ``key`` takes its place. ``text`` is one sentence, ``fix`` what to do about it.
    """

    key: str
    severity: Severity
    text: str
    fix: str = ""
    actions: tuple[NoticeAction, ...] = ()


class NoticeBar(QWidget):
    """The notices that hold now, the worst on top, at most :data:`MOST_ROWS` of them at once."""

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self._notices: dict[str, Notice] = {}
        self._rows: dict[str, _NoticeRow] = {}
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(12, 12, 12, 0)
        self._layout.setSpacing(6)
        self.setAccessibleName(self.tr("Notices"))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.hide()

    @property
    def keys(self) -> list[str]:
        """Keys of all notices that hold, shown or not."""
        return list(self._notices)

    def notice(self, key: str) -> Notice | None:
        """The notice of that key, if it holds."""
        return self._notices.get(key)

    def put(self, notice: Notice) -> None:
        """Show a notice, in place of one with the same key."""
        if self._notices.get(notice.key) == notice:
            return
        self._notices[notice.key] = notice
        announce(self, f"{notice.text} {notice.fix}".strip())
        self._arrange()

    def drop(self, key: str) -> None:
        """Take a notice away; no error if it is not there."""
        if self._notices.pop(key, None) is not None:
            self._arrange()

    def _arrange(self) -> None:
        shown = sorted(self._notices.values(), key=lambda notice: _RANK.index(notice.severity))[:MOST_ROWS]
        for key, row in list(self._rows.items()):
            if row.notice not in shown:
                del self._rows[key]
                self._layout.removeWidget(row)
                row.hide()
                row.deleteLater()
        for place, notice in enumerate(shown):
            if notice.key not in self._rows:
                self._rows[notice.key] = _NoticeRow(notice, self._theme, self._icons, self)
                self._rows[notice.key].closed.connect(self.drop)
            row = self._rows[notice.key]
            self._layout.removeWidget(row)
            self._layout.insertWidget(place, row)
            row.show()
        self.setVisible(bool(shown))


class _NoticeRow(QFrame):
    """One notice: icon, sentence, fix, buttons, close."""

    closed = Signal(str)

    def __init__(self, notice: Notice, theme: Theme, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self.notice = notice
        self._theme = theme
        self.setAccessibleName(f"{words.severity_word(notice.severity)}: {notice.text}")
        foreground = SEVERITY_TOKENS[notice.severity][0]
        icon = QLabel()
        icon.setFixedSize(20, 20)
        text = QLabel(notice.text)
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        column = QVBoxLayout()
        column.setSpacing(1)
        column.addWidget(text)
        if notice.fix and notice.fix != notice.text:
            fix = QLabel(notice.fix)
            fix.setWordWrap(True)
            fix.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            column.addWidget(fix)
            bold = text.font()
            bold.setWeight(bold.Weight.DemiBold)
            text.setFont(bold)
        line = QHBoxLayout(self)
        line.setContentsMargins(12, 9, 8, 9)
        line.setSpacing(10)
        line.addWidget(icon, 0, Qt.AlignmentFlag.AlignTop)
        line.addLayout(column, 1)
        for action in notice.actions:
            button = QPushButton(action.label)
            button.clicked.connect(action.run)
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        close = QToolButton()
        close.setAutoRaise(True)
        close.setToolTip(self.tr("Close this notice"))
        close.setAccessibleName(self.tr("Close this notice"))
        close.clicked.connect(lambda: self.closed.emit(notice.key))
        icons.set_on(close, "close")
        line.addWidget(close, 0, Qt.AlignmentFlag.AlignTop)

        def draw() -> None:
            icon.setPixmap(icons.pixmap(_ICONS[notice.severity], 20, foreground, self.devicePixelRatioF()))
            self.update()

        self._draw = draw
        draw()
        theme.changed.connect(self._redraw)

    def _redraw(self) -> None:
        self._draw()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the soft background of the severity."""
        foreground, background = self._theme.severity(self.notice.severity)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        edge = foreground
        edge.setAlphaF(0.35)
        painter.setPen(QPen(edge, 1))
        painter.setBrush(background)
        painter.drawRoundedRect(rect, 7, 7)
        painter.end()


class Toast(QFrame):
    """One line over the lower edge of its parent that says what was done, and goes away.

    It stays while the mouse is on it or its button has the focus.
    """

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._under = parent
        self._theme = theme
        self._label = QLabel()
        self._button = QPushButton()
        self._button.clicked.connect(self._pressed)
        self._run: Callable[[], object] | None = None
        line = QHBoxLayout(self)
        line.setContentsMargins(16, 9, 12, 9)
        line.setSpacing(12)
        line.addWidget(self._label)
        line.addWidget(self._button)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._time_is_up)
        theme.changed.connect(self.update)
        parent.installEventFilter(self)
        self.hide()

    @property
    def text(self) -> str:
        """What is or was last said."""
        return self._label.text()

    def say(self, text: str, action: NoticeAction | None = None) -> None:
        """Show ``text``, with a button if there is something to do about it."""
        palette = self._label.palette()
        palette.setColor(palette.ColorRole.WindowText, self.palette().color(palette.ColorRole.ToolTipText))
        self._label.setText(text)
        self._run = action.run if action is not None else None
        self._button.setText(action.label if action is not None else "")
        self._button.setVisible(action is not None)
        self._place()
        self.show()
        self.raise_()
        announce(self, text)
        self._timer.start(TOAST_MS if action is None else UNDO_TOAST_MS)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the place when the window is resized."""
        if watched is self._under and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw a raised card."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors = self.palette()
        painter.setPen(QPen(colors.color(colors.ColorRole.Mid), 1))
        painter.setBrush(colors.color(colors.ColorRole.Base))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 9, 9)
        accent, _soft = self._theme.severity(Severity.FINE)
        painter.setPen(QPen(accent, 3, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
        painter.drawLine(QPointF(6, 10), QPointF(6, self.height() - 10))
        painter.end()

    def _place(self) -> None:
        under = self._under
        self.setMaximumWidth(max(200, under.width() - 48))
        self.adjustSize()
        self.move((under.width() - self.width()) // 2, under.height() - self.height() - 20)

    def _pressed(self) -> None:
        run, self._run = self._run, None
        self.hide()
        if run is not None:
            run()

    def _time_is_up(self) -> None:
        if self.underMouse() or self._button.hasFocus():
            self._timer.start(TOAST_MS)
        else:
            self.hide()

    def hideEvent(self, event: QEvent) -> None:
        """Stop counting."""
        self._timer.stop()


def announce(widget: QWidget, text: str) -> None:
    """Let a screen reader say ``text``."""
    if QAccessible.isActive():
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(widget, text))

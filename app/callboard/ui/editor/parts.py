"""Small widgets that the editor is made of: toned text, icons, notices with buttons."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontDatabase, QFontMetrics, QPainter, QPaintEvent, QPalette, QPen, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QBoxLayout,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from callboard.core.health import Severity
from callboard.ui.icons import Icons
from callboard.ui.theme import SEVERITY_TOKENS, Theme, Token

GAP = 6  # pixels between things that belong together

_NOTICE_ICON = {Severity.FAILED: "error", Severity.ATTENTION: "warning", Severity.FINE: "success"}


def fixed_font() -> QFont:
    """The system's fixed-width font, for commands, addresses and values."""
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)


def clear_margins(layout: QLayout) -> None:
    """Let a layout fill its widget."""
    layout.setContentsMargins(0, 0, 0, 0)


class ToneLabel(QLabel):
    """Wrapping text in the colour of a token, as selectable by mouse as text should be."""

    def __init__(self, theme: Theme, token: Token, parent: QWidget | None = None, *, scale: float = 1.0) -> None:
        super().__init__(parent)
        self._theme = theme
        self._token = token
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.PlainText)
        if scale != 1.0:
            font = QFont(self.font())
            font.setPointSizeF(font.pointSizeF() * scale)
            self.setFont(font)
        theme.changed.connect(self._apply)
        self._apply()

    def set_token(self, token: Token) -> None:
        """Change the colour."""
        self._token = token
        self._apply()

    def _apply(self) -> None:
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(self._token))
        palette.setColor(QPalette.ColorRole.Link, self._theme.color(Token.LINK))
        self.setPalette(palette)


class IconLabel(QLabel):
    """A drawing that only accompanies text beside it."""

    def __init__(
        self, theme: Theme, icons: Icons, name: str, token: Token, parent: QWidget | None = None, *, size: int = 16
    ) -> None:
        super().__init__(parent)
        self._icons, self._name, self._token, self._size = icons, name, token, size
        self.setFixedWidth(size)
        theme.changed.connect(self._apply)
        self._apply()

    def show_icon(self, name: str, token: Token) -> None:
        """Show another drawing."""
        self._name, self._token = name, token
        self._apply()

    def _apply(self) -> None:
        self.setPixmap(self._icons.pixmap(self._name, self._size, self._token, self.devicePixelRatioF()))


class ProblemLabel(QWidget):
    """What is wrong with the field above: a mark and a sentence. Hidden while nothing is."""

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 1, 0, 1)
        row.setSpacing(GAP)
        row.addWidget(IconLabel(theme, icons, "error", Token.FAILED), 0, Qt.AlignmentFlag.AlignTop)
        self._label = ToneLabel(theme, Token.FAILED)
        row.addWidget(self._label, 1)
        self.hide()

    @property
    def text(self) -> str:
        """The sentence, empty while there is none."""
        return self._label.text()

    def set_text(self, text: str) -> None:
        """Show a problem, or none."""
        self._label.setText(text)
        self._label.setAccessibleName(self.tr("Problem: {text}").format(text=text) if text else "")
        self.setVisible(bool(text))


class InlineNotice(QFrame):
    """A tinted box with an icon, a text and buttons below: questions and news that stay inside the form."""

    def __init__(self, theme: Theme, icons: Icons, severity: Severity, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._severity = severity
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 8)
        column.setSpacing(GAP)
        line = QHBoxLayout()
        line.setSpacing(8)
        foreground = SEVERITY_TOKENS[severity][0]
        icon = _NOTICE_ICON.get(severity, "info")
        line.addWidget(IconLabel(theme, icons, icon, foreground), 0, Qt.AlignmentFlag.AlignTop)
        self._text = ToneLabel(theme, Token.TEXT)
        line.addWidget(self._text, 1)
        column.addLayout(line)
        self._buttons = QHBoxLayout()
        self._buttons.setContentsMargins(24, 0, 0, 0)
        self._buttons.setSpacing(GAP)
        self._buttons.addStretch(1)
        column.addLayout(self._buttons)
        theme.changed.connect(self.update)

    @property
    def text(self) -> str:
        """What the notice says."""
        return self._text.text()

    def set_text(self, text: str) -> None:
        """Say ``text``, in plain text."""
        self._text.setText(text)
        self.setAccessibleName(text)

    def add_button(self, text: str, slot: Callable[[], object]) -> QPushButton:
        """Add a button to the row below the text."""
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _checked=False: slot())
        self._buttons.insertWidget(self._buttons.count() - 1, button)
        return button

    def focus_last_button(self) -> None:
        """Give the keyboard to the answer that changes least."""
        item = self._buttons.itemAt(self._buttons.count() - 2)
        button = item.widget() if item is not None else None
        if button is not None:
            button.setFocus(Qt.FocusReason.OtherFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the tinted box."""
        foreground, background = self._theme.severity(self._severity)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        foreground.setAlphaF(0.35)
        painter.setPen(QPen(foreground, 1))
        painter.setBrush(background)
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7)
        painter.end()


def question(
    theme: Theme,
    icons: Icons,
    text: str,
    answers: Sequence[tuple[str, Callable[[], object]]],
    *,
    severity: Severity = Severity.ATTENTION,
) -> InlineNotice:
    """A notice that asks; whoever put it into a layout takes it out in the answers."""
    notice = InlineNotice(theme, icons, severity)
    notice.set_text(text)
    for label, slot in answers:
        notice.add_button(label, slot)
    return notice


def icon_button(icons: Icons, icon: str, name: str, slot: Callable[[], object]) -> QToolButton:
    """A flat button with a drawing; ``name`` is its tooltip and what a screen reader says."""
    button = QToolButton()
    button.setAutoRaise(True)
    button.setToolTip(name)
    button.setAccessibleName(name)
    button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    icons.set_on(button, icon, Token.MUTED)
    button.clicked.connect(lambda _checked=False: slot())
    return button


class CalmComboBox(QComboBox):
    """A combo box that lets the page scroll on, unless it has the focus."""

    def __init__(self) -> None:
        super().__init__()
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.setMinimumContentsLength(12)

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Turn the wheel into another choice only where the person is choosing."""
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()


def put_in(layout: QBoxLayout, widget: QWidget, index: int = -1) -> None:
    """Put a widget on the screen, at once and not with the next turn of the loop."""
    layout.insertWidget(index, widget)
    widget.show()


def take_out(layout: QBoxLayout, widget: QWidget) -> None:
    """Remove a widget from the screen and delete it."""
    layout.removeWidget(widget)
    widget.hide()
    widget.deleteLater()


class DisclosureHead(QAbstractButton):
    """The line that opens and closes: an arrow, a title, and in few words what is inside."""

    def __init__(self, theme: Theme, icons: Icons, title: str) -> None:
        super().__init__()
        self._theme, self._icons = theme, icons
        self._summary = ""
        self.setText(title)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_summary(self, text: str) -> None:
        """Say what is inside, while it is closed."""
        self._summary = text
        self.setAccessibleDescription(text)
        self.update()

    def sizeHint(self) -> QSize:
        """Room for the title."""
        return QSize(160, self.fontMetrics().lineSpacing() + 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw arrow, title and summary, and a frame for the keyboard's focus."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        middle, is_open = self.height() // 2, self.isChecked()
        icon = "chevron-down" if is_open else "chevron-right"
        painter.drawPixmap(0, middle - 8, self._icons.pixmap(icon, 16, Token.TEXT, self.devicePixelRatioF()))
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(self._theme.color(Token.TEXT))
        title = QRectF(20, 0, QFontMetrics(bold).horizontalAdvance(self.text()) + 2, self.height())
        painter.drawText(title, int(Qt.AlignmentFlag.AlignVCenter), self.text())
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color(Token.ACCENT), 1.5))
            painter.drawRoundedRect(QRectF(0, 1, title.right() + 6, self.height() - 2).adjusted(1, 0, 0, 0), 5, 5)
        if self._summary and not is_open:
            painter.setFont(self.font())
            painter.setPen(self._theme.color(Token.MUTED))
            room = QRectF(title.right() + 12, 0, self.width() - title.right() - 12, self.height())
            shown = self.fontMetrics().elidedText(self._summary, Qt.TextElideMode.ElideRight, int(room.width()))
            painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter), shown)
        painter.end()


class Disclosure(QWidget):
    """A heading that opens and closes what is below it."""

    def __init__(self, theme: Theme, icons: Icons, title: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP * 2)
        self.head = DisclosureHead(theme, icons, title)
        column.addWidget(self.head)
        self.body = QWidget()
        self.body.hide()
        column.addWidget(self.body)
        self.head.toggled.connect(self.body.setVisible)

    @property
    def is_open(self) -> bool:
        """Whether what is below is shown."""
        return self.head.isChecked()

    def set_open(self, is_open: bool) -> None:
        """Open or close."""
        self.head.setChecked(is_open)

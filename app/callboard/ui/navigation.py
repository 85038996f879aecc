"""The rail at the window's left edge: one button for each page."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QSizePolicy, QVBoxLayout, QWidget

from callboard.ui.icons import Icons
from callboard.ui.theme import Theme, Token

RAIL_WIDTH = 84
ICON_SIDE = 22


class NavigationRail(QWidget):
    """Shows which page is open and opens another one."""

    chosen = Signal(str)

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self._buttons: dict[str, NavigationButton] = {}
        self._group = QButtonGroup(self)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(8, 12, 8, 12)
        self._layout.setSpacing(4)
        self._layout.addStretch(1)
        self.setFixedWidth(RAIL_WIDTH)
        self.setAccessibleName(self.tr("Pages"))
        theme.changed.connect(self.update)

    def add(self, key: str, title: str, icon: str, shortcut: QKeySequence) -> None:
        """Add a page's button below the others."""
        button = NavigationButton(title, icon, self._theme, self._icons, self)
        keys = shortcut.toString(QKeySequence.SequenceFormat.NativeText)
        button.setToolTip(self.tr("{title} ({keys})").format(title=title, keys=keys))
        button.clicked.connect(lambda: self.chosen.emit(key))
        self._group.addButton(button)
        self._buttons[key] = button
        self._layout.insertWidget(self._layout.count() - 1, button)

    def mark(self, key: str) -> None:
        """Show ``key`` as the open page; one without a button marks none."""
        self._group.setExclusive(False)
        for name, button in self._buttons.items():
            button.setChecked(name == key)
        self._group.setExclusive(True)

    def set_badge(self, key: str, count: int, description: str) -> None:
        """Show a number on a page's button (0: none); ``description`` is what a screen reader says of it."""
        self._buttons[key].set_badge(count, description)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the line to the page."""
        painter = QPainter(self)
        painter.setPen(QPen(self._theme.color(Token.BORDER), 1))
        painter.drawLine(self.width() - 1, 0, self.width() - 1, self.height())
        painter.end()


class NavigationButton(QAbstractButton):
    """Icon over title; the open page's stands on the accent colour."""

    def __init__(self, title: str, icon: str, theme: Theme, icons: Icons, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self._icon = icon
        self._badge = 0
        self.setText(title)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        theme.changed.connect(self.update)

    def set_badge(self, count: int, description: str) -> None:
        """Show a number (0: none)."""
        if count != self._badge:
            self._badge = count
            self.setAccessibleDescription(description if count else "")
            self.update()

    def sizeHint(self) -> QSize:
        """Room for icon and title."""
        return QSize(RAIL_WIDTH - 16, ICON_SIDE + self.fontMetrics().height() + 22)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw background, icon, title, badge and focus."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        token = Token.LINK if self.isChecked() else Token.MUTED
        if self.isChecked() or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(self._theme.color(Token.ACCENT_SOFT if self.isChecked() else Token.OFF_SOFT))
            painter.drawRoundedRect(box, 9, 9)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color(Token.ACCENT), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 9, 9)
        pixmap = self._icons.pixmap(self._icon, ICON_SIDE, token, self.devicePixelRatioF())
        left = (self.width() - ICON_SIDE) / 2
        painter.drawPixmap(int(left), 9, pixmap)
        painter.setPen(self._theme.color(Token.TEXT if self.isChecked() else Token.MUTED))
        title = QRectF(2, ICON_SIDE + 12, self.width() - 4, self.fontMetrics().height() + 2)
        painter.drawText(title, int(Qt.AlignmentFlag.AlignCenter), self.text())
        if self._badge:
            self._paint_badge(painter, left + ICON_SIDE)
        painter.end()

    def _paint_badge(self, painter: QPainter, x: float) -> None:
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * 0.8)
        font.setBold(True)
        painter.setFont(font)
        text = str(min(self._badge, 99))
        height = painter.fontMetrics().height() + 1.0
        width = max(height, painter.fontMetrics().horizontalAdvance(text) + 8.0)
        box = QRectF(x - 7, 4, width, height)
        painter.setPen(QPen(self._theme.color(Token.ATTENTION), 1))
        painter.setBrush(self._theme.color(Token.ATTENTION_SOFT))
        painter.drawRoundedRect(box, height / 2, height / 2)
        painter.setPen(self._theme.color(Token.ATTENTION))
        painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), text)

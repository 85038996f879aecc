"""The one button of a page that most people want."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy, QWidget

from callboard.ui.icons import Icons
from callboard.ui.theme import Theme, Token

ICON_SIDE = 20


class PrimaryButton(QPushButton):
    """Large, in the accent colour, with an icon before its text."""

    def __init__(self, text: str, icon: str, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self._theme = theme
        self._icons = icons
        self._icon_name = icon
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * 1.2)
        font.setWeight(font.Weight.DemiBold)
        self.setFont(font)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Room for icon and text, and as high as it is important."""
        width = self.fontMetrics().horizontalAdvance(self.text()) + ICON_SIDE + 60
        return QSize(width, self.fontMetrics().height() + 24)

    def minimumSizeHint(self) -> QSize:
        """No smaller than its text."""
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the flat button, lighter under the mouse, with a ring when it has the focus."""
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect())
        enabled = self.isEnabled()
        fill = self._theme.color(Token.ACCENT if enabled else Token.OFF_SOFT)
        if self.isDown():
            fill = fill.darker(112)
        elif enabled and self.underMouse():
            fill = fill.lighter(108)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawRoundedRect(box, 8, 8)
        if self.hasFocus():
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self._theme.color(Token.ON_ACCENT), 1.5))
            painter.drawRoundedRect(box.adjusted(3, 3, -3, -3), 6, 6)
        token = Token.ON_ACCENT if enabled else Token.MUTED
        width = self.fontMetrics().horizontalAdvance(self.text()) + ICON_SIDE + 10
        left = max(box.left() + 12, box.center().x() - width / 2)
        pixmap = self._icons.pixmap(self._icon_name, ICON_SIDE, token, self.devicePixelRatioF())
        painter.drawPixmap(int(left), int(box.center().y() - ICON_SIDE / 2), pixmap)
        painter.setPen(self._theme.color(token))
        room = QRectF(left + ICON_SIDE + 10, box.top(), box.right() - left - ICON_SIDE - 16, box.height())
        painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextShowMnemonic), self.text())
        painter.end()

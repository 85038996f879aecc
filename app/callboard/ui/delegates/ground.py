"""What lies behind a row of a list: chosen, under the pointer, focused."""

from PySide6.QtCore import QRect
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyleOptionViewItem

from callboard.ui.theme import Theme, Token

BAR = 3  # width of the bar that marks the chosen row, in pixels


def paint_ground(painter: QPainter, option: QStyleOptionViewItem, theme: Theme) -> None:
    """Paint a row's background; the chosen one also has a bar at its left, and a frame while the list has focus."""
    state, rect = option.state, option.rect
    chosen = bool(state & QStyle.StateFlag.State_Selected)
    if chosen or state & QStyle.StateFlag.State_MouseOver:
        painter.fillRect(rect, theme.color(Token.ACCENT_SOFT if chosen else Token.ALTERNATE))
    if chosen:
        painter.fillRect(QRect(rect.left(), rect.top(), BAR, rect.height()), theme.color(Token.ACCENT))
    else:
        painter.setPen(theme.color(Token.BORDER))
        painter.drawLine(rect.bottomLeft(), rect.bottomRight())
    if state & QStyle.StateFlag.State_HasFocus:
        painter.setPen(QPen(theme.color(Token.ACCENT), 1))
        painter.drawRect(rect.adjusted(0, 0, -1, -1))

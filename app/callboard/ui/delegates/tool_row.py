"""How a tool's row in the list is painted."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from callboard.api.schema import ToolView
from callboard.core.health import Severity
from callboard.ui.delegates.ground import BAR, paint_ground
from callboard.ui.models.roles import Role
from callboard.ui.severity import paint_mark, pill_font
from callboard.ui.theme import Theme, Token

_PAD = 8
_MARK = 12


class ToolRowDelegate(QStyledItemDelegate):
    """Paints a ToolView: its name, what it is for, and a triangle if something is odd about it."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        lines = QFontMetrics(option.font).height() + QFontMetrics(pill_font(option.font)).height()
        return QSize(120, lines + 2 * _PAD)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        tool = index.data(Role.VIEW)
        if not isinstance(tool, ToolView):
            return
        painter.save()
        paint_ground(painter, option, self._theme)
        inside = option.rect.adjusted(_PAD + BAR, _PAD - 1, -_PAD, -_PAD)
        name = QFont(option.font)
        name.setWeight(QFont.Weight.DemiBold)
        top = QRect(inside.left(), inside.top(), inside.width(), QFontMetrics(name).height())
        if tool.problem:
            mark = QRectF(top.right() - _MARK, top.center().y() - _MARK / 2, _MARK, _MARK)
            paint_mark(painter, mark, Severity.ATTENTION, self._theme.color(Token.ATTENTION))
            top.setRight(top.right() - _MARK - 6)
        self._paint_text(painter, name, top, tool.name, Token.TEXT)
        below = QRect(inside.left(), top.bottom() + 2, inside.width(), inside.bottom() - top.bottom())
        what = tool.problem or " ".join(tool.description.split()) or tool.title
        self._paint_text(painter, pill_font(option.font), below, what, Token.ATTENTION if tool.problem else Token.MUTED)
        painter.restore()

    def _paint_text(self, painter: QPainter, font: QFont, rect: QRect, text: str, token: Token) -> None:
        painter.setFont(font)
        painter.setPen(self._theme.color(token))
        shown = QFontMetrics(font).elidedText(text[:300], Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)

"""How the row of a tool, a resource or a prompt in its list is painted."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from callboard.core.health import Severity
from callboard.ui.delegates.ground import BAR, paint_ground
from callboard.ui.models.offers import Offer
from callboard.ui.models.roles import Role
from callboard.ui.severity import paint_mark, pill_font
from callboard.ui.theme import Theme, Token

_PAD = 8
_MARK = 12


class OfferRowDelegate(QStyledItemDelegate):
    """Paints an Offer: its name, what it is for, and a triangle if something is odd about it."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        lines = QFontMetrics(option.font).height() + QFontMetrics(pill_font(option.font)).height()
        return QSize(120, lines + 2 * _PAD)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        offer = index.data(Role.OFFER)
        if not isinstance(offer, Offer):
            return
        painter.save()
        paint_ground(painter, option, self._theme)
        inside = option.rect.adjusted(_PAD + BAR, _PAD - 1, -_PAD, -_PAD)
        name = QFont(option.font)
        name.setWeight(QFont.Weight.DemiBold)
        top = QRect(inside.left(), inside.top(), inside.width(), QFontMetrics(name).height())
        if offer.problem:
            mark = QRectF(top.right() - _MARK, top.center().y() - _MARK / 2, _MARK, _MARK)
            paint_mark(painter, mark, Severity.ATTENTION, self._theme.color(Token.ATTENTION))
            top.setRight(top.right() - _MARK - 6)
        self._paint_text(painter, name, top, offer.name, Token.TEXT)
        below = QRect(inside.left(), top.bottom() + 2, inside.width(), inside.bottom() - top.bottom())
        tone = Token.ATTENTION if offer.problem else Token.MUTED
        self._paint_text(painter, pill_font(option.font), below, offer.below, tone)
        painter.restore()

    def _paint_text(self, painter: QPainter, font: QFont, rect: QRect, text: str, token: Token) -> None:
        painter.setFont(font)
        painter.setPen(self._theme.color(token))
        shown = QFontMetrics(font).elidedText(text[:300], Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)

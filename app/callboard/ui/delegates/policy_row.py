"""How a client's or a profile's row in the list is painted."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QStyledItemDelegate, QStyleOptionViewItem

from callboard.ui.delegates.ground import BAR, paint_ground
from callboard.ui.severity import pill_font
from callboard.ui.theme import Theme, Token

KEY = Qt.ItemDataRole.UserRole  # what the row is of; a row without one is a heading
LINE = Qt.ItemDataRole.UserRole + 1  # what stands below its title
_PAD = 8


class PolicyRowDelegate(QStyledItemDelegate):
    """Paints a title and below it what is special about it; headings stand in small letters."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        small = QFontMetrics(pill_font(option.font)).height()
        if index.data(KEY) is None:
            return QSize(120, small + 2 * _PAD)
        lines = QFontMetrics(option.font).height() + (small + 2 if index.data(LINE) else 0)
        return QSize(120, lines + 2 * _PAD)

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        painter.save()
        inside = option.rect.adjusted(_PAD + BAR, _PAD, -_PAD, -_PAD)
        title, line = str(index.data(Qt.ItemDataRole.DisplayRole)), str(index.data(LINE) or "")
        if index.data(KEY) is None:
            self._paint_text(painter, pill_font(option.font), inside, title, Token.MUTED)
        else:
            paint_ground(painter, option, self._theme)
            font = QFont(option.font)
            font.setWeight(QFont.Weight.DemiBold)
            top = QRect(inside.left(), inside.top(), inside.width(), QFontMetrics(font).height())
            self._paint_text(painter, font, top, title, Token.TEXT)
            if line:
                below = QRect(inside.left(), top.bottom() + 3, inside.width(), inside.bottom() - top.bottom() - 2)
                self._paint_text(painter, pill_font(option.font), below, line, Token.MUTED)
        painter.restore()

    def _paint_text(self, painter: QPainter, font: QFont, rect: QRect, text: str, token: Token) -> None:
        painter.setFont(font)
        painter.setPen(self._theme.color(token))
        shown = QFontMetrics(font).elidedText(text[:300], Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)

"""How the cells of the call log are painted."""

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRectF, QSize
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from callboard.api.schema import CallView
from callboard.ui import words
from callboard.ui.models.roles import Role
from callboard.ui.severity import paint_pill, pill_size
from callboard.ui.theme import Theme

_LEFT = 4


class CallStatusDelegate(QStyledItemDelegate):
    """Paints a call's status as a pill."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        cell = QStyleOptionViewItem(option)
        self.initStyleOption(cell, index)
        text, cell.text = cell.text, ""
        cell.widget.style().drawControl(QStyle.ControlElement.CE_ItemViewItem, cell, painter, cell.widget)
        call = index.data(Role.VIEW)
        if not isinstance(call, CallView):
            return
        size = pill_size(text, cell.font)
        rect = QRectF(cell.rect)
        width = min(size.width(), rect.width() - 2 * _LEFT)
        pill = QRectF(rect.x() + _LEFT, rect.center().y() - size.height() / 2, width, size.height())
        paint_pill(painter, pill, text, words.call_severity(call.status), self._theme, cell.font)

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        size = pill_size(str(index.data() or ""), option.font)
        return QSize(int(size.width()) + 2 * _LEFT, int(size.height()) + 4)

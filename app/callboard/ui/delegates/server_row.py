"""How a server's row in the list is painted: two lines and one button."""

from time import time

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPalette
from PySide6.QtWidgets import (
    QStyle,
    QStyledItemDelegate,
    QStyleOptionButton,
    QStyleOptionViewItem,
)

from callboard.api.schema import ServerView
from callboard.core.health import Action
from callboard.ui import words
from callboard.ui.delegates.ground import BAR, paint_ground
from callboard.ui.models.roles import Role
from callboard.ui.models.servers import tools_text, trouble_text
from callboard.ui.severity import paint_pill, pill_font, pill_size
from callboard.ui.theme import Theme, Token

_PAD = 10  # at the sides of a row
_GAP = 8  # between things in a line
_LINE_GAP = 5

_Index = QModelIndex | QPersistentModelIndex


class ServerRowDelegate(QStyledItemDelegate):
    """Paints a ServerView: name, transport and tools above; state and what is wrong below; the action at the right.

    The list that owns it sets :attr:`pressed`, :attr:`hovered` (rows whose button is under the pointer, -1 for
    none) and :attr:`enabled`, and asks :meth:`button_rect` where the button stands.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.hovered = -1
        self.pressed = -1
        self.enabled = True

    # sizes

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        name = QFontMetrics(_bold(option.font)).height()
        pill = int(pill_size("X", option.font).height())
        return QSize(200, _PAD + name + _LINE_GAP + pill + _PAD)

    def button_rect(self, row: QRect, view: ServerView, font: QFont) -> QRect:
        """Where the button of a row stands; empty if the server offers no action."""
        if not words.action_verb(view.action):
            return QRect()
        metrics = QFontMetrics(pill_font(font))
        # one width for all verbs: the buttons stand below each other
        width = max(metrics.horizontalAdvance(words.action_verb(action)) for action in Action) + 20
        height = metrics.height() + 10
        return QRect(row.right() - _PAD - width + 1, row.center().y() - height // 2 + 1, width, height)

    # painting

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        view = index.data(Role.VIEW)
        if not isinstance(view, ServerView):
            return
        painter.save()
        paint_ground(painter, option, self._theme)
        button = self.button_rect(option.rect, view, option.font)
        if not button.isEmpty():
            self._paint_button(painter, option, index, button, words.action_verb(view.action))
        right = (button.left() if not button.isEmpty() else option.rect.right() - _PAD) - _GAP
        left = option.rect.left() + _PAD + BAR
        top = option.rect.top() + _PAD
        name_height = QFontMetrics(_bold(option.font)).height()
        self._paint_name(painter, option.font, QRect(left, top, right - left, name_height), view)
        pill_height = int(pill_size("X", option.font).height())
        below = QRect(left, top + name_height + _LINE_GAP, right - left, pill_height)
        self._paint_state(painter, option.font, below, view)
        painter.restore()

    def _paint_button(
        self, painter: QPainter, option: QStyleOptionViewItem, index: _Index, rect: QRect, verb: str
    ) -> None:
        button = QStyleOptionButton()
        button.rect = rect
        button.text = verb
        button.palette = QPalette(option.palette)
        if not self.enabled:
            button.palette.setCurrentColorGroup(QPalette.ColorGroup.Disabled)
        button.fontMetrics = QFontMetrics(pill_font(option.font))
        button.state = QStyle.StateFlag.State_Active
        if self.enabled:
            button.state |= QStyle.StateFlag.State_Enabled
            if index.row() == self.hovered:
                button.state |= QStyle.StateFlag.State_MouseOver
            raised = index.row() != self.pressed
            button.state |= QStyle.StateFlag.State_Raised if raised else QStyle.StateFlag.State_Sunken
        painter.setFont(pill_font(option.font))
        option.widget.style().drawControl(QStyle.ControlElement.CE_PushButton, button, painter, option.widget)

    def _paint_name(self, painter: QPainter, font: QFont, rect: QRect, view: ServerView) -> None:
        bold = _bold(font)
        badge = words.transport_word(view)
        small = QFontMetrics(pill_font(font))
        badge_width = small.horizontalAdvance(badge) + 10
        metrics = QFontMetrics(bold)
        name = metrics.elidedText(view.display_name, Qt.TextElideMode.ElideRight, rect.width() - badge_width - _GAP)
        painter.setFont(bold)
        painter.setPen(self._theme.color(Token.TEXT if view.enabled else Token.MUTED))
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, name)
        box = QRectF(rect.left() + metrics.horizontalAdvance(name) + _GAP + 0.5, rect.top() + 0.5, badge_width, 0)
        box.setHeight(small.height() + 1)
        box.moveTop(rect.center().y() - box.height() / 2 + 0.5)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self._theme.color(Token.BORDER))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(box, 4, 4)
        painter.setFont(pill_font(font))
        painter.setPen(self._theme.color(Token.MUTED))
        painter.drawText(box, Qt.AlignmentFlag.AlignCenter, badge)

    def _paint_state(self, painter: QPainter, font: QFont, rect: QRect, view: ServerView) -> None:
        word = words.state_word(view.state)
        size = pill_size(word, font)
        pill = QRectF(rect.left(), rect.top(), min(size.width(), rect.width()), size.height())
        paint_pill(painter, pill, word, view.severity, self._theme, font)
        painter.setFont(font)
        rest = rect.adjusted(int(pill.width()) + _GAP, 0, 0, 0)
        used = self._paint_words(painter, rest, trouble_text(view, time()), Token.TEXT)
        tools = tools_text(view)
        if used and tools:
            tools = "· " + tools
            rest.setLeft(rest.left() + used + 4)
        self._paint_words(painter, rest, tools, Token.MUTED if view.cached else Token.TEXT)

    def _paint_words(self, painter: QPainter, rect: QRect, text: str, token: Token) -> int:
        """Paint as much of ``text`` as there is room for; returns its width in pixels."""
        if not text or rect.width() < 24:
            return 0
        shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.setPen(self._theme.color(token))
        painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)
        return painter.fontMetrics().horizontalAdvance(shown)


def _bold(font: QFont) -> QFont:
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    return bold

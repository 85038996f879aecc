"""Which kind of server a new entry shall be."""

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetrics, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QRadioButton, QSizePolicy, QWidget

from callboard.api.schema import EntryKind
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import clear_margins
from callboard.ui.theme import Token

PADDING = 12
ICON = 20


class KindCard(QRadioButton):
    """A choice with a drawing and one line that explains it."""

    def __init__(self, kit: Kit, icon: str, title: str, explanation: str) -> None:
        super().__init__(title)
        self._kit, self._icon, self._explanation = kit, icon, explanation
        self.setAccessibleDescription(explanation)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        kit.theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        """Room for the title and up to two lines of explanation."""
        lines = self.fontMetrics().lineSpacing()
        return QSize(190, 2 * PADDING + max(ICON, lines) + 4 + 2 * QFontMetrics(self._small()).lineSpacing())

    def minimumSizeHint(self) -> QSize:
        """May become narrow, not low."""
        return QSize(120, self.sizeHint().height())

    def hitButton(self, pos: object) -> bool:
        """All of the card can be clicked."""
        return True

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the card; the chosen one has a mark as well as the accent colour."""
        theme = self._kit.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        chosen, focused = self.isChecked(), self.hasFocus()
        painter.setPen(QPen(theme.color(Token.ACCENT if chosen or focused else Token.BORDER), 2 if focused else 1))
        painter.setBrush(theme.color(Token.ACCENT_SOFT if chosen else Token.BASE))
        painter.drawRoundedRect(box, 8, 8)
        inner = box.adjusted(PADDING, PADDING, -PADDING, -PADDING)
        self._paint_title(painter, inner, chosen)
        painter.setFont(self._small())
        painter.setPen(theme.color(Token.TEXT if chosen else Token.MUTED))
        below = inner.adjusted(0, max(ICON, self.fontMetrics().lineSpacing()) + 4, 0, 2)
        painter.drawText(below, int(Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignTop), self._explanation)
        painter.end()

    def _paint_title(self, painter: QPainter, inner: QRectF, chosen: bool) -> None:
        theme, ratio = self._kit.theme, self.devicePixelRatioF()
        token = Token.LINK if chosen else Token.MUTED
        painter.drawPixmap(inner.topLeft().toPoint(), self._kit.icons.pixmap(self._icon, ICON, token, ratio))
        bold = QFont(self.font())
        bold.setWeight(QFont.Weight.DemiBold)
        painter.setFont(bold)
        painter.setPen(theme.color(Token.TEXT))
        title = QRectF(inner.left() + ICON + 8, inner.top(), inner.width() - 2 * ICON - 12, ICON)
        text = QFontMetrics(bold).elidedText(self.text(), Qt.TextElideMode.ElideRight, int(title.width()))
        painter.drawText(title, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), text)
        if chosen:
            mark = self._kit.icons.pixmap("check", 16, Token.LINK, ratio)
            painter.drawPixmap(int(inner.right()) - 16, int(inner.top()) + 2, mark)

    def _small(self) -> QFont:
        font = QFont(self.font())
        font.setPointSizeF(font.pointSizeF() * 0.92)
        return font


class KindChooser(QWidget):
    """The three kinds side by side; the arrow keys move between them."""

    chosen = Signal(str)  # EntryKind

    def __init__(self, kit: Kit, kind: EntryKind) -> None:
        super().__init__()
        self.setAccessibleName(self.tr("Kind of server"))
        row = QHBoxLayout(self)
        clear_margins(row)
        row.setSpacing(8)
        self._group = QButtonGroup(self)
        texts: dict[EntryKind, tuple[str, str]] = {
            "local": (self.tr("Local command"), self.tr("A program on this computer.")),
            "remote": (self.tr("Remote URL"), self.tr("A server reached over HTTP.")),
            "agent": (self.tr("Python agent"), self.tr("Your agent, served as tools.")),
        }
        self.cards: dict[EntryKind, KindCard] = {}
        for name, (title, explanation) in texts.items():
            card = self.cards[name] = KindCard(kit, name, title, explanation)
            card.setChecked(name == kind)
            card.toggled.connect(lambda on, name=name: self.chosen.emit(name) if on else None)
            self._group.addButton(card)
            row.addWidget(card, 1)
        self.setFocusProxy(self.cards[kind])

"""The list of what a registry offers."""

from typing import Any

from PySide6.QtCore import QAbstractListModel, QCoreApplication, QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QListView, QStyledItemDelegate, QStyleOptionViewItem

from callboard.api.registry_schema import OfferView
from callboard.ui.delegates.ground import BAR, paint_ground
from callboard.ui.models.roles import Role
from callboard.ui.theme import Theme, Token

translate = QCoreApplication.translate
_Index = QModelIndex | QPersistentModelIndex
_PAD, _GAP, _LINE_GAP = 9, 8, 3


def needs_text(view: OfferView) -> str:
    """What an offer takes to be set up, in a few words."""
    ways = [(way, needs) for way, needs in zip(view.offer.ways, view.needs, strict=True) if not way.problem]
    if not ways:
        return translate("OfferList", "cannot be set up here")
    words = list(dict.fromkeys(way.short for way, _ in ways))
    parts = [translate("OfferList", " or ").join(words)]
    way, needs = ways[0]
    if len(ways) == 1 and any(need.state == "missing" for need in needs):
        parts.append(translate("OfferList", "not here yet"))
    secrets = sum(each.required and each.secret for each in way.inputs)
    others = sum(each.required and not each.secret for each in way.inputs)
    if secrets:
        parts.append(translate("OfferList", "a secret") if secrets == 1 else translate("OfferList", "secrets"))
    if others:
        parts.append(translate("OfferList", "an answer") if others == 1 else translate("OfferList", "answers"))
    return ", ".join(parts)


class OfferModel(QAbstractListModel):
    """Offers in the registry's order."""

    def __init__(self) -> None:
        super().__init__()
        self.offers: list[OfferView] = []

    def rowCount(self, parent: _Index | None = None) -> int:
        """Offers; none below another."""
        return 0 if parent is not None and parent.isValid() else len(self.offers)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The offer, and what a screen reader says of it."""
        if not index.isValid():
            return None
        view = self.offers[index.row()]
        if role == Role.VIEW:
            return view
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            offer = view.offer
            return f"{offer.title} {offer.version}, {offer.name}, {needs_text(view)}. {offer.description}"
        return view.offer.description if role == Qt.ItemDataRole.ToolTipRole else None

    def show(self, offers: list[OfferView]) -> None:
        """Show these and no others."""
        self.beginResetModel()
        self.offers = list(offers)
        self.endResetModel()

    def append(self, offers: list[OfferView]) -> None:
        """Show more of them."""
        if offers:
            self.beginInsertRows(QModelIndex(), len(self.offers), len(self.offers) + len(offers) - 1)
            self.offers += offers
            self.endInsertRows()


class OfferDelegate(QStyledItemDelegate):
    """Paints an offer: title, version and needs above, its name in the registry, the description below."""

    def __init__(self, theme: Theme, view: QListView) -> None:
        super().__init__(view)
        self._theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        bold, small = QFontMetrics(_bold(option.font)).height(), QFontMetrics(_small(option.font)).height()
        return QSize(200, 2 * _PAD + bold + small + QFontMetrics(option.font).height() + 2 * _LINE_GAP)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        view = index.data(Role.VIEW)
        if not isinstance(view, OfferView):
            return
        painter.save()
        paint_ground(painter, option, self._theme)
        rect = option.rect.adjusted(_PAD + BAR, _PAD, -_PAD, -_PAD)
        bold, small = _bold(option.font), _small(option.font)
        line = QRect(rect.left(), rect.top(), rect.width(), QFontMetrics(bold).height())
        needs = needs_text(view)
        if view.offer.status != "active":
            needs = f"{view.offer.status}, {needs}"
        right = self._text(painter, line, needs, small, Token.MUTED, Qt.AlignmentFlag.AlignRight)
        left = self._text(painter, line.adjusted(0, 0, -right - _GAP, 0), view.offer.title, bold, Token.TEXT)
        after = line.adjusted(left + _GAP, 0, -right - _GAP, 0)
        self._text(painter, after, view.offer.version, small, Token.MUTED)
        line = QRect(rect.left(), line.bottom() + 1 + _LINE_GAP, rect.width(), QFontMetrics(small).height())
        self._text(painter, line, view.offer.name, small, Token.MUTED)
        line = QRect(rect.left(), line.bottom() + 1 + _LINE_GAP, rect.width(), QFontMetrics(option.font).height())
        self._text(painter, line, view.offer.description, option.font, Token.TEXT)
        painter.restore()

    def _text(
        self,
        painter: QPainter,
        rect: QRect,
        text: str,
        font: QFont,
        token: Token,
        side: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> int:
        """Paint one line; returns its width in pixels."""
        metrics = QFontMetrics(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, max(rect.width(), 0))
        painter.setFont(font)
        painter.setPen(self._theme.color(token))
        painter.drawText(rect, side | Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextSingleLine, shown)
        return metrics.horizontalAdvance(shown)


def _bold(font: QFont) -> QFont:
    bold = QFont(font)
    bold.setWeight(QFont.Weight.DemiBold)
    return bold


def _small(font: QFont) -> QFont:
    small = QFont(font)
    small.setPointSizeF(font.pointSizeF() * 0.92)
    return small

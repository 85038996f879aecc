"""The tray's icon: one glyph for dark and light panels, with the state as a badge that differs by shape."""

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap

from callboard.core.health import Severity
from callboard.ui.icons import render
from callboard.ui.severity import paint_mark

SIZES = (16, 22, 24, 32, 44, 48, 64)
ON_LIGHT = "#33363f"
ON_DARK = "#f2f3f7"


class TrayState(StrEnum):
    """What the tray tells at a glance."""

    OFF = "off"  # no engine
    STARTING = "starting"
    FINE = "fine"
    ATTENTION = "attention"
    FAILED = "failed"


_BADGES: dict[TrayState, Severity] = {
    TrayState.STARTING: Severity.BUSY,
    TrayState.ATTENTION: Severity.ATTENTION,
    TrayState.FAILED: Severity.FAILED,
}
_BADGE_COLORS: dict[TrayState, tuple[str, str]] = {  # on a light panel, on a dark one
    TrayState.STARTING: ("#2a6ebb", "#8cc3f8"),
    TrayState.ATTENTION: ("#b06a00", "#ffc24d"),
    TrayState.FAILED: ("#c4242f", "#ff7d80"),
}


@dataclass(frozen=True)
class TrayIcons:
    """Draws the tray's icons from the symbolic app icon."""

    glyph: Path

    def icon(self, state: TrayState, *, dark_panel: bool) -> QIcon:
        """The icon for a state, in all sizes that trays ask for."""
        source = self.glyph.read_text(encoding="utf-8")
        icon = QIcon()
        icon.setIsMask(sys.platform == "darwin")  # macOS colours it itself
        for size in SIZES:
            icon.addPixmap(_draw(source, state, dark_panel, size))
        return icon


def _draw(source: str, state: TrayState, dark_panel: bool, size: int) -> QPixmap:
    color = QColor(ON_DARK if dark_panel else ON_LIGHT)
    pixmap = render(source, color, size)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    if state is TrayState.OFF:
        _fade_and_strike(painter, size, color)
    elif state is not TrayState.FINE:
        _badge(painter, size, state, QColor(_BADGE_COLORS[state][dark_panel]))
    painter.end()
    return pixmap


def _badge(painter: QPainter, size: int, state: TrayState, color: QColor) -> None:
    """A mark in the lower right corner, on a hole cut out of the glyph so that it stands alone."""
    side = size * 0.56
    box = QRectF(size - side, size - side, side, side)
    gap = max(1.0, size * 0.06)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationOut)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(Qt.GlobalColor.black)
    painter.drawRoundedRect(box.adjusted(-gap, -gap, gap, gap), side * 0.3, side * 0.3)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
    paint_mark(painter, box, _BADGES[state], color)


def _fade_and_strike(painter: QPainter, size: int, color: QColor) -> None:
    """Off: a pale glyph with a stroke through it."""
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationIn)
    painter.fillRect(QRectF(0, 0, size, size), QColor(0, 0, 0, 120))
    start, end = QPointF(size * 0.08, size * 0.92), QPointF(size * 0.92, size * 0.08)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationOut)
    painter.setPen(QPen(Qt.GlobalColor.black, size * 0.22))
    painter.drawLine(start, end)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceOver)
    painter.setPen(QPen(color, max(1.5, size * 0.1), Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
    painter.drawLine(start, end)

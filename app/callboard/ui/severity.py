"""How a severity looks: a shape as well as a colour, alone or in a pill with its word."""

from PySide6.QtCore import QPointF, QRect, QRectF, QSize, QSizeF, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QWidget

from callboard.core.health import Severity
from callboard.ui import words
from callboard.ui.theme import Theme

PILL_PADDING = 8.0
PILL_GAP = 6.0


def paint_mark(painter: QPainter, rect: QRectF, severity: Severity, color: QColor) -> None:
    """Draw the shape of a severity: disc, half disc, ring, triangle or cross. Legible from 8 pixels on."""
    side = min(rect.width(), rect.height())
    box = QRectF(rect.center().x() - side / 2, rect.center().y() - side / 2, side, side)
    line = max(1.5, side / 6)
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    match severity:
        case Severity.FINE:
            painter.drawEllipse(box.adjusted(side * 0.08, side * 0.08, -side * 0.08, -side * 0.08))
        case Severity.BUSY:
            ring = box.adjusted(line, line, -line, -line)
            painter.drawPie(ring, 90 * 16, -180 * 16)
            _outline(painter, ring, color, line * 0.8)
        case Severity.OFF:
            _outline(painter, box.adjusted(line, line, -line, -line), color, line)
        case Severity.ATTENTION:
            painter.drawPath(_triangle(box))
        case Severity.FAILED:
            painter.setPen(QPen(color, line * 1.35, Qt.PenStyle.SolidLine, Qt.PenCapStyle.RoundCap))
            inset = box.adjusted(line, line, -line, -line)
            painter.drawLine(inset.topLeft(), inset.bottomRight())
            painter.drawLine(inset.topRight(), inset.bottomLeft())
    painter.restore()


def pill_size(text: str, font: QFont) -> QSizeF:
    """The room that :func:`paint_pill` needs for ``text``."""
    metrics = QFontMetricsF(pill_font(font))
    mark = metrics.capHeight() + 2
    return QSizeF(PILL_PADDING * 2 + mark + PILL_GAP + metrics.horizontalAdvance(text), metrics.height() + 4)


def pill_font(font: QFont) -> QFont:
    """The font of a pill beside text in ``font``."""
    smaller = QFont(font)
    if font.pointSizeF() > 0:
        smaller.setPointSizeF(font.pointSizeF() * 0.92)
    return smaller


def paint_pill(painter: QPainter, rect: QRectF, text: str, severity: Severity, theme: Theme, font: QFont) -> None:
    """Draw mark and word on the severity's soft background; ``rect`` should have :func:`pill_size`."""
    foreground, background = theme.severity(severity)
    font = pill_font(font)
    metrics = QFontMetricsF(font)
    mark = metrics.capHeight() + 2
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(background)
    painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2)
    paint_mark(
        painter,
        QRectF(rect.left() + PILL_PADDING, rect.center().y() - mark / 2, mark, mark),
        severity,
        foreground,
    )
    painter.setFont(font)
    painter.setPen(foreground)
    room = rect.adjusted(PILL_PADDING + mark + PILL_GAP, 0, -PILL_PADDING / 2, 0)
    shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room.width() + 1)
    painter.drawText(room, int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft), shown)
    painter.restore()


class SeverityMark(QWidget):
    """The shape alone, beside a label that says the word."""

    def __init__(self, theme: Theme, side: int = 12, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._severity = Severity.OFF
        self.setFixedSize(side, side)
        theme.changed.connect(self.update)
        self.set_severity(Severity.OFF)

    def set_severity(self, severity: Severity) -> None:
        """Show another severity."""
        self._severity = severity
        self.setAccessibleName(words.severity_word(severity))
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the shape."""
        painter = QPainter(self)
        paint_mark(painter, QRectF(self.rect()), self._severity, self._theme.severity(self._severity)[0])
        painter.end()


class StatusPill(QWidget):
    """Mark and word of a state, outside of lists."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._severity = Severity.OFF
        self._text = ""
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_state(self, text: str, severity: Severity) -> None:
        """Show ``text`` in the colours of ``severity``."""
        if (text, severity) == (self._text, self._severity):
            return
        self._text, self._severity = text, severity
        self.setAccessibleName(text)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Room for the whole word."""
        size = pill_size(self._text, self.font())
        return QSize(int(size.width()) + 1, int(size.height()) + 1)

    def minimumSizeHint(self) -> QSize:
        """The word may be cut, the height may not."""
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw the pill."""
        painter = QPainter(self)
        rect = QRectF(QRect(0, 0, self.width(), self.height())).adjusted(0.5, 0.5, -0.5, -0.5)
        paint_pill(painter, rect, self._text, self._severity, self._theme, self.font())
        painter.end()


def _outline(painter: QPainter, ring: QRectF, color: QColor, width: float) -> None:
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(color, width))
    painter.drawEllipse(ring)


def _triangle(box: QRectF) -> QPainterPath:
    """A triangle with an exclamation mark cut out where there is room for one."""
    path = QPainterPath()
    path.addPolygon(
        QPolygonF(
            [
                QPointF(box.center().x(), box.top()),
                box.bottomRight(),
                box.bottomLeft(),
                QPointF(box.center().x(), box.top()),
            ]
        )
    )
    if box.height() < 14:
        return path
    stem = QPainterPath()
    width = box.width() * 0.13
    stem.addRoundedRect(
        QRectF(box.center().x() - width / 2, box.top() + box.height() * 0.34, width, box.height() * 0.32),
        width / 2,
        width / 2,
    )
    stem.addEllipse(QPointF(box.center().x(), box.top() + box.height() * 0.81), width * 0.62, width * 0.62)
    return path.subtracted(stem)

"""What is wrong and what helps, in the colours of its severity."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from callboard.core.health import Severity
from callboard.ui.severity import SeverityMark
from callboard.ui.theme import Theme

_LONGEST = 400  # characters of a reason; more would push everything else out of the window


class ReasonBar(QWidget):
    """A sentence, and under it the fix; hidden while there is nothing to say."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._severity = Severity.OFF
        self._mark = SeverityMark(theme, 14)
        self._reason = self._label(QFont.Weight.DemiBold)
        self._fix = self._label(QFont.Weight.Normal)
        words = QVBoxLayout()
        words.setSpacing(3)
        words.addWidget(self._reason)
        words.addWidget(self._fix)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(12, 8, 12, 8)
        layout.setSpacing(10)
        layout.addWidget(self._mark, alignment=Qt.AlignmentFlag.AlignTop)
        layout.addLayout(words, 1)
        theme.changed.connect(self._paint_words)
        self.hide()

    def _label(self, weight: QFont.Weight) -> QLabel:
        label = QLabel(wordWrap=True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        font = label.font()
        font.setWeight(weight)
        label.setFont(font)
        return label

    def show_reason(self, reason: str, fix: str, severity: Severity) -> None:
        """Say something else; an empty ``reason`` hides the bar."""
        self._severity = severity
        self._mark.set_severity(severity)
        self._reason.setText(reason if len(reason) <= _LONGEST else reason[:_LONGEST] + "…")
        self._reason.setToolTip(reason if len(reason) > _LONGEST else "")
        self._fix.setText(fix)
        self._fix.setVisible(bool(fix))
        self.setAccessibleName(f"{reason} {fix}".strip())
        self.setVisible(bool(reason))
        self._paint_words()

    def _paint_words(self) -> None:
        for label in (self._reason, self._fix):
            palette = QPalette(label.palette())
            palette.setColor(QPalette.ColorRole.WindowText, self._theme.severity(self._severity)[0])
            label.setPalette(palette)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Fill with the severity's soft colour."""
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.severity(self._severity)[1])
        painter.end()

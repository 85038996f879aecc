"""What stands where there is nothing to show: why, and what to do about it."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from callboard.ui.theme import Theme, Token


class EmptyState(QWidget):
    """A title, a sentence and at most one button, in the middle of the room."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._action: Callable[[], object] | None = None
        self._title = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        font = QFont(self._title.font())
        font.setPointSizeF(font.pointSizeF() * 1.2)
        font.setWeight(QFont.Weight.DemiBold)
        self._title.setFont(font)
        self._text = QLabel(alignment=Qt.AlignmentFlag.AlignCenter, wordWrap=True)
        self._text.setMaximumWidth(420)
        self._button = QPushButton()
        self._button.clicked.connect(self._run)
        layout = QVBoxLayout(self)
        layout.setSpacing(10)
        layout.addStretch(2)
        layout.addWidget(self._title)
        # not by alignment: a label that breaks its lines gets its height only where it has the whole row
        middle = QHBoxLayout()
        middle.addStretch(1)
        middle.addWidget(self._text, 100)
        middle.addStretch(1)
        layout.addLayout(middle)
        layout.addWidget(self._button, alignment=Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(3)
        theme.changed.connect(self._paint_text)
        self._paint_text()

    def show_message(
        self, title: str, text: str = "", button: str = "", action: Callable[[], object] | None = None
    ) -> None:
        """Say something else; without ``button`` there is none."""
        self._title.setText(title)
        self._text.setText(text)
        self._text.setVisible(bool(text))
        self._button.setText(button)
        self._button.setVisible(bool(button))
        self._action = action
        self.setAccessibleName(title)
        self.setAccessibleDescription(text)

    def _run(self) -> None:
        if self._action is not None:
            self._action()

    def _paint_text(self) -> None:
        palette = QPalette(self._text.palette())
        palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.MUTED))
        self._text.setPalette(palette)

"""Names and values, one a line; what is not known is not there."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from callboard.ui.icons import Icons
from callboard.ui.theme import Theme, Token
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.value_text import ValueText


class Facts(QWidget):
    """A table of facts. Add the lines once, in their order; a line without a value is hidden."""

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._icons = icons
        self._names: dict[str, QLabel] = {}
        self._values: dict[str, ValueText] = {}
        self._buttons: dict[str, CopyButton] = {}
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(16)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        theme.changed.connect(self._paint_names)

    def add(self, key: str, name: str, *, copy: str = "", fixed: bool = False) -> None:
        """Add a line; ``copy`` is what its copy button is called (no button if empty)."""
        row = len(self._names)
        label = QLabel(name)
        value = ValueText(name, fixed=fixed)
        label.setBuddy(value)
        self._names[key], self._values[key] = label, value
        self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
        self._grid.addWidget(value, row, 1, Qt.AlignmentFlag.AlignTop)
        if copy:
            button = CopyButton(self._icons, copy, value.toPlainText)
            button.setFixedHeight(value.fontMetrics().height() + 4)
            self._buttons[key] = button
            self._grid.addWidget(button, row, 2, Qt.AlignmentFlag.AlignTop)
        self._show(key, False)
        self._paint_names()

    def set(self, key: str, text: str, tip: str = "") -> None:
        """Show a value, or hide its line if ``text`` is empty."""
        self._values[key].show_text(text)
        self._values[key].setToolTip(tip)
        self._show(key, bool(text))

    def align_with(self, other: "Facts") -> None:
        """Let the values of two tables begin at the same place."""
        labels = [*self._names.values(), *other._names.values()]
        width = max(label.sizeHint().width() for label in labels)
        for table in (self, other):
            table._grid.setColumnMinimumWidth(0, width)

    def value(self, key: str) -> str:
        """The value that is shown."""
        return self._values[key].toPlainText()

    def _show(self, key: str, visible: bool) -> None:
        self._names[key].setVisible(visible)
        self._values[key].setVisible(visible)
        if key in self._buttons:
            self._buttons[key].setVisible(visible)

    def _paint_names(self) -> None:
        for label in self._names.values():
            palette = QPalette(label.palette())
            palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.MUTED))
            label.setPalette(palette)

"""The head of a page about a resource or a prompt: its name with a button that copies it, and what it is."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.elided_label import ElidedLabel


class OfferHead(QWidget):
    """``copy`` is what the button is called."""

    def __init__(self, theme: Theme, icons: Icons, copy: str) -> None:
        super().__init__()
        self._text = ""
        self._name = ElidedLabel()
        self._copy = CopyButton(icons, copy, lambda: self._text)
        self._about = QLabel()
        self._about.setTextFormat(Qt.TextFormat.RichText)
        self._about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._about.setWordWrap(True)
        self._about.setContentsMargins(12, 0, 12, 8)
        bar = QHBoxLayout()
        bar.setContentsMargins(12, 8, 8, 8)
        bar.setSpacing(6)
        bar.addWidget(self._name, 1)
        bar.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self._about)

    def show_head(self, name: str, about: str) -> None:
        """Show a name, and below it ``about`` (HTML)."""
        self._text = name
        self._name.setText(name)
        self._copy.setEnabled(bool(name))
        self._about.setText(about)
        self._about.setVisible(bool(about))

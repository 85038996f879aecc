"""A small button that copies a text."""

from collections.abc import Callable

from PySide6.QtCore import QEvent
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QToolButton, QWidget

from callboard.ui.icons import Icons


class CopyButton(QToolButton):
    """Copies what ``text`` returns at the moment of the click, and says "Copied" for a moment."""

    def __init__(self, icons: Icons, what: str, text: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._what = what
        self._icons = icons
        self._copied = False
        self.setAutoRaise(True)
        self.setToolTip(what)
        self.setAccessibleName(what)
        icons.set_on(self, "copy")
        self.clicked.connect(self._copy)

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())
        self._copied = True
        self._icons.set_on(self, "check")
        self.setToolTip(self.tr("Copied"))

    def leaveEvent(self, event: QEvent) -> None:
        """Offer to copy again."""
        super().leaveEvent(event)
        if self._copied:
            self._copied = False
            self._icons.set_on(self, "copy")
            self.setToolTip(self._what)

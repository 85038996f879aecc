"""The way back to the end of a live list."""

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QPushButton

from callboard.ui.icons import Icons


class JumpButton(QPushButton):
    """Floats in the lower right corner of a view; its owner shows it while the end cannot be seen."""

    def __init__(self, icons: Icons, view: QAbstractScrollArea) -> None:
        super().__init__(view)
        self._view = view
        self.setFont(QApplication.font())
        self.setText(self.tr("Jump to newest"))
        icons.set_on(self, "arrow-down")
        view.installEventFilter(self)
        self.hide()

    def set_needed(self, needed: bool) -> None:
        """Show or hide the button."""
        self.setVisible(needed)
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Stay in the corner."""
        if event.type() == QEvent.Type.Resize:
            self._place()
        return super().eventFilter(watched, event)

    def _place(self) -> None:
        view, size = self._view, self.sizeHint()
        self.resize(size)
        below = view.horizontalScrollBar().height() if view.horizontalScrollBar().isVisible() else 0
        right = view.width() - size.width() - view.verticalScrollBar().sizeHint().width() - 12
        self.move(right, view.height() - size.height() - below - 12)
        self.raise_()

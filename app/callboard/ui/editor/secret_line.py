"""A line of text that can be made unreadable while it is entered."""

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLineEdit, QMenu

from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import fixed_font
from callboard.ui.editor.secret_desk import SecretDesk


class SecretLine(QLineEdit):
    """Plain, or as a secret: then the text is hidden unless the person looks, and a stored secret can be used."""

    chosen = Signal(str)  # the stored secret of this name shall be used

    def __init__(self, kit: Kit, desk: SecretDesk) -> None:
        super().__init__()
        self._kit, self._desk = kit, desk
        self._look: QAction | None = None
        self._choose: QAction | None = None
        self.setFont(fixed_font())

    def set_secret(self, secret: bool) -> None:
        """Hide what is entered, or show it."""
        if secret and self._look is None:
            self._look = QAction(self)
            self._look.setCheckable(True)
            self._look.toggled.connect(self._show_or_hide)
            self._choose = QAction(self.tr("Use a stored secret…"), self)
            self._choose.triggered.connect(self._open_menu)
            self._kit.icons.set_on(self._choose, "key")
        for action in (self._look, self._choose):
            if action is not None and secret:
                self.addAction(action, QLineEdit.ActionPosition.TrailingPosition)
            elif action is not None:
                self.removeAction(action)
        if self._look is not None:
            self._look.setChecked(False)
        self._show_or_hide(not secret)
        self.offer_stored()

    def offer_stored(self) -> None:
        """Offer stored secrets while there are some."""
        if self._choose is not None:
            self._choose.setVisible(bool(self._desk.names))

    def _show_or_hide(self, shown: bool) -> None:
        self.setEchoMode(QLineEdit.EchoMode.Normal if shown else QLineEdit.EchoMode.Password)
        if self._look is not None:
            self._kit.icons.set_on(self._look, "eye-off" if shown else "eye")
            self._look.setText(self.tr("Hide what was entered") if shown else self.tr("Show what was entered"))

    def _open_menu(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for name in self._desk.names:
            menu.addAction(name).triggered.connect(lambda _checked=False, name=name: self.chosen.emit(name))
        menu.popup(self.mapToGlobal(QPoint(0, self.height())))

"""The lower edge of a form: how it stands, and its buttons."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout

from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, IconLabel, ToneLabel
from callboard.ui.theme import Token


class FormFooter(QFrame):
    """One line about the form, Save, and a button that leaves things as they are."""

    save_pressed = Signal()
    leave_pressed = Signal()
    show_pressed = Signal()  # go to the problem that the line tells of

    def __init__(self, kit: Kit, save: str, leave: str) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        line = QFrame()
        line.setFrameShape(QFrame.Shape.HLine)
        line.setFrameShadow(QFrame.Shadow.Plain)
        line.setForegroundRole(self.palette().ColorRole.Mid)
        column.addWidget(line)
        row = QHBoxLayout()
        row.setContentsMargins(16, 10, 16, 10)
        row.setSpacing(GAP + 2)
        column.addLayout(row)
        self._icon = IconLabel(kit.theme, kit.icons, "error", Token.FAILED)
        row.addWidget(self._icon)
        self._status = ToneLabel(kit.theme, Token.MUTED)
        row.addWidget(self._status, 1)
        self.show_button = QPushButton(self.tr("Show"))
        self.leave_button = QPushButton(leave)
        self.save_button = QPushButton(save)
        for button in (self.show_button, self.leave_button, self.save_button):
            button.setAutoDefault(False)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.save_button.setDefault(True)
        self.show_button.clicked.connect(lambda _checked=False: self.show_pressed.emit())
        self.leave_button.clicked.connect(lambda _checked=False: self.leave_pressed.emit())
        self.save_button.clicked.connect(lambda _checked=False: self.save_pressed.emit())
        self.say("")

    @property
    def status(self) -> str:
        """What the line says."""
        return self._status.text()

    def say(self, text: str, *, problem: bool = False, can_show: bool = False) -> None:
        """Say how the form stands; ``problem`` marks it as something to mend."""
        self._status.setText(text)
        self._status.set_token(Token.FAILED if problem else Token.MUTED)
        self._icon.setVisible(problem)
        self.show_button.setVisible(can_show)

    def offer_leave(self, text: str) -> None:
        """What the second button says; "" while there is nothing to leave."""
        self.leave_button.setEnabled(bool(text))
        if text:
            self.leave_button.setText(text)

"""What stands below a value: where it is kept, what is wrong with it, and whether it should be a secret."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from callboard.core.health import Severity
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import InlineNotice, ProblemLabel, ToneLabel, clear_margins, put_in, question, take_out
from callboard.ui.theme import Token


class ValueRemarks(QWidget):
    """Note, problem and offer of one value. Takes no room while there is none."""

    keep_pressed = Signal()  # the stored value shall stay

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._column = QVBoxLayout(self)
        clear_margins(self._column)
        self._column.setSpacing(3)
        self._note = ToneLabel(kit.theme, Token.MUTED, scale=0.92)
        self._note.setTextFormat(Qt.TextFormat.RichText)
        self.keep = QPushButton(self.tr("Keep the stored value"))
        self.keep.setAutoDefault(False)
        self.keep.clicked.connect(lambda _checked=False: self.keep_pressed.emit())
        self._problem = ProblemLabel(kit.theme, kit.icons)
        self._column.addWidget(self._note)
        self._column.addWidget(self.keep, 0, Qt.AlignmentFlag.AlignLeft)
        self._column.addWidget(self._problem)
        self.offer: InlineNotice | None = None
        self.set_note("", can_keep=False)

    @property
    def note(self) -> str:
        """What is said about the value, as rich text."""
        return self._note.text()

    @property
    def problem(self) -> str:
        """What is wrong with the value."""
        return self._problem.text

    def set_note(self, text: str, *, can_keep: bool) -> None:
        """Say something about the value (rich text)."""
        self._note.setText(text)
        self._note.setVisible(bool(text))
        self.keep.setVisible(can_keep)
        self._show_or_hide()

    def set_problem(self, text: str) -> None:
        """Say what is wrong, or nothing."""
        self._problem.set_text(text)
        self._show_or_hide()

    def ask(self, text: str, answers: Sequence[tuple[str, Callable[[], object]]]) -> None:
        """Ask about the value; one question at a time."""
        self.withdraw()
        self.offer = question(self._kit.theme, self._kit.icons, text, answers, severity=Severity.ATTENTION)
        put_in(self._column, self.offer)
        self._show_or_hide()

    def withdraw(self) -> None:
        """Take the question back."""
        if self.offer is not None:
            take_out(self._column, self.offer)
            self.offer = None
            self._show_or_hide()

    def _show_or_hide(self) -> None:
        can_keep = not self.keep.isHidden()
        self.setVisible(bool(self.note or self.problem or can_keep) or self.offer is not None)

"""A field with its label above, help and problems below."""

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from callboard.ui.editor.entry_model import Path
from callboard.ui.editor.fields import CheckField, Field
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import ProblemLabel, ToneLabel, clear_margins
from callboard.ui.theme import Token


class FieldRow(QWidget):
    """One place of the entry on the screen. ``path`` leads to it from the entry."""

    changed = Signal()

    def __init__(self, kit: Kit, path: Path, field: Field, help_text: str = "") -> None:
        super().__init__()
        self.path = path
        self.field = field
        self.was_touched = False  # by the person, since it was shown
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(3)
        if not isinstance(field, CheckField):  # whose box says it
            self.label = QLabel(field.label)
            self.label.setBuddy(field)
            column.addWidget(self.label)
        column.addWidget(field)
        self._help = ToneLabel(kit.theme, Token.MUTED, scale=0.92)
        self._help_text = help_text
        column.addWidget(self._help)
        self._problem = ProblemLabel(kit.theme, kit.icons)
        column.addWidget(self._problem)
        field.changed.connect(self._touched)
        self.refresh_help()

    @property
    def problem(self) -> str:
        """What stands below the field, empty for nothing."""
        return self._problem.text

    def refresh_help(self) -> None:
        """Say what the field is for, or why it cannot be edited here."""
        text = self._help_text
        if self.field.opaque:
            text = self.tr("Written in the file in a way that this form does not show; it stays as it is.")
        self._help.setText(text)
        self._help.setVisible(bool(text))

    def show_problems(self, problems: Mapping[str, str]) -> None:
        """Show problems of this field, by the rest of their path."""
        self._problem.set_text(" ".join(self.field.show_problems(problems)))

    def _touched(self) -> None:
        self.was_touched = True
        self.changed.emit()

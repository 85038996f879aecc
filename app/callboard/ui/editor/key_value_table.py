"""Names with values: the environment of a server, or the headers of a request."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from callboard.core.health import Severity
from callboard.ui.editor.entry_model import is_plain, pairs_from
from callboard.ui.editor.fields import Field
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import (
    GAP,
    InlineNotice,
    ProblemLabel,
    clear_margins,
    fixed_font,
    icon_button,
    put_in,
    question,
    take_out,
)
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.value_edit import ValueEdit, ValueState
from callboard.ui.editor.value_remarks import ValueRemarks


@dataclass(frozen=True)
class TableWords:
    """What the rows are called, translated by whoever builds the form."""

    row: str  # "Variable {number}"
    add: str
    name: str  # placeholder of the name
    separators: str  # what stands between name and value in pasted lines
    ignore_case: bool = False  # two names that differ only by case are the same


@dataclass(frozen=True)
class RowState:
    """What one row shows."""

    name: str
    value: ValueState = field(repr=False)


class PairRow(QWidget):
    """One name with its value, whether it is secret, and a button to take it out."""

    def __init__(self, kit: Kit, desk: SecretDesk, words: TableWords, changed: Callable[[], object]) -> None:
        super().__init__()
        self._words = words
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(2)
        row = QHBoxLayout()
        row.setSpacing(GAP)
        self.name = QLineEdit()
        self.name.setFont(fixed_font())
        self.name.setPlaceholderText(words.name)
        remarks = ValueRemarks(kit)
        self.editor = ValueEdit(kit, desk, self.name.text, remarks=remarks)
        self.editor.edit.setPlaceholderText(self.tr("value"))
        self.secret = QCheckBox(self.tr("Secret"))
        self.remove = icon_button(kit.icons, "close", self.tr("Remove"), lambda: None)
        row.addWidget(self.name, 2, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.editor, 3)
        row.addWidget(self.secret, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        self.name_problem = ProblemLabel(kit.theme, kit.icons)
        column.addWidget(self.name_problem)
        column.addWidget(remarks)
        for widget in (self.name, self.secret, self.remove):
            widget.setMinimumHeight(self.editor.edit.minimumHeight())
        self.name.textChanged.connect(lambda _text: changed())
        self.name.editingFinished.connect(self.editor.rename_secret)
        self.secret.toggled.connect(self.editor.set_secret)
        self.editor.changed.connect(self._follow)
        self.editor.changed.connect(changed)

    @property
    def state(self) -> RowState:
        """What is shown."""
        return RowState(self.name.text(), self.editor.state)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was entered yet."""
        value = self.editor.state
        return not (self.name.text() or value.text or value.stored)

    def load(self, name: str, raw: Any) -> None:
        """Show a pair of the entry."""
        self.name.setText(name)
        self.editor.load(raw)
        self._follow()

    def restore(self, state: RowState) -> None:
        """Show what :attr:`state` was."""
        self.name.setText(state.name)
        self.editor.restore(state.value)
        self._follow()

    def set_number(self, number: int) -> None:
        """Name the parts for screen readers."""
        row = self._words.row.format(number=number)
        self.name.setAccessibleName(self.tr("{row}: name").format(row=row))
        self.editor.edit.setAccessibleName(self.tr("{row}: value").format(row=row))
        self.secret.setAccessibleName(self.tr("{row}: secret").format(row=row))
        self.remove.setAccessibleName(self.tr("{row}: remove").format(row=row))

    def _follow(self) -> None:
        self.secret.blockSignals(True)
        self.secret.setChecked(self.editor.is_secret)
        self.secret.blockSignals(False)


class KeyValueTable(Field):
    """Edits a mapping of names to texts; each value can be kept as a secret."""

    def __init__(self, kit: Kit, desk: SecretDesk, label: str, words: TableWords) -> None:
        super().__init__(label)
        self._kit, self._desk, self._words = kit, desk, words
        self.rows: list[PairRow] = []
        self._split: InlineNotice | None = None
        self._column = QVBoxLayout(self)
        clear_margins(self._column)
        self._column.setSpacing(4)
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        self._column.addLayout(self._list)
        self.add_button = QPushButton(words.add)
        self.add_button.setAutoDefault(False)
        kit.icons.set_on(self.add_button, "add")
        self.add_button.clicked.connect(lambda _checked=False: self.add_row())
        self._column.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self.add_button)

    # the field

    def state(self) -> Any:
        """All rows as they are shown."""
        return [row.state for row in self.rows]

    def value_editors(self) -> list[ValueEdit]:
        """One for each row."""
        return [row.editor for row in self.rows]

    def problems(self) -> dict[str, str]:
        """A row without a name, a name that stands twice, a secret without a value."""
        found: dict[str, str] = {}
        seen: set[str] = set()
        for index, row in enumerate(self.rows):
            name = row.name.text()
            key = name.casefold() if self._words.ignore_case else name
            if not name:
                if not row.is_empty:
                    found[f"#{index}"] = self.tr("Enter a name, or remove the row.")
            elif key in seen:
                found[f"#{index}"] = self.tr("This name stands twice.")
            elif problem := row.editor.local_problem():
                found[name] = problem
            seen.add(key)
        return found

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Below the row that each belongs to."""
        left = dict(problems)
        for index, row in enumerate(self.rows):
            row.name_problem.set_text(left.pop(f"#{index}", ""))
            row.name.setAccessibleDescription(row.name_problem.text)
            row.editor.show_problem(left.pop(row.name.text(), "") if row.name.text() else "")
        return list(left.values())

    def show_hints(self, hints: Mapping[str, str]) -> None:
        """Ask below the value."""
        for row in self.rows:
            if row.name.text() in hints:
                row.editor.offer_secret(hints[row.name.text()])
            else:
                row.editor.withdraw_offer()

    def focus_on(self, rest: str) -> None:
        """The row of that name, or of that number ("#2")."""
        for index, row in enumerate(self.rows):
            if rest == f"#{index}":
                row.name.setFocus(Qt.FocusReason.OtherFocusReason)
                return
            if rest and rest == row.name.text():
                row.editor.setFocus(Qt.FocusReason.OtherFocusReason)
                return
        super().focus_on(rest)

    def add_pairs(self, pairs: Mapping[str, str]) -> None:
        """Enter names and values for the person; a name that is there gets the new value."""
        with self._silence():
            for row in [row for row in self.rows if row.is_empty]:
                self._take(row)
            for name, text in pairs.items():
                row = next((row for row in self.rows if row.name.text() == name), None) or self._append()
                row.name.setText(name)
                row.editor.set_text(text)
            self._renumber()
        self._touched()

    def _can_show(self, raw: Any) -> bool:
        return isinstance(raw, dict) and all(isinstance(key, str) and is_plain(item) for key, item in raw.items())

    def _show(self, raw: Any) -> None:
        pairs = list((raw or {}).items())
        self._resize(len(pairs))
        for row, (name, item) in zip(self.rows, pairs, strict=True):
            row.load(name, item)

    def _restore(self, state: Any) -> None:
        states: list[RowState] = state
        self._resize(len(states))
        for row, item in zip(self.rows, states, strict=True):
            row.restore(item)

    def _read(self) -> Any:
        values = {row.name.text(): row.editor.value() for row in self.rows if row.name.text()}
        return {name: "" if value is None else value for name, value in values.items()} or None

    # rows

    def add_row(self) -> PairRow:
        """Add an empty row and go there."""
        row = self._append()
        self._renumber()
        self._touched()
        row.name.setFocus(Qt.FocusReason.OtherFocusReason)
        return row

    def remove_row(self, row: PairRow) -> None:
        """Take a row out; the focus goes to the next one."""
        index = self.rows.index(row)
        self._take(row)
        self._renumber()
        self._touched()
        next_one = self.rows[min(index, len(self.rows) - 1)].remove if self.rows else self.add_button
        next_one.setFocus(Qt.FocusReason.OtherFocusReason)

    def _append(self) -> PairRow:
        row = PairRow(self._kit, self._desk, self._words, self._touched)
        row.remove.clicked.connect(lambda _checked=False: self.remove_row(row))
        row.name.textChanged.connect(lambda _text: self._ask_to_split(row))
        self.rows.append(row)
        self._list.addWidget(row)
        return row

    def _take(self, row: PairRow) -> None:
        self._desk.release(row.editor)
        self.rows.remove(row)
        take_out(self._list, row)

    def _resize(self, count: int) -> None:
        while len(self.rows) > count:
            self._take(self.rows[-1])
        while len(self.rows) < count:
            self._append()
        self._renumber()

    def _renumber(self) -> None:
        for index, row in enumerate(self.rows):
            row.set_number(index + 1)

    # pasted lines

    def _ask_to_split(self, row: PairRow) -> None:
        self._leave_split()
        pairs = {} if self._quiet else pairs_from(row.name.text(), self._words.separators)
        if not pairs:
            return

        def split() -> None:
            row.name.clear()
            self.add_pairs(pairs)

        text = self.tr("Split this into names and values?")
        self._split = question(
            self._kit.theme,
            self._kit.icons,
            text,
            [(self.tr("Split"), split), (self.tr("Leave"), self._leave_split)],
            severity=Severity.BUSY,
        )
        put_in(self._column, self._split, 1)

    def _leave_split(self) -> None:
        if self._split is not None:
            take_out(self._column, self._split)
            self._split = None

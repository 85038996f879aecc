"""The arguments of a command: one row each, in order, never joined into a line."""

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from callboard.ui.editor.entry_model import is_plain
from callboard.ui.editor.fields import Field
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import clear_margins, icon_button, take_out
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.value_edit import ValueEdit, ValueState


class ArgumentRow(QWidget):
    """One argument with its buttons."""

    def __init__(self, kit: Kit, desk: SecretDesk, owner: "ArgumentList") -> None:
        super().__init__()
        row = QHBoxLayout(self)
        clear_margins(row)
        row.setSpacing(2)
        self.editor = ValueEdit(kit, desk, lambda: "argument")
        self.editor.edit.setPlaceholderText(self.tr("(empty argument)"))
        self.editor.edit.installEventFilter(owner)
        row.addWidget(self.editor, 1)
        self.up = icon_button(kit.icons, "arrow-up", self.tr("Move up"), lambda: owner.move_row(self, -1))
        self.down = icon_button(kit.icons, "arrow-down", self.tr("Move down"), lambda: owner.move_row(self, 1))
        self.remove = icon_button(kit.icons, "close", self.tr("Remove"), lambda: owner.remove_row(self))
        for button in (self.up, self.down, self.remove):
            button.setMinimumHeight(self.editor.edit.minimumHeight())
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)

    def set_place(self, index: int, count: int) -> None:
        """Tell the row where it stands."""
        name = self.tr("Argument {number}").format(number=index + 1)
        self.editor.edit.setAccessibleName(name)
        self.up.setEnabled(index > 0)
        self.down.setEnabled(index < count - 1)
        for button in (self.up, self.down, self.remove):
            button.setAccessibleName(f"{name}: {button.toolTip()}")


class ArgumentList(Field):
    """Edits ``args``. Return adds a row below, Alt+Up and Alt+Down move one."""

    def __init__(self, kit: Kit, desk: SecretDesk, label: str) -> None:
        super().__init__(label)
        self._kit, self._desk = kit, desk
        self.rows: list[ArgumentRow] = []
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(4)
        self._list = QVBoxLayout()
        self._list.setSpacing(4)
        column.addLayout(self._list)
        self.add_button = QPushButton(self.tr("Add argument"))
        self.add_button.setAutoDefault(False)
        kit.icons.set_on(self.add_button, "add")
        self.add_button.clicked.connect(lambda _checked=False: self.add_row())
        column.addWidget(self.add_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self.add_button)

    # the field

    def state(self) -> Any:
        """The arguments as they are shown."""
        return [row.editor.state for row in self.rows]

    def value_editors(self) -> list[ValueEdit]:
        """One for each argument."""
        return [row.editor for row in self.rows]

    def problems(self) -> dict[str, str]:
        """Problems of single arguments."""
        found = {str(index): row.editor.local_problem() for index, row in enumerate(self.rows)}
        return {rest: text for rest, text in found.items() if text}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Below the argument that each belongs to."""
        left = dict(problems)
        for index, row in enumerate(self.rows):
            row.editor.show_problem(left.pop(str(index), ""))
        return list(left.values())

    def show_hints(self, hints: Mapping[str, str]) -> None:
        """Ask below the argument."""
        for index, row in enumerate(self.rows):
            if str(index) in hints:
                row.editor.offer_secret(hints[str(index)])
            else:
                row.editor.withdraw_offer()

    def focus_on(self, rest: str) -> None:
        """The argument of that number."""
        if rest.isdecimal() and int(rest) < len(self.rows):
            self.rows[int(rest)].editor.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            super().focus_on(rest)

    def add_texts(self, texts: Sequence[str]) -> None:
        """Put arguments before those that are there, for the person."""
        with self._silence():
            for index, text in enumerate(texts):
                self._insert(index).editor.set_text(text)
            self._renumber()
        self._touched()

    def _can_show(self, raw: Any) -> bool:
        return isinstance(raw, list) and all(is_plain(item) for item in raw)

    def _show(self, raw: Any) -> None:
        items = raw or []
        self._resize(len(items))
        for row, item in zip(self.rows, items, strict=True):
            row.editor.load(item)

    def _restore(self, state: Any) -> None:
        states: list[ValueState] = state
        self._resize(len(states))
        for row, item in zip(self.rows, states, strict=True):
            row.editor.restore(item)

    def _read(self) -> Any:
        values = [row.editor.value() for row in self.rows]
        return ["" if value is None else value for value in values] or None

    # rows

    def add_row(self, below: ArgumentRow | None = None) -> ArgumentRow:
        """Add an empty argument, at the end or below a row, and go there."""
        index = len(self.rows) if below is None else self.rows.index(below) + 1
        row = self._insert(index)
        self._renumber()
        self._touched()
        row.editor.setFocus(Qt.FocusReason.OtherFocusReason)
        return row

    def remove_row(self, row: ArgumentRow) -> None:
        """Take an argument out; the focus goes to the next one."""
        index = self.rows.index(row)
        self._take(row)
        self._renumber()
        self._touched()
        next_one = self.rows[min(index, len(self.rows) - 1)].remove if self.rows else self.add_button
        next_one.setFocus(Qt.FocusReason.OtherFocusReason)

    def move_row(self, row: ArgumentRow, step: int) -> None:
        """Move an argument up (-1) or down (1)."""
        index = self.rows.index(row)
        target = index + step
        if not 0 <= target < len(self.rows):
            return
        focus = row.focusWidget()
        self.rows.insert(target, self.rows.pop(index))
        self._list.removeWidget(row)
        self._list.insertWidget(target, row)
        self._renumber()
        self._touched()
        if focus is not None:
            (focus if focus.isEnabled() else row.editor).setFocus(Qt.FocusReason.OtherFocusReason)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Return, Alt+Up and Alt+Down inside an argument."""
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        row = next((row for row in self.rows if row.editor.edit is watched), None)
        if row is None:
            return False
        alt = event.modifiers() == Qt.KeyboardModifier.AltModifier
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter if event.modifiers() in (
                Qt.KeyboardModifier.NoModifier,
                Qt.KeyboardModifier.KeypadModifier,
            ):
                self.add_row(row)
            case Qt.Key.Key_Up if alt:
                self.move_row(row, -1)
            case Qt.Key.Key_Down if alt:
                self.move_row(row, 1)
            case _:
                return False
        return True

    def _insert(self, index: int) -> ArgumentRow:
        row = ArgumentRow(self._kit, self._desk, self)
        row.editor.changed.connect(self._touched)
        self.rows.insert(index, row)
        self._list.insertWidget(index, row)
        return row

    def _take(self, row: ArgumentRow) -> None:
        self._desk.release(row.editor)
        self.rows.remove(row)
        take_out(self._list, row)

    def _resize(self, count: int) -> None:
        while len(self.rows) > count:
            self._take(self.rows[-1])
        while len(self.rows) < count:
            self._insert(len(self.rows))
        self._renumber()

    def _renumber(self) -> None:
        for index, row in enumerate(self.rows):
            row.set_place(index, len(self.rows))

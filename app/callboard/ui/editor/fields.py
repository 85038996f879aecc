"""Fields of the form: each edits one place of an entry and knows nothing of the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from callboard.ui.editor.entry_model import as_text, is_plain, number_from
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, CalmComboBox, clear_margins, fixed_font, icon_button
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.value_edit import ValueEdit


class Field(QWidget):
    """Edits the value at one path of an entry.

    :meth:`load` shows what stands there; as long as nothing is changed, :meth:`value` is exactly that, however it was
    written. A value that the field cannot show makes it :attr:`opaque`: it is kept as it stands.
    """

    changed = Signal()  # something was entered

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label
        self.opaque = False
        self._raw: Any = None
        self._clean: Any = None
        self._quiet = False

    def load(self, raw: Any) -> None:
        """Show the value at this field's path; None means that nothing stands there."""
        self._raw = deepcopy(raw)
        self.opaque = raw is not None and not self._can_show(raw)
        self.setEnabled(not self.opaque)
        with self._silence():
            self._show(None if self.opaque else raw)
        self._clean = self.state()

    def value(self) -> Any:
        """What shall stand in the entry; None for nothing."""
        return self._raw if self.opaque or self.state() == self._clean else self._read()

    @property
    def is_changed(self) -> bool:
        """Whether something was entered since :meth:`load`."""
        return bool(self.state() != self._clean)

    def state(self) -> Any:
        """Everything that is shown, comparable, for :meth:`restore`."""
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        """Show what :meth:`state` was, as changes to what was loaded."""
        if not self.opaque:
            with self._silence():
                self._restore(state)

    def value_editors(self) -> list[ValueEdit]:
        """Editors of single values inside the field that may be secrets."""
        return []

    def secrets(self) -> list[tuple[str, str]]:
        """Names and values of secrets to be stored on saving."""
        return [pending for editor in self.value_editors() if (pending := editor.pending()) is not None]

    def problems(self) -> dict[str, str]:
        """What is wrong as far as can be told here, by the rest of the path ("" for the field itself)."""
        return {}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Show problems at their places inside the field; returns those that have none there."""
        return list(problems.values())

    def show_hints(self, hints: Mapping[str, str]) -> None:
        """Offer to keep values as secrets: {rest of the path: the secret's name}."""

    def focus_on(self, rest: str) -> None:
        """Put the keyboard's focus on what ``rest`` of the path names."""
        self.setFocus(Qt.FocusReason.OtherFocusReason)

    def _can_show(self, raw: Any) -> bool:
        return is_plain(raw)

    def _show(self, raw: Any) -> None:
        raise NotImplementedError

    def _read(self) -> Any:
        raise NotImplementedError

    def _restore(self, state: Any) -> None:
        raise NotImplementedError

    def _touched(self) -> None:
        if not self._quiet:
            self.changed.emit()

    @contextmanager
    def _silence(self) -> Iterator[None]:
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before


class TextField(Field):
    """One line of text. A ``required`` one is "" instead of absent."""

    def __init__(self, label: str, *, placeholder: str = "", required: str = "", fixed: bool = False) -> None:
        super().__init__(label)
        self._required = required
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP)
        self._below = column  # for what belongs under the line
        self._row = QHBoxLayout()
        self._row.setSpacing(GAP)
        column.addLayout(self._row)
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(placeholder)
        self.edit.setAccessibleName(label)
        if fixed:
            self.edit.setFont(fixed_font())
        self.edit.textChanged.connect(self._touched)
        self._row.addWidget(self.edit, 1)
        self.setFocusProxy(self.edit)

    def state(self) -> str:
        """The text."""
        return self.edit.text()

    def problems(self) -> dict[str, str]:
        """A required text must not be empty."""
        return {"": self._required} if self._required and not self.state().strip() else {}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """All stand below the field."""
        self.edit.setAccessibleDescription(" ".join(problems.values()))
        return super().show_problems(problems)

    def _show(self, raw: Any) -> None:
        self.edit.setText("" if raw is None else as_text(raw))
        self.edit.setCursorPosition(0)

    def _restore(self, state: Any) -> None:
        self.edit.setText(state)

    def _read(self) -> Any:
        return self.state() or ("" if self._required else None)


class PathField(TextField):
    """A folder or a file, typed or chosen in the system's dialog."""

    def __init__(
        self, kit: Kit, label: str, *, folder: bool, placeholder: str = "", required: str = "", ending: str = ""
    ) -> None:
        super().__init__(label, placeholder=placeholder, required=required, fixed=True)
        self._folder = folder
        self._ending = ending
        name = self.tr("Choose a folder") if folder else self.tr("Choose a file")
        self._row.addWidget(icon_button(kit.icons, "folder", f"{name}: {label}", self._choose))

    def _choose(self) -> None:
        dialog = QFileDialog(self, self.label)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory if self._folder else QFileDialog.FileMode.ExistingFile)
        if self._folder:
            dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.take_path)
        dialog.open()

    def take_path(self, path: str) -> None:
        """Enter a chosen path."""
        self.edit.setText(path + self._ending)
        self.edit.setFocus(Qt.FocusReason.OtherFocusReason)


class ValueField(Field):
    """One text that may hold a credential, such as an address with a key in it."""

    def __init__(
        self, kit: Kit, desk: SecretDesk, label: str, key: str, *, placeholder: str = "", required: str = ""
    ) -> None:
        super().__init__(label)
        self._required = required
        column = QVBoxLayout(self)
        clear_margins(column)
        self.editor = ValueEdit(kit, desk, lambda: key)
        self.editor.edit.setPlaceholderText(placeholder)
        self.editor.edit.setAccessibleName(label)
        self.editor.changed.connect(self._touched)
        column.addWidget(self.editor)
        self.setFocusProxy(self.editor)

    def state(self) -> Any:
        """What is shown."""
        return self.editor.state

    def value_editors(self) -> list[ValueEdit]:
        """The one."""
        return [self.editor]

    def problems(self) -> dict[str, str]:
        """A required value must not be empty."""
        if problem := self.editor.local_problem():
            return {"": problem}
        state = self.editor.state
        return {"": self._required} if self._required and not (state.text.strip() or state.stored) else {}

    def show_hints(self, hints: Mapping[str, str]) -> None:
        """Ask below the text."""
        if "" in hints:
            self.editor.offer_secret(hints[""])
        else:
            self.editor.withdraw_offer()

    def _show(self, raw: Any) -> None:
        self.editor.load(raw)

    def _restore(self, state: Any) -> None:
        self.editor.restore(state)

    def _read(self) -> Any:
        return self.editor.value() or ("" if self._required else None)


class NumberField(TextField):
    """A number with its unit. What is no number is kept as text, for the person to mend."""

    def __init__(self, label: str, unit: str, *, placeholder: str, whole: bool = False) -> None:
        super().__init__(label, placeholder=placeholder)
        self._whole = whole
        self.edit.setMaximumWidth(self.edit.fontMetrics().horizontalAdvance("0") * 16)
        self._row.addWidget(QLabel(unit))
        self._row.addStretch(1)

    def problems(self) -> dict[str, str]:
        """A number, and a whole one where only such will do."""
        text = self.state().strip()
        if not text:
            return {}
        number = number_from(text)
        if number is None or (self._whole and not isinstance(number, int)):
            return {"": self.tr("Enter a whole number.") if self._whole else self.tr("Enter a number.")}
        return {}

    def _read(self) -> Any:
        text = self.state().strip()
        number = number_from(text) if text else None
        return number if number is not None else (text or None)


class CheckField(Field):
    """Yes or no, with a default for an entry that does not say."""

    def __init__(self, label: str, *, default: bool) -> None:
        super().__init__(label)
        self._default = default
        column = QVBoxLayout(self)
        clear_margins(column)
        self.box = QCheckBox(label)
        self.box.toggled.connect(lambda _on: self._touched())
        column.addWidget(self.box, 0, Qt.AlignmentFlag.AlignLeft)
        self.setFocusProxy(self.box)

    def state(self) -> bool:
        """Whether it is checked."""
        return self.box.isChecked()

    def _can_show(self, raw: Any) -> bool:
        return isinstance(raw, bool)

    def _show(self, raw: Any) -> None:
        self.box.setChecked(self._default if raw is None else raw)

    def _restore(self, state: Any) -> None:
        self.box.setChecked(state)

    def _read(self) -> Any:
        on = self.box.isChecked()
        return None if on == self._default and self._raw is None else on


class ChoiceField(Field):
    """One of a few words; the first is what an entry without the field means."""

    def __init__(self, label: str, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__(label)
        self._default = choices[0][0]
        row = QHBoxLayout(self)
        clear_margins(row)
        self.box = CalmComboBox()
        self.box.setAccessibleName(label)
        for word, text in choices:
            self.box.addItem(text, word)
        self._known = len(choices)
        self.box.currentIndexChanged.connect(lambda _index: self._touched())
        row.addWidget(self.box, 1)
        self.setFocusProxy(self.box)

    def state(self) -> str:
        """The word chosen."""
        return str(self.box.currentData())

    def _show(self, raw: Any) -> None:
        while self.box.count() > self._known:
            self.box.removeItem(self._known)
        word = self._default if raw is None else as_text(raw)
        if self.box.findData(word) < 0:
            self.box.addItem(word, word)  # something this form does not know: shown as it is written
        self.box.setCurrentIndex(self.box.findData(word))

    def _restore(self, state: Any) -> None:
        if self.box.findData(state) < 0:
            self.box.addItem(state, state)
        self.box.setCurrentIndex(self.box.findData(state))

    def _read(self) -> Any:
        word = self.state()
        return None if word == self._default and self._raw is None else word


class LinesField(Field):
    """A list of short texts, one on each line."""

    def __init__(self, label: str, *, placeholder: str = "", rows: int = 3) -> None:
        super().__init__(label)
        column = QVBoxLayout(self)
        clear_margins(column)
        self.edit = plain_text(label, rows, self._touched)
        self.edit.setPlaceholderText(placeholder)
        column.addWidget(self.edit)
        self.setFocusProxy(self.edit)

    def state(self) -> str:
        """The text."""
        return self.edit.toPlainText()

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Name the line that a problem belongs to."""
        texts = []
        for rest, text in problems.items():
            line = int(rest) + 1 if rest.isdecimal() else 0
            texts.append(self.tr("Line {number}: {text}").format(number=line, text=text) if line else text)
        self.edit.setAccessibleDescription(" ".join(texts))
        return texts

    def _can_show(self, raw: Any) -> bool:
        return isinstance(raw, list) and all(is_plain(item) and "\n" not in as_text(item) for item in raw)

    def _show(self, raw: Any) -> None:
        self.edit.setPlainText("\n".join(map(as_text, raw or [])))

    def _restore(self, state: Any) -> None:
        self.edit.setPlainText(state)

    def _read(self) -> Any:
        lines = [line.strip() for line in self.state().splitlines()]
        return [line for line in lines if line] or None


class ParagraphField(LinesField):
    """Text of any length."""

    def _can_show(self, raw: Any) -> bool:
        return is_plain(raw)

    def _show(self, raw: Any) -> None:
        self.edit.setPlainText("" if raw is None else as_text(raw))

    def _read(self) -> Any:
        return self.state().strip() or None


def plain_text(label: str, rows: int, changed: Callable[[], object], *, fixed: bool = False) -> QPlainTextEdit:
    """A small text editor in which Tab moves on to the next field."""
    edit = QPlainTextEdit()
    edit.setTabChangesFocus(True)
    edit.setAccessibleName(label)
    if fixed:
        edit.setFont(fixed_font())
    margins = edit.contentsMargins()
    frame = 2 * (edit.frameWidth() + int(edit.document().documentMargin())) + margins.top() + margins.bottom()
    edit.setFixedHeight(edit.fontMetrics().lineSpacing() * rows + frame)
    edit.textChanged.connect(changed)
    return edit

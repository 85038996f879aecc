"""A form for the arguments of a call, made from their JSON Schema, and the same arguments as JSON."""

import json
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QFontDatabase, QKeyEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QSizePolicy,
    QStackedLayout,
    QVBoxLayout,
    QWidget,
)

from callboard.core.call_arguments import ANY, property_schema, types_of, value
from callboard.ui.models.parameters import Parameter, parameters
from callboard.ui.models.pretty import dump
from callboard.ui.theme import Theme, Token
from callboard.ui.widgets.elided_label import ElidedLabel

_LINES: Final = 8  # that a text grows to before it scrolls
_FIELDS: Final = 60  # more are entered as JSON
_LOWEST, _HIGHEST = 90, 300  # pixels of the fields together


class ArgumentForm(QWidget):
    """One field an argument, or all of them as JSON. What is empty is left out.

    :meth:`arguments` reads what was entered; what is wrong with it stands beside the field then.
    """

    submitted = Signal()  # Ctrl+Enter

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._schema: Any = None
        self._fields: dict[str, _Field] = {}
        self.wanted_height = 0  # pixels, for all fields or for as many as are shown at once
        self._raw = TextEdit(self.tr("Arguments as JSON"), grows=False)
        self._raw.submitted.connect(self.submitted)
        self._raw_problem = QLabel()
        self._raw_problem.hide()
        raw = QWidget()
        column = QVBoxLayout(raw)
        column.setContentsMargins(12, 0, 12, 0)
        column.addWidget(self._raw, 1)
        column.addWidget(self._raw_problem)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._area)
        self._stack.addWidget(raw)
        theme.changed.connect(self._paint)

    @property
    def is_raw(self) -> bool:
        """Whether the arguments are shown as JSON."""
        return self._stack.currentIndex() == 1

    @property
    def has_fields(self) -> bool:
        """Whether there is anything to fill in."""
        return bool(self._fields)

    def show_schema(self, schema: Any, arguments: dict[str, Any]) -> None:
        """Make the form for a schema, and fill these arguments in."""
        self._schema = schema
        rows = [row for row in parameters(schema) if property_schema(schema, row.name) is not None]
        inside = QWidget()
        column = QVBoxLayout(inside)
        column.setContentsMargins(12, 4, 12, 8)
        column.setSpacing(8)
        self._fields = {}
        for row in rows[:_FIELDS]:
            self._fields[row.name] = field = _Field(row, schema, self._theme)
            field.submitted.connect(self.submitted)
            column.addWidget(field)
        column.addStretch(1)
        self._area.setWidget(inside)
        self.wanted_height = min(inside.sizeHint().height(), _HIGHEST)
        self._area.setMinimumHeight(min(self.wanted_height, _LOWEST))
        self._fill(arguments)

    def show_raw(self, raw: bool) -> bool:
        """Show the arguments as JSON, or as fields again; false if they cannot be read for that."""
        if raw == self.is_raw:
            return True
        arguments = self.arguments(whole=False)
        if arguments is None:
            return False
        self._fill(arguments)
        self._stack.setCurrentIndex(int(raw))
        return True

    def arguments(self, *, whole: bool = True) -> dict[str, Any] | None:
        """What was entered; None if something is wrong with it, which is told. ``whole``: nothing may be missing."""
        if self.is_raw:
            return self._read_raw()
        found: dict[str, Any] = {}
        good = True
        for name, field in self._fields.items():
            text = field.text
            problem = ""
            if text:
                found[name] = read = value(text, field.types)
                if not _is_one_of(read, field.types):
                    problem = self.tr("must be {kind}").format(kind=" | ".join(sorted(field.types)))
            elif whole and field.required:
                problem = self.tr("is required")
            field.show_problem(problem)
            good = good and not problem
        if not good:
            next(field for field in self._fields.values() if field.has_problem).focus()
        return found if good else None

    def focus(self) -> None:
        """Put the cursor into the first field."""
        if self.is_raw:
            self._raw.setFocus()
        elif self._fields:
            next(iter(self._fields.values())).focus()

    def _fill(self, arguments: dict[str, Any]) -> None:
        for name, field in self._fields.items():
            field.set_text(_text(arguments[name], field.types) if name in arguments else "")
        self._raw.setPlainText(dump(arguments))

    def _read_raw(self) -> dict[str, Any] | None:
        problem = ""
        read: Any = None
        try:
            read = json.loads(self._raw.toPlainText() or "{}")
        except (ValueError, RecursionError) as error:
            problem = self.tr("This is not JSON: {why}").format(why=error)
        if not problem and not isinstance(read, dict):
            problem = self.tr("This must be a JSON object: {…}")
        self._raw_problem.setText(problem)
        self._raw_problem.setVisible(bool(problem))
        self._paint()
        return None if problem else read

    def _paint(self) -> None:
        palette = self._raw_problem.palette()
        palette.setColor(palette.ColorRole.WindowText, self._theme.color(Token.FAILED))
        self._raw_problem.setPalette(palette)


class _Field(QWidget):
    """One argument: its name, an editor that suits its type, and what is wrong."""

    submitted = Signal()

    def __init__(self, row: Parameter, schema: Any, theme: Theme) -> None:
        super().__init__()
        part = property_schema(schema, row.name)
        self._theme = theme
        self.types = types_of(part, schema)
        self.required = row.required
        label = ElidedLabel()
        label.setText(row.name)
        font = QFont(label.font())
        font.setWeight(QFont.Weight.DemiBold)
        label.setFont(font)
        self._edit = self._make(row, part)
        self._edit.setAccessibleName(row.name)
        self._edit.setAccessibleDescription(row.description)
        self._edit.setToolTip(row.description)
        self._problem = QLabel()
        self._problem.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(label)
        column.addWidget(self._edit)
        column.addWidget(self._problem)
        theme.changed.connect(self._paint)
        self._paint()

    def _make(self, row: Parameter, part: Any) -> "QComboBox | QLineEdit | TextEdit":
        hint = f"{row.type}, {self.tr('required') if row.required else self.tr('optional')}"
        if row.default:
            hint += f", {self.tr('default: {value}').format(value=row.default)}"
        choices = part.get("enum") if isinstance(part, dict) else None
        if self.types == {"boolean"}:
            choices = [True, False]
        if isinstance(choices, list) and choices:
            box = QComboBox()
            box.addItem(hint)
            box.addItems([each if isinstance(each, str) else json.dumps(each) for each in choices])
            box.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            return box
        if self.types <= {"integer", "number", "null"}:
            line = QLineEdit(placeholderText=hint)
            line.returnPressed.connect(self.submitted)
            return line
        edit = TextEdit(row.name, fixed=not self.types & {"string"})
        edit.setPlaceholderText(hint)
        edit.submitted.connect(self.submitted)
        return edit

    @property
    def text(self) -> str:
        """What was entered."""
        if isinstance(self._edit, QComboBox):
            return self._edit.currentText() if self._edit.currentIndex() > 0 else ""
        return self._edit.text() if isinstance(self._edit, QLineEdit) else self._edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Fill in a text."""
        if isinstance(self._edit, QComboBox):
            texts = [self._edit.itemText(place) for place in range(1, self._edit.count())]
            self._edit.setCurrentIndex(texts.index(text) + 1 if text in texts else 0)
        elif isinstance(self._edit, QLineEdit):
            self._edit.setText(text)
        else:
            self._edit.setPlainText(text)
        self.show_problem("")

    @property
    def has_problem(self) -> bool:
        """Whether a problem is shown."""
        return bool(self._problem.text())

    def show_problem(self, text: str) -> None:
        """Say what is wrong, or nothing."""
        self._problem.setText(text)
        self._problem.setVisible(bool(text))

    def focus(self) -> None:
        """Put the cursor here."""
        self._edit.setFocus()

    def _paint(self) -> None:
        palette = self._problem.palette()
        palette.setColor(palette.ColorRole.WindowText, self._theme.color(Token.FAILED))
        self._problem.setPalette(palette)


class TextEdit(QPlainTextEdit):
    """Plain text that is as high as it has lines. Tab goes on, Ctrl+Enter submits."""

    submitted = Signal()

    def __init__(self, name: str, *, grows: bool = True, fixed: bool = True) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setTabChangesFocus(True)
        self._grows = grows
        if fixed:
            self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        if grows:
            self.document().documentLayout().documentSizeChanged.connect(self._fit)
            self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and event.modifiers() & (
            Qt.KeyboardModifier.ControlModifier
        ):
            self.submitted.emit()
        else:
            super().keyPressEvent(event)

    def _fit(self) -> None:
        lines = min(max(1, int(self.document().documentLayout().documentSize().height())), _LINES)
        margins = 2 * (self.frameWidth() + int(self.document().documentMargin()))
        self.setFixedHeight(self.fontMetrics().lineSpacing() * lines + margins + 2)


def _text(read: Any, types: frozenset[str]) -> str:
    """A value as it is entered into a field."""
    return read if isinstance(read, str) and "string" in types else json.dumps(read, ensure_ascii=False)


def _is_one_of(read: Any, types: frozenset[str]) -> bool:
    """Whether a value is of one of the types; a text that was to be JSON is not."""
    return types == ANY or not isinstance(read, str) or "string" in types

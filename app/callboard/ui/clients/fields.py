"""Fields that the forms of clients and profiles share."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from callboard.core.errors import CallboardError
from callboard.core.policy_words import ASK_WORDS, DESTRUCTIVE, UNDECLARED
from callboard.ui.theme import Theme, Token

LINES = 3  # that a list of patterns shows at least


class PatternList(QPlainTextEdit):
    """Patterns, one a line. As high as its lines, up to a bound."""

    changed = Signal()

    def __init__(self, name: str, placeholder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setPlaceholderText(placeholder)
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.textChanged.connect(self._fit)
        self.textChanged.connect(self.changed)
        self._fit()

    def patterns(self) -> list[str]:
        """What is written, without empty lines."""
        return [line.strip() for line in self.toPlainText().splitlines() if line.strip()]

    def set_patterns(self, patterns: list[str]) -> None:
        """Show other ones."""
        self.setPlainText("\n".join(patterns))

    def _fit(self) -> None:
        lines = min(max(self.document().blockCount(), LINES), 12)
        self.setFixedHeight(self.fontMetrics().lineSpacing() * lines + 14)


class RulesFields(QWidget):
    """What may be used: allow, deny, ask, only reading."""

    changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        any_pattern = self.tr("One pattern a line, like github.* or *.search_*")
        self.allow = PatternList(self.tr("Allow"), any_pattern)
        self.deny = PatternList(self.tr("Deny"), self.tr("Goes before all that is allowed, like *.delete_*"))
        self.ask = PatternList(self.tr("Ask me first"), self.tr("Allowed only after a question, like github.merge_*"))
        self.destructive = QCheckBox(self.tr("Ask me before tools that declare that they may destroy something"))
        self.undeclared = QCheckBox(self.tr("Ask me before tools that do not declare what they do"))
        self.read_only = QCheckBox(self.tr("Only tools that declare that they only read"))
        self.marks = Marks(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        for field in (self.allow, self.deny, self.ask):
            label = QLabel(field.accessibleName())
            label.setBuddy(field)
            column.addWidget(label)
            column.addWidget(field)
            column.addWidget(self.marks.below(field))
            column.addSpacing(6)
            field.changed.connect(self.changed)
        for box in (self.destructive, self.undeclared, self.read_only):
            column.addWidget(box)
            box.toggled.connect(self.changed)
        help_text = self.tr(
            "A pattern is SERVER.NAME, with * for anything. It holds for tools, prompts and resources alike, unless it "
            "begins with tool:, prompt: or resource:. A resource's name is its URI."
        )
        column.addSpacing(4)
        column.addWidget(MutedLabel(theme, help_text))

    def show_rules(self, written: dict[str, object], *, allow: list[str]) -> None:
        """Show rules as they stand in the roster; ``allow`` is what holds where they say nothing."""
        ask = _texts(written.get("ask", [DESTRUCTIVE]))
        self.allow.set_patterns(_texts(written.get("allow", allow)))
        self.deny.set_patterns(_texts(written.get("deny", [])))
        self.ask.set_patterns([pattern for pattern in ask if pattern not in ASK_WORDS])
        self.destructive.setChecked(DESTRUCTIVE in ask)
        self.undeclared.setChecked(UNDECLARED in ask)
        self.read_only.setChecked(bool(written.get("read_only")))

    def rules(self, *, allow: list[str]) -> dict[str, object]:
        """The rules for the roster: only what differs from what holds anyway."""
        words = [(DESTRUCTIVE, self.destructive), (UNDECLARED, self.undeclared)]
        ask = [word for word, box in words if box.isChecked()] + self.ask.patterns()
        rules: dict[str, object] = {}
        if self.allow.patterns() != allow:
            rules["allow"] = self.allow.patterns()
        if self.deny.patterns():
            rules["deny"] = self.deny.patterns()
        if ask != [DESTRUCTIVE]:
            rules["ask"] = ask
        if self.read_only.isChecked():
            rules["read_only"] = True
        return rules


class FormFoot(QWidget):
    """What is wrong, and the buttons that save or take back."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problem = ProblemLabel(theme)
        self.save = QPushButton(self.tr("Save"))
        self.revert = QPushButton(self.tr("Discard changes"))
        row = QHBoxLayout()
        row.addWidget(self.save)
        row.addWidget(self.revert)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.problem)
        column.addLayout(row)
        self.set_changed(False)

    def set_changed(self, changed: bool) -> None:
        """Whether there is something to save."""
        self.save.setEnabled(changed)
        self.revert.setEnabled(changed)

    def show_problem(self, text: str) -> None:
        """Say what is wrong; "" for nothing."""
        self.problem.say(text)


class Marks:
    """Says beside the fields of a form what the engine finds wrong with them."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._labels: dict[QWidget, ProblemLabel] = {}

    def below(self, field: QWidget) -> "ProblemLabel":
        """The place for a field's problem, to be laid out below it."""
        self._labels[field] = label = ProblemLabel(self._theme)
        return label

    def clear(self) -> None:
        """Nothing is wrong any more."""
        for field, label in self._labels.items():
            label.say("")
            field.setAccessibleDescription("")

    def show_error(self, error: CallboardError, entry: dict[str, Any], fields: Mapping[str, QWidget]) -> str:
        """Mark what an error tells of, and put the cursor there; returns what is to be said of the whole form.

        ``entry`` is what was to be saved, ``fields`` has the field of each of its keys.
        """
        self.clear()
        marked: list[QWidget] = []
        for problem in error.data.get("problems", []):
            key, _, rest = problem["field"].removeprefix("policy.").partition(".")
            field = fields.get(key)
            if field is None:
                continue
            text = problem["message"]
            written = entry.get("policy", entry).get(key)
            if isinstance(written, list) and rest.isdecimal() and int(rest) < len(written):
                text = f"{written[int(rest)]}: {text}"
            if field not in marked:
                self._labels[field].say(text)
                field.setAccessibleDescription(text)
                marked.append(field)
        if not marked:
            return f"{error.message} {error.fix}".strip()
        marked[0].setFocus()
        names = ", ".join(field.accessibleName() for field in marked)
        return QCoreApplication.translate("FormFoot", "Not saved. Correct: {fields}").format(fields=names)


class ProblemLabel(QLabel):
    """What is wrong; not there while nothing is."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._theme = theme
        theme.changed.connect(self._paint)
        self._paint()
        self.hide()

    def say(self, text: str) -> None:
        """Say something else; "" for nothing."""
        self.setText(text)
        self.setVisible(bool(text))

    def _paint(self) -> None:
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.FAILED))
        self.setPalette(palette)


class MutedLabel(QLabel):
    """A second line of text."""

    def __init__(self, theme: Theme, text: str = "") -> None:
        super().__init__(text, wordWrap=True, textFormat=Qt.TextFormat.PlainText)
        self._theme = theme
        theme.changed.connect(self._paint)
        self._paint()

    def _paint(self) -> None:
        palette = QPalette(self.palette())
        palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.MUTED))
        self.setPalette(palette)


def heading(text: str, *, scale: float = 1.0) -> QLabel:
    """A title in bold."""
    label = QLabel(text, textFormat=Qt.TextFormat.PlainText)
    font = QFont(label.font())
    font.setPointSizeF(font.pointSizeF() * scale)
    font.setWeight(QFont.Weight.DemiBold)
    label.setFont(font)
    return label


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []

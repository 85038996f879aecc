"""One thing that a server of a registry asks for."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from callboard.core.registry import Input
from callboard.ui.editor.fields import PathField, plain_text
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, CalmComboBox, ProblemLabel, ToneLabel, clear_margins, icon_button
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.secret_line import SecretLine
from callboard.ui.theme import Token


class InputRow(QWidget):
    """Label, editor, explanation and problem of one input."""

    changed = Signal()

    def __init__(self, kit: Kit, desk: SecretDesk, asked: Input) -> None:
        super().__init__()
        self._kit, self._desk = kit, desk
        self.asked = asked
        self._stored = ""  # the name of a stored secret that shall be used
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(3)
        title = asked.title if asked.required else self.tr("{title} (optional)").format(title=asked.title)
        self._label = QLabel(title)
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setWordWrap(True)
        column.addWidget(self._label)
        self.editor = self._make_editor(title)
        self._label.setBuddy(self.editor)
        self.setFocusProxy(self.editor)
        column.addLayout(self._with_chooser())
        help_text = ToneLabel(kit.theme, Token.MUTED, scale=0.92)
        help_text.setText(asked.description)
        help_text.setVisible(bool(asked.description))
        column.addWidget(help_text)
        self._note = ToneLabel(kit.theme, Token.MUTED, scale=0.92)
        self._note.hide()
        column.addWidget(self._note)
        self._problem = ProblemLabel(kit.theme, kit.icons)
        column.addWidget(self._problem)

    @property
    def answers(self) -> list[str]:
        """What is entered, without empty texts."""
        editor = self.editor
        if isinstance(editor, CalmComboBox):
            texts = [str(editor.currentData() or "")]
        elif isinstance(editor, QPlainTextEdit):
            texts = [line.strip() for line in editor.toPlainText().splitlines()]
        elif isinstance(editor, PathField):
            texts = [editor.state()]
        else:
            assert isinstance(editor, QLineEdit)
            texts = [editor.text()]
        return [text for text in texts if text.strip()]

    @property
    def stored(self) -> str:
        """The name of a stored secret that is to be used, "" for none."""
        return self._stored if not self.answers else ""

    @property
    def is_given(self) -> bool:
        """Whether there is a value, entered or stored."""
        return bool(self.answers or self.stored)

    def show_problem(self, text: str) -> None:
        """Show what is wrong, or nothing."""
        self._problem.set_text(text)
        self.editor.setAccessibleDescription(text or self.asked.description)

    # building

    def _make_editor(self, title: str) -> QWidget:
        asked = self.asked
        if asked.secret:
            return self._make_secret(title)
        if asked.choices or asked.kind == "boolean":
            return self._make_choice(title)
        if asked.multiple:
            lines = plain_text(title, 3, self.changed.emit, fixed=asked.kind in ("file", "folder"))
            lines.setPlainText("\n".join(asked.default))
            lines.setPlaceholderText(self.tr("one on each line"))
            return lines
        default = next(iter(asked.default), "")
        if asked.kind in ("file", "folder"):
            path = PathField(self._kit, title, folder=asked.kind == "folder", placeholder=asked.placeholder)
            path.load(default or None)
            path.changed.connect(self.changed)
            return path
        line = QLineEdit(default)
        line.setPlaceholderText(asked.placeholder)
        line.setAccessibleName(title)
        line.textChanged.connect(self.changed)
        return line

    def _with_chooser(self) -> QHBoxLayout:
        """The editor, and a button that adds a path to several."""
        row = QHBoxLayout()
        row.setSpacing(GAP)
        row.addWidget(self.editor, 1)
        if isinstance(self.editor, QPlainTextEdit) and self.asked.kind in ("file", "folder"):
            folder = self.asked.kind == "folder"
            name = self.tr("Add a folder") if folder else self.tr("Add a file")
            button = icon_button(self._kit.icons, "folder", f"{name}: {self.asked.title}", self._choose)
            row.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        return row

    def _choose(self) -> None:
        dialog = QFileDialog(self, self.asked.title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        is_folder = self.asked.kind == "folder"
        dialog.setFileMode(QFileDialog.FileMode.Directory if is_folder else QFileDialog.FileMode.ExistingFile)
        dialog.fileSelected.connect(self.add_path)
        dialog.open()

    def add_path(self, path: str) -> None:
        """Add a chosen path to those that are there."""
        assert isinstance(self.editor, QPlainTextEdit)
        self.editor.setPlainText("\n".join([*self.answers, path]))

    def _make_choice(self, title: str) -> CalmComboBox:
        asked = self.asked
        box = CalmComboBox()
        box.setAccessibleName(title)
        words = {"true": self.tr("Yes"), "false": self.tr("No")} if asked.kind == "boolean" else {}
        default = next(iter(asked.default), "")
        if not default or not asked.required:
            box.addItem(self.tr("Choose…") if asked.required else self.tr("(not set)"), "")
        for choice in asked.choices or words:
            box.addItem(words.get(choice, choice), choice)
        box.setCurrentIndex(max(box.findData(default), 0))
        box.currentIndexChanged.connect(lambda _index: self.changed.emit())
        return box

    def _make_secret(self, title: str) -> SecretLine:
        line = SecretLine(self._kit, self._desk)
        line.set_secret(True)
        line.setAccessibleName(title)
        line.setPlaceholderText(self.asked.placeholder)
        line.setText(next(iter(self.asked.default), ""))
        line.textChanged.connect(self.changed)
        line.chosen.connect(self._use)
        return line

    def _use(self, name: str) -> None:
        self._stored = name
        assert isinstance(self.editor, SecretLine)
        self.editor.clear()
        self._note.setText(self.tr("The stored secret {name} is used.").format(name=name))
        self._note.show()
        self.changed.emit()

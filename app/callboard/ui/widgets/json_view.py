"""JSON as a person reads it."""

import re

from PySide6.QtGui import QFontDatabase, QSyntaxHighlighter, QTextCharFormat, QTextDocument, QTextOption
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QWidget

from callboard.ui.theme import Theme, Token

_COLORED = 32_768  # characters; colouring a longer text would be felt
_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf"(?P<key>{_STRING}(?=\s*:))|(?P<string>{_STRING})|(?P<word>\b(?:true|false|null)\b)")


class JsonView(QPlainTextEdit):
    """Read-only text in the font of programs, with the names of JSON's members set apart."""

    def __init__(self, theme: Theme, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUndoRedoEnabled(False)
        self.setTabChangesFocus(True)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.setAccessibleName(name)
        self._colors = _Colors(theme, self.document())

    def show_text(self, text: str, *, colored: bool = True) -> None:
        """Show a text; scrolls to its start if it is another one."""
        if text != self.toPlainText():
            self._colors.on = colored and len(text) <= _COLORED
            self.setPlainText(text)


class _Colors(QSyntaxHighlighter):
    """Colours of names, strings and words."""

    def __init__(self, theme: Theme, document: QTextDocument) -> None:
        super().__init__(document)
        self._theme = theme
        self.on = True
        theme.changed.connect(self.rehighlight)

    def highlightBlock(self, text: str) -> None:
        if not self.on:
            return
        for found in _TOKEN.finditer(text):
            kind = found.lastgroup
            token = {"key": Token.LINK, "string": Token.FINE}.get(kind or "", Token.ATTENTION)
            colors = QTextCharFormat()
            colors.setForeground(self._theme.color(token))
            self.setFormat(found.start(), found.end() - found.start(), colors)

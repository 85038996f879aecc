"""Arguments or result of a call."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from callboard.ui.icons import Icons
from callboard.ui.models.payload import readable
from callboard.ui.models.pretty import pretty
from callboard.ui.theme import Theme, Token
from callboard.ui.widgets.copy_button import CopyButton
from callboard.ui.widgets.json_view import JsonView


class PayloadView(QWidget):
    """A title, a note, and the payload: indented JSON, or, where there is one, the readable text inside it."""

    def __init__(
        self, theme: Theme, icons: Icons, title: str, parent: QWidget | None = None, *, framed: bool = False
    ) -> None:
        """``framed``: it stands inside the margins of a dialog, and needs none of its own."""
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self._readable = ""
        self._as_json = False  # what the person chose
        self._title = QLabel(title)
        font = QFont(self._title.font())
        font.setWeight(QFont.Weight.DemiBold)
        self._title.setFont(font)
        self._note = QLabel()
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._note.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._json = QPushButton(self.tr("JSON"))
        self._json.setCheckable(True)
        self._json.setToolTip(self.tr("Show the whole JSON"))
        self._json.toggled.connect(self._choose)
        self._copy = CopyButton(icons, self.tr("Copy {title}").format(title=title.lower()), lambda: self._text)
        self._view = JsonView(theme, title)
        bar = QHBoxLayout()
        bar.setContentsMargins(0 if framed else 12, 4, 0 if framed else 8, 4)
        bar.setSpacing(8)
        bar.addWidget(self._title)
        bar.addWidget(self._note, 1)
        bar.addWidget(self._json)
        bar.addWidget(self._copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(bar)
        layout.addWidget(self._view, 1)
        self.setMinimumHeight(90)
        theme.changed.connect(self._paint_note)
        self._paint_note()

    @property
    def shown(self) -> str:
        """The text that is shown."""
        return self._view.toPlainText()

    def show_payload(self, text: str, note: str = "", *, always_json: bool = False) -> None:
        """Show a payload as it was stored; ``note`` is its size, or why it is not whole or not there.

        ``always_json``: also where there is readable text in it, beside which something may stand that matters.
        """
        self._text = text
        self._readable = readable(text) if text and not always_json else ""
        self._note.setText(note)
        self._note.setToolTip(note)
        self._copy.setEnabled(bool(text))
        self._json.setVisible(bool(self._readable))
        self._show()

    def _choose(self, as_json: bool) -> None:
        self._as_json = as_json
        self._show()

    def _show(self) -> None:
        if self._readable and not self._as_json:
            self._view.show_text(self._readable, colored=self._readable.startswith(("{", "[")))
        else:
            self._view.show_text(pretty(self._text) if self._text else "")

    def _paint_note(self) -> None:
        palette = QPalette(self._note.palette())
        palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.MUTED))
        self._note.setPalette(palette)

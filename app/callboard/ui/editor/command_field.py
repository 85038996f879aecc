"""The command of a local server."""

from PySide6.QtCore import QSignalBlocker, Signal

from callboard.core.health import Severity
from callboard.ui.editor.entry_model import CommandLine, split_command_line
from callboard.ui.editor.fields import TextField
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import InlineNotice, put_in, question, take_out


class CommandField(TextField):
    """One program. A whole command line that is entered here is taken apart, once the person agrees."""

    was_split = Signal(object)  # CommandLine: its arguments and variables belong elsewhere

    def __init__(self, kit: Kit, label: str, *, required: str) -> None:
        super().__init__(label, required=required, placeholder="npx, uvx, docker, /usr/bin/python3", fixed=True)
        self._kit = kit
        self._kept = ""
        self._question: InlineNotice | None = None
        self.edit.textChanged.connect(self._look)

    @property
    def question(self) -> InlineNotice | None:
        """The open question."""
        return self._question

    def _look(self, text: str) -> None:
        self._close()
        if self._quiet or text == self._kept:
            return
        line = split_command_line(text)
        if line is None:
            return
        say = self.tr("This looks like a whole command line. Split it into command and arguments?")
        if line.shell_word:
            say += " " + self.tr("Mind “{word}”: it means something to a shell, but none is started.").format(
                word=line.shell_word
            )
        answers = [(self.tr("Split"), lambda: self._split(line)), (self.tr("Keep as one command"), self._keep)]
        self._question = question(self._kit.theme, self._kit.icons, say, answers, severity=Severity.BUSY)
        put_in(self._below, self._question)

    def _split(self, line: CommandLine) -> None:
        self._close()
        with QSignalBlocker(self.edit):
            self.edit.setText(line.command)
        self.edit.setFocus()
        self.was_split.emit(line)
        self._touched()

    def _keep(self) -> None:
        self._kept = self.edit.text()
        self._close()
        self.edit.setFocus()

    def _close(self) -> None:
        if self._question is not None:
            take_out(self._below, self._question)
            self._question = None

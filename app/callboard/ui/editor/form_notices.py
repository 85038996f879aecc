"""What a form has to say about itself, above its fields."""

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from callboard.api.schema import FieldProblem, RosterView, SecretsView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, InlineNotice, put_in, question, take_out
from callboard.ui.notice_bar import announce

Answers = Sequence[tuple[str, Callable[[], object]]]


class FormNotices(QWidget):
    """Notices by key, at most one of each, in the order in which they came. Takes no room while there is none."""

    def __init__(self, kit: Kit) -> None:
        super().__init__()
        self._kit = kit
        self._notices: dict[str, InlineNotice] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 12, 16, 0)
        self._column.setSpacing(GAP)
        self.hide()

    def put(self, key: str, text: str, severity: Severity, answers: Answers = ()) -> InlineNotice:
        """Show a notice in place of one with the same key."""
        old = self._notices.get(key)
        if old is not None and old.text == text and not answers:
            return old
        self.drop(key)
        notice = question(self._kit.theme, self._kit.icons, text, list(answers), severity=severity)
        self._notices[key] = notice
        put_in(self._column, notice)
        self.show()
        announce(self, text)
        return notice

    def put_error(self, key: str, error: CallboardError) -> None:
        """Show what failed, with its fix."""
        fix = "" if error.fix == error.message else error.fix
        self.put(key, f"{error.message}\n{fix}".strip(), Severity.FAILED)

    def say_standing(
        self,
        secrets: SecretsView | None,
        roster: RosterView | None,
        homeless: Sequence[FieldProblem],
        *,
        holds_secrets: bool,
    ) -> None:
        """Notices that hold as long as their cause does: no keyring, a broken file, problems of no field."""
        texts: dict[str, tuple[str, Severity]] = {}
        if secrets is not None and secrets.kind == "session" and holds_secrets:
            text = self.tr("No keyring: secrets are kept until the engine ends.")
            texts["store"] = (f"{text} {secrets.fix}".strip(), Severity.ATTENTION)
        if roster is not None and roster.problem is not None:
            texts["roster"] = (f"{roster.problem.message}\n{roster.problem.fix}".strip(), Severity.FAILED)
        if homeless:
            lines = [f"{item.field}: {item.message}" if item.field else item.message for item in homeless]
            texts["entry"] = ("\n".join(lines), Severity.FAILED)
        for key in ("store", "roster", "entry"):
            if key in texts:
                self.put(key, *texts[key])
            else:
                self.drop(key)

    def drop(self, key: str) -> None:
        """Take a notice away."""
        notice = self._notices.pop(key, None)
        if notice is not None:
            take_out(self._column, notice)
        self.setVisible(bool(self._notices))

    def text(self, key: str) -> str:
        """What the notice says, "" where there is none."""
        notice = self._notices.get(key)
        return notice.text if notice is not None else ""

    def notice(self, key: str) -> InlineNotice | None:
        """The notice itself."""
        return self._notices.get(key)

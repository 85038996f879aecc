"""Brings the questions of the engine before the person, and the answers back."""

from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from callboard.api.client import EngineClient
from callboard.api.policy_schema import Choice, QuestionView
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.ui.engine_link import EngineLink
from callboard.ui.notice_bar import Notice, NoticeAction, NoticeBar
from callboard.ui.question_dialog import QuestionDialog

NOTICE = "questions"


class QuestionDesk(QObject):
    """A dialog that comes up by itself with each new question, and a notice above the page for one that was closed.

    The tray's menu opens it too. Belongs to the window's thread.
    """

    failed = Signal(object)  # CallboardError

    def __init__(self, link: EngineLink, bar: NoticeBar, make: Callable[[], QuestionDialog]) -> None:
        """``make`` makes the dialog when the first question comes."""
        super().__init__(bar)
        self._link = link
        self._bar = bar
        self._make = make
        self._dialog: QuestionDialog | None = None
        self._seen = 0  # the newest question that came up by itself
        link.questionsChanged.connect(self._changed)

    @property
    def dialog(self) -> QuestionDialog | None:
        """The dialog, once there was a question."""
        return self._dialog

    def show(self) -> None:
        """Bring the oldest question up; the person asked for it."""
        if self._link.questions:
            dialog = self._ready()
            dialog.show_questions(self._link.questions)
            dialog.show()
            dialog.raise_()
            dialog.activateWindow()

    def close(self) -> None:
        """The window ends."""
        if self._dialog is not None:
            self._dialog.close()
            self._dialog.deleteLater()
            self._dialog = None

    def _changed(self, questions: list[QuestionView]) -> None:
        if not questions:
            self._seen = 0  # another engine counts anew
            self._bar.drop(NOTICE)
            if self._dialog is not None:
                self._dialog.show_questions([])
            return
        self._put_notice(questions)
        newest = max(question.id for question in questions)
        dialog = self._ready()
        dialog.show_questions(questions)
        if newest > self._seen:
            dialog.show()
            dialog.raise_()
        self._seen = newest

    def _put_notice(self, questions: list[QuestionView]) -> None:
        first = questions[0]
        text = self.tr("{client} waits for your permission to use {item}.")
        text = text.format(client=first.client_name, item=f"{first.server}.{first.name}")
        more = self.tr("%n more waiting", "", len(questions) - 1) if len(questions) > 1 else ""
        answer = NoticeAction(self.tr("Answer…"), self.show)
        self._bar.put(Notice(NOTICE, Severity.ATTENTION, text, more, (answer,)))

    def _ready(self) -> QuestionDialog:
        if self._dialog is None:
            self._dialog = self._make()
            self._dialog.answered.connect(self._answer)
        return self._dialog

    def _answer(self, question: int, choice: Choice) -> None:
        async def ask(client: EngineClient) -> None:
            await client.policy.answer(question, choice)

        self._link.request(ask, None, self._not_answered, owner=self, name="answer a question")

    def _not_answered(self, error: CallboardError) -> None:
        if error.code != "question-over":  # the engine tells of that by itself
            self.failed.emit(error)

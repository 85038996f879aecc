"""The window that asks: may this client make this call?"""

import time

from PySide6.QtCore import QCoreApplication, Qt, QTimer, Signal
from PySide6.QtGui import QFont, QKeyEvent, QPalette
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from callboard.api.policy_schema import Choice, QuestionView
from callboard.core.health import Severity
from callboard.ui import formats
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme, Token
from callboard.ui.widgets.payload_view import PayloadView
from callboard.ui.widgets.reason_bar import ReasonBar

GUARD_MS = 700  # for which a new question cannot be allowed: whoever was about to click meant something else
_STEPS = 1000
_TITLE = 100  # characters of a name in the title; all that is known of it stands below


class QuestionDialog(QDialog):
    """Shows the oldest open question. It comes up without taking the keyboard from what the person does.

    Closing it answers nothing: the call goes on waiting. There is no default button, so that Enter allows nothing.
    """

    answered = Signal(int, str)  # the question's id, and a Choice

    def __init__(self, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Dialog | Qt.WindowType.WindowStaysOnTopHint)
        self.setAttribute(Qt.WidgetAttribute.WA_ShowWithoutActivating)
        self.setMinimumWidth(480)
        self.resize(560, 380)
        self._theme = theme
        self._question: QuestionView | None = None
        self.title = _label(bold=True)
        self.reason = _label()
        self.who = _label()
        self.item = _label()
        self.more = _label()
        self.left = _label()
        self.bar = QProgressBar(textVisible=False)
        self.cut = ReasonBar(theme)
        self.arguments = PayloadView(theme, icons, self.tr("Arguments"), framed=True)
        self.deny = QPushButton(self.tr("&Deny"))
        self.once = QPushButton(self.tr("Allow &once"))
        self.always = QPushButton(self.tr("&Always for this client and tool"))
        self._clock = QTimer(self, interval=250)
        self._guard = QTimer(self, interval=GUARD_MS, singleShot=True)
        self._lay_out()
        self._connect()
        self._paint()

    @property
    def question(self) -> QuestionView | None:
        """What is asked."""
        return self._question

    def show_questions(self, questions: list[QuestionView]) -> None:
        """Ask the oldest of these, and say how many more wait; with none left the dialog goes."""
        if not questions:
            self._question = None
            self.hide()
            return
        first, waiting = questions[0], len(questions) - 1
        self.more.setText(
            QCoreApplication.translate("QuestionDialog", "%n more waiting", None, waiting) if waiting else ""
        )
        if self._question is None or self._question.id != first.id:
            self._question = first
            self._fill(first)
            self._set_allowing(False)
            self._guard.start()
        self._tick()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses nothing but the button that has the focus."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            focused = self.focusWidget()
            if isinstance(focused, QPushButton) and focused.isEnabled():
                focused.click()
            return
        super().keyPressEvent(event)

    def _fill(self, question: QuestionView) -> None:
        name = question.name
        if len(name) > _TITLE:
            name = f"{name[: _TITLE // 2]}\N{HORIZONTAL ELLIPSIS}{name[-_TITLE // 2 :]}"
        server_item = f"{question.server}.{name}"
        title = self.tr("May {client} use {item}?").format(client=question.client_name, item=server_item)
        self.setWindowTitle(self.tr("Callboard asks"))
        self.title.setText(title)
        why = self.tr("You are asked because this {kind} {reason}.")
        self.reason.setText(why.format(kind=kind_word(question.kind), reason=reason_words(question.reason)))
        self.who.setText(question.client_name)
        if question.program not in (question.client, question.client_name):
            text = self.tr(
                "{client}; it calls itself \N{LEFT DOUBLE QUOTATION MARK}{program}\N{RIGHT DOUBLE QUOTATION MARK}"
            )
            self.who.setText(text.format(client=question.client_name, program=question.program[:100]))
        self.item.setText(self.tr("{name} of the server {server}").format(name=question.name, server=question.server))
        self.cut.show_reason(*self._what_is_cut(question), Severity.ATTENTION)
        self.arguments.show_payload(question.arguments or "{}", always_json=True)
        self.always.setToolTip(
            self.tr("Only for calls whose arguments are shown whole") if question.arguments_cut else ""
        )
        self.setAccessibleName(title)
        self.deny.setFocus(Qt.FocusReason.OtherFocusReason)

    def _what_is_cut(self, question: QuestionView) -> tuple[str, str]:
        if not question.arguments_cut:
            return "", ""
        reason = self.tr("You do not see all of this call: its arguments have {count} characters.")
        fix = self.tr("Their beginning and their end are shown. It can be allowed once, but not for good.")
        return reason.format(count=f"{question.arguments_size:,}"), fix

    def _tick(self) -> None:
        question = self._question
        if question is None:
            return
        whole, left = question.expires - question.asked, max(0.0, question.expires - time.time())
        self.bar.setValue(round(_STEPS * left / whole) if whole > 0 else 0)
        text = self.tr("{time} left, then the call is refused")
        self.left.setText(text.format(time=formats.uptime(left)))

    def _set_allowing(self, on: bool) -> None:
        self.once.setEnabled(on)
        self.always.setEnabled(on and self._question is not None and not self._question.arguments_cut)

    def _answer(self, choice: Choice) -> None:
        if self._question is not None:
            self.answered.emit(self._question.id, choice)

    # building

    def _lay_out(self) -> None:
        self.bar.setRange(0, _STEPS)
        self.bar.setFixedHeight(4)
        self.bar.setAccessibleName(self.tr("Time left"))
        facts = QGridLayout()
        facts.setHorizontalSpacing(12)
        facts.setVerticalSpacing(4)
        self._names = []
        for row, (name, value) in enumerate(((self.tr("Client"), self.who), (self.tr("Wants"), self.item))):
            label = QLabel(name)
            self._names.append(label)
            facts.addWidget(label, row, 0, Qt.AlignmentFlag.AlignTop)
            facts.addWidget(value, row, 1)
        facts.setColumnStretch(1, 1)
        buttons = QHBoxLayout()
        for button in (self.deny, self.once, self.always):
            button.setAutoDefault(False)
        buttons.addWidget(self.more)
        buttons.addStretch(1)
        for button in (self.deny, self.once, self.always):
            buttons.addWidget(button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(16, 16, 16, 14)
        layout.setSpacing(10)
        layout.addWidget(self.title)
        layout.addWidget(self.reason)
        layout.addLayout(facts)
        layout.addWidget(self.cut)
        layout.addWidget(self.arguments, 1)
        layout.addWidget(self.bar)
        layout.addWidget(self.left)
        layout.addLayout(buttons)

    def _connect(self) -> None:
        self.deny.clicked.connect(lambda: self._answer("deny"))
        self.once.clicked.connect(lambda: self._answer("once"))
        self.always.clicked.connect(lambda: self._answer("always"))
        self._clock.timeout.connect(self._tick)
        self._guard.timeout.connect(lambda: self._set_allowing(True))
        self._theme.changed.connect(self._paint)

    def _paint(self) -> None:
        for label in (*self._names, self.left, self.more):
            palette = QPalette(label.palette())
            palette.setColor(QPalette.ColorRole.WindowText, self._theme.color(Token.MUTED))
            label.setPalette(palette)

    def showEvent(self, event: object) -> None:
        """Count only while somebody can see it."""
        super().showEvent(event)  # type: ignore[arg-type]
        self._clock.start()

    def hideEvent(self, event: object) -> None:
        """Stop counting."""
        super().hideEvent(event)  # type: ignore[arg-type]
        self._clock.stop()


def _label(*, bold: bool = False) -> QLabel:
    label = QLabel(wordWrap=True, textFormat=Qt.TextFormat.PlainText)  # names come from servers and clients
    if bold:
        font = QFont(label.font())
        font.setPointSizeF(font.pointSizeF() * 1.15)
        font.setWeight(QFont.Weight.DemiBold)
        label.setFont(font)
    return label


def kind_word(kind: str) -> str:
    """What a kind of item is called."""
    tr = QCoreApplication.translate
    words = {"tool": tr("Policy", "tool"), "prompt": tr("Policy", "prompt"), "resource": tr("Policy", "resource")}
    return words.get(kind, kind)


def reason_words(reason: str) -> str:
    """The engine's reasons, translated; one with a pattern in it stays as it is."""
    tr = QCoreApplication.translate
    words = {
        "declares that it may destroy something": tr("Policy", "declares that it may destroy something"),
        "does not declare what it does": tr("Policy", "does not declare what it does"),
        "is in no list of its server": tr("Policy", "is in no list of its server"),
        "is not allowed": tr("Policy", "is not allowed"),
        "is not in the profile": tr("Policy", "is not in the profile"),
        "does not declare that it only reads": tr("Policy", "does not declare that it only reads"),
    }
    return words.get(reason, reason)

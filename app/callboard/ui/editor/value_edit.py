"""One value of an entry: plain text, a secret being entered, or a secret that is stored."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QStackedWidget, QVBoxLayout, QWidget

from callboard.ui.editor.entry_model import as_text, has_reference, reference, referred_secret
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, IconLabel, clear_margins, fixed_font
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.secret_line import SecretLine
from callboard.ui.editor.value_remarks import ValueRemarks
from callboard.ui.theme import Token
from callboard.ui.widgets.elided_label import ElidedLabel


@dataclass(frozen=True)
class ValueState:
    """What a :class:`ValueEdit` shows. ``stored``: the secret that the entry names; ``replacing``: its value is being
    entered anew; ``name``: the name that a new secret will get.
    """

    text: str = field(default="", repr=False)
    secret: bool = False
    stored: str = ""
    replacing: bool = False
    name: str = ""


class ValueEdit(QWidget):
    """Edits one value; the text of a secret leaves it only through :meth:`pending`.

    A stored secret is never read back: its name is shown, and a new value can be entered in its place. With
    ``always_secret`` there is no plain text. ``key`` names the field that the value belongs to, from which a new
    secret's name is made. ``remarks`` stand below, unless they are given and so placed by somebody else.
    """

    changed = Signal()

    def __init__(
        self,
        kit: Kit,
        desk: SecretDesk,
        key: Callable[[], str],
        *,
        always_secret: bool = False,
        remarks: ValueRemarks | None = None,
    ) -> None:
        super().__init__()
        self._kit, self._desk, self._key = kit, desk, key
        self._always_secret = always_secret
        self._raw: Any = None
        self._now = self._clean = ValueState(secret=always_secret)
        self._declined = ""
        self._named_after = ("", "")  # server and field that the new secret's name was made from
        self._shown_as_secret = False
        self.edit = SecretLine(kit, desk)
        self.edit.textEdited.connect(self._typed)
        self.edit.chosen.connect(self._use)
        self._build_stored()
        self._stack = QStackedWidget()
        self._stack.addWidget(self.edit)
        self._stack.addWidget(self._stored)
        self._stack.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.edit.setMinimumHeight(self._stack.sizeHint().height())
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(3)
        column.addWidget(self._stack)
        self.remarks = remarks or ValueRemarks(kit)
        self.remarks.keep_pressed.connect(self._keep_stored)
        if remarks is None:
            column.addWidget(self.remarks)
        self.setFocusProxy(self.edit)
        desk.changed.connect(self._refresh)
        self._refresh()

    # what the entry holds

    def load(self, raw: Any) -> None:
        """Show a value as it stands in the entry (None: nothing)."""
        self._raw = raw
        text = "" if raw is None else as_text(raw)
        stored = referred_secret(text)
        self._desk.release(self)
        self.remarks.withdraw()
        self._now = ValueState("" if stored else text, bool(stored) or self._always_secret, stored)
        self._clean = self._now
        self._refresh()

    def value(self) -> Any:
        """What the entry shall hold: text, or a reference; None where nothing was there and nothing was entered."""
        now = self._now
        if now == self._clean:
            return self._raw
        if not now.secret:
            return now.text
        if now.text:
            return reference(now.stored or now.name)
        return reference(now.stored) if now.stored else ("" if self._raw is not None else None)

    def pending(self) -> tuple[str, str] | None:
        """Name and value of the secret to be stored, None where there is none."""
        now = self._now
        return (now.stored or now.name, now.text) if now.secret and now.text else None

    @property
    def state(self) -> ValueState:
        """Everything that was entered, to be brought back by :meth:`restore`."""
        now = self._now
        return replace(now, replacing=False) if now.replacing and not now.text else now

    def restore(self, state: ValueState) -> None:
        """Show what :attr:`state` was."""
        if state.secret and not state.stored:
            name = self._claim(state.name) if state.name else ""
            state = ValueState(state.text, True, "", False, name)
        self._now = state
        self._refresh()

    def expect(self, text: str) -> bool:
        """The secret that the entry names is a new one, whose value is ``text`` or has yet to be entered.

        False if the entry names none here.
        """
        stored = self._now.stored
        if not stored:
            return False
        self._set(ValueState(text, True, "", False, self._claim(stored)))
        return True

    @property
    def is_secret(self) -> bool:
        """Whether the value belongs, or will belong, into the secret store."""
        return self._now.secret

    @property
    def is_missing(self) -> bool:
        """Whether the entry names a secret that is known to have no value, and none was entered."""
        now = self._now
        return bool(now.stored) and not now.text and self._desk.is_missing(now.stored)

    @property
    def text(self) -> str:
        """The text that is being entered."""
        return self._now.text

    def set_text(self, text: str) -> None:
        """Enter plain text for the person."""
        self._set(ValueState(text, self._always_secret))

    def set_secret(self, secret: bool) -> None:
        """Turn the value into a secret, or into plain text; what was typed stays, what is stored is not read back."""
        now, clean = self._now, self._clean
        if secret == now.secret:
            return
        if not secret:
            self._desk.release(self)
            self._set(ValueState(now.text))
        elif clean.stored and not now.text:
            self._set(clean)
        else:
            self._set(ValueState(now.text, True, "", False, self._claim()))

    def rename_secret(self) -> None:
        """The server or the field got another name: a secret that is not stored yet follows."""
        now = self._now
        if now.secret and not now.stored and now.name and self._named_after != (self._desk.server, self._key()):
            self._set(replace(now, name=self._claim()))

    # problems and offers

    def local_problem(self) -> str:
        """What is wrong with the value as far as can be told here."""
        now = self._now
        if not now.secret:
            return ""
        if now.text and has_reference(now.text):
            return self.tr("A secret is taken literally: ${…} in it is not replaced.")
        if not now.text and not now.stored and not self._always_secret:
            return self.tr("Enter the secret's value.")
        return ""

    def show_problem(self, text: str) -> None:
        """Show what is wrong, or nothing."""
        self.remarks.set_problem(text)
        self.edit.setAccessibleDescription(text)

    def offer_secret(self, wanted_name: str) -> None:
        """Ask whether the value should go into the secret store; not again for a value that was to be left."""
        if self._now.secret or not self._now.text or self._now.text == self._declined or self.remarks.offer:
            return
        ask, verb = {
            "keyring": (self.tr("This looks like a token. Keep it in the keyring?"), self.tr("Keep in keyring")),
            "vault": (self.tr("This looks like a token. Keep it in the vault?"), self.tr("Keep in vault")),
            "session": (
                self.tr("This looks like a token. Keep it out of the file? You would enter it again next time."),
                self.tr("Keep out of the file"),
            ),
        }[self._desk.store]

        def accept() -> None:
            name = self._claim(wanted_name)
            self.edit.setFocus(Qt.FocusReason.OtherFocusReason)
            self._set(ValueState(self._now.text, True, "", False, name))

        def leave() -> None:
            self._declined = self._now.text
            self.edit.setFocus(Qt.FocusReason.OtherFocusReason)
            self.remarks.withdraw()

        answers = [(verb, accept), (self.tr("Leave"), leave)]
        self.remarks.ask(ask, answers)

    def withdraw_offer(self) -> None:
        """Take the offer back: the value no longer looks like a secret."""
        self.remarks.withdraw()

    # inside

    def _build_stored(self) -> None:
        self._stored = QFrame()
        row = QHBoxLayout(self._stored)
        clear_margins(row)
        row.setSpacing(GAP)
        row.addWidget(IconLabel(self._kit.theme, self._kit.icons, "key", Token.MUTED))
        self._stored_text = ElidedLabel()
        self._stored_text.setFont(fixed_font())
        row.addWidget(self._stored_text, 1)
        self._replace = QPushButton(self.tr("Replace…"))
        self._replace.setAutoDefault(False)
        self._replace.clicked.connect(self.start_replacing)
        row.addWidget(self._replace)

    def start_replacing(self) -> None:
        """Let a new value be entered for the stored secret."""
        now = self._now
        if now.stored:
            self._set(ValueState("", True, now.stored, True))
            self.edit.setFocus(Qt.FocusReason.OtherFocusReason)

    def _keep_stored(self) -> None:
        self._set(ValueState("", True, self._now.stored))
        self._replace.setFocus(Qt.FocusReason.OtherFocusReason)

    def _use(self, name: str) -> None:
        self._desk.release(self)
        self._set(ValueState("", True, name))

    def _typed(self, text: str) -> None:
        now = self._now
        if text != self._declined:
            self.remarks.withdraw()
        if (stored := referred_secret(text.strip())) and not now.replacing:
            self._use(stored)
            return
        name = now.name
        if now.secret and not now.stored and text and not name:
            name = self._claim()
        self._set(ValueState(text, now.secret, now.stored, now.replacing, name))

    def _claim(self, wanted: str = "") -> str:
        key = self._key()
        self._named_after = (self._desk.server, key)
        return self._desk.claim_name(self, wanted) if wanted else self._desk.claim(self, key)

    def _set(self, state: ValueState) -> None:
        if state == self._now:
            return
        if state.secret:
            self.remarks.withdraw()
        self._now = state
        self._refresh()
        self.changed.emit()

    def _refresh(self) -> None:
        now = self._now
        missing = bool(now.stored) and self._desk.is_missing(now.stored)
        stored_page = now.secret and bool(now.stored) and not now.replacing and not missing and not now.text
        self._stack.setCurrentWidget(self._stored if stored_page else self.edit)
        self.setFocusProxy(self._replace if stored_page else self.edit)
        self._stored_text.setText(now.stored)
        self._stored_text.setAccessibleName(self._stored_words(now.stored))
        self._replace.setAccessibleName(self.tr("Replace the value of {name}").format(name=now.stored))
        if self.edit.text() != now.text:
            self.edit.setText(now.text)
            self.edit.setCursorPosition(0)
        if now.secret != self._shown_as_secret:
            self._shown_as_secret = now.secret
            self.edit.set_secret(now.secret)
        self.edit.offer_stored()
        self.remarks.set_note(self._note_text(now, missing), can_keep=now.replacing and not missing)

    def _stored_words(self, name: str) -> str:
        text = {
            "keyring": self.tr("Stored in keyring as {name}"),
            "vault": self.tr("Stored in vault as {name}"),
            "session": self.tr("Kept for this session as {name}"),
        }[self._desk.store]
        return text.format(name=name)

    def _note_text(self, now: ValueState, missing: bool) -> str:
        if not now.secret:
            left = self._clean.stored and not now.text
            return self.tr("What is stored stays there and is not shown; enter a plain value.") if left else ""
        others = ", ".join(self._desk.other_users(now.stored)) if now.stored else ""
        shared = self.tr(" Also used by {servers}.").format(servers=escape(others)) if others else ""
        name = escape(now.stored or now.name)
        if missing:
            return self.tr("{name} has no value yet: enter it here.").format(name=f"<b>{name}</b>") + shared
        if now.replacing:
            return self.tr("Replaces the value of {name}.").format(name=f"<b>{name}</b>") + shared
        if now.stored:
            return self._stored_words(f"<b>{name}</b>") + "." + shared
        if not now.text:
            return ""
        text = {
            "keyring": self.tr("Goes to the keyring as {name} when you save."),
            "vault": self.tr("Goes to the vault as {name} when you save."),
            "session": self.tr("Kept as {name} until the engine ends; never written to a file."),
        }[self._desk.store]
        return text.format(name=f"<b>{name}</b>")

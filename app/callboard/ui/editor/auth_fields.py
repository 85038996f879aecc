"""How a remote server is told who calls."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtWidgets import QVBoxLayout

from callboard.ui.editor.entry_model import Entry, is_plain, reference, referred_secret
from callboard.ui.editor.field_row import FieldRow
from callboard.ui.editor.fields import ChoiceField, Field, LinesField, PathField, TextField
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, clear_margins
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.value_edit import ValueEdit

translate = QCoreApplication.translate

# which fields each type has, in the order in which they are shown
FIELDS_OF: dict[str, tuple[str, ...]] = {
    "": (),
    "none": (),
    "bearer": ("secret",),
    "api_key": ("secret", "header"),
    "custom_header": ("header", "secret"),
    "oauth": ("grant", "client_id", "secret", "issuer", "scopes", "client_metadata"),
    "mtls": ("certificate", "key", "secret", "ca"),
}
NEEDS_SECRET = frozenset({"bearer", "api_key", "custom_header"})


class SecretField(Field):
    """A value that is always a secret; the entry holds the secret's name."""

    def __init__(self, kit: Kit, desk: SecretDesk, label: str) -> None:
        super().__init__(label)
        column = QVBoxLayout(self)
        clear_margins(column)
        self.editor = ValueEdit(kit, desk, lambda: "token", always_secret=True)
        self.editor.edit.setAccessibleName(label)
        self.editor.changed.connect(self._touched)
        column.addWidget(self.editor)
        self.setFocusProxy(self.editor)

    def state(self) -> Any:
        """What is shown."""
        return self.editor.state

    def value_editors(self) -> list[ValueEdit]:
        """The one."""
        return [self.editor]

    @property
    def is_filled(self) -> bool:
        """Whether there is a secret, stored or entered."""
        state = self.editor.state
        return bool(state.stored or state.text)

    def problems(self) -> dict[str, str]:
        """What can be told of the value here."""
        problem = self.editor.local_problem()
        return {"": problem} if problem else {}

    def _can_show(self, raw: Any) -> bool:
        return bool(referred_secret(reference(raw))) if isinstance(raw, str) else False

    def _show(self, raw: Any) -> None:
        self.editor.load(None if raw is None else reference(raw))

    def _restore(self, state: Any) -> None:
        self.editor.restore(state)

    def _read(self) -> Any:
        return referred_secret(self.editor.value()) or None


class AuthFields(Field):
    """Edits ``auth``. What was entered for one type is there again when the person comes back to it."""

    def __init__(self, kit: Kit, desk: SecretDesk, label: str) -> None:
        super().__init__(label)
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP + 4)
        self.type = ChoiceField(label, _types())
        column.addWidget(self.type)
        self.rows: dict[str, FieldRow] = {}
        for name, field in self._make_fields(kit, desk).items():
            row = self.rows[name] = FieldRow(kit, ("auth", name), field)
            row.changed.connect(self._touched)
            column.addWidget(row)
        self.type.changed.connect(self._show_type)
        self.type.changed.connect(self._touched)
        self.setFocusProxy(self.type)
        self._show_type()

    @property
    def secret(self) -> SecretField:
        """The editor of the secret."""
        field = self.rows["secret"].field
        assert isinstance(field, SecretField)
        return field

    def state(self) -> Any:
        """The type, and what all fields show."""
        return self.type.state(), tuple(row.field.state() for row in self.rows.values())

    def value_editors(self) -> list[ValueEdit]:
        """That of the secret, where the type has one."""
        return [self.secret.editor] if "secret" in self._names() else []

    def problems(self) -> dict[str, str]:
        """A type that needs a secret must have one."""
        found = {name: self.rows[name].field.problems().get("", "") for name in self._names()}
        found = {name: text for name, text in found.items() if text}
        if self.type.state() in NEEDS_SECRET and not self.secret.is_filled:
            found["secret"] = self.tr("Enter the value that the server expects.")
        if self.type.state() == "mtls" and not self.rows["certificate"].field.state():
            found["certificate"] = self.tr("Choose the certificate's file.")
        if self.type.state() == "oauth":
            found |= self._client_problems()
        return found

    def _client_problems(self) -> dict[str, str]:
        """A client that was registered by hand is whole or not there."""
        if self.rows["client_id"].field.state():
            alone = self.rows["grant"].field.state() != "authorization-code" and not self.secret.is_filled
            return {"secret": self.tr("A program that signs in by itself needs a secret.")} if alone else {}
        if self.secret.is_filled or self.rows["grant"].field.state() != "authorization-code":
            return {"client_id": self.tr("Enter the client ID that belongs to the secret.")}
        return {}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Below the part that each belongs to."""
        left = dict(problems)
        for name, row in self.rows.items():
            own = {rest: left.pop(rest) for rest in list(left) if rest == name or rest.startswith(f"{name}.")}
            row.show_problems({rest[len(name) + 1 :]: text for rest, text in own.items()})
        return list(left.values())

    def focus_on(self, rest: str) -> None:
        """The part of that name."""
        row = self.rows.get(rest.partition(".")[0])
        if row is not None and not row.isHidden():
            row.field.setFocus(Qt.FocusReason.OtherFocusReason)
        else:
            super().focus_on(rest)

    def _names(self) -> tuple[str, ...]:
        return FIELDS_OF.get(self.type.state(), ())

    def _can_show(self, raw: Any) -> bool:
        if isinstance(raw, str):
            return raw in FIELDS_OF
        if not isinstance(raw, dict) or raw.get("type") not in FIELDS_OF:
            return False
        scopes = raw.get("scopes")
        plain = all(is_plain(raw[name]) for name in self.rows if name in raw and name != "scopes")
        return plain and (scopes is None or isinstance(scopes, list))

    def _show(self, raw: Any) -> None:
        given: Entry = {"type": raw} if isinstance(raw, str) else (raw or {})
        self.type.load(given.get("type"))
        for name, row in self.rows.items():
            row.field.load(given.get(name))
            row.refresh_help()
        self._show_type()

    def _restore(self, state: Any) -> None:
        kind, states = state
        self.type.restore(kind)
        for row, one in zip(self.rows.values(), states, strict=True):
            row.field.restore(one)
        self._show_type()

    def _read(self) -> Any:
        kind = self.type.state()
        if not kind:
            return None
        written: Entry = self._raw if isinstance(self._raw, dict) else {}
        entry: Entry = {"type": kind}
        entry |= {name: value for name, value in written.items() if name != "type" and name not in self.rows}
        for name in self._names():
            if (value := self.rows[name].field.value()) is not None:
                entry[name] = value
        return entry

    def _show_type(self) -> None:
        names = self._names()
        for name, row in self.rows.items():
            row.setVisible(name in names)
        label = _secret_label(self.type.state())
        self.rows["secret"].label.setText(label)
        self.secret.editor.edit.setAccessibleName(label)
        header = self.rows["header"].field
        assert isinstance(header, TextField)
        header.edit.setPlaceholderText("X-API-Key" if self.type.state() == "api_key" else "Authorization")

    def _make_fields(self, kit: Kit, desk: SecretDesk) -> dict[str, Field]:
        return {
            "certificate": PathField(kit, self.tr("Certificate (PEM file)"), folder=False),
            "key": PathField(kit, self.tr("Private key, if it has a file of its own"), folder=False),
            "grant": ChoiceField(self.tr("Who signs in"), _grants()),
            "client_id": TextField(self.tr("Client ID, if the server gave you one"), fixed=True),
            "header": TextField(self.tr("Header"), fixed=True),
            "secret": SecretField(kit, desk, self.tr("Token")),
            "issuer": TextField(self.tr("Address of the sign-in server that gave the client ID"), fixed=True),
            "scopes": LinesField(self.tr("Scopes, one per line"), rows=2),
            "client_metadata": TextField(self.tr("Address of a client document of your own"), fixed=True),
            "ca": PathField(kit, self.tr("Certificate authority, if it is your own"), folder=False),
        }


def _types() -> list[tuple[str, str]]:
    return [
        ("", translate("AuthFields", "Sign in if the server asks for it")),
        ("none", translate("AuthFields", "None")),
        ("bearer", translate("AuthFields", "Bearer token")),
        ("api_key", translate("AuthFields", "API key")),
        ("custom_header", translate("AuthFields", "Header of your own")),
        ("oauth", translate("AuthFields", "OAuth sign-in")),
        ("mtls", translate("AuthFields", "Client certificate")),
    ]


def _grants() -> list[tuple[str, str]]:
    return [
        ("authorization-code", translate("AuthFields", "You, in the browser")),
        ("client-credentials", translate("AuthFields", "The program itself, with client ID and secret")),
        ("jwt-bearer", translate("AuthFields", "The program itself, with an assertion (JWT)")),
    ]


def _secret_label(kind: str) -> str:
    match kind:
        case "api_key":
            return translate("AuthFields", "Key")
        case "custom_header":
            return translate("AuthFields", "Value")
        case "oauth":
            return translate("AuthFields", "Client secret or private key, if there is one")
        case "mtls":
            return translate("AuthFields", "Passphrase, if there is one")
        case _:
            return translate("AuthFields", "Token")

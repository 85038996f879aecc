"""What one form knows about secrets: where they are kept, which names are free, who else uses one."""

from typing import Literal

from PySide6.QtCore import QObject, Signal

from callboard.api.schema import SecretsView
from callboard.core.credentials import suggest_secret
from callboard.ui.editor.entry_model import secrets_in
from callboard.ui.engine_link import EngineLink

StoreKind = Literal["keyring", "vault", "session"]


class SecretDesk(QObject):
    """Names and places of secrets for the value editors of one form. Never knows a value."""

    changed = Signal()  # the store, or what is known of a secret

    def __init__(self, link: EngineLink, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self.server = ""  # the name of the server under edit, as it stands in the form
        self.original = ""  # its name in the roster, empty for a new one
        self._claims: dict[object, str] = {}
        link.secretsChanged.connect(self._on_secrets)

    @property
    def store(self) -> StoreKind:
        """Where values are kept; the keyring until the engine has told."""
        view = self._link.secrets
        match view.kind if view is not None else "":
            case "session":
                return "session"
            case "vault":
                return "vault"
            case _:
                return "keyring"

    @property
    def names(self) -> list[str]:
        """Secrets that are there to be used."""
        view = self._link.secrets
        return [secret.name for secret in view.secrets if secret.present] if view is not None else []

    def is_missing(self, name: str) -> bool:
        """Whether the store is known to hold no value for ``name``."""
        view = self._link.secrets
        if view is None or view.waiting or view.problem:
            return False
        return any(secret.name == name and not secret.present for secret in view.secrets)

    def other_users(self, name: str) -> list[str]:
        """Other servers whose entries refer to the secret."""
        roster = self._link.roster
        if roster is None:
            return []
        others = ((server, entry) for server, entry in roster.servers.items() if server != self.original)
        return [server for server, entry in others if name in secrets_in(entry)]

    def claim(self, owner: object, key: str) -> str:
        """A name for a new secret in the field ``key``, free in the store, the roster and this form."""
        self.release(owner)
        self._claims[owner] = name = suggest_secret(self.server, key, self._taken())
        return name

    def claim_name(self, owner: object, name: str) -> str:
        """``name`` itself, or a free one like it."""
        self.release(owner)
        self._claims[owner] = free = suggest_secret("", name, self._taken())
        return free

    def release(self, owner: object) -> None:
        """Give up the owner's claim."""
        self._claims.pop(owner, None)

    def _taken(self) -> set[str]:
        view, roster = self._link.secrets, self._link.roster
        stored = {secret.name for secret in view.secrets} if view is not None else set()
        referred = secrets_in(list(roster.servers.values())) if roster is not None else set()
        return stored | referred | set(self._claims.values())

    def _on_secrets(self, _view: SecretsView) -> None:
        self.changed.emit()

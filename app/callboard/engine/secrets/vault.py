"""A file of our own for secrets, for machines without a keyring: scrypt and AES-GCM, opened by a passphrase.

Used only where the person asks for it by setting CALLBOARD_VAULT_PASSPHRASE, or CALLBOARD_VAULT_PASSPHRASE_FILE to a
file that holds the passphrase.
"""

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callboard.engine.secrets.backends import BackendLockedError, BackendMissingError, BackendRefusedError
from callboard.system.safe_file import write_atomically

PASSPHRASE = "CALLBOARD_VAULT_PASSPHRASE"
PASSPHRASE_FILE = "CALLBOARD_VAULT_PASSPHRASE_FILE"

_FORMAT = "callboard-vault-1"
_COST = {"n": 2**15, "r": 8, "p": 1}  # 32 MiB and about 0.1 s, once for each start
_MAX_COST = {"n": 2**20, "r": 16, "p": 16}
_MEMORY = 256 * 1024 * 1024


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether the person asked for the vault."""
    return bool(environment.get(PASSPHRASE) or environment.get(PASSPHRASE_FILE))


def find_passphrase(environment: Mapping[str, str]) -> str:
    """The passphrase that the environment gives or points to. Raises BackendMissingError."""
    if passphrase := environment.get(PASSPHRASE):
        return passphrase
    path = Path(environment.get(PASSPHRASE_FILE, ""))
    try:
        passphrase = path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise BackendMissingError(f"The vault's passphrase cannot be read from {path}.") from error
    if not passphrase:
        raise BackendMissingError(f"The vault's passphrase in {path} is empty.")
    return passphrase


class VaultBackend:
    """Values in one encrypted file, mode 0600. Opened at the first use; every change writes the whole file anew."""

    kind = "vault"

    def __init__(self, path: Path, passphrase: str) -> None:
        self.label = str(path)
        self._path = path
        self._passphrase = passphrase
        self._key = b""
        self._salt = b""
        self._cost = _COST
        self._values: dict[str, str] | None = None

    def get(self, name: str) -> str | None:
        """The value, or None."""
        return self._open().get(name)

    def set(self, name: str, value: str) -> None:
        """Store the value."""
        self._save({**self._open(), name: value})

    def delete(self, name: str) -> None:
        """Forget the value."""
        values = self._open()
        if name in values:
            self._save({key: value for key, value in values.items() if key != name})

    def _open(self) -> dict[str, str]:
        if self._values is None:
            try:
                text = self._path.read_text(encoding="utf-8")
            except FileNotFoundError:
                self._salt = os.urandom(16)
                self._key = self._derive()
                self._values = {}
            except (OSError, ValueError) as error:
                raise BackendRefusedError(f"The vault {self._path} cannot be read.") from error
            else:
                self._values = self._decrypt(text)
        return self._values

    def _decrypt(self, text: str) -> dict[str, str]:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            sealed: dict[str, Any] = json.loads(text)
            cost = {name: int(sealed["scrypt"][name]) for name in _COST}
            if sealed["format"] != _FORMAT or any(not 0 < cost[name] <= _MAX_COST[name] for name in cost):
                raise ValueError("another format")
            self._cost, self._salt = cost, base64.b64decode(sealed["salt"])
            self._key = self._derive()
            plain = AESGCM(self._key).decrypt(
                base64.b64decode(sealed["nonce"]), base64.b64decode(sealed["data"]), self._header()
            )
            return dict(json.loads(plain))
        except InvalidTag as error:
            raise BackendLockedError("The passphrase does not open the vault.") from error
        except (ValueError, KeyError, TypeError) as error:
            raise BackendRefusedError(f"The vault {self._path} is damaged.") from error

    def _save(self, values: dict[str, str]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(12)
        data = AESGCM(self._key).encrypt(nonce, json.dumps(values).encode(), self._header())
        sealed = {
            "format": _FORMAT,
            "scrypt": self._cost,
            "salt": base64.b64encode(self._salt).decode(),
            "nonce": base64.b64encode(nonce).decode(),
            "data": base64.b64encode(data).decode(),
        }
        try:
            write_atomically(self._path, json.dumps(sealed).encode())
        except OSError as error:
            raise BackendRefusedError(f"The vault {self._path} cannot be written ({error.strerror}).") from error
        self._values = values

    def _derive(self) -> bytes:
        return hashlib.scrypt(self._passphrase.encode(), salt=self._salt, maxmem=_MEMORY, dklen=32, **self._cost)

    def _header(self) -> bytes:
        """What the seal covers beside the values."""
        return json.dumps([_FORMAT, self._cost, self._salt.hex()], sort_keys=True).encode()

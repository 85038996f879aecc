"""The operating system's keyring. The library is imported only when a keyring is looked for."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from callboard.engine.secrets.backends import BackendLockedError, BackendMissingError, BackendRefusedError
from callboard.engine.secrets.parts import delete_parts, read_parts, write_parts

if TYPE_CHECKING:
    from keyring.backend import KeyringBackend as Library

T = TypeVar("T")
# The library of Linux's keyrings gives the session's bus one second to greet. A machine where everything starts at
# once needs longer, and the library says nothing then but that there is no keyring.
TRIES: Final = 5


def find_keyring(service: str, *, again: bool = False) -> "KeyringBackend":
    """The keyring of this session; with ``again`` one that came up meanwhile is found too.

    Raises BackendMissingError. May start a keyring daemon, never asks the person anything.
    """
    import keyring
    from keyring.core import init_backend

    try:
        _patient(_greet_bus)
        if again:
            init_backend()
        library = keyring.get_keyring()
        usable = library.priority >= 1 and not _keeps_values_in_clear(library)
    except Exception as error:  # whatever a backend's own detection raises
        raise BackendMissingError(f"The keyring cannot be reached ({type(error).__name__}).") from error
    if not usable:
        raise BackendMissingError("No keyring was found.")
    return KeyringBackend(service, library)


def _keeps_values_in_clear(library: "Library") -> bool:
    """keyrings.alt puts itself forward once installed: a plain file, or a prompt on the terminal."""
    return type(library).__module__.startswith("keyrings.alt") and "PYTHON_KEYRING_BACKEND" not in os.environ


class KeyringBackend:
    """Values in one keyring under one service name. Blocks while the system's own prompt is open."""

    kind = "keyring"

    def __init__(self, service: str, library: "Library") -> None:
        self._service = service
        self._library = library
        self.label = str(getattr(library, "name", type(library).__name__)).removesuffix(" Keyring")

    def get(self, name: str) -> str | None:
        """The value, or None."""
        return _translated(lambda: read_parts(name, self._get), f'The keyring did not give the secret "{name}"')

    def set(self, name: str, value: str) -> None:
        """Store the value; long ones in parts."""
        _translated(
            lambda: write_parts(name, value, self._get, self._set, self._delete),
            f'The keyring did not take the secret "{name}" ({len(value)} characters)',
        )

    def delete(self, name: str) -> None:
        """Forget the value."""
        _translated(
            lambda: delete_parts(name, self._get, self._delete), f'The keyring did not forget the secret "{name}"'
        )

    def _get(self, name: str) -> str | None:
        return self._library.get_password(self._service, name)

    def _set(self, name: str, value: str) -> None:
        self._library.set_password(self._service, name, value)

    def _delete(self, name: str) -> None:
        from keyring.errors import PasswordDeleteError

        try:
            self._library.delete_password(self._service, name)
        except PasswordDeleteError:
            if self._get(name) is not None:
                raise


def _translated(work: Callable[[], T], what: str) -> T:
    """Do ``work``; what it raises becomes one of our three errors. Messages of libraries may hold values: left out."""
    from keyring.errors import InitError, KeyringLocked, NoKeyringError

    try:
        return _patient(work)
    except KeyringLocked:
        raise BackendLockedError("The keyring is locked.") from None
    except (NoKeyringError, InitError, ConnectionError) as error:
        raise BackendMissingError(f"The keyring cannot be reached ({type(error).__name__}).") from None
    except Exception as error:  # noqa: BLE001  each system's library raises its own, Windows even a bare OSError
        raise BackendRefusedError(f"{what} ({type(error).__name__}).") from None


def _patient(work: Callable[[], T]) -> T:
    """Do ``work``, again while it raises TimeoutError; the last one is passed on."""
    for _ in range(TRIES - 1):
        with suppress(TimeoutError):
            return work()
    return work()


def _greet_bus() -> None:
    """Connect to the session's bus, where keyrings are reached by one. Raises TimeoutError while it is too busy."""
    if sys.platform == "linux":
        import secretstorage

        with suppress(secretstorage.SecretServiceNotAvailableException):
            secretstorage.dbus_init().close()

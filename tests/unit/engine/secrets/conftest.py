"""Keyrings for tests: one in memory that can be told to fail, to be locked, or to make one wait."""

import threading
from collections.abc import Iterator

import keyring
import keyring.core
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from tests.support.keyrings import only_when_chosen


@only_when_chosen
class MemoryKeyring(KeyringBackend):
    """Behaves like Windows' where ``limit`` is set: longer values raise a bare OSError."""

    priority = 5  # type: ignore[assignment]
    name = "Test Keyring"

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[tuple[str, str], str] = {}
        self.limit = 0
        self.error: BaseException | None = None
        self.fail_after = -1  # writes that still succeed; -1: all
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.threads: set[str] = set()

    def _pass(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.entered.set()
        assert self.gate.wait(20)
        if self.error is not None:
            raise self.error

    def get_password(self, service: str, username: str) -> str | None:
        self._pass()
        return self.stored.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._pass()
        if self.limit and len(password.encode("utf-16-le")) > self.limit:
            raise OSError(1783, "stub received bad data")
        if self.fail_after == 0:
            raise OSError(5, "broken off: " + password)
        self.fail_after -= self.fail_after > 0
        self.stored[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._pass()
        if self.stored.pop((service, username), None) is None:
            raise PasswordDeleteError("not found")

    @property
    def values(self) -> dict[str, str]:
        """What is stored, by name."""
        return {name: value for (_, name), value in self.stored.items()}


@pytest.fixture
def memory_keyring() -> Iterator[MemoryKeyring]:
    """A working keyring, chosen as the system's own."""
    before = keyring.core._keyring_backend
    chosen = MemoryKeyring()
    keyring.set_keyring(chosen)
    yield chosen
    chosen.gate.set()
    keyring.core._keyring_backend = before


@pytest.fixture
def no_keyring() -> Iterator[None]:
    """The system has none."""
    before = keyring.core._keyring_backend
    keyring.core._keyring_backend = None
    yield
    keyring.core._keyring_backend = before

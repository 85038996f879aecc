"""What can hold secret values. Methods block, and run only in the store's own thread."""

from typing import Protocol


class BackendMissingError(Exception):
    """There is no place to keep values now. The message is one sentence."""


class BackendLockedError(Exception):
    """The person did not unlock it. The message is one sentence."""


class BackendRefusedError(Exception):
    """It is there and open, but failed. The message is one sentence without the value."""


class Backend(Protocol):
    """A place for values by name. Each method raises the errors above, whatever the library below raises."""

    kind: str  # "keyring", "vault" or "session"
    label: str  # for display

    def get(self, name: str) -> str | None:
        """The value, or None."""

    def set(self, name: str, value: str) -> None:
        """Store or replace the value, wholly or not at all."""

    def delete(self, name: str) -> None:
        """Forget the value; nothing happens where there is none."""


class SessionBackend:
    """Values in memory, gone when the engine ends. ``values`` is replaced, never changed: any thread may read it."""

    kind = "session"
    label = "memory"

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        """The value, or None."""
        return self.values.get(name)

    def set(self, name: str, value: str) -> None:
        """Keep the value until the engine ends."""
        self.values = {**self.values, name: value}

    def delete(self, name: str) -> None:
        """Forget the value."""
        self.values = {key: value for key, value in self.values.items() if key != name}

"""Keyrings made for tests."""

from typing import TypeVar

from keyring.backend import KeyringBackend

K = TypeVar("K", bound=type[KeyringBackend])


def only_when_chosen(backend: K) -> K:
    """A class of keyrings that a test must choose.

    The library would find it, as every subclass, among the system's own, and take it instead of the real one.
    """
    KeyringBackend._classes.discard(backend)  # type: ignore[attr-defined]
    return backend

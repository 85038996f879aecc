"""The desktop session that packaging/session.sh makes: its own screen, bus and keyring, and nobody else's."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import keyring.errors
import pytest
from keyring.backend import KeyringBackend
from PySide6.QtGui import QGuiApplication


async def test_keyring_is_real_and_unlocked(real_keyring: KeyringBackend) -> None:
    secret = "naïve\nsecret"
    await asyncio.to_thread(real_keyring.set_password, "callboard-tests", "session", secret)
    assert await asyncio.to_thread(real_keyring.get_password, "callboard-tests", "session") == secret
    await asyncio.to_thread(real_keyring.delete_password, "callboard-tests", "session")
    with pytest.raises(keyring.errors.PasswordDeleteError):
        await asyncio.to_thread(real_keyring.delete_password, "callboard-tests", "session")


def test_keyring_file_is_the_session_s_own(real_keyring: KeyringBackend) -> None:
    real_keyring.set_password("callboard-tests", "file", "x")

    keyrings = Path(os.environ["XDG_DATA_HOME"]) / "keyrings"
    assert list(keyrings.glob("*.keyring"))
    assert keyrings.stat().st_mode & 0o077 == 0
    real_keyring.delete_password("callboard-tests", "file")


def test_screen_is_virtual(qapp: QGuiApplication) -> None:
    assert qapp.platformName() == "xcb"
    size = qapp.primaryScreen().size()
    assert (size.width(), size.height()) == (1280, 800)

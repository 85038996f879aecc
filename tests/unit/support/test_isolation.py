"""What tests/conftest.py gives every test, as a unit test and its child processes see it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import keyring
import keyring.errors
import platformdirs
import pytest

FOLDERS = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "CALLBOARD_HOME"]


def test_every_folder_is_the_test_s_own(developer_environment: dict[str, str]) -> None:
    home = Path(os.environ["HOME"])

    assert list(home.iterdir()) == []
    assert Path.home() == home
    assert str(home) != developer_environment.get("HOME")
    for name in FOLDERS:
        assert Path(os.environ[name]).is_relative_to(home), name
    for folder in (
        platformdirs.user_config_path("x"),
        platformdirs.user_data_path("x"),
        platformdirs.user_log_path("x"),
    ):
        assert folder.is_relative_to(home)


def test_callboard_home_is_private_and_empty(callboard_home: Path) -> None:
    assert Path(os.environ["CALLBOARD_HOME"]) == callboard_home
    assert list(callboard_home.iterdir()) == []
    if os.name == "posix":
        assert callboard_home.stat().st_mode & 0o777 == 0o700


def test_children_find_no_keyring() -> None:
    program = "import keyring; keyring.set_password('callboard-tests', 'a', 'b')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert result.returncode == 1
    assert "NoKeyringError" in result.stderr


def test_memory_keyring(memory_keyring: Any) -> None:
    keyring.set_password("callboard", "name", "value")

    assert keyring.get_password("callboard", "name") == "value"
    assert memory_keyring.entries == {("callboard", "name"): "value"}
    keyring.delete_password("callboard", "name")
    with pytest.raises(keyring.errors.PasswordDeleteError):
        keyring.delete_password("callboard", "name")


async def test_unit_tests_run_on_asyncio_s_own_loop() -> None:
    assert type(asyncio.get_running_loop()).__module__.startswith("asyncio.")

"""The encrypted file."""

import stat
from pathlib import Path

import pytest

from callboard.engine.secrets import vault
from callboard.engine.secrets.backends import BackendLockedError, BackendMissingError, BackendRefusedError
from callboard.engine.secrets.vault import VaultBackend


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "secrets.vault"


def test_values_come_back_with_the_passphrase_and_stand_nowhere_in_clear(path: Path) -> None:
    store = VaultBackend(path, "open sesame")
    assert store.get("a") is None
    store.set("a-name", "the-value-wörd")
    store.set("b", "2")
    store.delete("b")
    store.delete("never")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for part in (b"the-value", b"a-name", b"sesame"):
        assert part not in path.read_bytes()
    again = VaultBackend(path, "open sesame")
    assert again.get("a-name") == "the-value-wörd"
    assert again.get("b") is None


def test_another_passphrase_opens_nothing_and_overwrites_nothing(path: Path) -> None:
    VaultBackend(path, "right").set("a", "1")
    before = path.read_bytes()
    with pytest.raises(BackendLockedError):
        VaultBackend(path, "wrong").get("a")
    with pytest.raises(BackendLockedError):
        VaultBackend(path, "wrong").set("a", "2")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"format": "other"}',
        '{"format": "callboard-vault-1", "scrypt": {"n": 99999999999, "r": 8, "p": 1}}',
    ],
)
def test_a_damaged_vault_is_refused_and_left_alone(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(BackendRefusedError):
        VaultBackend(path, "x").set("a", "1")
    assert path.read_text() == text


def test_a_changed_vault_is_noticed(path: Path) -> None:
    VaultBackend(path, "x").set("a", "1")
    text = path.read_text()
    at = text.index('"salt": "') + len('"salt": "')
    path.write_text(text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :])
    with pytest.raises(BackendLockedError):
        VaultBackend(path, "x").get("a")


def test_a_vault_that_cannot_be_written_keeps_the_old_values(path: Path) -> None:
    store = VaultBackend(path / "no-folder", "x")
    with pytest.raises(BackendRefusedError):
        store.set("a", "1")
    assert store.get("a") is None


def test_where_the_passphrase_comes_from(tmp_path: Path) -> None:
    file = tmp_path / "passphrase"
    file.write_text("from file\n")
    empty = tmp_path / "empty"
    empty.write_text("\n")
    assert not vault.wanted({})
    assert vault.wanted({vault.PASSPHRASE_FILE: str(file)})
    assert vault.find_passphrase({vault.PASSPHRASE: "direct"}) == "direct"
    assert vault.find_passphrase({vault.PASSPHRASE_FILE: str(file)}) == "from file"
    for missing in (empty, tmp_path / "gone"):
        with pytest.raises(BackendMissingError):
            vault.find_passphrase({vault.PASSPHRASE_FILE: str(missing)})

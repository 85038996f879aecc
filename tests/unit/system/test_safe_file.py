"""Files that are replaced whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from callboard.system.safe_file import keep_backup, write_atomically


def test_a_new_file_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"one")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    write_atomically(path, b"two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert path.read_bytes() == b"two"


def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert [item.name for item in tmp_path.iterdir()] == ["file"]
    assert path.read_bytes() == b"old"


def test_links_are_followed_also_to_a_file_that_is_not_there_yet(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "target"
    link.symlink_to(target)
    for data in (b"one", b"two"):
        write_atomically(link, data)
        assert link.is_symlink()
        assert target.read_bytes() == data


def test_backups_are_private_dated_and_few(tmp_path: Path) -> None:
    path = tmp_path / "roster.yaml"
    kept = [keep_backup(path, bytes([number]), keep=3) for number in range(5)]
    assert sorted((tmp_path / "backups").iterdir()) == kept[2:]
    assert [item.read_bytes() for item in kept[2:]] == [b"\x02", b"\x03", b"\x04"]
    assert stat.S_IMODE(kept[-1].stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "backups").stat().st_mode) == 0o700

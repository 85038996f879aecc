"""Conversations on disk."""

import stat
import sys
from pathlib import Path

import pytest

from callboard.agents.stores import ChangedError, Record, SqliteStore, StoreError, open_store


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "deep" / "conversations.sqlite3")


def test_what_was_stored(store: SqliteStore) -> None:
    record = Record("c_1", "agent", "ann", "key", 1, 100, 5.0, 1, {"said": ["ä"]})
    store.save(record)
    assert store.load("c_1") == record
    assert store.load("c_2") is None
    record.turns, record.version, record.state = 2, 2, {"said": ["ä", "b"]}
    store.save(record)
    assert store.load("c_1") == record
    store.delete("c_1")
    assert store.load("c_1") is None
    store.close()


def test_two_writers_notice_each_other(store: SqliteStore) -> None:
    store.save(Record("c_1", "agent", "ann", version=1))
    store.save(Record("c_1", "agent", "ann", version=2))
    with pytest.raises(ChangedError):
        store.save(Record("c_1", "agent", "ann", version=2))
    store.close()


def test_the_newest_default(store: SqliteStore) -> None:
    for number, (client, key) in enumerate([("ann", "a"), ("ann", "a"), ("bob", "a"), ("ann", "b")]):
        store.save(Record(f"c_{number}", "agent", client, key, used=float(number), version=1))
    found = store.default("agent", "ann", "a")
    assert found is not None
    assert found.id == "c_1"
    assert store.default("other", "ann", "a") is None
    store.close()


def test_old_ones_and_too_many_go(store: SqliteStore) -> None:
    for number in range(6):
        store.save(Record(f"c_{number}", "agent", "ann", used=float(number), version=1))
    store.save(Record("other", "another", "ann", used=0.0, version=1))
    store.sweep("agent", 2.0, 0)
    assert store.count("agent") == 4
    store.sweep("agent", 0.0, 1)
    assert store.count("agent") == 1
    assert store.load("c_5") is not None
    assert store.load("other") is not None
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_nobody_else_can_read_them(tmp_path: Path, store: SqliteStore) -> None:
    assert stat.S_IMODE((tmp_path / "deep" / "conversations.sqlite3").stat().st_mode) == 0o600
    store.close()


def test_a_place_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="conversations cannot be stored in"):
        open_store("", tmp_path / "file" / "x.sqlite3")
    (tmp_path / "noise.sqlite3").write_bytes(b"no database at all, but long enough to be looked at" * 50)
    with pytest.raises(StoreError, match="conversations cannot be stored in"):
        open_store("", tmp_path / "noise.sqlite3")


def test_an_address(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/mine.sqlite3", tmp_path / "unused")
    store.save(Record("c_1", "agent", "ann", version=1))
    store.close()
    assert (tmp_path / "mine.sqlite3").exists()
    assert not (tmp_path / "unused").exists()

"""Conversations on disk."""

import asyncio
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from callboard.agents.conversations import Caller, ConversationError, Conversations
from callboard.agents.settings import Limits
from callboard.agents.stores import ChangedError, Record, SqliteStore, Store, StoreError, open_store
from tests.support.postgresql import PostgresServer


def what_was_stored(store: Store) -> None:
    record = Record("c_1", "agent", "ann", "key", 1, 100, 5.0, 1, {"said": ["ä"]})
    store.save(record)
    assert store.load("c_1") == record
    assert store.load("c_2") is None
    record.turns, record.version, record.state = 2, 2, {"said": ["ä", "b"]}
    store.save(record)
    assert store.load("c_1") == record
    store.delete("c_1")
    assert store.load("c_1") is None


def two_writers_notice_each_other(store: Store) -> None:
    store.save(Record("c_1", "agent", "ann", version=1))
    store.save(Record("c_1", "agent", "ann", version=2))
    with pytest.raises(ChangedError):
        store.save(Record("c_1", "agent", "ann", version=2))
    with pytest.raises(ChangedError):
        store.save(Record("c_1", "agent", "ann", version=1))


def the_newest_default(store: Store) -> None:
    for number, (client, key) in enumerate([("ann", "a"), ("ann", "a"), ("bob", "a"), ("ann", "b")]):
        store.save(Record(f"c_{number}", "agent", client, key, used=float(number), version=1))
    found = store.default("agent", "ann", "a")
    assert found is not None
    assert found.id == "c_1"
    assert store.default("other", "ann", "a") is None


def old_ones_and_too_many_go(store: Store) -> None:
    for number in range(6):
        store.save(Record(f"c_{number}", "agent", "ann", used=float(number), version=1))
    store.save(Record("other", "another", "ann", used=0.0, version=1))
    store.sweep("agent", 2.0, 0)
    assert store.count("agent") == 4
    store.sweep("agent", 0.0, 1)
    assert store.count("agent") == 1
    assert store.load("c_5") is not None
    assert store.load("other") is not None


CHECKS = (what_was_stored, two_writers_notice_each_other, the_newest_default, old_ones_and_too_many_go)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_in_a_file(check: Callable[[Store], None], tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "deep" / "conversations.sqlite3")
    check(store)
    store.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_in_postgresql(check: Callable[[Store], None], postgresql: PostgresServer, tmp_path: Path) -> None:
    postgresql.ask("DROP TABLE IF EXISTS callboard_conversations", database="agents")
    store = open_store(postgresql.address("owner", "agents"), tmp_path / "unused")
    check(store)
    store.close()
    assert not (tmp_path / "unused").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "conversations.sqlite3").close()
    assert stat.S_IMODE((tmp_path / "conversations.sqlite3").stat().st_mode) == 0o600


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


def test_a_database_that_cannot_be_reached(tmp_path: Path) -> None:
    for address, said in (
        (f"postgresql://me:hunter2@/db?host={tmp_path}", "the store cannot be used"),
        ("nonsense://me:hunter2@x/db", "the store cannot be used"),
    ):
        with pytest.raises(StoreError, match=said) as caught:
            open_store(address, tmp_path / "unused")
        assert "hunter2" not in str(caught.value)


def stores_in(postgresql: PostgresServer, folder: Path) -> list[Store]:
    postgresql.ask("DROP TABLE IF EXISTS callboard_conversations", database="agents")
    return [open_store(postgresql.address("owner", "agents"), folder / "unused") for _ in range(2)]


def test_a_turn_is_one_engines(postgresql: PostgresServer, tmp_path: Path) -> None:
    one, two = stores_in(postgresql, tmp_path)
    assert one.take_turn("c_1")
    assert not two.take_turn("c_1")
    assert two.take_turn("c_2")
    one.give_turn("c_1")
    assert two.take_turn("c_1")
    two.close()  # all its turns go back
    assert one.take_turn("c_1")
    assert one.take_turn("c_2")
    one.close()


@pytest.mark.allow_logs
def test_turns_go_on_after_the_database_was_away(postgresql: PostgresServer, tmp_path: Path) -> None:
    one, two = stores_in(postgresql, tmp_path)
    assert one.take_turn("c_1")
    for store in (one, two):
        store.save(Record(f"c_{id(store)}", "agent", "ann", version=1))
    postgresql.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'agents'")
    with pytest.raises(StoreError, match="the store cannot be used"):
        one.take_turn("c_2")
    assert two.take_turn("c_1"), "what the lost connection had is nobody's"
    assert not one.take_turn("c_1")
    assert one.take_turn("c_2")
    assert one.count("agent") == 2
    for store in (one, two):
        store.close()


async def test_a_call_waits_for_another_engines_turn(postgresql: PostgresServer, tmp_path: Path) -> None:
    stores = stores_in(postgresql, tmp_path)
    one, two = (Conversations("agent", Limits(), store) for store in stores)
    ann = Caller("ann")
    held = await one.take(None, ann)
    id_ = held.record.id
    one.give_back(held, 1, {"n": 1})
    await one.saved(held)
    for state in (None, {"n": 2}):  # a call that could not be made, and one that was
        held = await one.take(id_, ann)
        waiting = asyncio.create_task(two.take(id_, ann))
        await until_refused(postgresql)
        assert not waiting.done()
        if state is None:
            one.release(held)
        else:
            one.give_back(held, 1, state)
        there = await waiting
        assert there.record.state == (state or {"n": 1})
        two.release(there)
    impatient = Conversations("agent", Limits(wait=0.05), stores[1])
    held = await one.take(id_, ann)
    with pytest.raises(ConversationError, match="is busy in another engine"):
        await impatient.take(id_, ann)
    gone = asyncio.create_task(two.take(id_, ann))
    await until_refused(postgresql)
    gone.cancel()
    await asyncio.wait([gone])
    one.release(held)
    for conversations in (one, two, impatient):
        await conversations.close()
    assert stores[0].take_turn(id_), "who gave up waiting has not kept it"
    for store in stores:
        store.close()


async def until_refused(postgresql: PostgresServer) -> None:
    """Wait until two engines have asked for a turn."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_try_advisory_lock%'"
    async with asyncio.timeout(30):
        while (await asyncio.to_thread(postgresql.ask, asked))[0][0] < 2:  # noqa: ASYNC110  nothing tells
            await asyncio.sleep(0.02)


@pytest.mark.allow_logs
async def test_a_turn_that_cannot_be_stored_is_told(
    postgresql: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was said stays in memory, and is stored with the next turn."""
    (store, other) = stores_in(postgresql, tmp_path)
    conversations, ann = Conversations("agent", Limits(), store), Caller("ann", "session:1")
    postgresql.ask("ALTER TABLE callboard_conversations RENAME TO away", database="agents")
    with pytest.raises(StoreError):
        await conversations.take("c_1", ann)
    with pytest.raises(StoreError):
        await conversations.take(None, ann)
    held = await conversations.take(None, Caller("ann"))
    conversations.give_back(held, 1, {"n": 1})
    await conversations.saved(held)
    assert f"Conversation {held.record.id} is kept in memory only" in caplog.text
    postgresql.ask("ALTER TABLE away RENAME TO callboard_conversations", database="agents")
    held = await conversations.take(held.record.id, ann)
    conversations.give_back(held, 1, {"n": 2})
    await conversations.close()
    stored = other.load(held.record.id)
    assert stored is not None
    assert (stored.turns, stored.state) == (2, {"n": 2})
    for each in (store, other):
        each.close()


async def test_two_engines_share_conversations(postgresql: PostgresServer, tmp_path: Path) -> None:
    """A conversation begun at one goes on at the other, in the right order."""
    stores = stores_in(postgresql, tmp_path)
    one, two = (Conversations("agent", Limits(), store) for store in stores)
    ann = Caller("ann", "session:1")
    held = await one.take(None, ann)
    one.give_back(held, 1, {"n": 1})
    await one.close()
    again = await two.take(held.record.id, ann)
    assert again.record.state == {"n": 1}
    two.give_back(again, 1, {"n": 2})
    await two.close()
    back = await one.take(held.record.id, ann)
    assert (back.record.state, back.record.turns) == ({"n": 2}, 2)
    one.release(back)
    await one.close()
    for store in stores:
        store.close()

"""Whose a conversation is, who has its turn, and when it is over."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callboard.agents.conversations import Caller, ConversationError, Conversations, Held
from callboard.agents.settings import Limits
from callboard.agents.stores import SqliteStore, Store

ANN, BOB = Caller("ann", "session:1"), Caller("bob", "session:2")


class Heard:
    """Stands in for a worker: keeps what it is told."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def tell(self, message: dict[str, Any]) -> None:
        self.messages.append(message)


async def turn(
    conversations: Conversations,
    caller: Caller,
    handle: str | None = None,
    *,
    size: int = 10,
    state: dict[str, Any] | None = None,
    link: Any = None,
) -> Held:
    held = await conversations.take(handle, caller)
    if link is not None:
        conversations.opened_on(held, link)
    conversations.give_back(held, size, state)
    return held


def made(store: Store | None = None, **limits: float) -> Conversations:
    return Conversations("agent", Limits(**limits), store)  # type: ignore[arg-type]


async def test_the_default_is_one_for_each_session() -> None:
    conversations = made()
    first = await turn(conversations, ANN)
    again = await turn(conversations, ANN)
    other = await turn(conversations, BOB)
    assert first is again
    assert first.record.turns == 2
    assert other.record.id != first.record.id


async def test_without_a_session_each_call_begins_a_new_one() -> None:
    conversations = made()
    first, second = await turn(conversations, Caller("ann")), await turn(conversations, Caller("ann"))
    assert first.record.id != second.record.id
    assert (await turn(conversations, Caller("ann"), first.record.id)).record.turns == 2


async def test_another_clients_handle_is_unknown() -> None:
    conversations = made()
    held = await turn(conversations, ANN)
    with pytest.raises(ConversationError) as foreign:
        await conversations.take(held.record.id, BOB)
    with pytest.raises(ConversationError) as unknown:
        await conversations.take("c_nobody", BOB)
    assert str(foreign.value).replace(held.record.id, "X") == str(unknown.value).replace("c_nobody", "X")


async def test_one_call_at_a_time_in_one_and_others_at_once() -> None:
    conversations = made()
    held = await conversations.take(None, ANN)
    waiting = asyncio.create_task(conversations.take(None, ANN))
    other = await conversations.take(None, BOB)
    await asyncio.sleep(0)
    assert not waiting.done()
    conversations.give_back(held, 1, None)
    assert await waiting is held
    conversations.give_back(held, 1, None)
    conversations.give_back(other, 1, None)


async def test_a_full_queue_says_so() -> None:
    conversations = made(queue=2)
    held = await conversations.take(None, ANN)
    waiting = [asyncio.create_task(conversations.take(None, ANN)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ConversationError, match="is busy: 2 calls wait already"):
        await conversations.take(None, ANN)
    for task in waiting:
        conversations.give_back(held, 1, None)
        await task
    conversations.give_back(held, 1, None)


async def test_a_call_that_gives_up_waiting_leaves_the_queue() -> None:
    conversations = made(queue=1)
    held = await conversations.take(None, ANN)
    for _ in range(3):
        waiting = asyncio.create_task(conversations.take(None, ANN))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
    conversations.give_back(held, 1, None)
    assert await turn(conversations, ANN) is held


async def test_the_one_unused_for_longest_goes_first() -> None:
    conversations, link = made(conversations=2), Heard()
    ids = [(await turn(conversations, Caller(name, "k"), link=link)).record.id for name in "abc"]
    assert len(conversations) == 2
    assert [each for each in link.messages if each["type"] == "close"] == [{"type": "close", "conversation": ids[0]}]
    with pytest.raises(ConversationError):
        await conversations.take(ids[0], Caller("a"))
    assert (await turn(conversations, Caller("a", "k"))).record.turns == 1  # its default is a new one


async def test_a_conversation_in_use_does_not_go() -> None:
    conversations = made(conversations=1)
    held = await conversations.take(None, ANN)
    await turn(conversations, BOB)
    conversations.give_back(held, 1, None)
    assert (await turn(conversations, ANN, held.record.id)).record.turns == 2


async def test_idle_ones_are_closed() -> None:
    conversations, link = made(idle=100), Heard()
    held = await turn(conversations, ANN, link=link)
    held.record.used -= 200
    fresh = await turn(conversations, ANN)
    assert fresh.record.id != held.record.id
    assert link.messages[-1] == {"type": "close", "conversation": held.record.id}


@pytest.mark.parametrize("limits", [{"turns": 2}, {"conversation_kb": 0.02}], ids=["turns", "bytes"])
async def test_a_conversation_has_an_end(limits: dict[str, float]) -> None:
    conversations = made(**limits)
    held = await turn(conversations, ANN)
    assert await turn(conversations, ANN, size=20) is held
    with pytest.raises(ConversationError, match="has reached its limit"):
        await conversations.take(held.record.id, ANN)
    assert await turn(conversations, ANN) is not held  # by default a new one begins


async def test_opening_tells_the_worker_once() -> None:
    conversations, first, second = made(), Heard(), Heard()
    await turn(conversations, ANN, link=first, state={"n": 1})
    await turn(conversations, ANN, link=first, state={"n": 2})
    await turn(conversations, ANN, link=second)
    assert [message["turn"] for message in first.messages] == [0]
    assert [(message["turn"], message["state"]) for message in second.messages] == [(2, {"n": 2})]


async def test_what_ended_with_its_worker() -> None:
    conversations, first, second = made(), Heard(), Heard()
    held = await turn(conversations, ANN, link=first)
    assert conversations.must_restart(held, second)  # type: ignore[arg-type]
    conversations.restart(held, named=False)
    assert held.record.turns == 0
    held.record.turns = 1
    with pytest.raises(ConversationError, match="ended with the agent's process"):
        conversations.restart(held, named=True)


async def test_a_restart_continues_what_was_stored(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.sqlite3")
    before = made(store)
    held = await turn(before, ANN, state={"n": 1})
    await before.close()
    after, link = made(store), Heard()
    with pytest.raises(ConversationError):
        await after.take(held.record.id, BOB)
    again = await turn(after, ANN, held.record.id, link=link, state={"n": 2})
    assert (again.record.turns, link.messages[0]["state"]) == (2, {"n": 1})
    await after.close()
    third = made(store)
    assert (await turn(third, ANN)).record.id == held.record.id  # the session's default too
    await third.close()
    store.close()


async def test_two_servers_that_share_a_store_take_turns(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "c.sqlite3")
    one, two, link = made(store), made(store), Heard()
    held = await turn(one, ANN, state={"n": 1}, link=link)
    await one.close()
    await turn(two, ANN, held.record.id, state={"n": 2})
    await two.close()
    again = await turn(one, ANN, held.record.id, link=link, state={"n": 3})
    assert again.record.turns == 3
    assert [message["state"] for message in link.messages if message["type"] == "open"] == [None, {"n": 2}]
    await one.close()
    store.close()

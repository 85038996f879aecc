"""A server that asks outside of calls is served one client at a time; a client that is away to ask holds up no call
of its own."""

import asyncio

import pytest

from callboard.engine.relay import parking
from tests.support.gateway import ModernClient, TestGateway, text_of, until
from tests.unit.engine.relay.conftest import ASKED

ACCEPT = {"action": "accept", "content": {"name": "Ann"}}
ELICIT = {"name": "elicit", "arguments": {}}


async def begun(client: ModernClient) -> dict[str, object]:
    """A call whose client is away to ask its person: what the repeated request brings."""
    client.answers["elicitation/create"] = lambda params: ACCEPT
    answer = await client.request("tools/call", ELICIT)
    assert answer["result"]["resultType"] == "input_required"
    return {**ELICIT, **client.retry(answer["result"])}


async def test_a_call_that_is_never_answered_holds_up_no_other_of_its_client(legacy: TestGateway) -> None:
    async with legacy.modern("one", **ASKED) as client:
        await begun(client)
        assert text_of(await client.call("echo", {"text": "on"})) == "on"
        retry = await begun(client)
        assert text_of(await client.request("tools/call", retry)) == "hello Ann"
        assert len(legacy.relay.parking._waiting) == 1


async def test_other_clients_wait_for_it(legacy: TestGateway) -> None:
    async with legacy.modern("one", **ASKED) as mine, legacy.modern("one", "token-b", **ASKED) as other:
        retry = await begun(mine)
        waiting = asyncio.create_task(other.call("echo", {"text": "my turn"}))
        await until(lambda: legacy.relay.links["one"]._queue)
        assert text_of(await mine.request("tools/call", retry)) == "hello Ann"
        assert text_of(await waiting) == "my turn"


async def test_other_clients_do_not_wait_for_ever(legacy: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "PATIENCE_SECONDS", 0.1)
    async with legacy.modern("one", **ASKED) as mine, legacy.modern("one", "token-b", **ASKED) as other:
        retry = await begun(mine)
        assert text_of(await other.call("echo", {"text": "my turn"})) == "my turn"
        answer = await mine.request("tools/call", retry)
        assert answer["error"]["message"] == "The call that asked is over; begin it anew"
        # while nobody waits there is time
        retry = await begun(mine)
        waiting = next(iter(legacy.relay.parking._waiting.values()))
        timer = waiting.timer
        await until(lambda: waiting.timer is not timer)
        assert text_of(await mine.request("tools/call", retry)) == "hello Ann"


async def test_an_answer_waits_for_what_its_client_began_meanwhile(legacy: TestGateway) -> None:
    """Else a question might be of either call. It goes before whoever else waits, or nobody would ever get on."""
    link = legacy.relay.links["one"]
    async with legacy.modern("one", **ASKED) as mine, legacy.modern("one", "token-b", **ASKED) as other:
        retry = await begun(mine)
        slow = asyncio.create_task(mine.call("slow", {"ms": 300}))
        await until(lambda: len(link.in_flight) == 2)
        others = asyncio.create_task(other.call("echo", {"text": "last"}))
        await until(lambda: len(link._queue) == 1)
        answered = asyncio.create_task(mine.request("tools/call", retry))
        await until(lambda: len(link._queue) == 2)
        assert text_of(await slow) == "slow"
        assert text_of(await answered) == "hello Ann"
        assert text_of(await others) == "last"
    assert not link.in_flight
    assert not link._parked


async def test_what_a_server_asks_meanwhile_is_asked_of_the_call_under_way(legacy: TestGateway) -> None:
    async with legacy.modern("one", **ASKED) as client:
        first = await begun(client)
        client.answers["elicitation/create"] = lambda params: {"action": "accept", "content": {"name": "Bob"}}
        assert text_of(await client.call("elicit")) == "hello Bob"
        assert text_of(await client.request("tools/call", first)) == "hello Ann"


async def test_questions_that_come_together_are_asked_together(legacy: TestGateway) -> None:
    async with legacy.modern("one", **ASKED) as client:
        answer = await client.request("tools/call", {"name": "both", "arguments": {}})
        methods = sorted(asked["method"] for asked in answer["result"]["inputRequests"].values())
        assert methods == ["elicitation/create", "sampling/createMessage"]

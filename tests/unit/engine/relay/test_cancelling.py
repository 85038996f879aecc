"""A call that nobody waits for: the server hears of it, what it says later is dropped, the log row is closed."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.gateway import LegacyClient, ModernClient, TestGateway, in_background, text_of, until

Client = LegacyClient | ModernClient


async def counts(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(await client.call("counts")))
    return found


async def until_counted(client: Client, what: str, number: int) -> dict[str, Any]:
    async with asyncio.timeout(60):
        while (found := await counts(client)).get(what, 0) < number:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def test_the_server_hears_that_its_answer_is_not_wanted(front: TestGateway, client: Client) -> None:
    """Legacy clients say so; of a modern one the closed connection does."""
    before = len(front.relay.watch._exchanges)
    call = {"name": "slow", "arguments": {"ms": 20_000}}
    async with in_background(client.request("tools/call", call, number="gone")) as task:
        await until_counted(client, "begun slow", 1)
        if isinstance(client, LegacyClient):
            await client.notify("notifications/cancelled", {"requestId": "gone", "reason": "changed my mind"})
            await asyncio.wait([task])
    await until_counted(client, "cancelled slow", 1)
    assert not front.relay.links["one"].in_flight
    assert len(front.relay.watch._exchanges) == before
    assert text_of(await client.call("echo", {"text": "on"})) == "on"
    assert [row.status for row in await front.rows("slow")] == ["cancelled"]


async def test_a_late_answer_is_nobodys(front: TestGateway, client: Client) -> None:
    call = {"name": "late", "arguments": {"ms": 20_000}}
    async with in_background(client.request("tools/call", call, number="gone")) as task:
        await until_counted(client, "begun late", 1)
        if isinstance(client, LegacyClient):
            await client.notify("notifications/cancelled", {"requestId": "gone"})
            await asyncio.wait([task])
    await until_counted(client, "ended late", 1)  # it answers all the same, and tells progress besides
    assert text_of(await client.call("echo", {"text": "on"})) == "on"
    assert client.heard == []


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_modern_client_that_goes_ends_its_call_even_if_it_streams(either: TestGateway, streaming: bool) -> None:
    meta = {"progressToken": 1} if streaming else {}
    async with either.modern("one") as client, either.modern("one") as other:
        call = (
            {"name": "progress", "arguments": {"steps": 1000, "ms": 20}}
            if streaming
            else {
                "name": "slow",
                "arguments": {"ms": 20_000},
            }
        )
        async with in_background(client.request("tools/call", call, **meta)):
            if streaming:
                await until(lambda: client.of("notifications/progress"))
            else:
                await until(lambda: either.relay.links["one"].in_flight)
        await until(lambda: not either.relay.links["one"].in_flight)
        assert text_of(await other.call("echo", {"text": "on"})) == "on"


async def test_a_legacy_client_that_goes_has_not_cancelled(either: TestGateway) -> None:
    async with either.legacy("one") as client, either.legacy("one") as other:
        await client.initialize()
        await other.initialize()
        call = {"name": "slow", "arguments": {"ms": 400}}
        async with in_background(client.request("tools/call", call)):
            await until_counted(other, "begun slow", 1)
        await until(lambda: not either.relay.links["one"].in_flight)
        assert "cancelled slow" not in await counts(other)
    assert [row.status for row in await either.rows("slow")] == ["completed"]


async def test_deleting_a_session_cancels_what_it_does(either: TestGateway) -> None:
    async with either.legacy("one") as client, either.modern("one") as other:
        await client.initialize()
        async with in_background(client.call("slow", {"ms": 20_000})) as task:
            await until_counted(other, "begun slow", 1)
            answer = await client.http.delete(client.url, headers=client.headers)
            assert answer.status_code == 204
            await asyncio.wait([task])
        await until_counted(other, "cancelled slow", 1)
        assert len(either.relay.sessions) == 0


async def test_a_call_that_takes_too_long_is_given_up(either: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.02)
    either.servers.limit = 0.1
    async with either.legacy("one") as old, either.modern("one") as new:
        await old.initialize()
        for client in (old, new):
            answer = await client.call("slow", {"ms": 20_000})
            assert answer["error"]["data"]["code"] == "call-timeout"
            assert answer["error"]["message"] == "The server did not answer within 0.1 s and was told to stop."
        either.servers.limit = 30
        await until_counted(old, "cancelled slow", 2)
    assert [row.status for row in await either.rows("slow")] == ["failed", "failed"]


async def test_progress_shows_that_a_call_is_alive(either: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.02)
    either.servers.limit = 0.6
    async with either.modern("one") as client:
        alive = await client.call("progress", {"steps": 9, "ms": 100}, progressToken="p")
        assert text_of(alive) == "done"
        either.servers.limit = 0.06
        endless = await client.call("progress", {"steps": 10_000, "ms": 10}, progressToken="p")
        assert endless["error"]["data"]["code"] == "call-timeout"  # the hard limit: ten times as long


async def test_the_limit_resets_without_a_token_of_the_client(
    either: TestGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server tells us of its progress even where the client does not care."""
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.02)
    either.servers.limit = 0.6
    async with either.modern("one") as client:
        answer = await client.call("progress", {"steps": 9, "ms": 100})
        assert "result" in answer
        assert client.heard == []

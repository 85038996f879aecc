"""A stream that broke is taken up again where it was left (2025-11-25, basic/transports "Resumability")."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callboard.engine.policy.approvals import Approvals
from callboard.engine.policy.callers import Policies
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.replay import MAX_EVENTS, MAX_STREAMS, ReplayStreams
from callboard.engine.upstream.base import Answer
from tests.support.gateway import LegacyClient, gateway, text_of

ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[LegacyClient]:
    async with gateway(tmp_path, "old") as front:
        await front.start_fixture("old", "legacy")
        async with front.legacy("old") as connected:
            await connected.initialize()
            yield connected


async def events(client: LegacyClient, verb: str, count: int, **request: Any) -> list[tuple[str, Any]]:
    """The first events of a stream, with their ids; then the connection is broken."""
    found: list[tuple[str, Any]] = []
    event_id = ""
    headers = {**client.headers, **request.pop("headers")}
    async with client.http.stream(verb, client.url, headers=headers, **request) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                event_id = line[4:]
            elif line.startswith("data: "):
                found.append((event_id, json.loads(line[6:])))
                if len(found) == count:
                    break
    return found


def progress_call(steps: int) -> bytes:
    params = {"name": "progress", "arguments": {"steps": steps}, "_meta": {"progressToken": "p"}}
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).encode()


async def test_a_broken_stream_goes_on_after_the_last_event_seen(client: LegacyClient) -> None:
    first = await events(client, "POST", 3, headers=ACCEPT, content=progress_call(20))
    seen = first[-1][0]
    rest = await events(client, "GET", 100, headers={**ACCEPT, "last-event-id": seen})
    messages = [message for _, message in first + rest]
    assert [message["params"]["progress"] for message in messages[:-1]] == list(range(1, 21))
    assert messages[-1]["id"] == 7
    assert text_of(messages[-1]) == "done"
    ids = [event_id for event_id, _ in first + rest]
    assert len(set(ids)) == len(ids)


async def test_an_answer_can_be_heard_again(client: LegacyClient) -> None:
    whole = await events(client, "POST", 100, headers=ACCEPT, content=progress_call(2))
    again = await events(client, "GET", 100, headers={**ACCEPT, "last-event-id": whole[0][0]})
    assert again == whole[1:]


async def test_another_session_cannot_hear_it(client: LegacyClient) -> None:
    whole = await events(client, "POST", 100, headers=ACCEPT, content=progress_call(2))
    other = LegacyClient(client.url, "token-a", {})
    async with other:
        await other.initialize()
        headers = {**other.headers, **ACCEPT, "last-event-id": whole[0][0]}
        async with other.http.stream("GET", other.url, headers=headers) as answer:
            async for line in answer.aiter_lines():
                assert line.startswith(":")  # its own stream, silent
                break


CALLER = Policies(Approvals(None)).caller("a")


def exchange(number: int) -> Exchange:
    return Exchange(
        client="c", caller=CALLER, owner="s", request_id=b"%d" % number, method="tools/call", params={}, modern=False
    )


async def test_what_is_kept_is_bounded() -> None:
    streams = ReplayStreams()
    for number in range(2 * MAX_STREAMS):
        one = exchange(number)
        stream = streams.open(one)
        one.complete(Answer(result=b"{}"))
        assert len(stream.after(0)) == 1
    assert sum(streams.find(f"{number}/0") is not None for number in range(1, 2 * MAX_STREAMS + 1)) <= MAX_STREAMS
    long = exchange(1)
    stream = streams.open(long)
    for number in range(MAX_EVENTS + 50):
        long.push(b"%d" % number)
        stream.after(0)
    assert stream.last == MAX_EVENTS + 50
    assert len(stream.after(0)) == MAX_EVENTS
    assert stream.after(stream.last - 1)[0].endswith(b"data: %d\n\n" % (MAX_EVENTS + 49))


@pytest.mark.parametrize("event_id", ["", "1", "9/0", "1/x", "1/-1"])
async def test_an_id_of_no_stream_is_not_found(event_id: str) -> None:
    streams = ReplayStreams()
    streams.open(exchange(1))
    assert streams.find(event_id) is None

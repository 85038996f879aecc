"""The event stream of a real engine: nothing missed on a second connection, and nobody held back by a slow reader."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import msgspec
import pytest

from callboard.api.client import EngineClient
from callboard.api.schema import Event
from callboard.core.errors import CallboardError
from tests.support.engine import EngineProcess, entry
from tests.support.processes import odd_server


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """An engine with one quick server."""
    async with EngineProcess(callboard_home, {"odd": entry(*odd_server())}) as engine:
        await engine.wait_for("odd", "ready")
        yield engine


async def read_until(client: EngineClient, after: int, text: str) -> list[Event]:
    """The events after a number, up to the line of the log with this text."""
    found = []
    async with asyncio.timeout(60), contextlib.aclosing(client.events(after)) as events:
        async for event in events:
            found.append(event)
            if event.kind == "log" and any(line["text"] == text for line in event.data["lines"]):
                return found
    raise AssertionError("the stream ended")


def lines_of(events: list[Event]) -> list[str]:
    """The lines of the server's log in these events."""
    return [line["text"] for event in events if event.kind == "log" for line in event.data["lines"]]


async def say(engine: EngineProcess, *texts: str) -> None:
    """Make the server print lines."""
    for text in texts:
        await engine.client.call_tool("odd", "log", {"text": text})


async def test_a_second_connection_misses_nothing(engine: EngineProcess) -> None:
    async with EngineClient(engine.client.address) as reader:
        reading = asyncio.create_task(read_until(reader, 0, "three"))
        await say(engine, "one", "two", "three")
        first = await reading
        # nobody listens now
        await say(engine, "four", "five")
        second = await read_until(reader, first[-1].seq, "five")
        await say(engine, "six")
        third = await read_until(reader, second[-1].seq, "six")
    events = first + second + third
    assert [event.seq for event in events] == list(range(1, events[-1].seq + 1))
    assert lines_of(events)[-6:] == ["one", "two", "three", "four", "five", "six"]
    calls = {call["id"] for event in events if event.kind == "calls" for call in event.data["calls"]}
    assert calls >= {1, 2, 3, 4, 5}  # the last one may be told after its line


async def test_from_now_on_begins_with_a_reset(engine: EngineProcess) -> None:
    async with EngineClient(engine.client.address) as reader:
        await say(engine, "before")
        await read_until(reader, 0, "before")
        opened = asyncio.Event()
        events = reader.events(opened=opened.set)
        first = await anext(events)
        assert (first.kind, first.data) == ("reset", {})
        assert opened.is_set()
        await say(engine, "after")
        heard = await read_until(reader, first.seq, "after")
        await events.aclose()  # type: ignore[attr-defined]
    assert "before" not in lines_of(heard)
    assert all(event.seq > first.seq for event in heard)


async def test_a_reader_may_want_some_kinds_alone(engine: EngineProcess) -> None:
    async with (
        EngineClient(engine.client.address) as reader,
        contextlib.aclosing(reader.events(0, ["log"])) as lines,
        contextlib.aclosing(reader.events(0, ["call-events", "log"])) as both,
        asyncio.timeout(60),
    ):
        await say(engine, "one", "two")
        kinds = set()
        for events in (lines, both):
            found = [event async for event in _up_to_line(events, "two")]
            assert lines_of(found)[-2:] == ["one", "two"]
            kinds |= {event.kind for event in found}
            if events is lines:
                assert kinds == {"log"}
    assert kinds == {"log", "call-events"}


async def _up_to_line(events: AsyncIterator[Event], text: str) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if text in lines_of([event]):
            return


async def test_a_kind_that_does_not_exist_is_refused(engine: EngineProcess) -> None:
    with pytest.raises(CallboardError) as caught:
        await anext(engine.client.events(0, ["colls"]))  # type: ignore[list-item]
    assert caught.value.code == "bad-request"


async def test_lists_known_from_the_last_run_are_told_as_such_until_they_are_read(
    callboard_home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    gate.touch()
    roster = {"odd": entry(*odd_server("--hold-list", str(gate)))}
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.wait_for_view("odd", lambda view: view.tools == 3 and not view.cached)
    gate.unlink()
    async with (
        EngineProcess(callboard_home, roster) as engine,
        EngineClient(engine.client.address) as reader,
        asyncio.timeout(60),
        contextlib.aclosing(reader.events(0)) as events,
    ):
        await until_view(events, state="ready", tools=3, cached=True)
        await asyncio.sleep(0.3)  # nothing else is about to be told of
        gate.touch()
        await until_view(events, state="ready", tools=3, cached=False)


async def until_view(events: AsyncIterator[Event], **fields: Any) -> None:
    """Read events up to the one of a server's view that has these values."""
    async for event in events:
        if event.kind == "server" and fields.items() <= event.data.items():
            return


async def test_a_number_of_another_engine_s_life_begins_with_a_reset(engine: EngineProcess) -> None:
    async with EngineClient(engine.client.address) as reader, contextlib.aclosing(reader.events(10**9)) as events:
        assert (await anext(events)).kind == "reset"


async def test_a_reader_that_stops_reading_holds_nothing_back_and_is_told_what_it_missed(engine: EngineProcess) -> None:
    address = engine.client.address
    stuck = await connect_raw(engine)
    try:
        # far more events than the engine keeps and than fit into the sockets' buffers
        await asyncio.to_thread(flood, engine, 8_000)
        async with EngineClient(address) as reader:
            newest = await last_number(reader)
            assert newest > 8_000
            async with contextlib.aclosing(reader.events(1)) as events:
                assert (await anext(events)).kind == "reset"
            async with contextlib.aclosing(reader.events(newest - 100)) as events:
                assert (await anext(events)).seq == newest - 99
        # the stuck one reads on: a part as it was, then a reset, then what is new
        with stuck.makefile("rb") as stream:
            before = await asyncio.to_thread(read_raw, stream, lambda event: event.kind == "reset")
            await say(engine, "at last")
            since = await asyncio.to_thread(read_raw, stream, lambda event: "at last" in lines_of([event]))
    finally:
        stuck.close()
    *kept, reset = before
    assert [event.seq for event in kept] == list(range(1, len(kept) + 1))
    assert [event.seq for event in since] == list(range(reset.seq + 1, since[-1].seq + 1))
    assert "reset" not in {event.kind for event in since}


async def connect_raw(engine: EngineProcess) -> socket.socket:
    """The event stream from its beginning, on a socket that nobody reads."""
    host, port = engine.client.address.url.removeprefix("http://").split(":")
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(60)
    await asyncio.to_thread(connection.connect, (host, int(port)))
    head = f"GET /api/v1/events?after=0 HTTP/1.1\r\nHost: {host}:{port}\r\n"
    connection.sendall(f"{head}Authorization: Bearer {engine.client.address.admin_token}\r\n\r\n".encode())
    return connection


def read_raw(stream: IO[bytes], is_last: Callable[[Event], bool]) -> list[Event]:
    """The next events of a raw stream, up to one."""
    decoder = msgspec.json.Decoder(Event)
    found = []
    for line in stream:
        if line.startswith(b"{"):
            found.append(decoder.decode(line))
            if is_last(found[-1]):
                return found
    raise AssertionError("the stream ended")


async def last_number(reader: EngineClient) -> int:
    """The newest event's number."""
    async with contextlib.aclosing(reader.events()) as events:
        return (await anext(events)).seq


def flood(engine: EngineProcess, count: int) -> None:
    """Cause at least so many events, quickly: each secret that is stored is one."""
    address = urlsplit(engine.client.address.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    headers = {"authorization": f"Bearer {engine.client.address.admin_token}", "content-type": "application/json"}
    for number in range(count):
        # each event names all secrets there are
        connection.request("PUT", f"/api/v1/secrets/{number % 40:060}", b'{"value": "%d"}' % number, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 204
    connection.close()

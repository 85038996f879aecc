"""HTTP/1.1 on the wire: what comes in pieces, several requests at once, and how connections end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.engine.gateway.app import _find_target
from callboard.engine.gateway.http import Reply
from callboard.engine.gateway.mcp import McpEndpoint
from callboard.engine.gateway.protocol import GatewayProtocol
from tests.support.gateway import TestGateway, gateway, until

PING = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":%d,"result":{}}'
LARGE = (b"x" * 8_000_000, b"y" * 8_000_000)
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway with a server ``one`` that does not run: it answers pings itself."""
    async with gateway(tmp_path, "one") as made:
        yield made


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[GatewayProtocol]:
    """The connections that are made, oldest first."""
    found: list[GatewayProtocol] = []
    connect: Callable[..., None] = GatewayProtocol.connection_made

    def note(protocol: GatewayProtocol, transport: asyncio.Transport) -> None:
        connect(protocol, transport)
        found.append(protocol)

    monkeypatch.setattr(GatewayProtocol, "connection_made", note)
    return found


@asynccontextmanager
async def connection(front: TestGateway) -> AsyncIterator[Connection]:
    """A connection on which whatever is written goes out as it is."""
    host, port = front.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        async with asyncio.timeout(60):
            yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


def request(body: bytes, *headers: str, path: str = "/servers/one/mcp", version: str = "1.1") -> bytes:
    lines = [
        f"POST {path} HTTP/{version}",
        "Host: localhost",
        "Authorization: Bearer token-a",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[bytes, bytes], bytes]:
    """The next answer of a connection: status, headers, body."""
    status = int((await reader.readline()).split()[1])
    headers = {}
    while line := (await reader.readline()).strip():
        name, _, value = line.partition(b": ")
        headers[name] = value
    return status, headers, await reader.readexactly(int(headers.get(b"content-length", b"0")))


async def test_requests_that_come_together_are_answered_in_their_order(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(b"".join(request(PING % number) for number in range(20)))
        for number in range(20):
            assert (await answer(reader))[2] == PONG % number


async def test_a_request_may_come_in_pieces(front: TestGateway) -> None:
    whole = request(PING % 1)
    async with connection(front) as (reader, writer):
        for piece in (whole[:30], whole[30:-20], whole[-20:-3], whole[-3:]):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        assert (await answer(reader))[2] == PONG % 1


async def test_a_client_that_asks_first_is_told_to_go_on(front: TestGateway) -> None:
    whole = request(PING % 1, "Expect: 100-continue")
    head, body = whole[: -len(PING % 1)], PING % 1
    async with connection(front) as (reader, writer):
        writer.write(head)
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert await reader.readline() == b"\r\n"
        writer.write(body)
        assert (await answer(reader))[2] == PONG % 1


@pytest.mark.parametrize("last", [request(PING % 1, "Connection: close"), request(PING % 1, version="1.0")])
async def test_a_connection_that_is_not_to_be_kept_is_closed(front: TestGateway, last: bytes) -> None:
    async with connection(front) as (reader, writer):
        writer.write(last)
        _, headers, body = await answer(reader)
        assert (headers[b"connection"], body) == (b"close", PONG % 1)
        assert await reader.read() == b""


async def test_the_answer_to_head_has_no_body(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + request(PING % 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        while (await reader.readline()).strip():
            pass
        assert (await answer(reader))[2] == PONG % 1


async def test_what_is_no_request_is_refused(front: TestGateway, caplog: pytest.LogCaptureFixture) -> None:
    async with connection(front) as (reader, writer):
        writer.write(b"nonsense\r\n\r\n")
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_a_very_long_path_is_not_found_and_not_remembered(front: TestGateway) -> None:
    remembered = _find_target.cache_info().currsize
    async with connection(front) as (reader, writer):
        for number in range(3):
            writer.write(request(PING % 1, path=f"/servers/{number}{'x' * 30_000}/mcp"))
            assert (await answer(reader))[0] == 404
    assert _find_target.cache_info().currsize == remembered


@pytest.mark.allow_logs
async def test_a_failure_of_ours_is_told_and_ends_the_connection(
    front: TestGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(McpEndpoint, "begin", fail)
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1))
        assert (await answer(reader))[0] == 500
        assert await reader.read() == b""
    assert [record.levelname for record in caplog.records] == ["ERROR"]


async def test_an_idle_connection_is_closed_and_a_used_one_is_not(
    front: TestGateway, connected: list[GatewayProtocol]
) -> None:
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1))
        await answer(reader)
        connected[0]._look_if_idle()
        writer.write(request(PING % 2))
        assert (await answer(reader))[2] == PONG % 2
        connected[0].timeout_keep_alive = 0
        connected[0]._look_if_idle()
        assert await reader.read() == b""


async def test_a_large_answer_that_nobody_reads_holds_its_connection_back(
    front: TestGateway, connected: list[GatewayProtocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(McpEndpoint, "begin", lambda *_: Reply(200, LARGE))
    async with connection(front) as (reader, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport
        writer.write(request(PING % 1))
        await until(lambda: connected and connected[0].flow.write_paused)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert (await answer(reader))[2] == b"".join(LARGE)
        await until(lambda: not connected[0].flow.write_paused)


async def test_an_answer_to_a_client_that_is_just_gone_leaves_the_next_connections_alone(
    front: TestGateway, connected: list[GatewayProtocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    def begin(*_: Any) -> Reply:
        connected[0].transport.abort()  # as when a reset is seen in the turn of the loop in which the answer comes
        return Reply(200, LARGE)

    with monkeypatch.context() as patch:
        patch.setattr(McpEndpoint, "begin", begin)
        async with connection(front) as (reader, writer):
            writer.write(request(PING % 1))
            with contextlib.suppress(ConnectionResetError):
                await reader.read()
    for _ in range(3):  # of which one has the descriptor of the lost one
        async with connection(front) as (reader, writer):
            writer.write(request(PING % 2))
            assert (await answer(reader))[2] == PONG % 2

"""HTTP/1.1 on the wire: what comes in pieces, several requests at once, and how connections end."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.engine.gateway import protocol as gateway_protocol
from callboard.engine.gateway.app import _find_target
from callboard.engine.gateway.http import Reply, respond
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


async def call(front: TestGateway, tool: str, *headers: str, **arguments: Any) -> bytes:
    """A modern request for a tool, which says that a stream is taken, with a token for progress."""
    async with front.modern("one") as client:
        message = client.message("tools/call", {"name": tool, "arguments": arguments}, progressToken=1)
        own = {**client.headers_for(message), "accept": client.headers["accept"]}
    return request(json.dumps(message).encode(), *[f"{name}: {value}" for name, value in own.items()], *headers)


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


async def test_a_client_that_asks_and_does_not_wait_is_not_told_in_the_middle_of_its_answer(front: TestGateway) -> None:
    await front.start_fixture("one", "modern")
    async with connection(front) as (reader, writer):
        writer.write(await call(front, "progress", "Expect: 100-continue", "Connection: close"))
        stream = await reader.read()
    assert stream.startswith(b"HTTP/1.1 200")
    assert b"HTTP/1.1 100" not in stream
    assert b"done" in stream


async def test_who_asks_for_a_stream_is_not_told_to_go_on_in_the_middle_of_it(front: TestGateway) -> None:
    async with front.legacy("one") as client, connection(front) as (reader, writer):
        await client.initialize()
        own = f"Mcp-Session-Id: {client.session}"
        writer.write(request(b"", own, "Expect: 100-continue", "Connection: close").replace(b"POST", b"GET", 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        assert (await client.http.delete(client.url, headers=client.headers)).status_code == 204
        assert b"HTTP/1.1 100" not in await reader.read()


@pytest.mark.parametrize(
    "last",
    [
        request(PING % 1, "Connection: close"),
        request(PING % 1, version="1.0"),
        request(PING % 1, "Connection: keep-alive", "Expect: 100-continue", version="1.0"),
    ],
)
async def test_a_connection_that_is_not_to_be_kept_is_closed(front: TestGateway, last: bytes) -> None:
    async with connection(front) as (reader, writer):
        writer.write(last)
        _, headers, body = await answer(reader)
        assert (headers[b"connection"], body) == (b"close", PONG % 1)
        assert await reader.read() == b""


async def test_a_client_that_knows_no_chunks_gets_a_stream_as_it_is(front: TestGateway) -> None:
    await front.start_fixture("one", "modern")
    async with connection(front) as (reader, writer):
        writer.write((await call(front, "progress")).replace(b"HTTP/1.1", b"HTTP/1.0", 1))
        head, _, stream = (await reader.read()).partition(b"\r\n\r\n")
    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    *_, last, end = stream.decode().split("\n\n")
    assert end == ""
    assert json.loads(last.partition("data: ")[2])["result"]["content"][0]["text"] == "done"


async def test_an_answer_that_says_no_content_has_no_length(front: TestGateway) -> None:
    async with front.legacy("one") as client, connection(front) as (reader, writer):
        await client.initialize()
        own = f"Mcp-Session-Id: {client.session}"
        writer.write(request(b"", own).replace(b"POST", b"DELETE", 1) + request(PING % 1))
        status, headers, _ = await answer(reader)
        assert status == 204
        assert b"content-length" not in headers
        assert (await answer(reader))[2] == PONG % 1


async def test_the_answer_to_head_has_no_body(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + request(PING % 1))
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        while (await reader.readline()).strip():
            pass
        assert (await answer(reader))[2] == PONG % 1


H2C = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")


async def test_a_wish_for_another_protocol_is_passed_over(front: TestGateway) -> None:
    whole = request(PING % 1, *H2C)
    chunked = request(b"", *H2C).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    chunked += b"%x\r\n%b\r\n0\r\n\r\n" % (len(PING % 1), PING % 1)
    async with connection(front) as (reader, writer):
        for wish in (whole, chunked):
            writer.write(wish + request(PING % 2) + wish)
            for number in (1, 2, 1):
                assert (await answer(reader))[2] == PONG % number
        for byte in whole:
            writer.write(bytes([byte]))
            await writer.drain()
        assert (await answer(reader))[2] == PONG % 1
        writer.write(whole.replace(b"Upgrade, ", b"close, Upgrade, "))
        assert (await answer(reader))[1][b"connection"] == b"close"
        assert await reader.read() == b""


async def test_a_web_socket_is_not_opened(front: TestGateway) -> None:
    wish = request(b"", "Connection: Upgrade", "Upgrade: websocket").replace(b"POST", b"GET", 1)
    async with connection(front) as (reader, writer):
        writer.write(wish * 2 + request(PING % 1))
        assert [(await answer(reader))[0] for _ in range(2)] == [405, 405]
        assert (await answer(reader))[2] == PONG % 1


async def test_no_tunnel_is_opened(front: TestGateway, caplog: pytest.LogCaptureFixture) -> None:
    async with connection(front) as (reader, writer):
        writer.write(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""
    assert [record.levelname for record in caplog.records] == ["WARNING"]


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


async def test_a_body_that_is_no_body_is_refused(
    front: TestGateway, connected: list[GatewayProtocol], caplog: pytest.LogCaptureFixture
) -> None:
    head = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    async with connection(front) as (reader, writer):
        writer.write(head.replace(b"/one/mcp", b"/one/mcp/tools/x") + b"1\r\n{\r\n")
        await until(lambda: connected and connected[0].cycle)
        writer.write(b"nonsense\r\n")
        assert (await answer(reader))[0] == 400
        assert await reader.read() == b""
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_no_refusal_gets_into_a_stream(front: TestGateway, caplog: pytest.LogCaptureFixture) -> None:
    await front.start_fixture("one", "modern")
    async with connection(front) as (reader, writer):
        writer.write(await call(front, "progress", steps=10_000))
        begun = await reader.readuntil(b"progress")
        writer.write(b"nonsense\r\n\r\n")
        assert b"HTTP/1.1" not in await reader.read()
    assert begun.startswith(b"HTTP/1.1 200")
    assert [record.levelname for record in caplog.records] == ["WARNING"]


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


async def test_a_call_is_taken_back_when_its_client_goes_away_though_it_has_asked_for_more(front: TestGateway) -> None:
    await front.start_fixture("one", "modern")
    in_flight = front.relay.links["one"].in_flight
    async with connection(front) as (_, writer):
        writer.write(await call(front, "slow", ms=60_000) + await call(front, "echo", text="x"))
        exchange = next(iter(await until(lambda: in_flight)))
    await until(lambda: exchange.cancelled)
    await until(lambda: not in_flight)


async def test_a_client_that_closes_its_side_counts_as_gone(front: TestGateway) -> None:
    await front.start_fixture("one", "modern")
    in_flight = front.relay.links["one"].in_flight
    async with connection(front) as (reader, writer):
        writer.write(await call(front, "slow", ms=60_000))
        exchange = next(iter(await until(lambda: in_flight)))
        writer.write_eof()
        assert await reader.read() == b""
        await until(lambda: exchange.cancelled)


# ---- what somebody sends who has shown no token

HEAD = b"POST /servers/one/mcp HTTP/1.1\r\nHost: localhost\r\n"
LIMIT = gateway_protocol.LARGEST_HEAD


async def refusal(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Status and code of an error after which the connection is closed."""
    status, headers, body = await answer(reader)
    assert headers[b"connection"] == b"close"
    assert await reader.read() == b""
    return status, json.loads(body)["code"]


def lines(size: int) -> bytes:
    """Whole headers, together of this size."""
    count, rest = divmod(size, 1000)
    return b"".join(b"X: " + b"a" * 995 + b"\r\n" for _ in range(count - 1)) + b"X: " + b"a" * (995 + rest) + b"\r\n"


async def test_a_head_without_an_end_is_refused_before_it_fills_the_memory(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(HEAD + lines(LIMIT - 5000))
        await writer.drain()
        writer.write(lines(6000))
        assert await refusal(reader) == (431, "head-too-large")


@pytest.mark.parametrize("start", [b"GET /", HEAD + b"X: ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: "])
async def test_a_line_without_an_end_ends_the_connection(front: TestGateway, start: bytes) -> None:
    host, port = front.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 60) as client:
        client.setblocking(False)
        loop, sent = asyncio.get_running_loop(), 0
        await loop.sock_sendall(client, start)
        with contextlib.suppress(ConnectionError):
            while sent < 64 * 1024 * 1024:
                await loop.sock_sendall(client, b"a" * 16000)
                sent += 16000
    assert sent < 64 * 1024 * 1024


async def test_many_small_headers_are_refused(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(HEAD + b"X: a\r\n" * (LIMIT // gateway_protocol.HEADER_COST))
        assert await refusal(reader) == (431, "head-too-large")


async def test_a_large_head_that_comes_at_once_is_refused(front: TestGateway) -> None:
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1, lines(LIMIT).decode().strip()))
        assert await refusal(reader) == (431, "head-too-large")


async def test_a_head_within_the_limit_and_a_large_body_are_taken(front: TestGateway) -> None:
    large = PING % 1 + b" " * (4 * LIMIT)
    async with connection(front) as (reader, writer):
        for number in range(3):
            writer.write(request(PING % number, lines(LIMIT - 5000).decode().strip()) + request(large))
            assert (await answer(reader))[2] == PONG % number
            assert (await answer(reader))[2] == PONG % 1


async def test_a_body_in_chunks_may_be_large_and_its_trailers_are_no_headers(front: TestGateway) -> None:
    head = request(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    blank = b"%x\r\n%b\r\n" % (LIMIT, b" " * LIMIT)
    body = b"%x\r\n%b\r\n" % (len(PING % 1), PING % 1) + blank * 3 + b"0\r\nHost: evil.example\r\n\r\n"
    async with connection(front) as (reader, writer):
        writer.write(head + body)
        assert (await answer(reader))[2] == PONG % 1


async def test_a_head_that_is_begun_must_end_in_time(front: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_protocol, "HEAD_SECONDS", 0.05)
    async with connection(front) as (reader, writer):
        writer.write(HEAD)
        assert await refusal(reader) == (408, "head-timeout")
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1) + HEAD)
        assert (await answer(reader))[2] == PONG % 1
        assert await refusal(reader) == (408, "head-timeout")


async def test_a_head_that_we_do_not_read_on_is_waited_for(front: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    go = asyncio.Event()
    look: Callable[..., None] = GatewayProtocol._look_at_head

    def note(protocol: GatewayProtocol) -> None:
        looked.append(protocol.flow.read_paused)
        look(protocol)

    async def wait(
        self: McpEndpoint, method: str, server: str, caller: Any, headers: Any, receive: Any, send: Any
    ) -> None:
        await go.wait()
        await respond(send, 200, b"{}")

    monkeypatch.setattr(gateway_protocol, "HEAD_SECONDS", 0.01)
    monkeypatch.setattr(GatewayProtocol, "_look_at_head", note)
    monkeypatch.setattr(McpEndpoint, "begin", lambda *_: None)
    monkeypatch.setattr(McpEndpoint, "__call__", wait)
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1) + request(PING % 2) + HEAD)
        await until(lambda: len(looked) > 2)
        assert all(looked)
        go.set()
        for _ in range(2):
            assert (await answer(reader))[2] == b"{}"


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", HEAD + b"\r\n"])
async def test_a_connection_on_which_nobody_was_let_in_is_soon_closed(
    front: TestGateway, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(gateway_protocol, "STRANGER_SECONDS", 0.2)
    async with connection(front) as (reader, writer):
        writer.write(said)
        if said:
            await answer(reader)
        assert await reader.read() == b""


async def test_there_may_not_be_too_many_connections(front: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_protocol, "MOST_CONNECTIONS", 1)
    async with connection(front) as (reader, writer):
        writer.write(request(PING % 1))
        assert (await answer(reader))[2] == PONG % 1
        async with connection(front) as (second, _):
            assert await refusal(second) == (503, "connections-exhausted")
        writer.write(request(PING % 2))
        assert (await answer(reader))[2] == PONG % 2

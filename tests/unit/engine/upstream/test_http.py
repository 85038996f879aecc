"""Remote servers: what they answer, how their sessions end, what breaks on the way."""

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch
from callboard.engine.relay.envelope import raw_json
from callboard.engine.upstream import event_stream, http_answers
from callboard.engine.upstream import http as http_module
from callboard.engine.upstream.base import Params
from callboard.engine.upstream.http import HttpUpstream
from tests.support.gateway import SERVERS, http_fixture, http_server, until
from tests.unit.engine.upstream.conftest import Listener, Peer

BAD = SERVERS / "bad_http.py"


@asynccontextmanager
async def reaching(
    url: str, *, modern: bool | None = None, transport: str = "http", **more: Any
) -> AsyncIterator[tuple[HttpUpstream, Peer]]:
    peer = Peer()
    upstream = HttpUpstream(peer, modern=modern, **more)
    try:
        await upstream.open(RemoteLaunch(url, headers={"authorization": "Bearer secret"}, transport=transport))
        yield upstream, peer
    finally:
        await upstream.close()


@asynccontextmanager
async def bad(how: str, *rest: str) -> AsyncIterator[tuple[HttpUpstream, Peer]]:
    with http_server(BAD, how, *rest) as url:
        async with reaching(f"{url}/mcp", modern=False) as made:
            yield made


def call(tool: str, **arguments: Any) -> Params:
    return {"name": raw_json(tool), "arguments": raw_json(arguments)}


async def ask(upstream: HttpUpstream, tool: str = "echo", **arguments: Any) -> Any:
    listener = Listener()
    upstream.send("tools/call", call(tool, **arguments), listener)
    async with asyncio.timeout(60):
        return await listener.done


def text_of(result: Any) -> str:
    text: str = result["content"][0]["text"]
    return text


# ---- odd answers that can be understood


ODD = ["redirect", "batch", "bom", "text-id", "null-id", "resumable", "tiny", "busy"]
ODD += ["gzip", "nolength", "closing", "bignum"]


@pytest.mark.parametrize("how", ODD)
async def test_an_odd_answer_is_understood(how: str) -> None:
    async with bad(how) as (upstream, _):
        assert text_of(await ask(upstream, text="a")) == "a"
        assert text_of(await ask(upstream, text="b")) == "b"


async def test_a_change_told_on_a_calls_stream_is_the_servers() -> None:
    async with bad("relist") as (upstream, peer):
        listener = Listener()
        upstream.send("tools/call", call("echo", text="x"), listener)
        assert text_of(await listener.done) == "x"
        assert listener.notes == []
        assert [method for method, _ in peer.notes] == [
            "notifications/tools/list_changed",
            "notifications/resources/updated",
        ]


# ---- answers that end the request


@pytest.mark.parametrize(
    ("how", "rest", "code", "words"),
    [
        ("call-status", "401", "remote-sign-in", "HTTP 401"),
        ("call-status", "403", "remote-forbidden", "HTTP 403"),
        ("call-status", "500", "remote-failed", "HTTP 500"),
        ("call-status", "404", "remote-not-found", "HTTP 404"),
        ("document", "404", "remote-not-found", "HTTP 404"),
        ("call-status", "302", "remote-status", "another address"),
        ("html", "", "remote-status", "text/html instead of a message"),
        ("accepted", "", "remote-status", "nothing instead of a message"),
        ("cut", "", "upstream-gone", "closed the stream before it had answered"),
        ("reset", "", "remote-unreachable", "closed the connection"),
    ],
)
async def test_a_call_fails_with_the_reason(how: str, rest: str, code: str, words: str) -> None:
    async with bad(how, rest) as (upstream, _):
        error = await ask(upstream)
        assert isinstance(error, CallboardError)
        assert (error.code, words in error.message) == (code, True), error.message
        if code == "remote-sign-in":
            assert upstream.closed.done()  # nothing else would get through either
            return
        assert await upstream.request("tools/list")  # the connection lives on
        assert not upstream.closed.done()


@pytest.mark.parametrize("how", ["huge", "huge-event"])
async def test_an_answer_beyond_the_limit_fails_its_request_alone(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bad(how) as (upstream, _):
        monkeypatch.setattr(event_stream, "MAX_EVENT", 100_000)
        monkeypatch.setattr(http_answers, "MAX_EVENT", 100_000)
        error = await ask(upstream)
        assert error == {"code": -32603, "message": "The server's answer is larger than 64 MiB."}
        assert await upstream.request("tools/list")


async def test_a_server_that_cannot_be_reached_three_times_is_gone() -> None:
    with http_server(BAD, "plain") as url:
        peer = Peer()
        upstream = HttpUpstream(peer, modern=False)
        await upstream.open(RemoteLaunch(f"{url}/mcp"))
    errors = [await ask(upstream) for _ in range(3)]
    assert {error.code for error in errors} == {"remote-refused"}
    assert upstream.closed.done()
    assert (await ask(upstream)).code == "upstream-gone"
    await upstream.close()


async def test_connections_that_break_do_not_end_a_server_that_is_there() -> None:
    async with bad("reset") as (upstream, _):
        for _ in range(5):
            assert (await ask(upstream)).code == "remote-unreachable"
            assert await upstream.request("tools/list")
        assert not upstream.closed.done()


# ---- starts that fail


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("401", "remote-sign-in"),
        ("403", "remote-forbidden"),
        ("500", "remote-failed"),
        ("502", "remote-failed"),
        ("302", "remote-status"),
    ],
)
async def test_a_start_says_what_the_server_answers(status: str, code: str) -> None:
    with http_server(BAD, "status", status) as url, pytest.raises(CallboardError) as caught:
        async with reaching(f"{url}/mcp"):
            pass
    assert caught.value.code == code
    assert caught.value.data["status"] == int(status)


async def test_nobody_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/mcp"
    with pytest.raises(CallboardError) as caught:
        async with reaching(url):
            pass
    assert caught.value.code == "remote-refused"


@contextlib.contextmanager
def trap() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that takes down the headers of whatever comes, and where it is."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(dict(self.headers))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_credentials_do_not_go_where_a_server_points() -> None:
    with trap() as (elsewhere, seen), pytest.raises(CallboardError, match="points to another address"):
        async with bad("away", elsewhere):
            pass
    assert seen == []


async def test_localhost_is_tried_in_both_families() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")

    class Six(HTTPServer):
        address_family = socket.AF_INET6

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "serverInfo": {"name": "six", "version": "1"},
            }
            body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
            self.send_response(200 if "id" in message else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if "id" in message else 0))
            self.end_headers()
            self.wfile.write(body if "id" in message else b"")

        def do_GET(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    try:
        server = Six(("::1", 0), Handler)
    except OSError:
        pytest.skip("this machine has no IPv6")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        async with reaching(f"http://localhost:{server.server_address[1]}/mcp", modern=False) as (upstream, _):
            assert upstream.info.name == "six"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# ---- sessions


@pytest.mark.parametrize("status", ["404", "410", "400"])
async def test_an_expired_session_is_renewed_and_the_request_repeated(status: str) -> None:
    async with bad("expired", status) as (upstream, peer):
        for number in range(10):
            assert text_of(await ask(upstream, text=str(number))) == str(number)
        counts = json.loads(text_of(await ask(upstream, text="counts")))
        assert counts["initialize"] == counts["notifications/initialized"] == 4
        assert peer.renewed == 3


async def test_what_is_asked_while_a_session_is_renewed_waits_for_the_new_one() -> None:
    async with bad("expired", "404", "0.5") as (upstream, peer):
        for _ in range(3):
            await ask(upstream)
        first = asyncio.ensure_future(ask(upstream, text="first"))
        async with asyncio.timeout(30):
            while upstream._session:  # noqa: ASYNC110  no event tells of it
                await asyncio.sleep(0.01)
        assert text_of(await ask(upstream, text="second")) == "second"
        assert text_of(await first) == "first"
        assert peer.renewed == 1


async def test_many_that_find_a_session_expired_renew_it_once() -> None:
    with http_fixture("legacy") as url:
        async with reaching(f"{url}/mcp") as (upstream, peer):
            await ask(upstream, "forget")
            answers = await asyncio.gather(*(ask(upstream, text=str(number)) for number in range(20)))
            assert [text_of(answer) for answer in answers] == [str(number) for number in range(20)]
            counts = json.loads(text_of(await ask(upstream, "counts")))
            assert counts["initialize"] == 2
            assert peer.renewed == 1


async def test_after_a_renewal_changes_are_heard_again() -> None:
    with http_fixture("legacy") as url:
        async with reaching(f"{url}/mcp") as (upstream, peer):
            await ask(upstream, "forget")
            await ask(upstream)
            async with asyncio.timeout(60):
                while not peer.notes:
                    await ask(upstream, "toggle")
            assert peer.notes[0][0] == "notifications/tools/list_changed"


async def test_a_session_that_cannot_be_renewed_ends_the_connection() -> None:
    async with bad("lost") as (upstream, _):
        for _ in range(3):
            await ask(upstream)
        errors = await asyncio.gather(*(ask(upstream) for _ in range(3)))
        assert {error.code for error in errors} == {"upstream-gone"}
        assert "its session expired" in upstream.closed.result().reason


async def test_a_session_is_deleted_at_the_end() -> None:
    with http_fixture("legacy") as url:
        async with reaching(f"{url}/mcp") as (first, _):
            session = first._session
            async with reaching(f"{url}/mcp") as (second, _):
                assert second._session != session
        async with reaching(f"{url}/mcp") as (third, _):
            third._session = session
            assert text_of(await ask(third, text="x")) == "x"  # only because it was renewed
            assert third._session != session


# ---- streams of changes


async def test_a_broken_stream_of_messages_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "RETURN_SECONDS", 0.01)
    with http_fixture("legacy") as url:
        async with reaching(f"{url}/mcp") as (upstream, peer):
            await until(lambda: upstream._others)
            counts = json.loads(text_of(await ask(upstream, "counts")))
            await ask(upstream, "unstream")
            async with asyncio.timeout(60):
                while json.loads(text_of(await ask(upstream, "counts")))["GET"] == counts.get("GET", 0):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                while not peer.notes:
                    await ask(upstream, "toggle")


# ---- HTTP+SSE


async def test_the_old_transport_is_found_out() -> None:
    with http_fixture("legacy", "one", "--sse") as url:
        for transport in ("http", "sse"):
            async with reaching(f"{url}/sse", transport=transport) as (upstream, peer):
                assert text_of(await ask(upstream, text="x")) == "x"
                assert text_of(await ask(upstream, "elicit")) == "hello None"
                assert [method for method, _ in peer.questions] == ["elicitation/create"]
                await ask(upstream, "toggle")
                await until(lambda peer=peer: peer.notes)


async def test_the_end_of_the_old_transports_stream_ends_all_requests() -> None:
    with http_fixture("legacy", "one", "--sse") as url:
        async with reaching(f"{url}/sse", transport="sse") as (upstream, _):
            slow = Listener()
            upstream.send("tools/call", call("slow", ms=60_000), slow)
            forget = Listener()
            upstream.send("tools/call", call("forget"), forget)
            assert (await slow.done).code == "upstream-gone"
            await upstream.closed


async def test_a_message_that_the_old_transport_refuses_fails_its_request() -> None:
    with http_fixture("legacy", "one", "--sse") as url:
        async with reaching(f"{url}/sse", transport="sse") as (upstream, _):
            channel = upstream._sse
            assert channel is not None
            channel._endpoint = asyncio.get_running_loop().create_future()
            channel._endpoint.set_result(f"{url}/nowhere")
            channel._tasks[1].cancel()
            channel._tasks.append(asyncio.create_task(channel._write()))
            assert (await ask(upstream)).data["status"] == 405


# ---- what is sent


async def test_arguments_are_mirrored_into_headers() -> None:
    paths = {"headed": {"region": ("region",), "number": ("number",)}}
    with http_fixture("modern") as url:
        async with reaching(f"{url}/mcp", header_paths=lambda tool: paths.get(tool, {})) as (upstream, _):
            assert upstream.info.modern
            sent = json.loads(text_of(await ask(upstream, "headed", region="Zürich ", number=5)))
            assert sent["mcp-method"] == "tools/call"
            assert sent["mcp-name"] == "headed"
            assert sent["mcp-param-number"] == "5"
            assert sent["mcp-param-region"].startswith("=?base64?")
            assert "mcp-param-region" not in json.loads(text_of(await ask(upstream, "headed", number=5)))


async def test_headers_of_the_roster_go_along() -> None:
    with trap() as (url, seen):
        with pytest.raises(CallboardError):
            async with reaching(url, modern=False):
                pass
        assert {headers["authorization"] for headers in seen} == {"Bearer secret"}

"""How the gateway behaves on HTTP, towards clients that keep to the rules and such that do not."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Rules
from callboard.core.protocol import META_CAPABILITIES, META_VERSION, MODERN
from callboard.engine.gateway import http as gateway_http
from callboard.engine.gateway import mcp
from callboard.engine.gateway.access import Access
from tests.support.gateway import LegacyClient, ModernClient, TestGateway, gateway, in_background, text_of, until

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway with a legacy fixture server ``one``."""
    async with gateway(tmp_path, "one") as made:
        await made.start_fixture("one", "legacy")
        yield made


@pytest.fixture
async def empty(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway with a server ``one`` that does not run."""
    async with gateway(tmp_path, "one") as made:
        yield made


@pytest.fixture
async def old(front: TestGateway) -> AsyncIterator[LegacyClient]:
    """A legacy client with a session."""
    async with front.legacy("one") as client:
        await client.initialize()
        yield client


@pytest.fixture
async def new(front: TestGateway) -> AsyncIterator[ModernClient]:
    """A modern client."""
    async with front.modern("one") as client:
        yield client


def rpc(method: str, number: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def echo(text: str = "x", number: Any = 1) -> dict[str, Any]:
    return rpc("tools/call", number, name="echo", arguments={"text": text})


# ---- who may call


async def raw(front: TestGateway, head: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
    """Send a request exactly so written."""
    host, port = front.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        async with asyncio.timeout(60):
            status = int((await reader.readline()).split()[1])
            headers = {}
            while line := (await reader.readline()).decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            return status, headers, await reader.readexactly(int(headers.get("content-length", 0)))
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Host: 127.0.0.1:1", 200),
        ("Host: localhost", 200),
        ("Host: LocalHost:4470", 200),
        ("Host: [::1]:4470", 200),
        ("Host: evil.example", 403),
        ("Host: evil.example:4470", 403),
        ("Host: localhost.evil.example", 403),
        ("Host: 127.0.0.1.evil.example", 403),
        ("Host: [::1", 403),
        ("Host:", 403),
        ("X-Forwarded-Host: localhost", 403),
        ("Host: localhost\nOrigin: http://localhost:3000", 200),
        ("Host: localhost\nOrigin: http://127.0.0.1", 200),
        ("Host: localhost\nOrigin: http://[::1]:5", 200),
        ("Host: localhost\nOrigin: https://evil.example", 403),
        ("Host: localhost\nOrigin: http://localhost.evil.example", 403),
        ("Host: localhost\nOrigin: null", 403),
        ("Host: localhost\nOrigin: ", 403),
        ("Host: localhost\nOrigin: http://localhost\nOrigin: https://evil.example", 400),
    ],
)
async def test_only_names_of_this_machine_are_served(empty: TestGateway, headers: str, status: int) -> None:
    for path in ("/healthz", "/mcp", "/servers/one/mcp", "/api/v1/status"):
        found, _, body = await raw(empty, f"GET {path} HTTP/1.1\n{headers}\nAuthorization: Bearer token-a")
        if status == 200:
            assert found in ((200,) if path == "/healthz" else (401, 404, 405))
        else:
            assert found == status
            assert json.loads(body)["message"]


async def test_more_names_can_be_allowed() -> None:
    access = Access("admin", {}.get, hosts=["Box.Local"])
    assert access.check_host(b"box.local:80", b"https://BOX.local") is None
    assert access.check_host(b"box", None) is not None


async def test_a_token_is_needed_and_says_who_calls(empty: TestGateway) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:

        async def status(path: str, authorization: str | None) -> int:
            headers = {"authorization": authorization} if authorization is not None else {}
            answer = await http.post(empty.url + path, json=rpc("ping"), headers=headers)
            if answer.status_code == 401:
                assert answer.headers["www-authenticate"] == 'Bearer realm="callboard"'
                assert answer.json()["fix"]
            return answer.status_code

        for path in ("/mcp", "/mcp/", "/servers/one/mcp", "/servers/one/mcp/"):
            assert await status(path, "Bearer token-a") == 200
            assert await status(path, "bearer  token-b") == 200
            for wrong in (None, "", "Bearer", "Bearer token-c", "token-a", "Basic dG9rZW4tYQ=="):
                assert await status(path, wrong) == 401
        assert await status("/servers/two/mcp", "Bearer token-a") == 404
        assert await status("/nothing", "Bearer token-a") == 404
        assert (await http.get(f"{empty.url}/healthz")).json() == {"status": "ok"}


async def test_the_control_api_wants_the_admin_and_no_client(empty: TestGateway) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        for token, status in (("token-a", 401), ("admin-token", 404)):
            answer = await http.get(f"{empty.url}/api/v1/status", headers={"authorization": f"Bearer {token}"})
            assert answer.status_code == status


async def test_a_client_that_is_called_admin_is_none(tmp_path: Path) -> None:
    clients = {"token-admin": "admin", "token-other": "Admin.ADMIN"}
    denied = {name: ClientEntry(policy=Rules()) for name in clients.values()}
    async with gateway(tmp_path, "one", clients=clients) as front, httpx2.AsyncClient(trust_env=False) as http:
        front.relay.policies.configure(DefaultPolicy(), denied, {})
        for token in clients:
            headers = {"authorization": f"Bearer {token}"}
            assert (await http.get(f"{front.url}/api/v1/roster", headers=headers)).status_code == 401
            answer = await http.post(f"{front.url}/servers/one/mcp", json=rpc("ping"), headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "policy-denied")


# ---- what may be sent


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"nonsense", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    ],
)
async def test_what_is_no_message_is_refused(empty: TestGateway, body: bytes, code: int) -> None:
    async with empty.legacy("one") as client:
        for headers in ({}, {"mcp-protocol-version": "2025-11-25"}, {"mcp-protocol-version": MODERN}):
            answer = await client.post(body, headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, code), answer.text
            assert answer.json()["id"] is None
        # and nothing of it hurts anybody
        assert (await client.post(rpc("ping"))).json()["result"] == {}


@pytest.mark.parametrize(
    "params", [b"[]", b"5", b'"x"', b'{"name":5}', b'{"_meta":[]}', b'{"_meta":{"progressToken":[]}}', b"{}"]
)
async def test_wrong_parameters_are_told(
    front: TestGateway, old: LegacyClient, new: ModernClient, params: bytes
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    answer = await old.post(body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)
    answer = await new.post(body, {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "x"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] in (-32602, -32020)


async def test_parameters_that_are_null_count_as_none(old: LegacyClient) -> None:
    answer = await old.post(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}')
    assert answer.json()["result"] == {}


async def test_half_a_character_is_no_reason_to_refuse(old: LegacyClient) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\\ud83d"}}}'
    assert text_of((await old.post(body)).json()) == "a\ufffd"


async def test_a_body_beyond_the_limit_is_refused(
    front: TestGateway, old: LegacyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_http, "MAX_BODY", 1_000_000)
    answer = await old.post(echo("x" * 3_000_000))
    assert answer.status_code == 413
    assert "64 MiB" in answer.json()["message"]
    assert text_of((await old.post(echo("y" * 900_000))).json()) == "y" * 900_000


async def test_bodies_must_be_json(empty: TestGateway) -> None:
    async with empty.legacy() as client:
        for kind, status in (("text/plain", 415), ("application/json; charset=utf-8", 200), ("APPLICATION/JSON", 200)):
            assert (await client.post(rpc("ping"), {"content-type": kind})).status_code == status


async def test_other_methods_are_not_allowed(empty: TestGateway) -> None:
    async with empty.legacy() as client:
        for method in ("PUT", "PATCH", "OPTIONS", "HEAD"):
            answer = await client.http.request(method, client.url, headers=client.headers)
            assert answer.status_code == 405
            assert "access-control-allow-origin" not in answer.headers
        assert (await client.http.get(client.url, headers=client.headers)).status_code == 405
        modern = {**client.headers, "mcp-protocol-version": MODERN}
        assert (await client.http.delete(client.url, headers=modern)).status_code == 405


async def test_an_upload_that_breaks_off_hurts_nobody(empty: TestGateway) -> None:
    host, port = empty.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-a\r\nContent-Length: 100\r\n\r\n{"
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    async with empty.legacy() as client:
        assert (await client.post(rpc("ping"))).json()["result"] == {}


# ---- legacy sessions


async def test_an_unknown_session_is_told_so_and_then_served_all_the_same(front: TestGateway) -> None:
    async with front.legacy("one") as client:
        client.headers |= {"mcp-session-id": "of-an-earlier-engine"}
        first = await client.post(echo())
        assert first.status_code == 404
        assert first.json()["id"] == 1
        assert "initialize" in first.json()["error"]["message"]
        assert text_of((await client.post(echo())).json()) == "x"
        assert "tools" in (await client.post(rpc("tools/list"))).json()["result"]
        assert (await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        no_place = (await client.post(rpc("resources/subscribe", uri="doc://one/readme"))).json()
        assert no_place["error"]["code"] == -32602
        assert text_of((await client.post(rpc("tools/call", name="elicit"))).json()).startswith("refused")
    assert len(front.relay.sessions) == 0


async def test_a_client_without_a_session_is_served(front: TestGateway) -> None:
    async with front.legacy("one") as client:
        assert text_of((await client.post(echo())).json()) == "x"
        assert (await client.post(rpc("logging/setLevel", level="debug"))).json()["result"] == {}
        assert (await client.post({"jsonrpc": "2.0", "id": 5, "result": {}})).status_code == 202


async def test_a_session_ends_with_delete(front: TestGateway, old: LegacyClient) -> None:
    async with old.listening():
        assert (await old.http.delete(old.url, headers=old.headers)).status_code == 204
    assert len(front.relay.sessions) == 0
    assert (await old.http.delete(old.url, headers=old.headers)).status_code == 404
    assert (await old.http.get(old.url, headers=old.headers)).status_code == 404
    assert (await old.post(echo())).status_code == 404


async def test_the_newest_stream_gets_what_comes(front: TestGateway, old: LegacyClient) -> None:
    session = next(iter(front.relay.sessions))
    async with front.legacy("one") as twin:
        twin.headers |= old.headers
        async with old.listening():
            async with twin.listening():
                session.tell("notifications/x", {})
                await until(lambda: twin.of("notifications/x"))
            await until(lambda: len(session._streams) == 1)
            session.tell("notifications/y", {})
            await until(lambda: old.of("notifications/y"))
        await until(lambda: not session._streams)
        session.tell("notifications/z", {})  # kept for the next one
        async with old.listening():
            await until(lambda: old.of("notifications/z"))
    assert [message["method"] for message in old.heard] == ["notifications/y", "notifications/z"]
    assert [message["method"] for message in twin.heard] == ["notifications/x"]


async def test_older_revisions_are_spoken(front: TestGateway) -> None:
    for asked, spoken in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
        async with front.legacy("one") as client:
            answer = await client.post(rpc("initialize", **{**INITIALIZE, "protocolVersion": asked}))
            assert answer.json()["result"]["protocolVersion"] == spoken
            client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
            headers = {"mcp-protocol-version": spoken} if spoken > "2025-06" else {}
            assert text_of((await client.post(echo(), headers)).json()) == "x"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 5}, {"capabilities": {}}])
async def test_a_handshake_must_name_a_revision(front: TestGateway, params: dict[str, Any]) -> None:
    async with front.legacy("one") as client:
        answer = await client.post(rpc("initialize", **params))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert len(front.relay.sessions) == 0


async def test_words_of_the_modern_era_in_an_argument_do_not_make_a_request_modern(front: TestGateway) -> None:
    async with front.legacy("one") as client:
        answer = await client.post(echo(f"_meta {META_VERSION}"))
        assert text_of(answer.json()) == f"_meta {META_VERSION}"


async def test_methods_of_the_other_era_are_unknown(old: LegacyClient, new: ModernClient) -> None:
    for method in ("server/discover", "subscriptions/listen"):
        assert (await old.request(method))["error"]["code"] == -32601
    for method in ("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
        message = new.message(method, {"protocolVersion": MODERN, "level": "info", "uri": "x://"})
        answer = await new.post(message, new.headers_for(message))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


# ---- the modern era's headers


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({}, 200, None),
        ({"mcp-name": "=?base64?ZWNobw==?="}, 200, None),
        ({"mcp-method": None}, 400, -32020),
        ({"mcp-name": None}, 400, -32020),
        ({"mcp-protocol-version": None}, 400, -32020),
        ({"mcp-method": "tools/list"}, 400, -32020),
        ({"mcp-method": "Tools/Call"}, 400, -32020),
        ({"mcp-name": "raw"}, 400, -32020),
        ({"mcp-name": "=?base64?%%%?="}, 400, -32020),
        ({"mcp-protocol-version": "2025-11-25"}, 200, None),  # a legacy client whose metadata is its own affair
        ({"mcp-protocol-version": "2199-01-01"}, 400, -32020),
        ({"mcp-session-id": "ignored"}, 200, None),
    ],
)
async def test_headers_must_say_what_the_body_says(
    new: ModernClient, change: dict[str, str | None], status: int, code: int | None
) -> None:
    message = new.message("tools/call", {"name": "echo", "arguments": {"text": "x"}}, number="h")
    headers = {**new.headers_for(message), **change}
    answer = await new.post(message, {name: value for name, value in headers.items() if value is not None})
    assert answer.status_code == status, answer.text
    assert answer.json().get("error", {}).get("code") == code
    assert answer.json()["id"] == "h"
    if code is None:
        assert text_of(answer.json()) == "x"


@pytest.mark.parametrize(
    ("arguments", "headers", "status"),
    [
        ({"region": "eu", "number": 42}, {"region": "eu", "number": "42"}, 200),
        ({"region": "eu", "number": 42}, {"region": "eu", "number": "42.0"}, 200),
        ({"region": "Zürich"}, {"region": "=?base64?WsO8cmljaA==?="}, 200),
        ({"number": 2**63}, {"number": str(2**63)}, 200),
        ({"number": 2**63}, {"number": str(2**63 + 1)}, 400),
        ({"region": None}, {}, 200),
        ({}, {}, 200),
        ({"region": "eu"}, {}, 400),
        ({"region": "eu"}, {"region": "us"}, 400),
        ({}, {"region": "eu"}, 400),
        ({"number": 1}, {"number": "one"}, 400),
        ({"number": 1}, {"number": "nan"}, 400),
        ({"region": "eu"}, {"region": "=?base64?!?="}, 400),
    ],
)
async def test_argument_headers_must_say_what_the_arguments_say(
    new: ModernClient, arguments: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    message = new.message("tools/call", {"name": "headed", "arguments": arguments})
    own = {f"mcp-param-{name}": value for name, value in headers.items()}
    answer = await new.post(message, {**new.headers_for(message), **own})
    assert answer.status_code == status, answer.text
    if status == 400:
        assert answer.json()["error"]["code"] == -32020


async def test_an_unknown_revision_is_told_which_are_known(new: ModernClient) -> None:
    message = new.message("tools/list", {}, **{META_VERSION: "2199-01-01"})
    answer = await new.post(message, {"mcp-protocol-version": "2199-01-01", "mcp-method": "tools/list"})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32022
    assert answer.json()["error"]["data"] == {"supported": [MODERN], "requested": "2199-01-01"}


async def test_metadata_is_needed(new: ModernClient) -> None:
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"}
    for meta in (None, {}, {META_VERSION: MODERN}, {META_VERSION: MODERN, META_CAPABILITIES: 5}):
        answer = await new.post(rpc("tools/list", **({"_meta": meta} if meta is not None else {})), headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602), meta


async def test_unknown_methods_are_not_found(front: TestGateway, new: ModernClient) -> None:
    for url in (new.url, front.endpoint("")):
        new.url = url
        message = new.message("no/such")
        answer = await new.post(message, new.headers_for(message))
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


async def test_errors_of_tools_are_no_errors_of_http(new: ModernClient) -> None:
    for tool in ("refuse", "fail"):
        message = new.message("tools/call", {"name": tool, "arguments": {}})
        assert (await new.post(message, new.headers_for(message))).status_code == 200


async def test_notifications_are_accepted(new: ModernClient) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/x", "params": {}}
    answer = await new.post(message, {"mcp-protocol-version": MODERN, "mcp-method": "notifications/x"})
    assert (answer.status_code, answer.content) == (202, b"")


# ---- answers


async def test_an_answer_is_json_unless_something_comes_before_it(old: LegacyClient, new: ModernClient) -> None:
    for client in (old, new):
        kinds = []
        for tool, meta in (("echo", {}), ("fail", {}), ("progress", {"progressToken": 1})):
            params: dict[str, Any] = {"name": tool, "arguments": {}}
            if isinstance(client, ModernClient):
                message = client.message("tools/call", params, **meta)
                answer = await client.post(message, client.headers_for(message))
            else:
                answer = await client.post(rpc("tools/call", **params, _meta=meta))
            kinds.append(answer.headers["content-type"])
            if kinds[-1] == "text/event-stream":
                assert answer.headers["x-accel-buffering"] == "no"
        assert kinds == ["application/json", "application/json", "text/event-stream"]


async def test_the_kind_of_answer_follows_what_is_accepted(old: LegacyClient) -> None:
    for accept, kind in (
        ("application/json", "application/json"),
        ("text/event-stream", "text/event-stream"),
        ("*/*", "application/json"),
        ("application/json, text/event-stream", "application/json"),
    ):
        answer = await old.post(echo(), {"accept": accept})
        assert answer.headers["content-type"] == kind
        assert '"x"' in answer.text
    progress = rpc("tools/call", name="progress", arguments={"steps": 2}, _meta={"progressToken": 1})
    answer = await old.post(progress, {"accept": "application/json"})
    assert text_of(answer.json()) == "done"


async def test_connections_are_kept_alive_while_an_answer_takes_long(
    front: TestGateway, old: LegacyClient, new: ModernClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "KEEP_ALIVE_SECONDS", 0.02)
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.01)
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.STREAM_AFTER", 0.02)
    slow = {"name": "slow", "arguments": {"ms": 200}}
    answer = await old.post(rpc("tools/call", **slow))
    assert answer.text.count(": keep-alive\n\n") >= 2
    message = new.message("tools/call", slow)
    answer = await new.post(message, new.headers_for(message))
    assert answer.text.count(": keep-alive\n\n") >= 2
    async with old.http.stream("GET", old.url, headers=old.headers) as stream:
        beats = 0
        async for line in stream.aiter_lines():
            beats += line == ": keep-alive"
            if beats == 3:
                break
    message = new.message("subscriptions/listen", {"notifications": {}})
    headers = {**new.headers, **new.headers_for(message), "content-type": "application/json"}
    async with new.http.stream("POST", new.url, json=message, headers=headers) as stream:
        beats = 0
        async for line in stream.aiter_lines():
            beats += line == ": keep-alive"
            if beats == 3:
                break
    await until(lambda: not front.relay.listeners._open)


async def test_three_hundred_requests_are_in_flight_at_once(
    front: TestGateway, old: LegacyClient, new: ModernClient, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    async def one(index: int) -> None:
        client = (old, new)[index % 2]
        assert text_of(await client.call("gate", {"file": str(gate)})) == "open"

    calls = asyncio.gather(*(one(index) for index in range(300)))
    await until(lambda: len(front.relay.links["one"].in_flight) == 300)
    gate.touch()
    await calls
    assert not front.relay.links["one"].in_flight


async def test_who_does_not_read_stops_only_itself(front: TestGateway, new: ModernClient) -> None:
    """The unread stream is of a call that tells much; the memory it takes here is bounded."""
    message = new.message(
        "tools/call", {"name": "progress", "arguments": {"steps": 100_000, "ms": 0}}, progressToken="p" * 1000
    )
    body = json.dumps(message).encode()
    host, port = front.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a ReadTransport
    lines = [
        "POST /servers/one/mcp HTTP/1.1",
        "Host: localhost",
        f"Content-Length: {len(body)}",
        "Content-Type: application/json",
    ]
    lines += [f"{name}: {value}" for name, value in {**new.headers, **new.headers_for(message)}.items()]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    link = front.relay.links["one"]
    exchange = next(iter(await until(lambda: link.in_flight)))
    await until(lambda: len(exchange.messages) == 1000)
    for number in range(20):
        assert text_of(await new.call("echo", {"text": str(number)})) == str(number)
    assert len(exchange.messages) <= 1000
    writer.transport.abort()
    await until(lambda: not link.in_flight)  # and its going away is seen all the same
    del reader


async def test_a_question_reaches_even_who_reads_late(front: TestGateway) -> None:
    async with front.legacy("one", elicitation={}) as client:
        await client.initialize()
        async with in_background(client.call("elicit")):
            exchange = next(iter(await until(lambda: front.relay.links["one"].in_flight)))
            await until(lambda: client.of("elicitation/create"))
            question = b'{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}'
            exchange.messages.append(question)
            for number in range(3000):
                exchange.push(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"n":%d}}' % number)
            assert question in exchange.messages
            assert len(exchange.messages) <= 1001


async def test_a_server_that_is_not_there_is_named(empty: TestGateway) -> None:
    async with empty.legacy("one") as old, empty.modern("one") as new:
        await old.initialize()
        assert "result" in await new.request("server/discover")
        for client in (old, new):
            answer = await client.call("echo")
            assert answer["error"]["code"] == -32000
            assert answer["error"]["data"]["code"] == "server-not-ready"
            assert answer["error"]["data"]["fix"]


async def test_a_hello_waits_for_its_server_but_not_for_ever(
    empty: TestGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.relay.relay.GREET_SECONDS", 0.05)
    started, go = asyncio.Event(), asyncio.Event()

    async def starting(name: str) -> Any:
        started.set()
        await go.wait()
        raise CallboardError("server-not-ready", "It did not start.")

    monkeypatch.setattr(empty.servers, "upstream", starting)
    async with empty.legacy("one") as old, empty.modern("one") as new:
        assert "tools" in (await old.initialize())["capabilities"]
        assert "tools" in (await new.request("server/discover"))["result"]["capabilities"]
        monkeypatch.setattr("callboard.engine.relay.relay.GREET_SECONDS", 10)
        message = new.message("server/discover")
        answers = []
        for post in (old.post(rpc("initialize", **INITIALIZE)), new.post(message, new.headers_for(message))):
            started.clear()
            task = asyncio.create_task(post)
            await started.wait()
            empty.relay.sync([])  # taken away meanwhile
            go.set()
            answers.append(await task)
            go.clear()
            empty.relay.sync(["one"])
    assert (answers[0].status_code, answers[0].json()["code"]) == (404, "server-unknown")
    assert answers[1].json()["error"]["data"]["code"] == "server-unknown"


async def test_what_is_open_ends_when_the_gateway_does(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one") as front:
        await front.start_fixture("one", "legacy")
        old, new = front.legacy("one"), front.modern("one")
        await old.initialize()
        tasks = [
            asyncio.create_task(old.call("slow", {"ms": 60_000})),
            asyncio.create_task(new.call("slow", {"ms": 60_000})),
            asyncio.create_task(old.http.get(old.url, headers=old.headers)),
        ]
        await until(lambda: len(front.relay.links["one"].in_flight) == 2)
    done = await asyncio.gather(*tasks, return_exceptions=True)
    await old.http.aclose()
    await new.http.aclose()
    assert not [result for result in done if isinstance(result, TimeoutError)]

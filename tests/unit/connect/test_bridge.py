"""The bridge between a client on two pipes and a gateway on HTTP."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.connect.conftest import MODERN, Setting, Turn, encode, request


def event(message: Any) -> bytes:
    return b"event: message\ndata: " + encode(message) + b"\n\n"


async def test_messages_pass_byte_for_byte(setting: Setting) -> None:
    line = b'{"id" : 1e2 ,"jsonrpc":"2.0","params":{"z":1.10,"a":"\\u00e9"},  "method":"x/y","extra":[1, 2]}'
    answer = b'{"jsonrpc" :"2.0", "result":{"n":1.50,"t":"\\u20ac"},"id":1e2}'

    async def respond(turn: Turn) -> None:
        await turn.json(answer)

    setting.gateway.answers["x/y"] = respond
    await setting.client.send(line)
    assert await setting.client.line() == answer
    seen = setting.gateway.seen[0]
    assert seen.body == line
    assert seen.headers["authorization"] == "Bearer secret"
    assert seen.headers["accept"] == "application/json, text/event-stream"
    assert seen.headers["content-type"] == "application/json"
    assert "mcp-method" not in seen.headers


@pytest.mark.parametrize("request_id", [7, "7", "", "é\n", -1], ids=repr)
async def test_ids_of_every_kind_come_back(setting: Setting, request_id: Any) -> None:
    assert (await setting.client.ask("ping", request_id))["id"] == request_id


async def test_answer_of_several_lines_is_one_line_on_stdout(setting: Setting) -> None:
    async def respond(turn: Turn) -> None:
        await turn.json(b'{\r\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {"a\\n": 1}\n}\n')

    setting.gateway.answers["ping"] = respond
    assert await setting.client.ask("ping") == {"jsonrpc": "2.0", "id": 1, "result": {"a\n": 1}}


async def test_legacy_session_is_kept(setting: Setting) -> None:
    await setting.client.shake_hands()
    await setting.client.ask("tools/list")
    await setting.gateway.until(lambda: "tools/list" in setting.gateway.methods())
    initialize, initialized = setting.gateway.seen[0], setting.gateway.seen[1]
    listing = next(seen for seen in setting.gateway.seen if b"tools/list" in seen.body)
    assert "mcp-session-id" not in initialize.headers
    assert "mcp-protocol-version" not in initialize.headers
    for seen in (initialized, listing):
        assert seen.headers["mcp-session-id"] == "session-1"
        assert seen.headers["mcp-protocol-version"] == "2025-06-18"


async def test_pipelined_handshake_stays_in_order(setting: Setting) -> None:
    await setting.client.send(
        request("initialize", 0),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request("tools/list", 1),
    )
    assert [(await setting.client.receive())["id"], (await setting.client.receive())["id"]] == [0, 1]
    posts = [seen.message["method"] for seen in setting.gateway.seen if seen.verb == "POST"]
    assert posts == ["initialize", "notifications/initialized", "tools/list"]


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "get_weather"}, "get_weather"),
        ("tools/call", {"name": "wetter für 世界"}, "=?base64?d2V0dGVyIGbDvHIg5LiW55WM?="),
        ("tools/call", {"name": " padded "}, "=?base64?IHBhZGRlZCA=?="),
        ("prompts/get", {"name": "=?base64?literal?="}, "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("resources/read", {"uri": "file:///a b.txt"}, "file:///a b.txt"),
        ("tools/list", {"name": "ignored"}, None),
    ],
)
async def test_modern_message_gets_its_headers(
    setting: Setting, method: str, params: dict[str, Any], name: str | None
) -> None:
    await setting.client.shake_hands()
    await setting.client.ask(method, 5, **params, **MODERN)
    headers = next(seen for seen in setting.gateway.seen if b'"id":5' in seen.body).headers
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == method
    assert headers.get("mcp-name") == name
    assert "mcp-session-id" not in headers


async def test_stream_arrives_event_by_event(setting: Setting) -> None:
    go_on = asyncio.Event()

    async def respond(turn: Turn) -> None:
        await turn.stream()
        await turn.event(b"id: 0\ndata:\n\n: keep-alive\n\n")
        await turn.event(event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}))
        await go_on.wait()
        await turn.event(event({"jsonrpc": "2.0", "id": 1, "result": {}}))
        await turn.end()

    setting.gateway.answers["tools/call"] = respond
    progress = await setting.client.ask("tools/call", 1)
    assert progress["method"] == "notifications/progress"
    go_on.set()
    assert await setting.client.receive() == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_server_asks_the_client_during_a_call(setting: Setting) -> None:
    replies: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def respond(turn: Turn) -> None:
        await turn.stream()
        await turn.event(event({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}))
        reply = await replies.get()
        await turn.event(event({"jsonrpc": "2.0", "id": 1, "result": reply["result"]}))
        await turn.end()

    async def take(turn: Turn) -> None:
        replies.put_nowait(turn.seen.message)
        await turn.json(b"", 202)

    setting.gateway.answers |= {"tools/call": respond, "answer": take}
    question = await setting.client.ask("tools/call", 1)
    assert (question["method"], question["id"]) == ("elicitation/create", 1)
    await setting.client.send({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}})
    assert await setting.client.receive() == {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}


async def test_many_requests_run_side_by_side(setting: Setting) -> None:
    together = asyncio.Barrier(50)

    async def respond(turn: Turn) -> None:
        await together.wait()
        await turn.result(turn.seen.message["id"])

    setting.gateway.answers["tools/call"] = respond
    await setting.client.send(*(request("tools/call", n) for n in range(50)))
    answers = [await setting.client.receive() for _ in range(50)]
    assert sorted(answer["id"] for answer in answers) == list(range(50))
    assert all(answer["result"] == answer["id"] for answer in answers)


async def test_modern_cancellation_closes_the_stream_and_is_silent(setting: Setting) -> None:
    gone = asyncio.Event()

    async def respond(turn: Turn) -> None:
        await turn.stream()
        await turn.event(event({"jsonrpc": "2.0", "method": "notifications/progress"}))
        await turn.gone()
        gone.set()

    setting.gateway.answers["tools/call"] = respond
    await setting.client.ask("tools/call", "a", **MODERN)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "a"}}
    await setting.client.send(cancel)
    await gone.wait()
    assert (await setting.client.ask("ping", 2))["id"] == 2
    assert "notifications/cancelled" not in setting.gateway.methods()


async def test_legacy_cancellation_passes_on_and_an_empty_answer_is_silent(setting: Setting) -> None:
    cancelled = asyncio.Event()

    async def respond(turn: Turn) -> None:
        await cancelled.wait()
        await turn.stream()
        await turn.end()

    async def cancel(turn: Turn) -> None:
        cancelled.set()
        await turn.json(b"", 202)

    setting.gateway.answers |= {"tools/call": respond, "notifications/cancelled": cancel}
    await setting.client.shake_hands()
    await setting.client.send(request("tools/call", 5))
    await setting.gateway.until(lambda: "tools/call" in setting.gateway.methods())
    await setting.client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}})
    await cancelled.wait()
    assert (await setting.client.ask("ping", 6))["id"] == 6


async def test_forgotten_session_is_opened_anew_without_the_client_noticing(setting: Setting) -> None:
    await setting.client.shake_hands()
    await setting.client.ask("logging/setLevel", 1, level="debug")
    await setting.client.ask("resources/subscribe", 2, uri="a://1")
    await setting.client.ask("resources/subscribe", 3, uri="a://2")
    await setting.client.ask("resources/unsubscribe", 4, uri="a://1")
    setting.gateway.sessions.clear()
    before = len(setting.gateway.seen)
    await setting.client.send(*(request("tools/call", n, n=n) for n in range(10, 15)))
    answers = [await setting.client.receive() for _ in range(5)]
    assert sorted(answer["id"] for answer in answers) == [10, 11, 12, 13, 14]
    assert all("result" in answer for answer in answers)
    again = [seen for seen in setting.gateway.seen[before:] if seen.verb == "POST" and b"tools/call" not in seen.body]
    assert [seen.message["method"] for seen in again] == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
    ]
    assert again[3].message["params"]["uri"] == "a://2"
    assert {seen.headers.get("mcp-session-id") for seen in again[1:]} == {"session-2"}


async def test_unknown_method_is_no_lost_session(setting: Setting) -> None:
    async def respond(turn: Turn) -> None:
        error = {"code": -32601, "message": "Method not found"}
        await turn.json(encode({"jsonrpc": "2.0", "id": turn.seen.message["id"], "error": error}), 404)

    setting.gateway.answers["x/y"] = respond
    await setting.client.shake_hands()
    assert (await setting.client.ask("x/y", 3))["error"]["message"] == "Method not found"
    assert setting.gateway.opened == 1


async def test_server_messages_come_on_the_listening_stream_also_after_it_broke(setting: Setting) -> None:
    streams: asyncio.Queue[Turn] = asyncio.Queue()

    async def listen(turn: Turn) -> None:
        if turn.seen.headers["mcp-session-id"] not in setting.gateway.sessions:
            await turn.json(b"", 404)
            return
        await turn.stream()
        streams.put_nowait(turn)
        await turn.gone()

    setting.gateway.answers["GET"] = listen
    await setting.client.shake_hands()
    first = await streams.get()
    await first.event(b"id: e0\ndata:\n\n")
    await first.event(b"id: e1\n" + event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    assert (await setting.client.receive())["method"] == "notifications/tools/list_changed"
    await first.end()
    second = await streams.get()
    assert second.seen.headers["last-event-id"] == "e1"
    setting.gateway.sessions.clear()
    await second.end()
    third = await streams.get()
    assert third.seen.headers["mcp-session-id"] == "session-2"
    await third.event(event({"jsonrpc": "2.0", "method": "notifications/prompts/list_changed"}))
    assert (await setting.client.receive())["method"] == "notifications/prompts/list_changed"


async def test_request_in_flight_gets_an_error_when_the_gateway_dies_and_the_next_one_an_answer(
    setting: Setting,
) -> None:
    async def hang(turn: Turn) -> None:
        await turn.gone()

    setting.gateway.answers["tools/call"] = hang
    await setting.client.shake_hands()
    await setting.client.send(request("tools/call", 1), request("tools/call", "two"))
    await setting.gateway.until(lambda: setting.gateway.methods().count("tools/call") == 2)
    await setting.gateway.stop()
    errors = [await setting.client.receive() for _ in range(2)]
    assert {error["id"] for error in errors} == {1, "two"}
    for error in errors:
        assert error["error"]["code"] == -32000
        assert error["error"]["data"]["code"] == "engine-unreachable"
    assert setting.endpoint.losses >= 1
    setting.gateway.sessions.clear()
    await setting.gateway.start()
    assert "result" in await setting.client.ask("tools/list", 3)
    assert setting.gateway.opened == 2


async def test_request_waits_for_an_engine_that_starts(setting: Setting) -> None:
    setting.endpoint.there.clear()
    await setting.client.send(request("ping", 1))
    setting.endpoint.there.set()
    assert (await setting.client.receive())["id"] == 1


async def test_answer_cut_short_becomes_an_error(setting: Setting) -> None:
    async def respond(turn: Turn) -> None:
        await turn.stream()
        await turn.event(b'data: {"jsonrpc":"2.0","id":1,"res')
        await turn.end()

    setting.gateway.answers["tools/call"] = respond
    assert (await setting.client.ask("tools/call", 1))["error"]["data"]["code"] == "engine-unreachable"


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, b'{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"own"}}', "own"),
        (400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no id"}}', "no id"),
        (404, b'{"code":"server-unknown","message":"No such server.","fix":"See the list."}', "No such server."),
        (401, b'{"code":"unauthorized","message":"Who?","fix":""}', "Who?"),
        (500, b"<html>", "The gateway answered HTTP 500."),
        (503, b"", "The gateway answered HTTP 503."),
    ],
)
async def test_refusal_is_told_with_the_requests_id(setting: Setting, status: int, body: bytes, message: str) -> None:
    async def respond(turn: Turn) -> None:
        await turn.json(body, status)

    setting.gateway.answers["tools/call"] = respond
    answer = await setting.client.ask("tools/call", 9)
    assert (answer["id"], answer["error"]["message"]) == (9, message)


async def test_arguments_that_must_be_headers_are_found_in_the_tools_schema(setting: Setting) -> None:
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "query": {"type": "string"}},
    }

    async def listing(turn: Turn) -> None:
        cursor = turn.seen.message["params"].get("cursor")
        if cursor is None:
            await turn.result({"tools": [], "nextCursor": "more"})
        else:
            await turn.result({"tools": [{"name": "sql", "inputSchema": schema}]})

    async def calling(turn: Turn) -> None:
        if turn.seen.headers.get("mcp-param-region") == "=?base64?TcO8bmNoZW4=?=":
            await turn.result({"ok": True})
        else:
            error = {"code": -32020, "message": "Header mismatch"}
            await turn.json(encode({"jsonrpc": "2.0", "id": turn.seen.message["id"], "error": error}), 400)

    setting.gateway.answers |= {"tools/list": listing, "tools/call": calling}
    arguments = {"region": "München", "query": "x"}
    answer = await setting.client.ask("tools/call", 1, name="sql", arguments=arguments, **MODERN)
    assert answer["result"] == {"ok": True}
    answer = await setting.client.ask("tools/call", 2, name="other", arguments={}, **MODERN)
    assert answer["error"]["code"] == -32020


async def test_rubbish_on_stdin_is_answered_and_the_bridge_goes_on(setting: Setting) -> None:
    await setting.client.send(b"{not json", b"", b"  ", b"42", request("ping", 1))
    answers = [await setting.client.receive() for _ in range(3)]
    assert [answer["id"] for answer in answers] == [None, None, 1]
    assert answers[0]["error"]["code"] == -32700


async def test_every_request_of_a_refused_batch_gets_its_error(setting: Setting) -> None:
    async def respond(turn: Turn) -> None:
        await turn.json(encode({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}), 400)

    setting.gateway.answers["batch"] = respond
    batch = [request("ping", 1), {"jsonrpc": "2.0", "method": "notifications/x"}, request("ping", "2")]
    await setting.client.send(json.dumps(batch).encode())
    answers = [await setting.client.receive() for _ in range(2)]
    assert [answer["id"] for answer in answers] == [1, "2"]
    assert all(answer["error"]["message"] == "no batches" for answer in answers)


async def test_large_messages_pass_both_ways(setting: Setting) -> None:
    text = "ä" * 8_000_000
    answer = await setting.client.ask("tools/call", 1, text=text)
    assert answer["result"]["echo"]["text"] == text


async def test_large_event_passes(setting: Setting) -> None:
    text = "x" * 16_000_000

    async def respond(turn: Turn) -> None:
        await turn.stream()
        await turn.event(event({"jsonrpc": "2.0", "id": 1, "result": text}))
        await turn.end()

    setting.gateway.answers["tools/call"] = respond
    assert (await setting.client.ask("tools/call", 1))["result"] == text


async def test_end_of_input_waits_for_answers_but_not_for_subscriptions_and_ends_the_session(setting: Setting) -> None:
    go_on = asyncio.Event()

    async def slow(turn: Turn) -> None:
        await go_on.wait()
        await turn.result("late")

    async def endless(turn: Turn) -> None:
        await turn.stream()
        await turn.gone()

    setting.gateway.answers |= {"tools/call": slow, "subscriptions/listen": endless}
    await setting.client.shake_hands()
    await setting.client.send(request("subscriptions/listen", 1, **MODERN), request("tools/call", 2))
    await setting.gateway.until(lambda: {"tools/call", "subscriptions/listen"} <= set(setting.gateway.methods()))
    setting.client.hang_up()
    go_on.set()
    assert await setting.client.receive() == {"jsonrpc": "2.0", "id": 2, "result": "late"}
    await setting.serving
    assert setting.gateway.methods()[-1] == "DELETE"
    assert setting.gateway.seen[-1].headers["mcp-session-id"] == "session-1"


async def test_termination_waits_for_nothing(setting: Setting) -> None:
    async def hang(turn: Turn) -> None:
        await turn.gone()

    setting.gateway.answers["tools/call"] = hang
    await setting.client.send(request("tools/call", 1))
    await setting.gateway.until(lambda: "tools/call" in setting.gateway.methods())
    setting.ended.set()
    await setting.serving

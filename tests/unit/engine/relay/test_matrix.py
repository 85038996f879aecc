"""What every client gets from every server, whatever the era of either and whatever the transport between."""

import json
from typing import Any

from callboard.core.protocol import META_CAPABILITIES, META_CLIENT, META_VERSION
from tests.support.gateway import LegacyClient, ModernClient, TestGateway, text_of

Client = LegacyClient | ModernClient


def is_modern_server(front: TestGateway) -> bool:
    return front.servers.ready["one"].info.modern


async def test_calls_and_their_results_pass_unchanged(front: TestGateway, client: Client) -> None:
    assert text_of(await client.call("echo", {"text": "hällo \u2028 \U0001f600"})) == "hällo \u2028 \U0001f600"
    if not is_modern_server(front):  # a modern one makes no requests
        assert text_of(await client.call("ping")) == "{}"
    failed = await client.call("fail", {"text": "no"})
    assert failed["result"]["isError"] is True
    assert text_of(failed) == "no"
    refused = await client.call("refuse")
    assert refused["error"] == {"code": -32050, "message": "refused", "data": {"why": ["because", 1]}}
    numbers = await client.call("bigint")
    assert numbers["result"]["structuredContent"] == {"n": 2**63 + 1, "m": -(2**70)}
    assert numbers["result"]["extra"] == [None]
    big = await client.call("big", {"size": 300_000})
    assert text_of(big) == "ü" * 300_000
    assert client.heard == []

    found = (await client.request("x/custom", {"n": 2**65}))["result"]
    assert found["by"] == "one"
    assert found["params"]["n"] == 2**65
    unknown = await client.request("y/custom")
    assert unknown["error"]["code"] == -32601
    assert text_of(await client.call("custom")) == "told"
    assert client.of("notifications/x/custom")[0]["params"] == {"more": [1, 2**70]}


async def test_results_have_what_the_clients_era_wants(front: TestGateway, client: Client) -> None:
    called = (await client.call("echo"))["result"]
    read = (await client.request("resources/read", {"uri": "doc://one/readme"}))["result"]
    listed = (await client.request("tools/list"))["result"]
    if isinstance(client, ModernClient):
        assert called["resultType"] == read["resultType"] == listed["resultType"] == "complete"
        assert "ttlMs" not in called
        discovered = (await client.request("server/discover"))["result"]
        templates = (await client.request("resources/templates/list"))["result"]
        for result in (listed, discovered, templates):
            assert result["ttlMs"] >= 0
            assert result["cacheScope"] in ("private", "public")
        if not is_modern_server(front):
            assert read["cacheScope"] == "private"
    else:
        assert "resultType" not in listed
        assert set(listed) == {"tools"}


async def test_requests_carry_what_the_servers_era_knows(front: TestGateway, client: Client) -> None:
    answer = await client.request(
        "tools/call",
        {"name": "raw", "arguments": {"n": 2**64}, "x": 1, "_meta": {"traceparent": "00-1", "own/key": [2**70]}}
        if isinstance(client, LegacyClient)
        else {"name": "raw", "arguments": {"n": 2**64}, "x": 1},
        **({} if isinstance(client, LegacyClient) else {"traceparent": "00-1", "own/key": [2**70]}),
    )
    sent = json.loads(text_of(answer))
    meta = sent.pop("_meta")
    assert sent == {"name": "raw", "arguments": {"n": 2**64}, "x": 1}
    assert meta.pop("own/key") == [2**70]
    assert meta.pop("traceparent") == "00-1"
    if is_modern_server(front):
        assert meta.pop(META_VERSION) == "2026-07-28"
        assert meta.pop(META_CLIENT) == {"name": client.name, "version": "1"}
        assert meta.pop(META_CAPABILITIES) == client.capabilities
    assert set(meta) == {"progressToken"}  # ours: it shows that a call is alive


async def test_resources_prompts_and_completion_reach_the_server(front: TestGateway, client: Client) -> None:
    page = await client.request("resources/read", {"uri": "doc://one/page/4"})
    assert page["result"]["contents"][0]["text"] == "doc://one/page/4 read at one"
    greeting = await client.request("prompts/get", {"name": "greet", "arguments": {"who": "Ann"}})
    assert greeting["result"]["messages"][0]["content"]["text"] == "hello Ann from one"
    completed = await client.request(
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "a"}},
    )
    assert completed["result"]["completion"]["values"] == ["alpha of one"]
    missing = (await client.request("resources/read", {"uri": "nowhere://x"}))["error"]
    assert missing["data"] == {"uri": "nowhere://x"}
    # the code that the client's era has for it; a modern server's -32602 may mean anything, so it stays
    legacy_through = isinstance(client, LegacyClient) and not is_modern_server(front)
    assert missing["code"] == (-32002 if legacy_through else -32602)


async def test_progress_carries_the_clients_own_token(front: TestGateway, client: Client) -> None:
    params = {"name": "progress", "arguments": {"steps": 2, "ms": 1}}
    assert "result" in await client.request("tools/call", params)
    assert client.heard == []  # nothing comes unasked
    token: Any
    for token in ("a text", 7, 2**60, "7"):
        client.heard.clear()
        if isinstance(client, LegacyClient):
            answer = await client.request("tools/call", {**params, "_meta": {"progressToken": token}})
        else:
            answer = await client.request("tools/call", params, progressToken=token)
        assert text_of(answer) == "done"
        told = [message["params"] for message in client.of("notifications/progress")]
        assert [(one["progressToken"], one["progress"], one["message"]) for one in told] == [
            (token, 1, "one 0"),
            (token, 2, "one 1"),
        ]


async def test_log_messages_come_from_the_wanted_level_on(front: TestGateway, client: Client) -> None:
    async def logged(level: str) -> list[str]:
        client.heard.clear()
        meta = {} if isinstance(client, LegacyClient) else {"io.modelcontextprotocol/logLevel": "warning"}
        await client.call("log", {"text": level, "level": level}, **meta)
        return [message["params"]["data"] for message in client.of("notifications/message")]

    if isinstance(client, LegacyClient):
        assert "result" in await client.request("logging/setLevel", {"level": "warning"})
    assert await logged("info") == []
    assert await logged("warning") == ["warning"]
    assert await logged("emergency") == ["emergency"]
    if isinstance(client, ModernClient):  # who names no level in a request wants none
        client.heard.clear()
        await client.call("log", {"text": "x", "level": "emergency"})
        assert client.heard == []

"""Lists and their changes: from the server to whoever listens, in either era; what the aggregate makes of several."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from callboard.core.protocol import META_SUBSCRIPTION
from callboard.engine.relay.catalogue import TOOLS
from tests.support.gateway import LegacyClient, ModernClient, TestGateway, gateway, text_of, until
from tests.unit.engine.relay.conftest import serving
from tests.unit.engine.relay.test_cancelling import counts

Client = LegacyClient | ModernClient
TOOLS_CHANGED = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"


def names(answer: dict[str, Any]) -> list[str]:
    return [tool["name"] for tool in answer["result"]["tools"]]


# ---- changes


async def test_who_listens_hears_that_tools_changed(front: TestGateway) -> None:
    async with front.legacy("one") as old, front.modern("one") as new, front.modern("one") as deaf:
        await old.initialize()
        async with old.listening(), new.listening(toolsListChanged=True), deaf.listening(promptsListChanged=True):
            await deaf.call("toggle")
            await until(lambda: old.of(TOOLS_CHANGED) and new.of(TOOLS_CHANGED))
            assert "extra" in names(await old.request("tools/list"))
            assert "extra" in names(await new.request("tools/list"))
            await deaf.call("toggle")
            await until(lambda: len(old.of(TOOLS_CHANGED)) >= 2 and len(new.of(TOOLS_CHANGED)) >= 2)
            assert "extra" not in names(await new.request("tools/list"))
        assert [message["method"] for message in deaf.heard] == ["notifications/subscriptions/acknowledged"]


async def test_a_stream_of_changes_is_acknowledged_first_and_names_its_id(either: TestGateway) -> None:
    async with either.modern("one") as client, either.modern("one") as other:
        for number in ("7", 7, 2**60):
            client.heard.clear()
            async with client.listening(number=number, toolsListChanged=True, unknown=True):
                await other.call("toggle")
                await until(lambda: client.of(TOOLS_CHANGED))
            first = client.heard[0]
            assert first["method"] == "notifications/subscriptions/acknowledged"
            assert first["params"]["notifications"] == {"toolsListChanged": True}
            assert {message["params"]["_meta"][META_SUBSCRIPTION] for message in client.heard} == {number}
            assert isinstance(first["params"]["_meta"][META_SUBSCRIPTION], type(number))


async def test_a_hundred_changes_at_once_are_told_in_a_few_words(front: TestGateway) -> None:
    async with front.legacy("one") as old, front.modern("one") as new:
        await old.initialize()
        before = (await counts(new))["tools/list"]
        async with old.listening(), new.listening(toolsListChanged=True):
            await new.call("toggle", {"burst": 101})
            await until(lambda: old.of(TOOLS_CHANGED) and new.of(TOOLS_CHANGED))
            await front.relay.catalogue.settled("one")
            assert "extra" in names(await new.request("tools/list"))
            assert (await counts(new))["tools/list"] - before <= 2
            assert len(old.of(TOOLS_CHANGED)) <= 3
            assert len(new.of(TOOLS_CHANGED)) <= 3


async def test_who_was_served_the_new_list_does_not_hear_that_it_changed(
    front: TestGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.relay.notices.NOTICE_DELAY", 3600)  # told when the test says so
    async with front.legacy("one") as served, front.legacy("one") as other:
        for client in (served, other):
            await client.initialize()
        async with served.listening(), other.listening():
            await other.request("tools/list")
            await other.call("toggle")
            await until_async(lambda: lists_extra(served), True)
            front.tell_now()
            await until(lambda: other.of(TOOLS_CHANGED))
            await other.call("toggle")
            await until_async(lambda: lists_extra(other), False)
            front.tell_now()
            await until(lambda: served.of(TOOLS_CHANGED))
        assert (len(served.of(TOOLS_CHANGED)), len(other.of(TOOLS_CHANGED))) == (1, 1)


async def lists_extra(client: Client) -> bool:
    return "extra" in names(await client.request("tools/list"))


async def test_a_change_told_on_a_calls_own_stream_counts_as_well(front: TestGateway) -> None:
    async with front.legacy("one") as client:
        await client.initialize()
        async with client.listening():
            await client.call("toggle", {"here": True})
            await until(lambda: client.of(TOOLS_CHANGED))
            await until(lambda: "extra" in [item.key for item in front.relay.catalogue.offer("one").lists["tools"]])


async def test_listening_ends_gracefully_with_us(either: TestGateway) -> None:
    async with either.modern("one") as client:
        message = client.message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, number="L")
        task = asyncio.create_task(client.exchange(message, client.headers_for(message)))
        await until(lambda: client.heard)
        either.relay.listeners.close()
        answer = await task
        assert answer["result"] == {"resultType": "complete", "_meta": {META_SUBSCRIPTION: "L"}}
    assert not either.relay.listeners._open


async def test_who_stops_listening_is_forgotten(either: TestGateway) -> None:
    async with either.modern("one") as client:
        async with client.listening(toolsListChanged=True, resourceSubscriptions=["doc://one/readme"]):
            assert len(either.relay.listeners._open) == 1
            assert either.relay.links["one"]._subscribers == {"doc://one/readme": 1}
        await until(lambda: not either.relay.listeners._open)
        assert either.relay.links["one"]._subscribers == {}


async def test_listening_needs_a_stream(either: TestGateway) -> None:
    async with either.modern("one") as client:
        client.headers["accept"] = "application/json"
        message = client.message("subscriptions/listen", {"notifications": {}})
        answer = await client.post(message, client.headers_for(message))
        assert answer.status_code == 406
    assert not either.relay.listeners._open


# ---- resources


async def subscribed(client: Client) -> set[str]:
    """What the server has been asked to tell of."""
    found = await counts(client)
    return {
        *found["subscribed"],
        *(uri for wanted in found["listening"] for uri in wanted.get("resourceSubscriptions", [])),
    }


async def test_a_resource_is_subscribed_once_and_told_to_those_who_want_it(front: TestGateway) -> None:
    uri = "doc://one/readme"
    async with front.legacy("one") as a, front.legacy("one") as b, front.legacy("one") as c, front.modern("one") as new:
        for client in (a, b, c):
            await client.initialize()
        async with a.listening(), b.listening(), c.listening():
            for client in (a, b):
                assert "result" in await client.request("resources/subscribe", {"uri": uri})
            assert "result" in await a.request("resources/subscribe", {"uri": uri})  # twice is once
            async with new.listening(resourceSubscriptions=[uri]):
                await until_async(lambda: subscribed(new), {uri})
                await c.call("touch")
                await until(lambda: a.of(UPDATED) and b.of(UPDATED) and new.of(UPDATED))
                assert a.of(UPDATED)[0]["params"] == {"uri": uri}
                assert new.of(UPDATED)[0]["params"]["uri"] == uri
            await a.request("resources/unsubscribe", {"uri": uri})
            await a.request("resources/unsubscribe", {"uri": uri})
            a.heard.clear()
            b.heard.clear()
            await c.call("touch")
            await until(lambda: b.of(UPDATED))
            assert a.heard == []
            assert c.heard == []
        await b.http.delete(b.url, headers=b.headers)
        await until_async(lambda: subscribed(new), set())


async def until_async(ask: Any, wanted: Any) -> None:
    async with asyncio.timeout(30):
        while (await ask()) != wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_changes_are_heard_again_after_the_server_was_started_anew(either: TestGateway) -> None:
    era = "modern" if either.servers.ready["one"].info.modern else "legacy"
    uri = "doc://one/readme"
    async with either.legacy("one") as old, either.modern("one") as new:
        await old.initialize()
        await old.request("logging/setLevel", {"level": "error"})
        await old.request("resources/subscribe", {"uri": uri})
        async with old.listening(), new.listening(toolsListChanged=True, resourceSubscriptions=[uri]):
            died = await new.call("die")
            assert died["error"]["data"]["exit_code"] == 3
            await either.lose("one")
            assert len(names(await old.request("tools/list"))) > 10  # the last known ones
            await either.start_fixture("one", era)
            await until_async(lambda: subscribed(new), {uri})
            if era == "legacy":
                assert (await counts(new))["level"] == "error"
            await new.call("toggle")
            await new.call("touch")
            await until(lambda: old.of(TOOLS_CHANGED) and old.of(UPDATED))
            await until(lambda: new.of(TOOLS_CHANGED) and new.of(UPDATED))


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_stream_of_changes_that_ends_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    monkeypatch.setattr("callboard.engine.relay.link.LISTEN_AGAIN", 0.01)
    async with serving(tmp_path, "modern", transport) as front, front.modern("one") as client:
        offer = front.relay.catalogue.offer("one")
        for cut in [False] if transport == "stdio" else [False, True]:
            async with client.listening(toolsListChanged=True):
                await client.call("unlisten", {"cut": cut})
                await until_async(lambda: listens(client), True)
                client.heard.clear()
                shown = text_of(await client.call("toggle")) == "extra is True"
                await until(lambda: client.of(TOOLS_CHANGED))
                await until(lambda shown=shown: ("extra" in [tool.key for tool in offer.items(TOOLS)]) is shown)


async def listens(client: Client) -> bool:
    return bool((await counts(client))["listening"])


# ---- reading


async def read(tmp_path: Path, *options: str) -> tuple[list[str], list[tuple[str, str]]]:
    async with gateway(tmp_path, "one") as front:
        await front.start_fixture("one", "legacy", *options)
        offer = front.relay.catalogue.offer("one")
        return [item.key for item in offer.lists["tools"]], [(one.key, one.reason) for one in offer.problems]


async def test_every_page_is_read(tmp_path: Path) -> None:
    whole, _ = await read(tmp_path)
    pages, problems = await read(tmp_path, "--page-size", "4")
    assert pages == whole
    assert problems == []


@pytest.mark.parametrize("fault", ["stuck", "cycle", "endless"])
async def test_pages_that_never_end_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    monkeypatch.setattr("callboard.engine.relay.catalogue.MAX_PAGES", 20)
    tools, problems = await read(tmp_path, "--page-size", "4", "--list-fault", fault)
    assert tools[:4] == ["echo", "raw", "big", "bigint"]
    assert problems[-1] == ("", "the list never ends; what came so far is used")


async def test_a_page_that_fails_leaves_the_others(tmp_path: Path) -> None:
    tools, problems = await read(tmp_path, "--page-size", "4", "--list-fault", "error")
    assert tools == ["echo", "raw", "big", "bigint"]
    assert problems == [("", "the server refused to go on: no second page")]


@pytest.mark.parametrize("fault", ["refused", "garbage"])
async def test_a_list_that_cannot_be_read_is_a_problem_that_is_told(tmp_path: Path, fault: str) -> None:
    tools, problems = await read(tmp_path, "--list-fault", fault)
    assert tools == []
    reasons = {"refused": "the server refused to list them: no list today", "garbage": "the list is malformed"}
    assert problems == [("", reasons[fault])]


async def test_malformed_tools_are_left_out_with_the_reason(tmp_path: Path) -> None:
    tools, problems = await read(tmp_path, "--list-fault", "odd")
    whole, _ = await read(tmp_path)
    assert set(tools) == {*whole, "good"}
    assert [key for key, _ in problems].count("echo") == 1
    reasons = dict(problems)
    assert reasons["no-schema"] == "its inputSchema is no object"
    assert reasons["true-schema"] == "its inputSchema is no object"
    assert reasons["echo"] == "another one has the same name"
    assert reasons["bad-header"] == "x-mcp-header is only for strings, integers and booleans"
    assert reasons["two-headers"] == "x-mcp-header a stands twice"
    assert len(problems) == 12


async def test_a_list_that_fails_for_once_does_not_take_the_tools_away(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one") as front:
        await front.start_fixture("one", "legacy")
        known = [item.key for item in front.relay.catalogue.offer("one").lists["tools"]]
        await front.servers.ready["one"].close()
        front.relay.disconnected("one")
        await front.start_fixture("one", "legacy", "--list-fault", "refused")
        offer = front.relay.catalogue.offer("one")
        assert [item.key for item in offer.lists["tools"]] == known
        assert [problem.reason for problem in offer.problems] == ["the server refused to list them: no list today"]


async def test_a_server_that_ends_while_it_is_read_is_read_when_it_is_back(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one") as front:
        await front.start_fixture("one", "legacy")
        catalogue = front.relay.catalogue
        front.servers.ready["one"]._process._process.kill()  # type: ignore[attr-defined]
        catalogue.read("one", front.servers.ready["one"])
        await front.servers.ready["one"].close()
        front.relay.disconnected("one")
        catalogue._offers.clear()
        await front.start_fixture("one", "modern")
        await catalogue.settled("one")
        assert catalogue.offer("one").lists["tools"]
        assert not catalogue.offer("one").cached


# ---- the aggregate


async def test_the_aggregate_shows_each_server_and_finds_the_way_back(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one", "two", "dead") as front:
        await front.start_fixture("one", "legacy")
        await front.start_fixture("two", "modern")
        async with front.legacy() as old, front.modern() as new:
            hello = await old.initialize()
            assert hello["instructions"] == "# one\ninstructions of one\n\n# two\ninstructions of two"
            assert hello["capabilities"]["tools"] == {"listChanged": True}
            discovered = (await new.request("server/discover"))["result"]
            assert discovered["instructions"] == hello["instructions"]
            clients: list[Client] = [old, new]
            for client in clients:
                listed = names(await client.request("tools/list"))
                assert listed[:2] == ["one__echo", "one__raw"]
                assert len(listed) == len(set(listed))
                for server in ("one", "two"):
                    assert text_of(await client.call(f"{server}__echo", {"text": server})) == server
                    sent = json.loads(text_of(await client.call(f"{server}__raw")))
                    assert sent["name"] == "raw"
                    greeting = await client.request(
                        "prompts/get", {"name": f"{server}__greet", "arguments": {"who": "x"}}
                    )
                    assert greeting["result"]["messages"][0]["content"]["text"] == f"hello x from {server}"
                    completed = await client.request(
                        "completion/complete",
                        {
                            "ref": {"type": "ref/prompt", "name": f"{server}__greet"},
                            "argument": {"name": "who", "value": "a"},
                        },
                    )
                    assert completed["result"]["completion"]["values"] == [f"alpha of {server}"]
                unknown = await client.call("three__echo")
                assert unknown["error"] == {"code": -32602, "message": "Unknown tool: three__echo"}
                dead = await client.call("one__nothing")
                assert dead["error"]["code"] == -32602


async def test_resources_are_read_at_their_owner(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one", "two") as front:
        await front.start_fixture("one", "legacy")
        await front.start_fixture("two", "modern")
        async with front.legacy() as old, front.modern() as new:
            await old.initialize()
            clients: list[Client] = [old, new]
            for client in clients:
                listed = (await client.request("resources/list"))["result"]["resources"]
                uris = [resource["uri"] for resource in listed]
                assert uris == ["doc://one/readme", "doc://same", "doc://two/readme", "two+doc://same"]

                async def contents(uri: str, client: Client = client) -> str:
                    answer = await client.request("resources/read", {"uri": uri})
                    text: str = answer["result"]["contents"][0]["text"]
                    return text

                assert await contents("doc://two/readme") == "doc://two/readme read at two"
                assert await contents("doc://same") == "doc://same read at one"
                assert await contents("two+doc://same") == "doc://same read at two"
                assert await contents("doc://two/page/9") == "doc://two/page/9 read at two"
                templates = (await client.request("resources/templates/list"))["result"]["resourceTemplates"]
                assert [entry["uriTemplate"] for entry in templates] == ["doc://one/page/{n}", "doc://two/page/{n}"]
                completed = await client.request(
                    "completion/complete",
                    {
                        "ref": {"type": "ref/resource", "uri": "doc://two/page/{n}"},
                        "argument": {"name": "n", "value": "a"},
                    },
                )
                assert completed["result"]["completion"]["values"] == ["alpha of two"]
                missing = (await client.request("resources/read", {"uri": "doc://nobody"}))["error"]
                assert missing["code"] == (-32002 if client is old else -32602)
                assert missing["data"] == {"uri": "doc://nobody"}


async def test_updates_carry_the_uri_that_the_client_knows(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one", "two") as front:
        await front.start_fixture("one", "legacy", "--name", "x")
        await front.start_fixture("two", "modern", "--name", "x")  # both offer doc://x/readme
        async with front.legacy() as old, front.modern() as new:
            await old.initialize()
            shown = "two+doc://x/readme"
            await old.request("resources/subscribe", {"uri": shown})
            async with old.listening(), new.listening(resourceSubscriptions=[shown]):
                await until_async(lambda: subscribed_at("two", new), {"doc://x/readme"})
                await new.call("one__touch")
                await new.call("two__touch")
                await until(lambda: old.of(UPDATED) and new.of(UPDATED))
                assert {message["params"]["uri"] for message in old.of(UPDATED) + new.of(UPDATED)} == {shown}


async def subscribed_at(server: str, client: Client) -> set[str]:
    found = json.loads(text_of(await client.call(f"{server}__counts")))
    return {uri for wanted in found["listening"] for uri in wanted.get("resourceSubscriptions", [])}


async def test_tasks_go_to_the_server_that_began_them(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one", "two") as front:
        await front.start_fixture("one", "legacy")
        await front.start_fixture("two", "modern")
        async with front.legacy() as old, front.modern() as new:
            await old.initialize()
            clients: list[Client] = [old, new]
            for server, client in (("one", old), ("two", new)):
                begun = (await client.call(f"{server}__task"))["result"]
                task = begun.get("task", begun)["taskId"]
                for asking in clients:
                    assert (await asking.request("tasks/get", {"taskId": task}))["result"]["by"] == server
            unknown = await old.request("tasks/get", {"taskId": "?"})
            assert unknown["error"]["code"] == -32602


async def test_a_dead_server_delays_nobody(tmp_path: Path) -> None:
    async with gateway(tmp_path, "dead", "one") as front:
        await front.start_fixture("one", "legacy")
        async with front.legacy() as client:
            await client.initialize()
            assert all(name.startswith("one__") for name in names(await client.request("tools/list")))
            single = LegacyClient(front.endpoint("dead"), "token-a", {})
            async with single:
                await single.initialize()
                assert names(await single.request("tools/list")) == []
                refused = await single.call("echo")
                assert refused["error"]["data"]["code"] == "server-not-ready"


async def test_a_server_that_comes_is_announced(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one", "two") as front:
        await front.start_fixture("one", "legacy")
        async with front.legacy() as old, front.modern() as new:
            await old.initialize()
            async with old.listening(), new.listening(toolsListChanged=True, resourcesListChanged=True):
                await front.start_fixture("two", "modern")
                await until(lambda: old.of(TOOLS_CHANGED) and new.of(TOOLS_CHANGED))
                await until(lambda: new.of("notifications/resources/list_changed"))
                assert "two__echo" in names(await new.request("tools/list"))
                old.heard.clear()
                new.heard.clear()
                front.relay.sync(["one"])
                await until(lambda: old.of(TOOLS_CHANGED) and new.of(TOOLS_CHANGED))
                await until(lambda: old.of("notifications/prompts/list_changed"))
                assert "two__echo" not in names(await old.request("tools/list"))


async def test_hidden_tools_are_neither_listed_nor_called(either: TestGateway) -> None:
    either.servers.hidden = {"echo"}
    either.relay.sync(["one"])
    async with either.legacy("one") as single, either.legacy() as both:
        for client, name in ((single, "echo"), (both, "one__echo")):
            await client.initialize()
            assert name not in names(await client.request("tools/list"))
            assert (await client.call(name))["error"]["code"] == -32602

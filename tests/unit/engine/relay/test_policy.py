"""Who may use what, on every way in: no route does what another one denies, and none tells what there is to deny."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callboard.core.errors import CallboardError
from callboard.core.policy import Hints, Policy
from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Profile, Rules
from callboard.engine.manual_call import call_tool
from callboard.engine.relay.catalogue import TOOLS
from callboard.engine.relay.task_owners import TaskOwners
from callboard.engine.upstream.base import Answer
from tests.support.gateway import LegacyClient, ModernClient, TestGateway, gateway, text_of, until

HINTS = {
    "echo": Hints.of({"readOnlyHint": True}),
    "raw": Hints.of({"destructiveHint": True}),
    "bigint": Hints.of({"readOnlyHint": False, "destructiveHint": False}),
    "nope": Hints(is_listed=False),
}
PROFILES = {"office": Profile(servers=["one"], tools=["two.echo"], deny=["one.raw"])}
CLIENTS = {
    "free": ClientEntry(policy=Rules(allow=["*"], ask=[])),
    "one-only": ClientEntry(policy=Rules(allow=["one.*"], ask=[])),
    "tools-only": ClientEntry(policy=Rules(allow=["tool:*"], ask=[])),
    "reader": ClientEntry(policy=Rules(allow=["*"], read_only=True)),
    "picky": ClientEntry(policy=Rules(allow=["*"], deny=["*.raw", "prompt:one.*", "resource:two.*"], ask=[])),
    "asked": ClientEntry(policy=Rules(allow=["*"], ask=["*.echo", "prompt:*", "resource:one.*"])),
    "nothing": ClientEntry(policy=Rules()),
    "bound": ClientEntry(policy=Rules(allow=["*"], ask=[]), profile="office"),
    "default": ClientEntry(),
}
UNKNOWN = {"-32002": "policy-denied", "-32602": "policy-denied"}
ITEMS: list[tuple[Any, str, str]] = [
    *itertools.product(["tool"], ["one", "two"], ["echo", "raw", "bigint"]),
    *itertools.product(["prompt"], ["one", "two"], ["greet"]),
    *itertools.product(["resource"], ["one", "two"], ["readme"]),
]


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway with the servers one (legacy) and two (modern), and the clients above."""
    tokens = {f"token-{client}": client for client in CLIENTS}
    async with gateway(tmp_path, "one", "two", clients=tokens) as made:
        made.relay.policies.configure(DefaultPolicy(), CLIENTS, PROFILES)
        await made.start_fixture("one", "legacy", "--hints")
        await made.start_fixture("two", "modern", "--hints")
        yield made


def expected(client: str, kind: Any, server: str, name: str) -> str:
    """What the rules say, for themselves."""
    entry = CLIENTS[client]
    policy = Policy(entry.policy or DefaultPolicy(), PROFILES.get(entry.profile))
    own = f"doc://{server}/{name}" if kind == "resource" else name
    hints = HINTS[name] if kind == "tool" else Hints()
    effect = policy.decide(kind, server, own, hints).effect
    return {"allow": "done", "ask": "policy-unanswered", "deny": "policy-denied"}[effect]


def outcome(answer: dict[str, Any]) -> str:
    if "result" in answer:
        return "done"
    return str((answer["error"].get("data") or {}).get("code", answer["error"]["code"]))


async def by_mcp(client: LegacyClient | ModernClient, scope: str, kind: str, server: str, name: str) -> str:
    shown = name if scope else f"{server}__{name}"
    if kind == "tool":
        return outcome(await client.request("tools/call", {"name": shown, "arguments": {}}))
    if kind == "prompt":
        return outcome(await client.request("prompts/get", {"name": shown, "arguments": {"who": "x"}}))
    return outcome(await client.request("resources/read", {"uri": f"doc://{server}/{name}"}))


async def by_http(front: TestGateway, path: str, client: str) -> str:
    headers = {"authorization": f"Bearer token-{client}", "content-type": "application/json"}
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as http:
        answer = (await http.post(front.url + path, content=b"{}", headers=headers)).json()
    return "done" if answer.get("success") else str((answer.get("error") or answer)["code"])


async def ways(front: TestGateway, client: str, kind: str, server: str, name: str) -> dict[str, str]:
    """What each way in answers to the same request."""
    found: dict[str, str] = {}
    token = f"token-{client}"
    for scope, era in itertools.product(("", server), ("legacy", "modern")):
        maker = front.legacy if era == "legacy" else front.modern
        async with maker(scope, token) as made:
            if isinstance(made, LegacyClient):
                hello = await made.post(_hello())
                if hello.status_code == 403:
                    found[f"{era} {scope}"] = hello.json()["code"]
                    continue
                made.headers |= {"mcp-session-id": hello.headers["mcp-session-id"]}
            elif scope and (refused := await made.post(_hello())).status_code == 403:
                found[f"{era} {scope}"] = refused.json()["code"]
                continue
            found[f"{era} {scope}"] = await by_mcp(made, scope, kind, server, name)
    if kind == "tool":
        found["http"] = await by_http(front, f"/mcp/tools/{server}__{name}", client)
        found["http dotted"] = await by_http(front, f"/mcp/tools/{server}.{name}", client)
        found["http single"] = await by_http(front, f"/servers/{server}/mcp/tools/{name}", client)
    return found


def _hello() -> dict[str, Any]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


@pytest.mark.parametrize("client", CLIENTS)
async def test_no_route_does_what_another_denies(front: TestGateway, client: str) -> None:
    for kind, server, name in ITEMS:
        found = await ways(front, client, kind, server, name)
        wanted = expected(client, kind, server, name)
        if kind == "resource" and wanted == "policy-denied":
            # a URI names no server: where another server's are allowed, it is told as one that does not exist
            found = {way: UNKNOWN.get(outcome, outcome) for way, outcome in found.items()}
        assert set(found.values()) == {wanted}, (kind, server, name, found)


@pytest.mark.parametrize("client", CLIENTS)
async def test_lists_show_what_may_be_used(front: TestGateway, client: str) -> None:
    allowed = {
        (kind, server, name) for kind, server, name in ITEMS if expected(client, kind, server, name) != "policy-denied"
    }
    for maker in (front.legacy, front.modern):
        async with maker("", f"token-{client}") as made:
            if isinstance(made, LegacyClient):
                await made.initialize()
            tools = (await made.request("tools/list"))["result"]["tools"]
            prompts = (await made.request("prompts/list"))["result"]["prompts"]
            resources = (await made.request("resources/list"))["result"]["resources"]
        seen = {("tool", *each["name"].split("__")) for each in tools}
        seen |= {("prompt", *each["name"].split("__")) for each in prompts}
        seen |= {("resource", each["uri"][6:9], "readme") for each in resources if each["uri"].endswith("readme")}
        assert seen & set(ITEMS) == allowed


@pytest.mark.parametrize("client", ["one-only", "picky", "reader", "nothing"])
async def test_what_is_denied_and_what_is_not_there_are_answered_alike(front: TestGateway, client: str) -> None:
    async with front.legacy("", f"token-{client}") as made:
        await made.initialize()
        for method, there, missing in (
            ("tools/call", {"name": "two__raw"}, {"name": "three__raw"}),
            ("tools/call", {"name": "two__raw"}, {"name": "raw"}),
            ("resources/read", {"uri": "doc://two/readme"}, {"uri": "doc://nowhere"}),
            ("prompts/get", {"name": "one__greet"}, {"name": "one__gone"}),
        ):
            first, second = await made.request(method, there), await made.request(method, missing)
            if outcome(first) == "policy-denied" and outcome(second) == "policy-denied":
                assert first["error"] == second["error"]
    assert await by_http(front, "/servers/nowhere/mcp/tools/x", "one-only") == "policy-denied"
    assert await by_http(front, "/servers/two/mcp/tools/x", "one-only") == "policy-denied"
    assert await by_http(front, "/mcp/tools/two.gone", "one-only") == "policy-denied"
    assert await by_http(front, "/mcp/tools/one.gone", "one-only") == "tool-unknown"


async def test_completions_and_subscriptions_follow_the_same_rules(front: TestGateway) -> None:
    argument = {"argument": {"name": "who", "value": "x"}}
    for client, server, wanted in (
        ("picky", "one", "policy-denied"),
        ("picky", "two", "done"),
        ("free", "one", "done"),
    ):
        for scope in ("", server):
            async with front.legacy(scope, f"token-{client}") as made:
                await made.initialize()
                name = "greet" if scope else f"{server}__greet"
                reference = {"ref": {"type": "ref/prompt", "name": name}, **argument}
                assert outcome(await made.request("completion/complete", reference)) == wanted
    async with front.legacy("", "token-picky") as made:
        await made.initialize()
        assert outcome(await made.request("resources/subscribe", {"uri": "doc://two/readme"})) in UNKNOWN
        assert outcome(await made.request("resources/subscribe", {"uri": "doc://one/readme"})) == "done"
    async with front.legacy("two", "token-picky") as made:
        await made.initialize()
        assert outcome(await made.request("resources/subscribe", {"uri": "doc://two/readme"})) == "policy-denied"
    async with (
        front.modern("", "token-picky") as new,
        new.listening(resourceSubscriptions=["doc://two/readme", "doc://one/readme"]),
    ):
        accepted = new.of("notifications/subscriptions/acknowledged")[0]["params"]["notifications"]
        assert accepted["resourceSubscriptions"] == ["doc://one/readme"]


async def test_a_completion_is_judged_by_what_the_server_goes_by(front: TestGateway) -> None:
    """The type of its reference, and nothing beside that reaches the server."""
    argument = {"argument": {"name": "ref", "value": ""}}
    prompt, resource = {"type": "ref/prompt", "name": "greet"}, {"type": "ref/resource", "uri": "doc://two/page/{n}"}
    async with front.legacy("two", "token-picky") as made, front.legacy("", "token-picky") as everywhere:
        for client in (made, everywhere):
            await client.initialize()
        refused = await made.request("completion/complete", {"ref": resource, **argument})
        assert outcome(refused) == "policy-denied"
        for ref in (
            resource | {"name": "greet"},
            prompt | {"uri": "doc://two/page/{n}"},
            {"type": "ref/resource", "name": "greet"},
            {"type": "ref/other", "name": "greet"},
            {"name": "greet"},
            [],
        ):
            refused = await made.request("completion/complete", {"ref": ref, **argument})
            assert refused["error"]["code"] == -32602, ref
        for client, shown in ((made, "greet"), (everywhere, "two__greet")):
            ref = prompt | {"name": shown, "Type": "ref/resource", "Uri": "doc://two/page/{n}"}
            answer = await client.request("completion/complete", {"ref": ref, **argument})
            assert [json.loads(value) for value in answer["result"]["completion"]["values"]] == [prompt]


async def test_methods_that_no_rule_speaks_of_need_the_whole_server(front: TestGateway) -> None:
    async with front.legacy("one", "token-picky") as made:
        await made.initialize()
        assert outcome(await made.request("custom/method", {})) == "policy-denied"
    async with front.legacy("one", "token-one-only") as made:
        await made.initialize()
        assert outcome(await made.request("custom/method", {})) != "policy-denied"


async def test_a_task_is_of_the_client_whose_call_it_came_of(front: TestGateway) -> None:
    async with front.modern("", "token-free") as mine, front.modern("", "token-default") as other:
        await mine.request("tools/call", {"name": "two__task", "arguments": {}})
        task = {"taskId": "task of two"}
        unknown = await other.request("tasks/get", {"taskId": "never was"})
        assert (await other.request("tasks/get", task))["error"]["message"] == unknown["error"]["message"]
        assert outcome(await mine.request("tasks/get", task)) == "done"


async def test_nobody_takes_over_or_lists_the_tasks_of_others(front: TestGateway) -> None:
    mine, other = front.legacy("one", "token-free"), front.legacy("one", "token-tools-only")
    third, everywhere = front.legacy("one", "token-default"), front.legacy("", "token-tools-only")
    async with mine, other, third, everywhere:
        for client in (mine, other, third, everywhere):
            await client.initialize()
        await mine.call("task", {"id": "first"})
        for taken in ("first", "second"):
            await other.call("task", {"id": taken})
        await everywhere.call("two__task", {"id": "first"})  # another server's ids are others

        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/update"):
            refused = await third.request(method, {"taskId": "first"})
            assert refused["error"]["message"] == "Unknown task"
            assert outcome(await other.request(method, {"taskId": "first"})) == "policy-denied"
        assert outcome(await mine.request("tasks/get", {"taskId": "first"})) == "done"
        assert outcome(await other.request("tasks/get", {"taskId": "second"})) == "done"
        assert (await everywhere.request("tasks/get", {"taskId": "first"}))["result"]["by"] == "two"

        for listing in ({}, {"taskId": "second"}):
            assert outcome(await other.request("tasks/list", listing)) == "policy-denied"
        listed = (await mine.request("tasks/list"))["result"]["tasks"]
        assert {task["taskId"] for task in listed} == {"first"}
        assert (await third.request("tasks/list"))["result"]["tasks"] == []
        assert (await mine.request("tasks/all", {"taskId": "first"}))["error"]["code"] == -32601
        assert (await everywhere.request("tasks/list", {"taskId": "first"}))["error"]["code"] == -32601
    front.relay.connected("one", front.servers.ready["one"])  # as another process would be, which counts anew
    assert not front.relay.tasks.of("one", "first")
    assert front.relay.tasks.of("two", "first")
    await front.relay.catalogue.settled("one")


async def test_clients_with_processes_of_their_own_may_have_tasks_of_one_id() -> None:
    owners = TaskOwners(lambda server: False)
    answer = Answer(result=b'{"task":{"taskId":"1"}}')
    for client in ("a", "b"):
        owners.learn("s", "tools/call", answer, client)
    assert owners.of("s", "1") == {"a", "b"}
    listed = Answer(result=b'{"tasks":[{"taskId":"2"}]}')
    assert owners.only_own("s", listed, "a") is listed


async def test_a_list_of_tasks_that_cannot_be_read_is_not_shown() -> None:
    owners = TaskOwners(lambda server: True)
    owners.learn("s", "tools/call", Answer(result=b'{"resultType":"task","taskId":"1"}'), "a")
    owners.learn("s", "tasks/get", Answer(result=b'{"taskId":"2"}'), "a")  # who asks for a task does not own it
    for text in (b"{}", b'{"tasks":{}}', b'{"tasks":[5]}', b'{"tasks":[{"id":"1"}]}'):
        assert owners.only_own("s", Answer(result=text), "a").error is not None
    listed = Answer(result=b'{"nextCursor":"c","tasks":[{"taskId":"1"},{"taskId":"2"}]}')
    found = json.loads(bytes(owners.only_own("s", listed, "a").result or b""))
    assert found == {"nextCursor": "c", "tasks": [{"taskId": "1"}]}


async def test_a_profile_has_an_endpoint_and_a_token_may_be_bound_to_it(front: TestGateway) -> None:
    url = f"{front.url}/profiles/office/mcp"
    for client in ("free", "bound"):
        for slash in ("", "/"):
            async with ModernClient(url + slash, f"token-{client}", {}) as made:
                names = {each["name"] for each in (await made.request("tools/list"))["result"]["tools"]}
                assert "two__echo" in names
                assert "one__bigint" in names
                assert not names & {"one__raw", "two__raw"}
                assert outcome(await made.call("one__raw")) == "policy-denied"
                assert outcome(await made.call("two__echo", {"text": "x"})) == "done"
    assert await by_http(front, "/profiles/office/mcp/tools/two__raw", "free") == "policy-denied"
    assert await by_http(front, "/profiles/office/mcp/tools/two__echo", "free") == "done"
    assert await by_http(front, "/profiles/gone/mcp/tools/two__echo", "free") == "profile-unknown"
    assert await by_http(front, "/profiles/gone/mcp/tools/two__echo", "bound") == "policy-denied"


async def test_sessions_hear_when_their_policy_or_profile_changes(front: TestGateway) -> None:
    url = f"{front.url}/profiles/office/mcp"
    free, bound = LegacyClient(url, "token-free", {}), ModernClient(f"{front.url}/mcp", "token-bound", {})
    async with free, bound, front.legacy("", "token-free") as elsewhere:
        for each in (free, elsewhere):
            await each.initialize()
            await each.request("tools/list")
        async with free.listening(), elsewhere.listening(), bound.listening(toolsListChanged=True):
            profiles = {"office": Profile(servers=["one"])}
            changed = front.relay.policies.configure(DefaultPolicy(), CLIENTS, profiles)
            assert {caller.client for caller in changed} == {"free", "bound"}
            front.relay.policy_changed(changed)
            method = "notifications/tools/list_changed"
            await until(lambda: free.of(method) and bound.of(method), 30)
            assert not elsewhere.of(method)
        names = {each["name"] for each in (await free.request("tools/list"))["result"]["tools"]}
        assert "one__raw" in names
        assert "two__echo" not in names


async def test_what_a_tool_declares_anew_counts_at_once(front: TestGateway) -> None:
    """The verdict of a call is remembered until its server's list changes."""
    async with front.legacy("one", "token-default") as made:
        await made.initialize()
        assert outcome(await made.call("raw")) == "policy-unanswered"
        front.relay.policies.configure(DefaultPolicy(ask=[]), CLIENTS, PROFILES)
        assert outcome(await made.call("raw")) == "done"


async def test_the_person_is_not_asked_and_denied_only_by_name(front: TestGateway) -> None:
    policies = front.relay.policies
    for server, tool in (("one", "raw"), ("two", "echo")):
        assert json.loads(await call_tool(front.relay, server, tool, {}, caller=policies.person))["content"]
    clients = {**CLIENTS, "callboard": ClientEntry(policy=Rules(allow=["*"], deny=["one.raw"]))}
    policies.configure(DefaultPolicy(deny=["two.*"]), clients, PROFILES)
    with pytest.raises(CallboardError) as caught:
        await call_tool(front.relay, "one", "raw", {}, caller=policies.person)
    assert caught.value.code == "policy-denied"
    assert json.loads(await call_tool(front.relay, "two", "raw", {}, caller=policies.person))["content"]


async def test_a_profiles_endpoint_holds_for_the_person_too(front: TestGateway) -> None:
    async with ModernClient(f"{front.url}/profiles/office/mcp", "admin-token", {}) as made:
        assert outcome(await made.call("one__raw")) == "policy-denied"
        assert outcome(await made.call("two__raw")) == "policy-denied"
        assert outcome(await made.call("two__echo", {"text": "x"})) == "done"
    async with front.modern("", "admin-token") as made:
        assert outcome(await made.call("one__raw")) == "done"


async def test_long_names_are_not_remembered(front: TestGateway) -> None:
    caller = front.relay.policies.caller("picky")
    async with front.modern("one", "token-picky") as made:
        for number in range(3):
            await made.call(f"{number}" + "x" * 100_000)
        assert outcome(await made.call("raw")) == "policy-denied"
    assert caller._verdicts
    assert all(len(name) < 1000 for _, _, name in caller._verdicts)
    assert not caller.may_use("y" * 100_000) or all(len(server) < 1000 for server in caller._servers)


async def test_a_denied_call_stands_in_the_log_with_its_reason(front: TestGateway) -> None:
    async with front.legacy("", "token-picky") as made:
        await made.initialize()
        await made.call("one__raw", {"x": 1})
    row = (await front.rows("raw"))[-1]
    assert (row.status, row.error) == ("failed", 'Denied: raw is denied by "*.raw"')


async def test_results_are_cut_for_the_client_and_kept_for_the_log(front: TestGateway) -> None:
    clients = {**CLIENTS, "free": ClientEntry(policy=Rules(allow=["*"], ask=[]), max_result_chars=1000)}
    front.relay.policies.configure(DefaultPolicy(), clients, PROFILES)
    wanted = "ü" * 1000 + "... [2000 characters truncated]"
    for scope, maker in itertools.product(("", "one"), (front.legacy, front.modern)):
        async with maker(scope, "token-free") as made:
            if isinstance(made, LegacyClient):
                await made.initialize()
            assert text_of(await made.call("big" if scope else "one__big", {"size": 3000})) == wanted
    async with front.legacy("one", "token-one-only") as other:
        await other.initialize()
        assert text_of(await other.call("big", {"size": 3000})) == "ü" * 3000
    row = (await front.rows("big"))[0]
    assert row.response_bytes > 6000
    detail = await front.call_log.detail(row.id)
    assert "truncated" not in detail.result


async def test_a_tool_renamed_to_anothers_name_is_left_out(front: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are given once: a second tool of a name is refused, and the same list read again changes nothing."""
    monkeypatch.setattr(front.servers, "exposed", lambda server, tool: "echo" if tool == "raw" else tool)
    front.relay.sync(["one", "two"])
    async with front.legacy("one", "token-free") as made:
        await made.initialize()
        names = [each["name"] for each in (await made.request("tools/list"))["result"]["tools"]]
        assert names.count("echo") == 1
        assert text_of(await made.call("echo", {"text": "mine"})) == "mine"
        before = front.relay.view("one").shown(TOOLS)
        await asyncio.wait_for(_again(front), 30)
        assert front.relay.view("one").shown(TOOLS) == before


async def _again(front: TestGateway) -> None:
    front.relay.catalogue.read("one", front.servers.ready["one"])
    await front.relay.catalogue.settled("one")

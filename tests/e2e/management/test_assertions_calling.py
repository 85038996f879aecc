"""What must hold of tools, of who may call them, and of calls: the assertions 10 to 21."""

import asyncio
import importlib.util
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from callboard.api.schema import CallView, EntryEdit
from callboard.api.server import ControlServer
from callboard.core.errors import CallboardError
from callboard.core.names import WireNames
from callboard.engine.engine import Engine
from callboard.engine.masking import Masking
from callboard.system.paths import Paths
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client
from tests.support.processes import odd_server

EXAMPLE = Path(__file__).parents[3] / "resources" / "examples" / "assistant.py"
ONE_AND_TWO = {"one": fixture_entry("one"), "two": fixture_entry("two")}

both_eras = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@asynccontextmanager
async def running(home: Path, servers: dict[str, Any], **settings: object) -> AsyncIterator[EngineProcess]:
    """An engine whose servers' tools are known."""
    engine = EngineProcess(home)
    engine.write_roster(servers, **settings)
    async with engine:
        for name in servers:
            await engine.wait_for_view(name, lambda view: view.state == "ready" and view.tools > 0)
        yield engine


async def plain_call(engine: EngineProcess, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """The whole answer to a plain HTTP call of the client "script"."""
    headers = {"authorization": f"Bearer {await engine.token()}"}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        url = f"{engine.client.address.url}/mcp/tools/{tool}"
        found: dict[str, Any] = (await http.post(url, json=arguments or {}, headers=headers)).json()
        return found


async def logged(engine: EngineProcess, count: int) -> list[CallView]:
    """All calls of the log, once there are so many and all have ended."""
    async with asyncio.timeout(60):
        while True:
            calls = (await engine.client.calls()).calls
            if len(calls) >= count and all(call.status != "running" for call in calls):
                return calls
            await asyncio.sleep(0.02)


async def failure(engine: EngineProcess, server: str, tool: str, arguments: dict[str, Any]) -> CallboardError:
    """The error of a call by hand that cannot be made."""
    with pytest.raises(CallboardError) as caught:
        await engine.client.call_tool(server, tool, arguments)
    return caught.value


async def test_assertion_10_a_tool_is_known_as_server_dot_tool(callboard_home: Path) -> None:
    async with running(callboard_home, ONE_AND_TWO) as engine:
        tool = next(each for each in await engine.client.tools("one") if each.name == "echo")
        assert (tool.wire_name, tool.description != "", tool.input_schema["type"]) == ("one__echo", True, "object")
        assert (await plain_call(engine, "two.echo", {"text": "hi"}))["result"] == "hi"
        shown = await CommandLine(callboard_home)("inspect", "one.echo", "--json")
        assert (shown.code, shown.json["name"]) == (0, "echo")
        assert [(call.server, call.tool) for call in await logged(engine, 1)] == [("two", "echo")]


async def test_assertion_11_the_same_server_again_is_harmless_and_one_name_has_one_owner(callboard_home: Path) -> None:
    servers = {"one": fixture_entry("one"), "odd": entry(*fixture_command("--list-fault", "odd"))}
    async with running(callboard_home, servers) as engine:
        before = await engine.client.server("one")
        await engine.client.save_entry("one", EntryEdit(entry=dict(servers["one"])))
        after = await engine.client.server("one")
        assert (after.pid, after.tools, after.since) == (before.pid, before.tools, before.since)
        with pytest.raises(CallboardError) as caught:
            await engine.client.save_entry("one", EntryEdit(entry={"command": "x"}, create=True))
        assert caught.value.code == "name-taken"
        assert (await engine.client.validate("a.b", {"command": "x"})).problems, "a.b + c would be a + b.c"
        left_out = [tool.problem for tool in await engine.client.tools("odd") if not tool.wire_name]
        assert any("another one has the same name" in problem for problem in left_out), left_out
    wire = WireNames([("a", "b__c"), ("a__b", "c")])
    assert wire.wire("a", "b__c") != wire.wire("a__b", "c")


@both_eras
async def test_assertion_12_a_client_with_rules_may_use_what_they_name_and_each_call_is_checked(
    callboard_home: Path, mode: str
) -> None:
    clients = {"script": {"policy": {"allow": ["one.*"]}}, "vscode": {"policy": {}}}
    async with running(callboard_home, ONE_AND_TWO, clients=clients) as engine:
        async with mcp_client(engine, mode=mode) as client:
            names = {tool.name for tool in await client.list_tools()}
            assert names
            assert all(name.startswith("one__") for name in names), "a list shows what may be used"
            assert not (await client.call_tool("one__echo", {"text": "hi"})).is_error
            await engine.client.policy.save_client("script", {"policy": {"allow": ["two.*"]}})
            with pytest.raises(MCPError, match="may not use this"):  # at once, whatever was listed before
                await client.call_tool("one__echo", {"text": "hi"})
            assert not (await client.call_tool("two__echo", {"text": "hi"})).is_error
        async with mcp_client(engine, mode=mode, token_of="vscode") as client:
            assert await client.list_tools() == [], "no entry allows nothing"
        async with mcp_client(engine, mode=mode, token_of="cursor") as client:
            assert len(await client.list_tools()) > len(names), "who has no rules of its own follows the default"


async def test_assertion_13_who_may_not_use_a_tool_does_not_learn_whether_it_exists(callboard_home: Path) -> None:
    clients = {"script": {"policy": {"allow": ["one.*"]}}}
    async with running(callboard_home, ONE_AND_TWO, clients=clients) as engine:
        answers = [await plain_call(engine, tool) for tool in ("two.echo", "two.no_such_tool", "nobody.echo")]
        assert [answer["error"]["code"] for answer in answers] == ["policy-denied"] * 3
        assert len({answer["error"]["message"].replace("no_such_tool", "echo") for answer in answers[:2]}) == 1
        assert (await plain_call(engine, "one.no_such_tool"))["error"]["code"] == "tool-unknown"


async def test_assertion_14_each_way_to_fail_has_its_own_name(callboard_home: Path) -> None:
    servers = {
        "one": fixture_entry("one"),
        "hasty": fixture_entry("hasty", timeouts={"call": 0.5}),
        "gone": entry("no-such-program-4711", restart={"max": 0}),
        "deaf": entry(*odd_server("--silent"), timeouts={"start": 0.5}, restart={"max": 0}),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        for name in ("one", "hasty"):
            await engine.wait_for_view(name, lambda view: view.state == "ready" and view.tools > 0)
        failed = await engine.client.call_tool("one", "fail", {"text": "nope"})
        assert (failed["isError"], failed["content"][0]["text"]) == (True, "nope")
        assert (await plain_call(engine, "one.fail", {"text": "nope"}))["error"]["code"] == "tool-failed"
        assert (await failure(engine, "one", "refuse", {})).code == "call-refused"
        assert (await failure(engine, "hasty", "slow", {"ms": 60_000})).code == "call-timeout"
        for name, cause in (("gone", "command-not-found"), ("deaf", "start-timeout")):
            await engine.wait_for(name, "failed")
            error = await failure(engine, name, "echo", {})
            assert (error.code, error.data["cause"]) == ("server-not-ready", cause)
        assert (await failure(engine, "one", "die", {})).code == "upstream-gone"


@both_eras
async def test_assertion_15_a_long_result_is_cut_at_a_character_and_kept_whole_in_the_log(
    callboard_home: Path, mode: str
) -> None:
    clients = {"script": {"max_result_chars": 8000}}
    async with running(callboard_home, ONE_AND_TWO, clients=clients) as engine:
        async with mcp_client(engine, mode=mode) as client:
            for size, text in ((8000, "ü" * 8000), (9000, "ü" * 8000 + "... [1000 characters truncated]")):
                result = await client.call_tool("one__big", {"size": size})
                assert result.content[0].text == text
        whole = (await logged(engine, 2))[-1]
        assert "ü" * 9000 in (await engine.client.call(whole.id)).result


async def test_assertion_16_a_connection_outlives_a_call_and_health_is_asked_for_not_assumed(
    callboard_home: Path,
) -> None:
    servers = {"one": fixture_entry("one", timeouts={"call": 5}, restart={"max": 0})}
    async with running(callboard_home, servers) as engine:
        assert (await failure(engine, "one", "slow", {"ms": 60_000})).code == "call-timeout"
        pid = int((await engine.client.call_tool("one", "pid", {}))["content"][0]["text"])
        assert (await engine.client.server("one")).pid == pid
        assert (await engine.client.check_health("one")).status == "ok"
        os.kill(pid, signal.SIGKILL)
        found = await engine.client.check_health("one")
        assert found.status != "ok", "a dead server is not taken for one that is connected"
        await engine.wait_for("one", "failed")
        assert (await engine.client.check_health("one")).status == "fail"


async def test_assertion_17_the_limit_of_a_start_bounds_the_whole_of_it(callboard_home: Path) -> None:
    """Whatever is tried first: the probe of the newer protocol takes its time out of the same limit."""
    servers = {"deaf": entry(*odd_server("--silent"), timeouts={"start": 1}, restart={"max": 0})}
    async with EngineProcess(callboard_home, servers) as engine:
        view = await engine.wait_for("deaf", "failed")
        assert view.error_code == "start-timeout"
        assert "1 s" in view.reason
        assert view.pid is None, "nothing of it is left"


@both_eras
async def test_assertion_18_one_connection_is_kept_for_all_calls(
    callboard_home: Path, tmp_path: Path, mode: str
) -> None:
    mark = tmp_path / "starts"
    servers = {"one": fixture_entry("one"), "odd": entry(*odd_server("--mark", mark))}
    async with running(callboard_home, servers) as engine:
        pids = set()
        for _ in range(5):
            async with mcp_client(engine, mode=mode) as client:
                for _ in range(4):
                    pids.add((await client.call_tool("one__pid", {})).content[0].text)
                    await client.call_tool("odd__echo", {"text": "hi"})
        assert pids == {str((await engine.client.server("one")).pid)}
        assert len(mark.read_text().splitlines()) == 1


def test_assertion_19_an_engine_can_be_made_outside_of_a_loop_and_inside_of_one(tmp_path: Path) -> None:
    def make(name: str) -> Engine:
        home = tmp_path / name
        paths = Paths(home / "config", home / "state", home / "logs", home / "runtime", home / "data")
        paths.create()
        paths.roster.write_text("version: 1\ngateway: {port: 0}\nservers: {}\n")
        return Engine(paths, Masking())

    async def live(engine: Engine) -> None:
        await engine.start(ControlServer(engine))
        assert (await engine.view()).port > 0
        await engine.stop()

    async def inside() -> None:
        await live(make("inside"))

    asyncio.run(live(make("outside")))
    asyncio.run(inside())


async def test_assertion_20_a_server_that_fails_hinders_no_other(callboard_home: Path) -> None:
    servers = {
        "crashes": entry(*odd_server("--crash-before", "3"), restart={"max": 0}),
        "gone": entry("no-such-program-4711", restart={"max": 0}),
        "nobody": {"url": "http://127.0.0.1:9/mcp", "restart": {"max": 0}},
        "good": fixture_entry("good"),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        await engine.wait_for_view("good", lambda view: view.state == "ready" and view.tools > 0)
        assert (await plain_call(engine, "good.echo", {"text": "hi"}))["result"] == "hi"
        for name in ("crashes", "gone", "nobody"):
            await engine.wait_for(name, "failed")
        async with mcp_client(engine) as client:
            assert {tool.name.partition("__")[0] for tool in await client.list_tools()} == {"good"}


@both_eras
async def test_assertion_21_a_loop_of_tools_ends_after_three_rounds_with_an_answer(
    callboard_home: Path, mode: str
) -> None:
    assistant = load(EXAMPLE)
    offered: list[int] = []

    async def insatiable(messages: list[dict[str, Any]], tools: list[Any]) -> Any:
        """A model that never has enough."""
        offered.append(len(tools))
        if not tools:
            return assistant.Turn(text=f"after {len(messages) - 1} calls: {messages[-1]['text']}")
        tool = "one__fail" if len(offered) == 2 else "one__echo"
        return assistant.Turn(calls=[(tool, {"text": f"round {len(offered)}"})])

    async with (
        running(callboard_home, {"one": fixture_entry("one")}) as engine,
        mcp_client(engine, mode=mode) as client,
    ):
        assert await assistant.answer(client, insatiable, "Why?") == "after 3 calls: round 3"
        assert [bool(count) for count in offered] == [True, True, True, False]
        assert [call.status for call in await logged(engine, 3)] == ["completed", "failed", "completed"]


def fixture_command(*options: str) -> list[str]:
    """The fixture server's command with other options."""
    base = fixture_entry("odd")
    return [str(base["command"]), *(str(each) for each in base["args"]), *options]  # type: ignore[attr-defined]


def load(file: Path) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Looking at agents through the engine, and at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callboard.core.agent_methods import CONVERSATIONS, RELOAD
from tests.e2e.agents.frameworks import ready
from tests.e2e.command_line import CommandLine
from tests.e2e.misbehaving.kit import legacy
from tests.support.engine import EngineProcess, fixture_entry
from tests.support.mcp_client import LEGACY, mcp_client, text_of

pytestmark = pytest.mark.timeout(120)  # several commands, each a process

EXAMPLES = Path(__file__).parents[3] / "resources" / "examples"


async def test_the_engine_looks(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        found = await engine.client.look_at_agent(str(EXAMPLES / "dice.py"))
        assert [agent.name for agent in found.agents] == ["Dice"]
        offered = await engine.client.look_at_agent(found.agents[0].agent, params={"seed": 1})
        assert {tool.name for tool in offered.tools} == {"roll", "history"}
        wrong = await engine.client.look_at_agent(found.agents[0].agent, params={"sead": 1})
        assert "unexpected keyword argument 'sead'" in wrong.error


async def test_an_agent_tells_of_its_conversations(callboard_home: Path) -> None:
    servers = {"counter": {"agent": f"{EXAMPLES}/counter.py:counter"}}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "counter")
        async with (
            mcp_client(engine, "counter", mode=LEGACY) as ann,
            mcp_client(engine, "counter", mode=LEGACY, token_of="cursor") as bob,
        ):
            for client in (ann, ann, bob):
                await client.call_tool("counter", {"request": "1"})
            (resource,) = await ann.list_resources()
            told = json.loads((await ann.read_resource(resource.uri))[0].text)
            assert (told["held"], [each["turns"] for each in told["yours"]]) == (2, [2])


async def test_the_command_line_lists(callboard_home: Path) -> None:
    command = CommandLine(callboard_home)
    listed = await command("agent", "list", str(EXAMPLES / "counter.py"), "--json")
    assert [(each["name"], each["kind"]) for each in listed.json] == [("counter", "plain")]
    tools = await command("agent", "list", f"{EXAMPLES}/dice.py:Dice")
    assert tools.code == 0
    assert "Roll one or more dice." in tools.out
    wrong = await command("agent", "list", f"{EXAMPLES}/dice.py:Dise")
    assert (wrong.code, wrong.out) == (1, "")
    assert "did you mean Dice?" in wrong.err


async def test_what_an_agents_server_holds(callboard_home: Path) -> None:
    """For the person, through API and command line; no client may ask for it, whatever it says of itself."""
    counter = {"agent": f"{EXAMPLES}/counter.py:counter"}
    servers = {"counter": counter, "each": {**counter, "sharing": "per-client"}, "files": fixture_entry("one")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        command = CommandLine(callboard_home)
        assert (await command("agent", "conversations", "counter")).err == "0 of at most 500 held\n"
        async with (
            mcp_client(engine, "counter", mode=LEGACY) as ann,
            mcp_client(engine, "counter", mode=LEGACY, token_of="cursor") as bob,
        ):
            for client in (ann, ann, bob):
                await client.call_tool("counter", {"request": "1"})
            told = await engine.client.conversations("counter")
            assert [(each.client, each.turns, each.busy) for each in told.conversations] == [
                ("cursor", 1, False),
                ("script", 2, False),
            ]
            assert (told.running, told.held, told.limit) == (True, 2, 500)
            shown = await command("agent", "conversations", "counter")
            assert ["cursor", "1"] in [line.split()[2:4] for line in shown.out.splitlines()]
            assert shown.err == "2 of at most 500 held\n"
        async with await legacy(engine, "counter") as client:
            for method in (CONVERSATIONS, RELOAD):
                for meta in ({}, {"callboard/client": None}, {"_meta": {}}):
                    refused = await client.request(method, {"_meta": meta})
                    assert refused["error"]["code"] == -32601
        async with mcp_client(engine, "each", mode=LEGACY) as ann:
            await ann.call_tool("counter", {"request": "1"})
            assert [each.turns for each in (await engine.client.conversations("each")).conversations] == [1]
            await engine.client.reload("each")
            assert text_of(await ann.call_tool("counter", {"request": "1"})) == "The count is 2 after 2 calls."
        for name, code in (("files", 1), ("nobody", 4)):
            refused = await command("agent", "conversations", name)
            assert (refused.code, refused.out) == (code, "")
        await engine.client.act("counter", "stop")
        await engine.wait_for("counter", "stopped")
        assert not (await engine.client.conversations("counter")).running
        stopped = await command("agent", "reload", "counter")
        assert (stopped.code, stopped.err.splitlines()[0]) == (
            1,
            "callboard: counter does not run; it is loaded when it starts.",
        )


async def test_an_agent_is_loaded_anew_on_request(callboard_home: Path, tmp_path: Path) -> None:
    """With its conversations, also where nothing of them is stored; with a mistake in it, the old one goes on."""

    def write(word: str, tool: str = "") -> None:
        file.write_text(
            "def agent(request, context):\n"
            "    context.state['n'] = context.state.get('n', 0) + 1\n"
            f"    return f\"{word} {{context.state['n']}}\"\n"
            f"def {tool or 'extra'}(x: int) -> int: return x\n"
            f"both = [agent{f', {tool}' if tool else ''}]\n",
            encoding="utf-8",
        )

    file = tmp_path / "mine.py"
    write("old")
    async with EngineProcess(callboard_home, {"mine": {"agent": f"{file}:both"}}) as engine:
        await ready(engine, "mine")
        async with mcp_client(engine, "mine", mode=LEGACY) as client:
            first = await client.call_tool("agent", {"request": ""})
            handle = first.structured_content["conversation"]
            assert text_of(first) == "old 1"
            pid = (await engine.client.server("mine")).pid
            write("new", "added")
            loaded = await CommandLine(callboard_home)("agent", "reload", "mine", "--json")
            assert (loaded.code, loaded.json) == (0, {"mine": {"tools": ["agent", "added"]}})
            assert {tool.name for tool in await client.list_tools()} == {"agent", "added"}
            assert text_of(await client.call_tool("agent", {"request": "", "conversation": handle})) == "new 2"
            assert text_of(await client.call_tool("agent", {"request": ""})) == "new 3"
            file.write_text("1 / 0\n", encoding="utf-8")
            wrong = await CommandLine(callboard_home)("agent", "reload", "mine")
            assert wrong.code == 1
            assert "ZeroDivisionError" in wrong.err
            assert "mine.py, line 1" in wrong.err
            assert text_of(await client.call_tool("agent", {"request": ""})) == "new 4"
            write("newest")
            await engine.client.reload("mine")
            assert [tool.name for tool in await engine.client.tools("mine")] == ["agent"]
            assert text_of(await client.call_tool("agent", {"request": "", "conversation": handle})) == "newest 5"
        assert (await engine.client.server("mine")).pid == pid

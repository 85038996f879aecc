"""Looking at agents through the engine, and at the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.agents.frameworks import ready
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess
from tests.support.mcp_client import LEGACY, mcp_client

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

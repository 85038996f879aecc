"""The tools that agents of frameworks use themselves, published one by one (`expose: tools`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents.frameworks import CASES, ERAS, Case, ready
from tests.support.agent_environments import AgentEnvironments
from tests.support.engine import EngineProcess
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of

pytestmark = pytest.mark.timeout(900)  # the first test of a framework installs it

CASE = {case.framework: case for case in CASES}


@dataclass(frozen=True)
class Tools:
    """What is particular to a framework's tools. ``others``: what `agent` has beside "roll"."""

    framework: str
    others: tuple[str, ...] = ()
    rolled: str = "4"
    picture: str = ""  # the tool that gives an image
    none: str = ""  # an agent without tools, and what is said of it
    said: str = ""


TOOLS = (
    Tools("pydantic-ai", picture="draw", none="weather", said="it has no tools"),
    Tools("langgraph", none="asking", said="it has no node of tools (ToolNode)"),
    Tools("openai-agents", none="weather", said="it has no function tools of its own"),
    Tools("google-adk", ("save",), none="plain", said="only agents with a model have tools"),
    Tools("smolagents", ("wait",), picture="draw", none="coder", said="it has no tools of its own"),
)
every_framework = pytest.mark.parametrize("case", TOOLS, ids=lambda case: case.framework)


@every_framework
async def test_each_tool_of_an_agent(case: Tools, agent_environments: AgentEnvironments, callboard_home: Path) -> None:
    fixture, python = CASE[case.framework], agent_environments.python(case.framework)
    servers = {
        "dice": fixture.entry(python, expose="tools"),
        "tools": fixture.entry(python, "tools", expose="tools"),
        "some": fixture.entry(python, expose=["roll"]),
        "none": fixture.entry(python, case.none, expose="tools", restart={"max": 0}),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "dice", "tools", "some")
        for mode in ERAS:
            async with mcp_client(engine, "dice", mode=mode) as client:
                tools = {tool.name: tool for tool in await client.list_tools()}
                assert set(tools) == {"roll", *case.others}
                schema = tools["roll"].input_schema
                assert (schema["properties"]["sides"]["type"], schema["required"]) == ("integer", ["sides"])
                assert "Roll a die" in tools["roll"].description
                assert text_of(await client.call_tool("roll", {"sides": 6})) == case.rolled
                wrong = await client.call_tool("roll", {"sides": "six"}, raise_on_error=False)
                assert wrong.is_error
                assert text_of(wrong).startswith("Invalid arguments: sides: 'six' is not of type 'integer'")
            async with mcp_client(engine, "tools", mode=mode) as client:
                await special_tools(client, case)
            async with mcp_client(engine, "some", mode=mode) as client:
                assert [tool.name for tool in await client.list_tools()] == ["roll"]
        view = await engine.wait_for("none", "failed")
        log = "\n".join(line.text for line in (await engine.client.log("none")).lines)
        assert case.said in view.reason + log
        assert 'as a single tool it is "whole"' in view.reason + log


async def special_tools(client: Any, case: Tools) -> None:
    """The tools of the fixture's agent `tools`."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert tools["pick"].input_schema["properties"]["colour"]["enum"] == ["red", "blue"]
    picked = await client.call_tool("pick", {"colour": "red", "sizes": [1, 2]})
    assert "red [1, 2]" in text_of(picked)
    wrong = await client.call_tool("pick", {"colour": "green", "sizes": []}, raise_on_error=False)
    assert text_of(wrong) == "Invalid arguments: colour: 'green' is not one of ['red', 'blue']"
    failed = await client.call_tool("fail", {"why": "because"}, raise_on_error=False)
    assert failed.is_error
    assert "because" in text_of(failed)
    assert "Traceback" not in text_of(failed)
    if case.picture:
        drawn = await client.call_tool(case.picture, {"what": "dot"})
        assert [block.mime_type for block in drawn.content if block.type == "image"] == ["image/png"]


async def test_tools_of_pydantic_ai(agent_environments: AgentEnvironments, callboard_home: Path) -> None:
    """They have the agent's dependencies; what waits for a person is not published; refusals are said."""
    fixture, python = CASE["pydantic-ai"], agent_environments.python("pydantic-ai")
    known = fixture.entry(python, "known", expose="tools") | {"params": {"deps": {"name": "Ann"}}}
    servers = {
        "known": known,
        "tools": fixture.entry(python, "tools", expose="tools"),
        "careful": fixture.entry(python, "careful", expose="tools", restart={"max": 0}),
        "both": fixture.entry(python, expose=["*"]),
    }
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "known", "tools", "both")
        async with mcp_client(engine, mode=MODERN) as client:
            names = {tool.name for tool in await client.list_tools()}
            assert {"both__dice", "both__roll", "known__whoami"} <= names
            assert text_of(await client.call_tool("known__whoami", {})) == "Ann"
            again = await client.call_tool("tools__retry", {}, raise_on_error=False)
            assert (again.is_error, text_of(again)) == (True, "Another one, please")
            assert text_of(await client.call_tool("both__dice", {"request": "hi"})).strip() == "you said: hi"
        view = await engine.wait_for("careful", "failed")
        log = "\n".join(line.text for line in (await engine.client.log("careful")).lines)
        assert "its tools wait for a person's word" in view.reason + log


async def test_tools_of_googles_kit_have_a_session(agent_environments: AgentEnvironments, callboard_home: Path) -> None:
    """State and artifacts of a tool belong to the conversation."""
    fixture = CASE["google-adk"]
    servers = {"dice": fixture.entry(agent_environments.python("google-adk"), "tools", expose="tools")}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, "dice")
        async with (
            mcp_client(engine, "dice", mode=LEGACY) as ann,
            mcp_client(engine, "dice", mode=LEGACY, token_of="cursor") as bob,
        ):
            texts = [text_of(await client.call_tool("remember", {})) for client in (ann, ann, bob)]
            assert texts == ["called 1 times", "called 2 times", "called 1 times"]
            saved = await ann.call_tool("save", {"text": "kept"})
            (resource,) = [block for block in saved.content if block.type == "resource"]
            (content,) = await ann.read_resource(resource.resource.uri)
            assert content.text == "kept"


async def test_agent_kernel_says_where_its_tools_are(
    agent_environments: AgentEnvironments, callboard_home: Path
) -> None:
    case: Case = CASE["agentkernel"]
    entry = case.entry(agent_environments.python("agentkernel"), expose="tools", restart={"max": 0})
    async with EngineProcess(callboard_home, {"kernel": entry}) as engine:
        view = await engine.wait_for("kernel", "failed")
        log = "\n".join(line.text for line in (await engine.client.log("kernel")).lines)
        assert "in the agent of the framework beneath" in view.reason + log

"""Agents of real frameworks, each under an interpreter of its own, called through the gateway by fastmcp's client."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from tests.e2e.agents.frameworks import CASES, ERAS, WEATHER, Caller, Case, conversation_of, kinds_of, ready, until_file
from tests.support.agent_environments import AgentEnvironments
from tests.support.engine import EngineProcess
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of

pytestmark = pytest.mark.timeout(900)  # the first test of a framework installs it

every_framework = pytest.mark.parametrize("case", CASES, ids=lambda case: case.framework)
PNG = b"\x89PNG\r\n\x1a\n"


@every_framework
async def test_calls(case: Case, agent_environments: AgentEnvironments, callboard_home: Path) -> None:
    python = agent_environments.python(case.framework)
    servers = {"dice": case.entry(python), "weather": case.entry(python, case.weather)}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        for mode in ERAS:
            async with mcp_client(engine, "dice", mode=mode) as client:
                [tool] = await client.list_tools()
                assert tool.input_schema["required"] == ["request"]
                dice = Caller(client, tool.name)
                assert text_of(await dice("hello there")).strip() == "you said: hello there"
                if case.streams:
                    assert "hello there" in dice.said
                assert "4" in text_of(await dice("roll"))
                for remark in case.roll:
                    assert remark in dice.said
                numbers = [number for number, _ in dice.heard]
                assert numbers == sorted(set(numbers))
                picture = await dice("picture")
                assert kinds_of(picture) == case.picture
                [image] = [block for block in picture.content if block.type == "image"]
                assert base64.b64decode(image.data).startswith(PNG)
                assert image.mime_type == "image/png"
                looked = await dice("look", attachments=[{"data": image.data, "mimeType": "image/png"}])
                assert "image/png" in text_of(looked)
            async with mcp_client(engine, "weather", mode=mode) as client:
                [tool] = await client.list_tools()
                answer = await client.call_tool(tool.name, {"request": "weather"})
                if case.has_schema:
                    assert tool.output_schema["type"] == "object"
                    assert answer.structured_content == WEATHER
                else:
                    assert answer.structured_content["result"] == WEATHER


@every_framework
async def test_conversations(case: Case, agent_environments: AgentEnvironments, callboard_home: Path) -> None:
    servers = {"dice": case.entry(agent_environments.python(case.framework))}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        for mode in ERAS:
            async with (
                mcp_client(engine, "dice", mode=mode) as ann,
                mcp_client(engine, "dice", mode=mode, token_of="cursor") as bob,
            ):
                [tool] = await ann.list_tools()
                of_ann, of_bob = Caller(ann, tool.name), Caller(bob, tool.name)
                first, other = await asyncio.gather(of_ann("count"), of_bob("count"))
                assert (text_of(first), text_of(other)) == ("turn 1", "turn 1")
                assert text_of(await of_ann("count", conversation=conversation_of(first))) == "turn 2"
                assert text_of(await of_bob("count", conversation=conversation_of(other))) == "turn 2"
                foreign = await of_bob("count", conversation=conversation_of(first))
                assert foreign.is_error
                assert "no conversation" in text_of(foreign)
                fresh = {LEGACY: "turn 3", MODERN: "turn 1"}[mode]  # a session has one; without sessions it is named
                assert text_of(await of_ann("count")) == fresh


@every_framework
async def test_trouble(case: Case, agent_environments: AgentEnvironments, callboard_home: Path, tmp_path: Path) -> None:
    servers = {"dice": case.entry(agent_environments.python(case.framework))}
    async with EngineProcess(callboard_home, servers) as engine:
        await ready(engine, *servers)
        before = await engine.client.server("dice")
        for mode in ERAS:
            async with mcp_client(engine, "dice", mode=mode) as client:
                [tool] = await client.list_tools()
                dice = Caller(client, tool.name)
                conversation = conversation_of(await dice("count"))
                failed = await dice("boom", conversation=conversation)
                assert failed.is_error
                assert "kaboom" in text_of(failed)
                assert "Traceback" not in text_of(failed)

                file = tmp_path / f"{mode}.txt"
                call = asyncio.create_task(dice(f"wait {file}", conversation=conversation))
                await until_file(file, "started")
                call.cancel()
                await asyncio.wait([call])
                await until_file(file, "cancelled")

                # neither has left a trace in the conversation
                assert text_of(await dice("count", conversation=conversation)) == "turn 2"
        assert (await engine.client.server("dice")).pid == before.pid

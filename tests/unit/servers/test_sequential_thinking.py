"""The shipped server sequential-thinking, in memory and as the process that the engine starts."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from callboard.servers.sequential_thinking import META_CONVERSATION, make_server

TOOL = "sequentialthinking"
STEP = {"thought": "a", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}


@pytest.fixture
async def client() -> AsyncIterator[Client[Any]]:
    async with Client(make_server(), mode="legacy") as client:
        yield client


async def think(client: Client[Any], **changes: Any) -> dict[str, Any]:
    result = await client.call_tool(TOOL, {**STEP, **changes})
    answer: dict[str, Any] = result.structured_content
    assert result.content[0].text == json.dumps(answer, indent=2, ensure_ascii=False)
    return answer


async def test_assertion_32_the_schema_is_the_one_that_clients_know(client: Client[Any]) -> None:
    (tool,) = await client.list_tools()

    assert tool.name == TOOL
    assert tool.description
    assert len(tool.description) > 800
    flag = {"type": ["boolean", "string"]}
    number = {"type": "integer", "minimum": 1, "maximum": 9007199254740991}
    assert {
        name: {key: value for key, value in schema.items() if key not in ("description", "maxLength")}
        for name, schema in tool.input_schema["properties"].items()
    } == {
        "thought": {"type": "string"},
        "nextThoughtNeeded": flag,
        "thoughtNumber": number,
        "totalThoughts": number,
        "isRevision": flag,
        "revisesThought": number,
        "branchFromThought": number,
        "branchId": {"type": "string"},
        "needsMoreThoughts": flag,
    }
    assert all(schema["description"] for schema in tool.input_schema["properties"].values())
    assert tool.input_schema["required"] == ["thought", "nextThoughtNeeded", "thoughtNumber", "totalThoughts"]
    assert tool.output_schema["required"] == [
        "thoughtNumber",
        "totalThoughts",
        "nextThoughtNeeded",
        "branches",
        "thoughtHistoryLength",
    ]
    assert tool.annotations.read_only_hint is True


async def test_assertion_32_an_answer_counts_the_thoughts(client: Client[Any]) -> None:
    assert await think(client) == {
        "thoughtNumber": 1,
        "totalThoughts": 2,
        "nextThoughtNeeded": True,
        "branches": [],
        "thoughtHistoryLength": 1,
    }
    assert (await think(client, thoughtNumber=2))["thoughtHistoryLength"] == 2


async def test_assertion_32_a_thought_beyond_the_estimate_raises_it(client: Client[Any]) -> None:
    assert (await think(client, thoughtNumber=3, totalThoughts=2))["totalThoughts"] == 3


async def test_assertion_32_a_branch_needs_its_beginning_and_its_name(client: Client[Any]) -> None:
    assert (await think(client, thoughtNumber=2, branchId="x"))["branches"] == []
    assert (await think(client, thoughtNumber=2, branchFromThought=1))["branches"] == []
    assert (await think(client, thoughtNumber=2, branchFromThought=1, branchId="x"))["branches"] == ["x"]
    assert (await think(client, thoughtNumber=3, branchFromThought=1, branchId="x"))["branches"] == ["x"]
    assert (await think(client, thoughtNumber=2, branchFromThought=1, branchId="ÿ"))["branches"] == ["x", "ÿ"]


@pytest.mark.parametrize(("given", "taken"), [("true", True), ("True", True), ("false", False), (False, False)])
async def test_assertion_32_booleans_and_numbers_may_be_written_as_text(
    client: Client[Any], given: Any, taken: bool
) -> None:
    answer = await think(client, nextThoughtNeeded=given, thoughtNumber="5", totalThoughts="7", isRevision=given)

    assert (answer["nextThoughtNeeded"], answer["thoughtNumber"], answer["totalThoughts"]) == (taken, 5, 7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"thoughtNumber": 0}, "thoughtNumber must be greater than or equal to 1"),
        ({"totalThoughts": 0}, "totalThoughts must be greater than or equal to 1"),
        ({"revisesThought": 0}, "revisesThought must be greater than or equal to 1"),
        ({"nextThoughtNeeded": "SENSITIVE"}, "nextThoughtNeeded must be a valid boolean"),
        ({"thoughtNumber": "SENSITIVE"}, "thoughtNumber must be a valid integer"),
        ({"thought": None}, "thought must be a valid string"),
        ({"thought": "x" * 100_001}, "thought must have at most 100000 characters"),
        ({"branchId": "x" * 201}, "branchId must have at most 200 characters"),
    ],
)
async def test_assertion_32_wrong_arguments_are_errors(client: Client[Any], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError) as refused:
        await think(client, **changes)

    assert str(refused.value).startswith("Wrong arguments: ")
    assert said in str(refused.value)
    assert "SENSITIVE" not in str(refused.value)
    assert (await think(client))["thoughtHistoryLength"] == 1


# conversations


async def test_assertion_32_sessions_know_nothing_of_each_other() -> None:
    server = make_server()
    async with Client(server, mode="legacy") as one, Client(server, mode="legacy") as other:
        assert (await think(one))["thoughtHistoryLength"] == 1
        assert (await think(one, branchFromThought=1, branchId="x"))["thoughtHistoryLength"] == 2
        assert await think(other) == {**await think(other), "thoughtHistoryLength": 1}
        assert (await think(one))["thoughtHistoryLength"] == 3
        assert (await think(one))["branches"] == ["x"]


async def test_calls_without_a_session_go_on_until_the_next_first_step() -> None:
    async with Client(make_server()) as client:
        for number in (1, 2, 3):
            assert (await think(client, thoughtNumber=number))["thoughtHistoryLength"] == number
        assert (await think(client, isRevision=True, revisesThought=1))["thoughtHistoryLength"] == 4
        assert (await think(client, branchFromThought=2, branchId="x"))["thoughtHistoryLength"] == 5
        answer = await think(client)
        assert (answer["thoughtHistoryLength"], answer["branches"]) == (1, [])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_conversation_can_be_named(mode: str) -> None:
    async def step(number: int, handle: str) -> int:
        meta = {META_CONVERSATION: handle}
        result = await client.call_tool(TOOL, {**STEP, "thoughtNumber": number}, meta=meta)
        assert (result.meta or {})[META_CONVERSATION] == handle
        length: int = result.structured_content["thoughtHistoryLength"]
        return length

    async with Client(make_server(), mode=mode) as client:
        for number in (1, 2, 3):
            for handle in ("one", "two"):
                assert await step(number, handle) == number
        assert await step(1, "one") == 4
        with pytest.raises(ToolError, match="200 characters"):
            await step(1, "x" * 201)


async def test_a_conversation_without_a_session_is_told_its_handle() -> None:
    async with Client(make_server()) as client:
        first = await client.call_tool(TOOL, STEP)
        handle = (first.meta or {})[META_CONVERSATION]
        assert (await think(client))["thoughtHistoryLength"] == 1  # another problem
        again = await client.call_tool(TOOL, {**STEP, "thoughtNumber": 2}, meta={META_CONVERSATION: handle})
        assert again.structured_content["thoughtHistoryLength"] == 2


async def test_conversations_and_branches_are_bounded() -> None:
    async with Client(make_server(limit=2)) as client:
        for handle in ("one", "two", "three"):
            await client.call_tool(TOOL, STEP, meta={META_CONVERSATION: handle})
        lengths = [
            (await client.call_tool(TOOL, STEP, meta={META_CONVERSATION: handle})).structured_content
            for handle in ("three", "one")
        ]
        assert [answer["thoughtHistoryLength"] for answer in lengths] == [2, 1]
    async with Client(make_server(), mode="legacy") as client:
        for number in range(1000):
            await client.call_tool(TOOL, {**STEP, "branchFromThought": 1, "branchId": f"{number}"})
        with pytest.raises(ToolError, match="1000 branches at most"):
            await client.call_tool(TOOL, {**STEP, "branchFromThought": 1, "branchId": "one more"})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_as_a_process_it_thinks_and_keeps_quiet(tmp_path: Path, mode: str) -> None:
    log = tmp_path / "stderr"
    transport = StdioTransport(
        sys.executable, ["-m", "callboard.servers.sequential_thinking"], keep_alive=False, log_file=log
    )
    async with Client(transport, mode=mode) as client:
        assert client.server_info.name == "sequential-thinking"
        for number in (1, 2):
            assert (await think(client, thoughtNumber=number))["thoughtHistoryLength"] == number
        with pytest.raises(ToolError):
            await think(client, thoughtNumber=0)

    assert log.read_text() == ""

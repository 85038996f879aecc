"""Servers that others wrote, run as a person would run them and called by FastMCP's client through the gateway."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.engine import EngineProcess, Entry, entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of
from tests.support.processes import processes_of_home, until

EVERYTHING = "@modelcontextprotocol/server-everything"
INSTALL_SECONDS = 75
ENVIRONMENT = dict(os.environ)  # before isolation: npm keeps its cache and its settings in the real home
CLOCK: Entry = entry(sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC")
LONG = "trigger-long-running-operation"

both_eras = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Entry:
    """An entry for the reference server of the protocol, installed once for all tests of a run."""
    if shutil.which("npx") is None or shutil.which("npm") is None:
        pytest.skip("Node with npm and npx is not here")
    folder = tmp_path_factory.mktemp("npm")
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", str(folder), EVERYTHING]
    try:
        done = subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{EVERYTHING} could not be had within {INSTALL_SECONDS} s")
    if done.returncode:
        pytest.skip(f"{EVERYTHING} could not be had: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return entry("npx", "--offline", "--prefix", str(folder), "mcp-server-everything")


@pytest.fixture
async def clock(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """An engine with mcp-server-time."""
    async with EngineProcess(callboard_home, {"clock": CLOCK}) as engine:
        await engine.wait_for("clock", "ready")
        yield engine


@pytest.fixture
async def playground(callboard_home: Path, everything: Entry) -> AsyncIterator[EngineProcess]:
    """An engine with the reference server and mcp-server-time."""
    async with EngineProcess(callboard_home, {"everything": everything, "clock": CLOCK}) as engine:
        await engine.wait_for("everything", "ready")
        await engine.wait_for("clock", "ready")
        yield engine


@both_eras
async def test_mcp_server_time(clock: EngineProcess, mode: str) -> None:
    async with mcp_client(clock, "clock", mode=mode, says="planner") as client:
        assert {tool.name for tool in await client.list_tools()} == {"get_current_time", "convert_time"}
        arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Kolkata"}
        result = await client.call_tool("convert_time", arguments)
        assert "17:30" in text_of(result)
        wrong = await client.call_tool("get_current_time", {"timezone": "Mars/Olympus"}, raise_on_error=False)
        assert wrong.is_error
    done, failed = (await clock.client.calls()).calls
    assert (done.client, done.server, done.tool, done.status) == ("planner", "clock", "convert_time", "completed")
    assert (failed.status, "Mars/Olympus" in failed.error) == ("failed", True)
    detail = await clock.client.call(done.id)
    assert '"target_timezone":"Asia/Kolkata"' in detail.arguments.replace('": "', '":"')
    assert "17:30" in detail.result


@both_eras
async def test_everything_through_the_aggregate(playground: EngineProcess, mode: str) -> None:
    async with mcp_client(playground, mode=mode, says="planner") as client:
        names = {tool.name for tool in await client.list_tools()}
        assert {"everything__echo", "everything__get-sum", "clock__convert_time"} <= names
        assert text_of(await client.call_tool("everything__get-sum", {"a": 2, "b": 40})).endswith("42.")
        assert (await client.call_tool("everything__get-tiny-image")).content[1].type == "image"
        weather = await client.call_tool("everything__get-structured-content", {"location": "Chicago"})
        assert set(weather.structured_content) == {"temperature", "conditions", "humidity"}
        resources = await client.list_resources()
        document = next(resource for resource in resources if resource.uri.endswith("features.md"))
        assert "Tools" in (await client.read_resource(document.uri))[0].text
        prompts = {prompt.name for prompt in await client.list_prompts()}
        prompt = next(name for name in prompts if name.endswith("simple-prompt"))
        assert (await client.get_prompt(prompt)).messages[0].content.text
    calls = (await playground.client.calls()).calls
    assert {(call.client, call.server, call.status) for call in calls} == {("planner", "everything", "completed")}
    assert [call.method for call in calls] == ["tools/call"] * 3 + ["resources/read", "prompts/get"]
    assert [call.tool for call in calls[:3]] == ["get-sum", "get-tiny-image", "get-structured-content"]


@both_eras
async def test_progress_comes_while_the_call_runs(playground: EngineProcess, mode: str) -> None:
    running: list[tuple[float, bool]] = []

    async with mcp_client(playground, "everything", mode=mode) as client:

        async def on_progress(progress: float, total: float | None, _message: str | None) -> None:
            assert total == 4
            running.append((progress, not call.done()))

        call = asyncio.create_task(client.call_tool(LONG, {"duration": 1, "steps": 4}, progress_handler=on_progress))
        assert "completed" in text_of(await call)
    assert running[:3] == [(1.0, True), (2.0, True), (3.0, True)]
    assert len(running) == 4
    assert (await playground.client.calls()).calls[0].duration_ms or 0 > 900


@both_eras
async def test_a_call_that_its_client_gives_up_is_cancelled(playground: EngineProcess, mode: str) -> None:
    async with mcp_client(playground, "everything", mode=mode) as client:
        call = asyncio.create_task(client.call_tool(LONG, {"duration": 60, "steps": 2}))
        await playground.wait_for_call(LONG)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        assert (await playground.wait_for_call(LONG, "cancelled")).duration_ms is not None
        assert text_of(await client.call_tool("echo", {"message": "goes on"})) == "Echo: goes on"


@both_eras
async def test_what_the_server_asks_reaches_the_client_that_called(playground: EngineProcess, mode: str) -> None:
    asked: list[str] = []

    async def on_elicitation(message: str, _kind: Any, _params: Any, _context: Any) -> dict[str, Any]:
        asked.append(message)
        return {"name": "Ada"}

    async def on_sampling(messages: list[Any], _params: Any, _context: Any) -> str:
        asked.append(messages[0].content.text)
        return "a sampled answer"

    options: dict[str, Any] = {"elicitation_handler": on_elicitation, "sampling_handler": on_sampling}
    async with (
        mcp_client(playground, "everything", mode=mode, **options) as client,
        mcp_client(playground, "everything", mode=mode, says="bystander") as bystander,
    ):
        await bystander.list_tools()
        answer = await client.call_tool("trigger-elicitation-request")
        assert "Ada" in "\n".join(block.text for block in answer.content)
        answer = await client.call_tool("trigger-sampling-request", {"prompt": "say it", "maxTokens": 10})
        assert "a sampled answer" in text_of(answer)
    assert len(asked) == 2


async def test_stopping_a_server_that_npx_wraps_leaves_no_process(playground: EngineProcess) -> None:
    def running() -> list[str]:
        processes = processes_of_home(playground.home.parent).values()
        return [command for command in processes if "everything" in command]

    assert len(running()) > 1  # npx, and what it starts
    await playground.client.act("everything", "stop")
    await playground.wait_for("everything", "stopped")
    await until(lambda: not running())

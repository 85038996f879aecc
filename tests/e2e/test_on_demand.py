"""Servers that start on demand: known by their tools, started by the first call, stopped when nobody uses them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.support.engine import EngineProcess, Entry, entry
from tests.support.mcp_client import mcp_client, text_of
from tests.support.processes import is_running, odd_server


def lazy(folder: Path, *options: str, **fields: object) -> Entry:
    """A server that notes each of its starts."""
    return entry(*odd_server("--mark", folder / "starts", *options), start="on-demand", **fields)


def starts(folder: Path) -> list[int]:
    """The pids of all starts so far."""
    file = folder / "starts"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


async def test_it_runs_once_to_be_known_and_from_then_on_when_it_is_called(
    callboard_home: Path, tmp_path: Path
) -> None:
    async with EngineProcess(callboard_home, {"lazy": lazy(tmp_path, "--slow", "0.5")}) as engine:
        stopped = await engine.wait_for_view("lazy", lambda view: view.state == "stopped" and view.tools == 3)
        assert (stopped.cached, stopped.pid) == (True, None)
        assert len(starts(tmp_path)) == 1
        assert not is_running(starts(tmp_path)[0])
        async with mcp_client(engine) as client:
            assert {tool.name for tool in await client.list_tools()} == {
                f"lazy__{name}" for name in ("echo", "exit", "kill")
            }
            assert len(starts(tmp_path)) == 1
            results = await asyncio.gather(
                *(client.call_tool("lazy__echo", {"text": f"{number}"}) for number in range(30))
            )
        assert [text_of(result) for result in results] == [f"{number}" for number in range(30)]
        assert len(starts(tmp_path)) == 2, "one start, however many calls wanted it"
        await engine.stop()
        await engine.start()
        async with mcp_client(engine, "lazy") as client:
            assert len(await client.list_tools()) == 3
            assert len(starts(tmp_path)) == 2, "what it offers was remembered"
            assert text_of(await client.call_tool("echo", {"text": "third"})) == "third"
        assert len(starts(tmp_path)) == 3


async def test_it_is_stopped_when_nobody_uses_it(callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, {"lazy": lazy(tmp_path, timeouts={"idle": 0.4})}) as engine:
        await engine.wait_for_view("lazy", lambda view: view.state == "stopped" and view.tools == 3)
        for number in (1, 2):
            result = await engine.client.call_tool("lazy", "echo", {"text": "hello"})
            assert result["content"][0]["text"] == "hello"
            view = await engine.wait_for("lazy", "stopped")
            assert view.reason == "not used for 0.4 s"
            assert len(starts(tmp_path)) == 1 + number


async def test_one_that_a_person_has_started_keeps_running(callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, {"lazy": lazy(tmp_path, "--slow", "0.3")}) as engine:
        await engine.client.act("lazy", "restart")
        await engine.wait_for_view("lazy", lambda view: view.state == "ready" and view.tools == 3)
        await asyncio.sleep(0.3)
        assert (await engine.client.server("lazy")).state == "ready"


async def test_one_that_cannot_start_says_so_and_is_left_alone(callboard_home: Path, tmp_path: Path) -> None:
    broken = lazy(tmp_path, "--crash-before", "3", restart={"max": 1, "delay": 0})
    async with EngineProcess(callboard_home, {"lazy": broken}) as engine:
        view = await engine.wait_for("lazy", "failed")
        assert view.error_code == "crash-loop"
        assert len(starts(tmp_path)) == 2


async def test_another_command_is_looked_at_anew(callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, {"lazy": lazy(tmp_path)}) as engine:
        await engine.wait_for_view("lazy", lambda view: view.state == "stopped" and view.tools == 3)
        engine.write_roster({"lazy": lazy(tmp_path, "--noise")})
        await engine.wait_for_view("lazy", lambda view: len(starts(tmp_path)) == 2 and view.state == "stopped")

"""Window, engine and clients as processes of their own: what dies takes nothing with it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from callboard.api.client import EngineClient
from callboard.system.engine_file import EngineAddress, read_engine_file
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of
from tests.support.processes import is_running, odd_server, pid_in, processes_of_home, until
from tests.support.window import WindowProcess

pytestmark = pytest.mark.skipif(
    os.environ.get("CALLBOARD_TEST_SESSION") != "ready", reason="needs a screen of its own: sh packaging/dev.sh test"
)


class Attached(EngineProcess):
    """The engine that a window has started."""

    def __init__(self, home: Path, address: EngineAddress) -> None:
        super().__init__(home)
        self.client = EngineClient(address)

    @property
    def pid(self) -> int:
        """The engine's process."""
        return self.client.address.pid

    async def close(self) -> None:
        """Close the connections; the engine goes on."""
        await self.client.close()


async def engine_of(window: WindowProcess, *, other_than: int = 0) -> Attached:
    """The engine that runs beside a window."""
    await window.engine_pid(other_than=other_than)
    address = read_engine_file(window.paths.engine_file)
    assert address is not None
    return Attached(window.home, address)


def is_attached(window: WindowProcess, engine: EngineProcess) -> bool:
    """Whether the window's process has a connection to the engine's port."""
    port = int(engine.client.address.url.rpartition(":")[2])
    connections = psutil.Process(window.pid).net_connections("tcp")
    return any(found.raddr and found.raddr.port == port and found.status == "ESTABLISHED" for found in connections)


@pytest.fixture
async def window(callboard_home: Path, tmp_path: Path) -> AsyncIterator[WindowProcess]:
    """A window that has started an engine with two servers, one of which hides its process well."""
    wrapped = entry(*odd_server("--grandchild", tmp_path / "grandchild", "--setsid"))
    async with WindowProcess(callboard_home, {"tools": fixture_entry("tools"), "wrapped": wrapped}) as window:
        await window.wait_until_shown()
        await window.wait_for_state("tools", "ready")
        await window.wait_for_state("wrapped", "ready")
        yield window


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_killing_the_window_loses_no_call_and_no_server(window: WindowProcess, tmp_path: Path, mode: str) -> None:
    engine = await engine_of(window)
    try:
        server = (await engine.client.server("tools")).pid
        hidden = await pid_in(tmp_path / "grandchild")
        await until(lambda: is_attached(window, engine))
        async with mcp_client(engine, "tools", mode=mode, says="editor") as client:
            told: list[float] = []

            async def on_progress(progress: float, _total: float | None, _message: str | None) -> None:
                told.append(progress)

            calls = [
                asyncio.create_task(client.call_tool("slow", {"ms": 1500})),
                asyncio.create_task(client.call_tool("progress", {"steps": 60}, progress_handler=on_progress)),
            ]
            await engine.wait_for_call("slow")
            await until(lambda: told)
            before = len(told)
            window.kill()
            assert [text_of(result) for result in await asyncio.gather(*calls)] == ["slow", "done"]
            assert before < len(told) == 60
            assert text_of(await client.call_tool("echo", {"text": "same session"})) == "same session"

            window.start()
            await window.wait_until_shown()
            await until(lambda: is_attached(window, engine), seconds=20)
            assert text_of(await client.call_tool("echo", {"text": "still"})) == "still"
        assert await window.engine_pid() == engine.pid
        now = await engine.client.server("tools")
        assert (now.state, now.pid, now.restarts) == ("ready", server, 0)
        assert is_running(hidden)
        log = [(call.tool, call.status, call.client) for call in (await engine.client.calls()).calls]
        assert sorted(log[:2]) == [("progress", "completed", "editor"), ("slow", "completed", "editor")]
        assert log[2:] == [("echo", "completed", "editor")] * 2
    finally:
        await engine.close()


async def test_a_killed_engine_is_replaced_and_leaves_nothing_behind(window: WindowProcess, tmp_path: Path) -> None:
    engine = await engine_of(window)
    view = await engine.client.server("tools")
    hidden = await pid_in(tmp_path / "grandchild")
    before = set(processes_of_home(window.home.parent)) - {window.pid}
    assert {engine.pid, view.pid, hidden} <= before
    await engine.close()
    (tmp_path / "grandchild").unlink()
    os.kill(engine.pid, signal.SIGKILL)

    after = await engine_of(window, other_than=engine.pid)
    try:
        now = await after.wait_for("tools", "ready")
        await after.wait_for("wrapped", "ready")
        await until(lambda: is_attached(window, after), seconds=20)
        assert now.pid != view.pid
        await until(lambda: not any(map(is_running, before)))
        async with mcp_client(after, "tools") as client:
            assert text_of(await client.call_tool("echo", {"text": "again"})) == "again"
    finally:
        await after.close()
    assert "The engine ended (signal 9 (SIGKILL))" in (window.paths.logs / "window.log").read_text()


async def test_ending_the_window_in_order_ends_everything(window: WindowProcess) -> None:
    everything = set(processes_of_home(window.home.parent))
    assert len(everything) >= 5  # window, engine, a server, a wrapper and its child
    os.kill(window.pid, signal.SIGTERM)
    assert await window.wait_for_end() == 0
    assert not any(map(is_running, everything))
    assert not window.paths.engine_file.exists()
    for name in ("window.log", "engine-output.log", "engine.log"):
        said = (window.paths.logs / name).read_text()
        assert "Traceback" not in said
        assert " ERROR " not in said


async def test_killing_both_at_once_is_mended_by_the_next_start(window: WindowProcess, tmp_path: Path) -> None:
    before = set(processes_of_home(window.home.parent)) - {window.pid}
    os.kill(await window.engine_pid(), signal.SIGKILL)
    window.kill()
    (tmp_path / "grandchild").unlink()
    window.start()
    await window.wait_until_shown()
    await window.wait_for_state("tools", "ready")
    await window.wait_for_state("wrapped", "ready")
    await until(lambda: not any(map(is_running, before)))

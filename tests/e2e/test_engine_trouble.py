"""What an engine must survive: a full disk, folders that cannot be written, a clock that is set, stubborn servers."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.mcp_client import mcp_client, text_of
from tests.support.processes import is_running, odd_server, pid_in, until

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process can be set on Linux only")


class FullDisk:
    """Lets no process of a list write to a file any more (EFBIG, as near to ENOSPC as can be had without a mount)."""

    def __init__(self, *pids: int) -> None:
        self._before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}

    def __enter__(self) -> None:
        for pid, (_, hard) in self._before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))

    def __exit__(self, *error: object) -> None:
        for pid, limits in self._before.items():
            resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)


async def told_of_logs(engine: EngineProcess, wanted: bool) -> None:
    """Wait until the engine says, or no longer says, that the servers' logs cannot be written."""
    async with asyncio.timeout(30):
        while wanted is not any(  # noqa: ASYNC110  it is another process
            notice.code == "logs-unwritable" for notice in (await engine.client.engine()).notices
        ):
            await asyncio.sleep(0.02)


@linux
async def test_a_full_disk_stops_neither_servers_nor_calls(callboard_home: Path) -> None:
    roster = {"fixture": fixture_entry(), "lazy": fixture_entry("lazy", start="manual")}
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.wait_for("fixture", "ready")
        with FullDisk(engine.pid):
            async with mcp_client(engine, "fixture") as client:
                for number in range(20):
                    assert text_of(await client.call_tool("echo", {"text": f"{number}"})) == f"{number}"
            await engine.client.act("lazy", "start")
            view = await engine.wait_for("lazy", "ready")
            assert view.tools
            await engine.client.act("fixture", "restart")
            await engine.wait_for("fixture", "ready")
            assert (await engine.client.log("lazy")).lines
            await told_of_logs(engine, True)
        await engine.client.act("lazy", "restart")  # it prints, which is tried to be written
        await told_of_logs(engine, False)
        result = await engine.client.call_tool("fixture", "echo", {"text": "room again"})
        assert result["content"][0]["text"] == "room again"
        await engine.wait_for_call("echo", "completed")
        assert "Traceback" not in engine.output.read_text()


@pytest.mark.parametrize("blocked", ["logs", "state"])
async def test_a_folder_that_cannot_be_written_does_not_keep_it_from_working(
    callboard_home: Path, tmp_path: Path, blocked: str
) -> None:
    engine = EngineProcess(callboard_home, {"wrapped": entry(*odd_server("--grandchild", tmp_path / "pid"))})
    (callboard_home / blocked).write_text("in the way")  # nothing can be put below a file
    async with engine:
        view = await engine.wait_for("wrapped", "ready")
        grandchild = await pid_in(tmp_path / "pid")
        result = await engine.client.call_tool("wrapped", "echo", {"text": "works"})
        assert result["content"][0]["text"] == "works"
        assert (await engine.client.calls()).total == 1
    assert not is_running(view.pid or 0)
    assert not is_running(grandchild)
    assert (callboard_home / blocked).read_text() == "in the way"


@pytest.fixture
def stubborn(tmp_path: Path) -> dict[str, dict[str, object]]:
    """Servers that end only when they are killed, half of them behind a wrapper."""
    plain = {f"stubborn{number}": entry(*odd_server("--ignore-term")) for number in range(5)}
    wrapped = {
        f"wrapped{number}": entry(*odd_server("--ignore-term", "--setsid", "--grandchild", tmp_path / str(number)))
        for number in range(5)
    }
    return plain | wrapped


async def test_servers_that_refuse_to_end_do_not_make_the_end_late(
    callboard_home: Path, stubborn: dict[str, dict[str, object]], tmp_path: Path
) -> None:
    async with EngineProcess(callboard_home, stubborn) as engine:
        views = [await engine.wait_for(name, "ready") for name in stubborn]
        pids = [view.pid or 0 for view in views] + [await pid_in(tmp_path / str(number)) for number in range(5)]
        os.kill(engine.pid, signal.SIGTERM)
        assert await engine.wait_for_end() == 0
        await until(lambda: not any(map(is_running, pids)), seconds=1)
        log = (engine.paths.logs / "engine.log").read_text()
        assert "longer than" not in log, "it has five seconds"
        assert "Not ended within" not in log


class EngineWithAClock(EngineProcess):
    """An engine whose wall clock is off by as many seconds as :attr:`clock` says."""

    program = """
import pathlib, sys, time
file, real = pathlib.Path(sys.argv[1]), time.time
time.time = lambda: real() + float(file.read_text() or 0)
sys.argv = ["callboard", "engine"]
from callboard.engine_main import main
raise SystemExit(main())
"""

    def __init__(self, home: Path, servers: dict[str, dict[str, object]]) -> None:
        super().__init__(home, servers)
        self.clock = home / "clock"
        self.clock.write_text("0")
        self.command = (sys.executable, "-c", self.program, str(self.clock))

    def set_clock(self, seconds: float) -> None:
        """Set the wall clock so far from the right time."""
        new = self.clock.with_suffix(".new")
        new.write_text(f"{seconds}")
        new.replace(self.clock)


async def test_a_clock_that_is_set_stops_nothing(callboard_home: Path, tmp_path: Path) -> None:
    """Neither a pause before a restart, nor the time limit of a call, nor the end of one that nobody uses."""
    roster = {
        "dies": entry(*odd_server(), restart={"delay": 0.5}, timeouts={"call": 2}),
        "lazy": entry(*odd_server("--mark", tmp_path / "starts"), start="on-demand", timeouts={"idle": 0.5}),
    }
    async with EngineWithAClock(callboard_home, roster) as engine:
        for number, days in enumerate((0, 400, -400, 20_000), start=1):
            before = await engine.wait_for("dies", "ready")
            with pytest.raises(CallboardError, match="ended"):
                await engine.client.call_tool("dies", "exit", {"code": 3})
            engine.set_clock(days * 86_400)
            after = await engine.wait_for_view("dies", lambda view, number=number: view.restarts == number)
            await engine.wait_for("dies", "ready")
            assert after.pid != before.pid
            with pytest.raises(CallboardError, match="did not answer within 2 s"):
                await engine.client.call_tool("dies", "sleep", {"seconds": 3})
            assert (await engine.client.call_tool("lazy", "echo", {"text": "x"}))["content"][0]["text"] == "x"
            assert (await engine.wait_for("lazy", "stopped")).reason == "not used for 0.5 s"
            assert (await engine.client.engine()).calls_last_hour >= 1
            assert (await engine.client.server("dies")).state == "ready"
    assert "Traceback" not in engine.output.read_text()

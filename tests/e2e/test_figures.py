"""CPU, memory, restarts and uptime of servers, in the API's answers and its stream."""

from __future__ import annotations

import contextlib
from pathlib import Path

from callboard.api.client import EngineClient
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.processes import odd_server


async def test_figures_are_there_for_who_looks_and_for_nobody_else(callboard_home: Path, tmp_path: Path) -> None:
    roster = {
        "wrapped": entry(*odd_server("--grandchild", tmp_path / "pid"), restart={"delay": 0}),
        "off": fixture_entry(start="manual"),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.wait_for("wrapped", "ready")
        plain = await engine.client.server("wrapped")
        assert (plain.cpu_percent, plain.memory_bytes) == (None, None)
        looked = await engine.client.server("wrapped", figures=True)
        assert looked.memory_bytes is not None
        assert looked.memory_bytes > 4 * 1024 * 1024
        assert looked.cpu_percent is not None

        async with EngineClient(engine.client.address) as reader, contextlib.aclosing(reader.figures()) as samples:
            sample = await anext(samples)
            assert set(sample.servers) == {"wrapped"}
            assert sample.servers["wrapped"].processes == 2
            listed = {view.name: view for view in await engine.client.servers()}
            assert listed["wrapped"].memory_bytes == sample.servers["wrapped"].memory_bytes
            assert listed["off"].memory_bytes is None

        with contextlib.suppress(Exception):
            await engine.client.call_tool("wrapped", "kill", {})
        after = await engine.wait_for_view("wrapped", lambda view: view.state == "ready" and view.restarts == 1)
        assert after.restarts_today == 1

"""Servers that print what, where and as much as they should not: what is no message is kept, and the rest goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil

from tests.e2e.misbehaving.kit import faulty, legacy, log_of, text
from tests.support.engine import EngineProcess
from tests.support.gateway import text_of, until

MIB = 1024 * 1024


async def test_text_on_stdout_is_kept_and_the_server_too(callboard_home: Path) -> None:
    """B08."""
    async with EngineProcess(callboard_home, {"noisy": faulty("noisy")}) as engine:
        view = await engine.wait_for_view("noisy", lambda view: view.state == "degraded" and view.tools)
        assert (view.error_code, view.severity, view.restarts) == ("stdout-noise", "attention", 0)
        assert view.fix
        assert await text(engine, "noisy", "echo", text="heard") == "heard"
        log = await log_of(engine, "noisy")
        assert "stdout: Server version: 1.2.3" in log
        assert "stdout: ready" in log, "without its colours"
        assert 'stdout: {"level":"info","msg":"no message"}' in log
        await engine.client.act("noisy", "restart")
        again = await engine.wait_for_view(
            "noisy", lambda after: after.state == "degraded" and after.pid not in (None, view.pid)
        )
        assert again.error_code == "stdout-noise", "it is told of each run"


async def test_an_answer_behind_text_is_found_and_the_text_shown(callboard_home: Path) -> None:
    """B09."""
    async with EngineProcess(callboard_home, {"glued": faulty("noisy", "glue")}) as engine:
        await engine.wait_for_view("glued", lambda view: view.state == "degraded" and view.tools == 1)
        assert "stdout: [50] log without a line end" in await log_of(engine, "glued")
        assert await text(engine, "glued", "echo", text="heard") == "heard"


async def test_long_lines_pass(callboard_home: Path) -> None:
    """B10."""
    async with EngineProcess(callboard_home, {"giant": faulty("giant", "list")}) as engine:
        await engine.wait_for_view("giant", lambda view: view.tools == 303)
        async with await legacy(engine, "giant") as client:
            for kib in (64, 300, 5000):
                assert len(text_of(await client.call("big", {"kib": kib}))) == 1024 * kib
            assert len(text_of(await client.call("edge"))) > 65_000
            assert text_of(await client.call("echo", {"text": "still here"})) == "still here"


async def test_a_flood_on_stderr_holds_nobody_up(callboard_home: Path) -> None:
    """B11: also before the handshake is answered, and with nobody looking."""
    roster = {"flood": faulty("flood"), "one-line": faulty("flood", "noeol")}
    async with EngineProcess(callboard_home, roster) as engine:
        for name in roster:
            await engine.wait_for(name, "ready")
            for number in range(5):
                assert await text(engine, name, "echo", text=f"{number}") == f"{number}"
        log = await log_of(engine, "flood")
        assert any("lines dropped" in line for line in log if line.startswith("mark: "))
        assert max(map(len, await log_of(engine, "one-line"))) < 9000


async def test_an_endless_log_is_information_and_bounded(callboard_home: Path) -> None:
    """B12."""
    async with EngineProcess(callboard_home, {"chatty": faulty("chatters", "20000")}) as engine:
        await engine.wait_for("chatty", "ready")
        memory = psutil.Process(engine.pid).memory_info
        newest = first = (await engine.client.log("chatty", after=-1, limit=1)).next
        while newest < first + 6_000:
            newest = (await engine.client.log("chatty", after=-1, limit=1)).next
        before = memory().rss
        while newest < first + 20_000:
            assert await text(engine, "chatty", "echo", text="x") == "x"
            newest = (await engine.client.log("chatty", after=-1, limit=1)).next
        view = await engine.client.server("chatty")
        assert (view.state, view.reason) == ("ready", "")
        page = await engine.client.log("chatty", after=0)
        assert len(page.lines) <= 5_000
        assert page.dropped > 12_000
        assert sum(len(line.text) for line in page.lines) <= MIB
        assert memory().rss - before < 20 * MIB
    files = {path.name: path.stat().st_size for path in engine.paths.logs.glob("chatty.log*")}
    assert "chatty.log" in files
    assert len(files) <= 3
    assert all(size < 3 * MIB for size in files.values())


async def test_bytes_that_are_no_text_spoil_one_message_at_most(callboard_home: Path) -> None:
    """B13."""
    async with EngineProcess(callboard_home, {"bytes": faulty("bytes")}) as engine:
        await engine.wait_for("bytes", "ready")
        async with await legacy(engine, "bytes") as client:
            assert text_of(await client.call("bad")).startswith("caf\ufffd")
            for tool in ("surrogate", "nul"):
                answer = await client.call(tool)
                assert "result" in answer or "error" in answer
            assert text_of(await client.call("echo", {"text": "sound"})) == "sound"
        assert (await engine.client.server("bytes")).restarts == 0
        assert "stderr: caf\ufffd\ufffd\ufffd" in await log_of(engine, "bytes")
        calls = (await engine.client.calls()).calls
        details = await asyncio.gather(*(engine.client.call(call.id) for call in calls))
        assert [call.tool for call in calls] == ["bad", "surrogate", "nul", "echo"]
        assert "sound" in details[-1].result
    kept = (engine.paths.logs / "bytes.log").read_bytes().decode()  # written from time to time, and at the end
    assert "caf\ufffd\ufffd\ufffd" in kept


async def test_odd_line_ends_are_line_ends(callboard_home: Path) -> None:
    roster = {
        "crlf": faulty("lines", "crlf"),
        "bom": faulty("lines", "crlf", "bom"),
        "pieces": faulty("lines", "split"),
        "joined": faulty("lines", "join"),
    }
    async with EngineProcess(callboard_home, roster | {"pretty": faulty("lines", "pretty")}) as engine:
        for name in roster:
            await engine.wait_for_view(name, lambda view: view.state in ("ready", "degraded") and view.tools == 2)
            assert await text(engine, name, "accents") == "\u00e9\u4e16\U0001f600" * 20
        # messages over several lines are against the protocol: told as what they are, not as silence
        view = await engine.client.server("pretty")
        assert view.state == "starting"
        lines = await log_of(engine, "pretty")
        assert 'stdout: "jsonrpc": "2.0",' in [line.replace("stdout:  ", "stdout: ") for line in lines]


async def test_a_server_that_closes_its_ends_is_ended(callboard_home: Path) -> None:
    roster = {
        "mute": faulty("mute", restart={"max": 0}),
        "deaf": faulty("mute", "stdin", restart={"max": 0}),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        for name, stream in (("mute", "output"), ("deaf", "input")):
            view = await engine.wait_for(name, "failed")
            assert f"closed its standard {stream} and was stopped" in view.reason
            assert (view.error_code, view.pid) == ("exited", None)
        await until(lambda: not psutil.Process(engine.pid).children(recursive=True))

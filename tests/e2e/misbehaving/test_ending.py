"""Servers that die, hang, will not die, or leave others behind: who waits is told, and nothing of ours goes on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from tests.e2e.misbehaving.kit import ImpatientEngine, faulty, legacy, text
from tests.support.engine import EngineProcess, Entry
from tests.support.gateway import in_background, text_of, until
from tests.support.processes import is_running, pid_in


def hard_to_end(folder: Path, end: str) -> dict[str, Entry]:
    """Servers behind wrappers, one of them in a session of its own, and one that bears every signal but one."""
    return {
        f"wrapped-{end}": faulty("wrapper", folder / f"wrapped-{end}"),
        f"apart-{end}": faulty("wrapper", folder / f"apart-{end}", "setsid"),
        f"stubborn-{end}": faulty("stubborn"),
    }


async def pids_of(engine: EngineProcess, folder: Path, roster: dict[str, Entry]) -> dict[str, list[int]]:
    """The processes of each server, once all are ready."""
    found: dict[str, list[int]] = {}
    for name in roster:
        view = await engine.wait_for(name, "ready")
        found[name] = [view.pid or 0]
        if not name.startswith("stubborn"):
            found[name].append(await pid_in(folder / name))
    return found


async def test_nothing_is_left_of_servers_behind_wrappers(callboard_home: Path, tmp_path: Path) -> None:
    """B14: not when they are stopped, not when they are taken out of the roster, not when the engine ends."""
    groups = {end: hard_to_end(tmp_path, end) for end in ("stop", "remove", "quit")}
    roster = {name: entry for group in groups.values() for name, entry in group.items()}
    async with EngineProcess(callboard_home, roster) as engine:
        pids = await pids_of(engine, tmp_path, roster)
        assert all(is_running(pid) for each in pids.values() for pid in each)
        for name in groups["stop"]:
            await engine.client.act(name, "stop")
        engine.write_roster({name: entry for name, entry in roster.items() if name not in groups["remove"]})
        for name in groups["stop"]:
            await engine.wait_for(name, "stopped")
            assert not any(map(is_running, pids[name]))
        await until(lambda: not any(is_running(pid) for name in groups["remove"] for pid in pids[name]))
        assert all(is_running(pid) for name in groups["quit"] for pid in pids[name])
    assert not any(is_running(pid) for each in pids.values() for pid in each)


async def test_nothing_is_left_when_the_engine_was_killed(callboard_home: Path, tmp_path: Path) -> None:
    roster = hard_to_end(tmp_path, "kill")
    async with EngineProcess(callboard_home, roster) as engine:
        pids = await pids_of(engine, tmp_path, roster)
        engine.write_roster({})
        engine.kill()
        await engine.start()
        assert not any(is_running(pid) for each in pids.values() for pid in each)


async def test_a_number_that_another_process_has_by_now_proves_nothing(callboard_home: Path, tmp_path: Path) -> None:
    roster = {"wrapped-x": faulty("wrapper", tmp_path / "wrapped-x")}
    async with EngineProcess(callboard_home, roster) as engine:
        wrapper, server = (await pids_of(engine, tmp_path, roster))["wrapped-x"]
        engine.write_roster({})
        engine.kill()
        notes = engine.paths.state / "processes.json"
        notes.write_text(notes.read_text().replace(f'"pid": {wrapper},', f'"pid": {os.getpid()},'))
        await engine.start()  # and this test goes on
        await until(lambda: not is_running(server))


async def test_a_server_that_dies_during_a_call_fails_it_at_once(callboard_home: Path) -> None:
    """B15: the caller, the call log and the state tell the same."""
    tools = {
        "die": "exited with code 3",
        "half": "exited with code 4",
        "exit0": "exited with code 0",
        "kill": "ended by SIGKILL",
    }
    roster = {name: faulty("dies", restart={"delay": 0.05}) for name in tools}
    async with EngineProcess(callboard_home, roster) as engine:
        for name, end in tools.items():
            before = await engine.wait_for(name, "ready")
            with pytest.raises(CallboardError) as caught:
                await engine.client.call_tool(name, name, {})
            assert caught.value.code == "upstream-gone"
            assert end in caught.value.message
            call = await engine.wait_for_call(name, "failed")
            assert end in call.error
            after = await engine.wait_for_view(name, lambda view, before=before: view.pid not in (None, before.pid))
            assert after.restarts == 1
            assert after.last_exit is not None
            assert await text(engine, name, "echo", text="again") == "again"


async def test_a_call_that_waits_when_the_server_dies_is_answered_by_the_next_one(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"dies": faulty("dies")}) as engine:
        await engine.wait_for("dies", "ready")
        with pytest.raises(CallboardError):
            await engine.client.call_tool("dies", "kill", {})
        assert await text(engine, "dies", "echo", text="next") == "next", "within the pause before the restart"


async def test_cancelling_a_call_leaves_the_server_as_it_is(callboard_home: Path) -> None:
    """B16: and a late answer is nobody's."""
    async with ImpatientEngine(callboard_home, {"late": faulty("late", timeouts={"call": 1.5})}) as engine:
        before = await engine.wait_for("late", "ready")
        async with await legacy(engine, "late") as client:
            async with in_background(client.request("tools/call", {"name": "late", "arguments": {"s": 1}}, number=7)):
                await engine.wait_for_call("late")
                await client.notify("notifications/cancelled", {"requestId": 7})
                await engine.wait_for_call("late", "cancelled")
            for tool, expected in (("twice", "first"), ("stranger", "mine"), ("echo", "")):
                assert text_of(await client.call(tool)) == expected
            assert "error" in await client.call("both")
            lost = await client.call("null_id")
            assert "did not answer" in lost["error"]["message"], "nobody can tell whose answer that was"
            one, two = await asyncio.gather(*(client.call("swapped", {"n": number}) for number in (1, 2)))
            assert (text_of(one), text_of(two)) == ("answer to 1", "answer to 2")
        # the cancelled call's answer has come meanwhile, and health checks too
        after = await engine.client.server("late")
        assert (after.state, after.pid, after.since) == ("ready", before.pid, before.since)


async def test_a_hung_call_ends_by_its_limit_and_nothing_else_does(callboard_home: Path) -> None:
    """B17."""
    async with ImpatientEngine(callboard_home, {"hangs": faulty("silent", timeouts={"call": 1.0})}) as engine:
        before = await engine.wait_for("hangs", "ready")
        async with await legacy(engine, "hangs") as client:
            hung = asyncio.ensure_future(client.call("hang"))
            for number in range(20):
                assert text_of(await client.call("echo", {"text": f"{number}"})) == f"{number}"
            assert "did not answer within 1 s" in (await hung)["error"]["message"]
            assert text_of(await client.call("echo", {"text": "after"})) == "after"
        after = await engine.client.server("hangs")
        assert (after.state, after.pid, after.restarts) == ("ready", before.pid, 0)


async def test_a_server_that_stops_answering_is_told_and_started_again(callboard_home: Path) -> None:
    roster = {
        "deaf": faulty("silent", "deaf", restart={"max": 1, "delay": 0.05}),
        "blocked": faulty("silent", "blocked", restart={"max": 0}),
    }
    async with ImpatientEngine(callboard_home, roster) as engine:
        degraded = await engine.wait_for("deaf", "degraded")
        assert (degraded.error_code, degraded.reason) == ("not-responding", "has not answered 2 health checks in a row")
        for name, restarts in (("blocked", 0), ("deaf", 1)):
            failed = await engine.wait_for(name, "failed")
            assert (failed.error_code, failed.restarts, failed.pid) == ("not-responding", restarts, None)


async def test_a_busy_server_is_left_to_its_work(callboard_home: Path) -> None:
    """It answers no ping while it works; its work is no reason to end it, given up or not."""
    async with ImpatientEngine(callboard_home, {"busy": faulty("progress")}) as engine:
        before = await engine.wait_for("busy", "ready")
        async with await legacy(engine, "busy") as client:
            assert text_of(await client.call("silent", {"s": 1.5})) == "done silently"
            assert (await engine.client.server("busy")).since == before.since
            async with in_background(client.request("tools/call", {"name": "silent", "arguments": {"s": 6}}, number=9)):
                await engine.wait_for_call("silent")
                await client.notify("notifications/cancelled", {"requestId": 9})
            await engine.wait_for("busy", "degraded")
            after = await engine.wait_for("busy", "ready")
            assert (after.pid, after.restarts) == (before.pid, 0)


async def test_progress_makes_a_call_s_time_begin_anew(callboard_home: Path) -> None:
    """B18."""
    async with EngineProcess(callboard_home, {"slow": faulty("progress", timeouts={"call": 0.5})}) as engine:
        await engine.wait_for("slow", "ready")
        async with await legacy(engine, "slow") as client:
            asked = {"name": "slow", "arguments": {"s": 1.3}, "_meta": {"progressToken": "mine"}}
            assert text_of(await client.request("tools/call", asked)) == "done after 6"
            heard = client.of("notifications/progress")
            assert {message["params"]["progressToken"] for message in heard} == {"mine"}
            assert [message["params"]["progress"] for message in heard] == list(range(1, 7))
            # where the client gave no token, the engine uses one of its own
            assert text_of(await client.call("slow", {"s": 0.9})) == "done after 4"
            assert "did not answer within 0.5 s" in (await client.call("silent", {"s": 1}))["error"]["message"]

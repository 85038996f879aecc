"""What must hold of what is told of servers and calls, and of the ways to manage them: the assertions 22 to 26."""

import asyncio
import contextlib
import json
import re
import sys
from pathlib import Path

import msgspec
import pytest

from callboard.api.routes import ROUTES
from callboard.api.schema import CallEvent
from callboard.commands.command_line import build_parser
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.processes import odd_server, until

ARGUMENT = "argument-4711"
COMPLAINS = "import sys; sys.stderr.write('start of {n}\\n' + 'more\\n' * 2000 + 'end of {n}\\n'); sys.exit(3)"


async def test_assertion_22_a_call_is_told_by_its_tool_and_never_by_what_it_is_about(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry("one")}) as engine:
        await engine.wait_for_view("one", lambda view: view.state == "ready" and view.tools > 0)
        await engine.client.call_tool("one", "echo", {"text": ARGUMENT})
        await engine.client.call_tool("one", "fail", {"text": ARGUMENT})
        told: list[CallEvent] = []
        async with asyncio.timeout(60), contextlib.aclosing(engine.client.events(0)) as events:
            async for event in events:
                if event.kind == "call-events":
                    assert ARGUMENT not in msgspec.json.encode(event).decode()
                    told += msgspec.convert(event.data["events"], list[CallEvent])
                if len(told) == 4:
                    break
        assert [(each.event, each.server, each.tool, each.client) for each in told] == [
            ("started", "one", "echo", "callboard"),
            ("completed", "one", "echo", "callboard"),
            ("started", "one", "fail", "callboard"),
            ("failed", "one", "fail", "callboard"),
        ]
        assert all((each.duration_ms is None) == (each.event == "started") for each in told)
        fields = set(CallEvent.__struct_fields__)
        assert not fields & {"arguments", "result", "message", "error"}


async def test_assertion_23_what_a_server_printed_last_comes_with_its_failure(callboard_home: Path) -> None:
    def prints(run: str) -> dict[str, object]:
        return entry(sys.executable, "-c", COMPLAINS.format(n=run), restart={"max": 0})

    async with EngineProcess(callboard_home, {"one": prints("run-1")}) as engine:
        await engine.wait_for("one", "failed")
        found = await engine.client.check_health("one")
        assert found.status == "fail"
        assert 0 < len(found.stderr) <= 4000
        assert found.stderr.endswith("end of run-1")
        assert "start of run-1" not in found.stderr, "the end is what tells"
        file = engine.paths.logs / "one.log"
        await until(lambda: file.exists() and "end of run-1" in file.read_text())

        engine.write_roster({"one": prints("run-2")})
        async with asyncio.timeout(60):
            while "run-2" not in (found := await engine.client.check_health("one")).stderr:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert "run-1" not in found.stderr, "of the present run alone"
        last = (await engine.wait_for("one", "failed")).last_exit
        assert last is not None
        assert (last.code, last.stderr[-1]) == (3, "end of run-2")


async def test_assertion_24_health_is_kept_with_its_age_until_somebody_looks_again(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry("one")}) as engine:
        await engine.wait_for_view("one", lambda view: view.state == "ready" and view.tools > 0)
        assert (await engine.client.server("one")).health is None, "nobody has looked"
        assert await engine.client.health() == []
        looked = await engine.client.check_health("one")
        for _ in range(5):
            await engine.client.call_tool("one", "echo", {"text": "hi"})
        await engine.client.act("one", "restart")
        await engine.wait_for("one", "ready")
        assert (await engine.client.server("one")).health == looked, "neither calls nor restarts are a look"
        assert await engine.client.health() == [looked]
        for look in (engine.client.check_health, engine.client.refresh, engine.client.test):
            before = (await engine.client.server("one")).health
            await look("one")
            after = (await engine.client.server("one")).health
            assert before is not None
            assert after is not None
            assert after.at > before.at


async def test_assertion_25_command_line_and_control_api_manage_the_same_and_call_by_hand(
    callboard_home: Path,
) -> None:
    commands = set(re.findall(r"^    ([a-z-]+)", build_parser().format_help(), re.MULTILINE))
    assert commands >= {
        *("list", "inspect", "tools", "test", "health", "refresh", "restart", "call", "resources", "prompts"),
        *("tail", "calls", "clients", "policy", "secrets", "profiles"),
    }
    routes = {(route.method, route.path) for route in ROUTES}
    assert routes >= {
        ("GET", "/servers"),
        ("GET", "/servers/{name}"),
        ("GET", "/servers/{name}/tools"),
        ("POST", "/servers/{name}/health-check"),
        ("POST", "/servers/{name}/refresh"),
        ("POST", "/servers/{name}/test"),
        ("POST", "/servers/{name}/{action}"),
        ("POST", "/servers/{name}/call"),
        ("POST", "/refresh"),
    }
    async with EngineProcess(callboard_home, {"one": fixture_entry("one")}) as engine:
        await engine.wait_for_view("one", lambda view: view.state == "ready" and view.tools > 0)
        called = await CommandLine(callboard_home)("call", "one.echo", "--arg", "text=by hand")
        assert (called.code, called.out) == (0, "by hand\n")
        by_api = await engine.client.call_tool("one", "echo", {"text": "by hand"})
        assert by_api["content"][0]["text"] == "by hand"


@pytest.mark.parametrize("killed", [False, True])
async def test_assertion_26_what_is_kept_over_a_restart_holds_no_connection_and_all_is_connected_anew(
    callboard_home: Path, tmp_path: Path, killed: bool
) -> None:
    mark = tmp_path / "starts"
    engine = EngineProcess(callboard_home, {"one": entry(*odd_server("--mark", mark))})
    async with engine:
        before = await engine.wait_for_view("one", lambda view: view.state == "ready" and view.tools > 0)
        token, admin = await engine.token(), engine.client.address.admin_token
        if killed:
            assert engine.process is not None
            engine.process.kill()
            await engine.wait_for_end()
        else:
            await engine.stop()
        kept = b"".join(file.read_bytes() for file in engine.paths.state.rglob("*") if file.is_file())
        assert token.encode() not in kept
        assert admin.encode() not in kept
        for file in engine.paths.state.rglob("*.json"):
            json.loads(file.read_text())  # plain data, whatever it was in the middle of
        await engine.start()
        after = await engine.wait_for_view("one", lambda view: view.state == "ready" and view.tools > 0)
        assert (after.pid != before.pid, after.tools) == (True, before.tools)
        assert len(mark.read_text().splitlines()) == 2
        answer = await engine.client.call_tool("one", "echo", {"text": "again"})
        assert answer["content"][0]["text"] == "again"
        assert await engine.token() == token

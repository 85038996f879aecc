"""The command line against a real engine with real servers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from callboard.api.schema import ServerView
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, entry
from tests.support.processes import odd_server

SERVERS = Path(__file__).parent.parent / "support" / "servers"
FIXTURE = [str(SERVERS / "mcp_fixture.py"), "--era", "legacy"]
ROSTER: dict[str, dict[str, object]] = {
    "tools": {"command": sys.executable, "args": FIXTURE, "start": "at-launch"},
    "lazy": {"command": sys.executable, "args": FIXTURE, "start": "on-demand"},
    "odd": {"command": sys.executable, "args": [str(SERVERS / "odd.py")], "start": "manual"},
    "missing": {"command": "no-such-program", "start": "manual"},
}


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """A running engine with the servers of this file."""
    async with EngineProcess(callboard_home, ROSTER) as engine:
        await engine.wait_for("tools", "ready")
        # a server on demand runs once so that its tools are known
        await engine.wait_for_view("lazy", lambda view: view.state == "stopped" and view.tools > 0)
        yield engine


@pytest.fixture
def callboard(engine: EngineProcess) -> CommandLine:
    """The command line for that engine."""
    return CommandLine(engine.home)


async def test_list(callboard: CommandLine) -> None:
    shown = await callboard("list")
    assert (shown.code, shown.err) == (0, "")
    header, *rows = shown.out.splitlines()
    assert header.split() == ["NAME", "STATE", "TRANSPORT", "TOOLS", "FOR", "CPU", "MEMORY", "REMARK"]
    assert [row.split()[:3] for row in rows] == [
        ["tools", "ready", "stdio"],
        ["lazy", "stopped", "stdio"],
        ["odd", "stopped", "stdio"],
        ["missing", "stopped", "stdio"],
    ]
    as_json = (await callboard("list", "--json")).json
    assert [server["name"] for server in as_json] == list(ROSTER)
    assert set(as_json[0]) == set(ServerView.__struct_fields__)


async def test_start_stop_and_restart_wait_for_the_end(callboard: CommandLine, engine: EngineProcess) -> None:
    assert (await callboard("stop", "tools")).out == "tools: stopped\n"
    assert (await engine.client.server("tools")).pid is None
    started = await callboard("start", "tools", "odd")
    assert started.code == 0
    assert [line.split(",")[0] for line in started.out.splitlines()] == ["tools: ready", "odd: ready"]
    before = (await engine.client.server("tools")).pid
    restarted = (await callboard("restart", "tools", "--json")).json
    assert restarted[0]["state"] == "ready"
    assert restarted[0]["pid"] not in (None, before)


async def test_failures_are_forgotten_by_hand(
    callboard: CommandLine, engine: EngineProcess, callboard_home: Path
) -> None:
    healing = odd_server("--crash-first", "1", callboard_home / "starts")
    engine.write_roster({**ROSTER, "heals": entry(*healing, restart={"delay": 0.05})})
    healed = await engine.wait_for_view("heals", lambda view: view.state == "ready")
    assert (healed.attempt, healed.restarts) == (1, 1)
    reset = await callboard("reset", "heals", "lazy")
    assert (reset.code, reset.err) == (0, "")
    assert reset.out.splitlines()[-1] == "lazy: stopped"
    after = await engine.client.server("heals")
    assert (after.state, after.attempt, after.pid) == ("ready", 0, healed.pid)
    await callboard("start", "missing")
    again = await callboard("reset", "missing")
    assert (again.code, "not found" in again.err) == (1, True)


async def test_server_that_cannot_start_is_told_with_its_fix(callboard: CommandLine) -> None:
    failed = await callboard("start", "missing")
    assert (failed.code, failed.out) == (1, "")
    sentence, fix = failed.err.splitlines()
    assert sentence.startswith("callboard: missing is ")
    assert "no-such-program" in sentence
    assert fix == "  Install the program, or give its full path as the command."


@pytest.mark.parametrize(
    "arguments",
    [
        ["start", "nobody"],
        ["inspect", "nobody"],
        ["tail", "nobody"],
        ["tools", "nobody"],
        ["call", "nobody.echo"],
        ["call", "tools.nothing"],
        ["inspect", "tools.nothing"],
        ["calls", "4711"],
        ["snippet", "nobody"],
        ["snippet", "vscode", "--server", "nobody"],
    ],
)
async def test_what_is_not_there(callboard: CommandLine, arguments: list[str]) -> None:
    ended = await callboard(*arguments)
    assert (ended.code, ended.out) == (4, "")
    sentence, fix = ended.err.splitlines()
    assert sentence.startswith("callboard: ")
    assert fix.startswith("  ")


async def test_server_that_does_not_run_is_told_instead_of_its_tools(callboard: CommandLine) -> None:
    for arguments in (["call", "odd.echo"], ["tools", "odd"], ["inspect", "odd.echo"], ["prompts", "odd"]):
        ended = await callboard(*arguments)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err.splitlines() == ["callboard: odd is stopped.", "  Start it with `callboard start odd`."]
    await callboard("start", "missing")
    ended = await callboard("call", "missing.echo")
    assert ended.code == 1
    assert ended.err.startswith("callboard: missing is failed (")
    assert "no-such-program" in ended.err


async def test_servers_are_disabled_enabled_and_removed(callboard: CommandLine, engine: EngineProcess) -> None:
    assert (await callboard("disable", "tools")).out == "tools: disabled\n"
    ended = await callboard("start", "tools")
    assert (ended.code, "callboard enable tools" in ended.err) == (1, True)
    enabled = await callboard("enable", "tools")
    assert (enabled.code, enabled.out) == (0, "tools: enabled; ready\n")
    asked = await callboard("remove", "odd")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert (await callboard("remove", "--yes", "odd", "nobody")).code == 4
    assert (await engine.client.server("odd")).name == "odd"
    removed = await callboard("remove", "--yes", "odd", "missing")
    assert (removed.code, removed.out) == (0, "odd: removed\nmissing: removed\n")
    assert [server.name for server in await engine.client.servers()] == ["tools", "lazy"]


async def test_call_prints_text_plainly_and_the_whole_result_as_json(callboard: CommandLine) -> None:
    ended = await callboard("call", "tools.echo", "--arg", "text=5 äöü")
    assert (ended.code, ended.out, ended.err) == (0, "5 äöü\n", "")
    whole = (await callboard("call", "tools.echo", "--args", "-", "--json", stdin='{"text":"in"}')).json
    assert whole["content"] == [{"type": "text", "text": "in"}]
    big = await callboard("call", "tools.big", "--arg", "size=300000")
    assert len(big.out) >= 300_000


async def test_tool_that_fails(callboard: CommandLine) -> None:
    ended = await callboard("call", "tools.fail", "--arg", "text=it broke")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("callboard: it broke")
    ended = await callboard("call", "tools.refuse")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("callboard: ")


async def test_wrong_arguments_are_usage(callboard: CommandLine) -> None:
    ended = await callboard("call", "tools.echo", "--args", "{")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[1] == "  See `callboard call --help`."


@pytest.mark.parametrize("arguments", [["call", "lazy.echo", "--arg", "text=hi"], ["tools", "lazy"]])
async def test_server_on_demand_is_started_when_it_is_needed(
    callboard: CommandLine, engine: EngineProcess, arguments: list[str]
) -> None:
    assert (await engine.client.server("lazy")).state == "stopped"
    ended = await callboard(*arguments)
    assert (ended.code, ended.err) == (0, "")
    assert "hi" in ended.out if arguments[0] == "call" else "lazy.echo" in ended.out
    assert (await engine.client.server("lazy")).state == "ready"


async def test_tools_of_all_servers_start_none(callboard: CommandLine, engine: EngineProcess) -> None:
    ended = await callboard("tools")
    assert ended.code == 0
    assert "tools.echo" in ended.out
    assert (await engine.client.server("lazy")).state == "stopped"
    names = [tool["name"] for tool in (await callboard("tools", "tools", "--json")).json]
    assert "echo" in names


async def test_inspect(callboard: CommandLine) -> None:
    server = await callboard("inspect", "tools")
    assert "state:    ready" in server.out
    assert "mcp_fixture.py" in server.out
    tool = (await callboard("inspect", "tools.echo", "--json")).json
    assert (tool["name"], tool["wire_name"]) == ("echo", "tools__echo")


async def test_tail_follows(callboard: CommandLine, engine: EngineProcess) -> None:
    await callboard("start", "odd")
    for n in range(3):
        await engine.client.call_tool("odd", "log", {"text": f"line {n}"})
    await _until(lambda: _logged(engine, "line 2"))
    assert (await callboard("tail", "odd", "-n", "2")).out == "line 1\nline 2\n"
    async with callboard.running("tail", "odd", "-f", "-n", "1") as tail:
        assert await tail.line() == "line 2"
        await engine.client.call_tool("odd", "log", {"text": "\x1b[31mnew\x1b[0m"})
        assert await tail.line() == "new"
        assert await tail.interrupt() == (130, "")
    async with callboard.running("tail", "odd", "-f", "-n", "1", "--json") as tail:
        assert '"text":"new"' in await tail.line()
        await engine.client.call_tool("odd", "log", {"text": "once more"})
        assert '"text":"once more"' in await tail.line()


async def test_calls(callboard: CommandLine) -> None:
    await callboard("call", "tools.echo", "--arg", "text=needle")
    await callboard("call", "tools.fail", "--arg", "text=x")
    shown = (await callboard("calls")).out.splitlines()
    assert shown[0].split() == ["ID", "TIME", "CLIENT", "TOOL", "STATUS", "DURATION", "SIZE", "ERROR"]
    assert [line.split()[3:5] for line in shown[1:]] == [["tools.echo", "completed"], ["tools.fail", "failed"]]
    failed = (await callboard("calls", "--status", "failed", "--json")).json
    assert [each["tool"] for each in failed] == ["fail"]
    found = (await callboard("calls", "--text", "needle", "--json")).json
    assert [each["tool"] for each in found] == ["echo"]
    detail = await callboard("calls", str(found[0]["id"]))
    assert '"text": "needle"' in detail.out


async def test_calls_follow(callboard: CommandLine, engine: EngineProcess) -> None:
    await engine.client.call_tool("tools", "echo", {"text": "before"})
    async with callboard.running("calls", "-f", "--tool", "echo") as calls:
        assert (await calls.line()).startswith("ID")
        assert "tools.echo" in await calls.line()
        await engine.client.call_tool("tools", "pid", {})
        await engine.client.call_tool("tools", "echo", {"text": "after"})
        line = await calls.line()
        assert line.split()[0] == "3"
        assert "completed" in line
        assert await calls.interrupt() == (130, "")


async def test_snippet_with_token_opens_the_gateway(callboard: CommandLine, engine: EngineProcess) -> None:
    shown = await callboard("snippet", "vscode")
    assert '"type": "http"' in shown.out
    assert shown.err
    view = (await callboard("snippet", "claude-code", "--server", "tools", "--with-token", "--json")).json
    token = await engine.client.token("claude-code")
    assert token in view["text"]
    assert "/servers/tools/mcp" in view["text"]
    clients = (await callboard("snippet", "--json")).json
    assert "vscode" in [client["id"] for client in clients]


async def test_doctor(callboard: CommandLine) -> None:
    ended = await callboard("doctor")
    assert ended.code == 0
    checks = (await callboard("doctor", "--json")).json
    assert {check["status"] for check in checks} <= {"ok", "warn"}


async def test_quit_ends_the_engine(callboard: CommandLine, engine: EngineProcess) -> None:
    ended = await callboard("quit")
    assert (ended.code, ended.out, ended.err) == (0, "", "")
    assert engine.process is not None
    await asyncio.to_thread(engine.process.wait, 10)
    assert (await callboard("list")).code == 3


async def test_followers_end_with_the_engine(callboard: CommandLine, engine: EngineProcess) -> None:
    async with callboard.running("calls", "-f") as calls, callboard.running("tail", "tools", "-f") as tail:
        await calls.line()
        await tail.line()
        engine.kill()
        for each in (calls, tail):
            _, errors = await each.process.communicate()
            assert each.process.returncode == 3
            assert errors.startswith(b"callboard: ")


async def test_reader_that_goes_away_is_no_error(callboard: CommandLine, engine: EngineProcess) -> None:
    await engine.client.call_tool("tools", "echo", {"text": "x"})
    reading, writing = os.pipe()
    os.close(reading)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "callboard",
        "call",
        "tools.big",
        "--arg",
        "size=300000",
        env={**os.environ, "CALLBOARD_HOME": str(engine.home)},
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")


async def test_interrupted_call(callboard: CommandLine, engine: EngineProcess) -> None:
    async with callboard.running("call", "tools.slow", "--arg", "ms=60000") as call:
        await _until(lambda: _runs(engine))
        assert await call.interrupt() == (130, "")


async def _logged(engine: EngineProcess, text: str) -> bool:
    return text in [line.text for line in (await engine.client.log("odd", after=-1)).lines]


async def _runs(engine: EngineProcess) -> bool:
    return (await engine.client.calls(status="running")).total > 0


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():  # noqa: ASYNC110  # asks another process
            await asyncio.sleep(0.02)

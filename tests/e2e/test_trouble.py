"""What goes wrong on a person's machine: each fault has a code, a sentence and its fix, and the rest goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of
from tests.support.processes import odd_server, until


@contextlib.contextmanager
def taken_port() -> Iterator[int]:
    """A port that another program listens on, with a free one somewhere above it."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


async def test_a_port_in_use_is_replaced_and_that_is_said_everywhere(callboard_home: Path) -> None:
    with taken_port() as port:
        engine = EngineProcess(callboard_home)
        engine.write_roster({}, gateway={"port": port})
        async with engine:
            view = await engine.client.engine()
            assert (view.wanted_port, view.port > port) == (port, True)
            assert view.url == f"http://127.0.0.1:{view.port}"
            assert [notice.code for notice in view.notices] == ["port-in-use"]
            assert view.notices[0].message == f"Port {port} is taken; the gateway listens on {view.port}."
            assert view.notices[0].fix
            await until(lambda: view.notices[0].message in engine.output.read_text())
            snippet = await engine.client.snippet("vscode")
            assert json.loads(snippet.text)["servers"]["callboard"]["url"] == f"http://127.0.0.1:{view.port}/mcp"
            checks = {check.code: check for check in await engine.client.doctor()}
            assert checks["port-in-use"].status == "warn"
            async with mcp_client(engine) as client:
                assert await client.list_tools() == []


async def test_a_command_that_does_not_exist_names_the_path_that_was_searched(
    callboard_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    async with EngineProcess(callboard_home, {"gone": {"command": "no-such-program-4711"}}) as engine:
        view = await engine.wait_for("gone", "failed")
        assert view.error_code == "command-not-found"
        assert "no-such-program-4711" in view.reason
        assert str(tmp_path) in view.reason
        assert view.fix
        assert view.action == "edit"
        assert view.restarts == 0
        with pytest.raises(CallboardError) as caught:
            await engine.client.call_tool("gone", "echo", {})
        assert (caught.value.code, caught.value.data["cause"]) == ("server-not-ready", "command-not-found")
        assert str(tmp_path) in caught.value.message


async def test_a_program_that_may_not_be_run_says_so(callboard_home: Path, tmp_path: Path) -> None:
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\n")
    roster = {"script": {"command": str(script)}, "nowhere": entry(*odd_server(), cwd=str(tmp_path / "missing"))}
    async with EngineProcess(callboard_home, roster) as engine:
        assert (await engine.wait_for("script", "failed")).error_code == "command-not-executable"
        assert (await engine.wait_for("nowhere", "failed")).error_code == "cwd-missing"


async def test_an_early_exit_shows_its_code_and_the_last_lines(callboard_home: Path) -> None:
    crashing = entry(*odd_server("--crash-before", "7"), restart={"max": 1, "delay": 0.1})
    async with EngineProcess(callboard_home, {"crashing": crashing, "fine": fixture_entry()}) as engine:
        view = await engine.wait_for("crashing", "failed")
        assert view.error_code in ("exited-early", "crash-loop")
        assert view.last_exit is not None
        assert (view.last_exit.code, view.last_exit.signal) == (7, None)
        assert view.last_exit.stderr[-1] == 'KeyError: "API_KEY"'
        assert 'KeyError: "API_KEY"' in view.reason
        lines = [line.text for line in (await engine.client.log("crashing")).lines]
        assert 'KeyError: "API_KEY"' in lines
        assert (await engine.wait_for("fine", "ready")).restarts == 0


async def test_a_server_that_died_comes_back_by_itself(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"odd": entry(*odd_server(), restart={"delay": 0.1})}) as engine:
        before = await engine.wait_for("odd", "ready")
        with pytest.raises(CallboardError) as caught:
            await engine.client.call_tool("odd", "kill", {})
        assert caught.value.code == "upstream-gone"
        after = await engine.wait_for_view("odd", lambda view: view.state == "ready" and view.pid != before.pid)
        assert after.restarts == 1
        assert after.last_exit is not None
        assert after.last_exit.signal == "SIGKILL"
        result = await engine.client.call_tool("odd", "echo", {"text": "back"})
        assert result["content"][0]["text"] == "back"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_server_that_prints_rubbish_is_degraded_and_works(callboard_home: Path, mode: str) -> None:
    async with EngineProcess(callboard_home, {"noisy": entry(*odd_server("--noise"))}) as engine:
        view = await engine.wait_for("noisy", "degraded")
        assert (view.error_code, view.severity) == ("stdout-noise", "attention")
        assert view.reason
        assert view.fix
        async with mcp_client(engine, "noisy", mode=mode) as client:
            assert text_of(await client.call_tool("echo", {"text": "heard"})) == "heard"
        noise = [line.text for line in (await engine.client.log("noisy")).lines if line.stream == "stdout"]
        assert noise == ["Server v1.0 ready!", "not json"]


async def test_a_silent_server_is_given_up_in_time(callboard_home: Path) -> None:
    silent = entry(*odd_server("--silent"), timeouts={"start": 0.5}, restart={"max": 0})
    async with EngineProcess(callboard_home, {"silent": silent}) as engine:
        view = await engine.wait_for("silent", "failed")
        assert view.error_code in ("start-timeout", "crash-loop")
        assert "did not answer the handshake" in view.reason
        assert view.pid is None


async def test_whoever_asks_for_tools_before_the_first_list_is_there_gets_them(
    callboard_home: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    async with EngineProcess(callboard_home, {"odd": entry(*odd_server("--hold-list", str(gate)))}) as engine:
        await engine.wait_for("odd", "ready")
        asking = asyncio.create_task(engine.client.tools("odd"))
        await engine.client.server("odd")
        assert not asking.done()
        gate.touch()
        assert [tool.name for tool in await asking] == ["echo", "exit", "kill"]


async def test_an_unset_variable_and_a_missing_secret_are_asked_for(callboard_home: Path) -> None:
    roster = {
        "variable": entry(*odd_server(), env={"A": "${env:SURELY_NOT_SET_4711}"}),
        "secret": entry(*odd_server(), env={"A": "${secret:not-yet}"}),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        variable = await engine.wait_for("variable", "needs-config")
        assert (variable.error_code, variable.action) == ("env-unset", "fill-in")
        assert "SURELY_NOT_SET_4711" in variable.reason
        secret = await engine.wait_for("secret", "needs-config")
        assert (secret.error_code, secret.action) == ("secret-missing", "fill-in")
        assert "not-yet" in secret.reason
        await engine.client.set_secret("not-yet", "now it is")
        await engine.wait_for("secret", "ready")


async def test_a_tool_s_own_failure_stands_in_the_log_as_failed(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"tools": fixture_entry()}) as engine:
        await engine.wait_for("tools", "ready")
        async with mcp_client(engine, "tools", says="my-agent") as client:
            result = await client.call_tool("fail", {"text": "no such file"}, raise_on_error=False)
            assert result.is_error
        call = await engine.wait_for_call("fail", "failed")
        assert (call.client, call.server, call.method) == ("my-agent", "tools", "tools/call")
        assert call.error == "no such file"

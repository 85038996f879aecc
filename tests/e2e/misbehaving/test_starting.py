"""Servers that are hard to start: not found, slow, dead at once, dead for good, and how each is told apart."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.e2e.misbehaving.kit import FAULTY, ImpatientEngine, faulty, legacy, log_of, remote, text
from tests.support.engine import EngineProcess, entry
from tests.support.gateway import text_of, until
from tests.support.processes import is_running


async def test_a_program_that_only_the_login_shell_knows_is_found(callboard_home: Path, tmp_path: Path) -> None:
    """As when started from a dock or a menu: B01."""
    tools = tmp_path / "only in the profile"
    tools.mkdir()
    program = tools / "my-server"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "{FAULTY / "life.py"}" env "$@"\n')
    program.chmod(0o755)
    home = callboard_home.parent
    (home / ".profile").write_text(f'echo "Welcome back!"\nexport PATH="$PATH:{tools}"\necho "have fun"\n')
    bare = {"PATH": "/usr/bin:/bin", "SHELL": "/bin/sh", "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
    bare["QT_QPA_PLATFORM"] = bare["LD_LIBRARY_PATH_ORIG"] = "leaks"
    async with EngineProcess(callboard_home, {"mine": entry("my-server")}, environment=bare) as engine:
        await engine.wait_for("mine", "ready")
        seen = json.loads(
            await text(engine, "mine", "env", names=["PATH", "CALLBOARD_HOME", "QT_QPA_PLATFORM", "HOME"])
        )
        assert str(tools) in seen["PATH"].split(os.pathsep), "the server finds its own helpers there too"
        assert (seen["CALLBOARD_HOME"], seen["QT_QPA_PLATFORM"], seen["HOME"]) == (None, None, str(home))


async def test_arguments_arrive_byte_for_byte(callboard_home: Path) -> None:
    """B02, where there is no cmd.exe between."""
    arguments = [
        "",
        "two words",
        "$HOME",
        "*",
        "a&b",
        "%PATH%",
        '"quoted"',
        "it's",
        "back\\slash\\",
        "t\u00e4glich",
        "-x=1",
        "\n",
    ]
    async with EngineProcess(callboard_home, {"echo": faulty("env", *arguments)}) as engine:
        await engine.wait_for("echo", "ready")
        assert json.loads(await text(engine, "echo", "args")) == arguments


async def test_a_first_download_may_take_longer_than_a_start(callboard_home: Path) -> None:
    """B03: the limit is for silence, and has a hard end."""
    roster = {
        "download": faulty("slow", "2.5", timeouts={"start": 0.7}),
        "endless": faulty("slow", "600", timeouts={"start": 0.5}),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        waiting = await engine.wait_for_view("download", lambda view: "downloading package" in view.reason)
        assert (waiting.state, waiting.restarts) == ("starting", 0)
        view = await engine.wait_for("download", "ready", "failed", "restarting")
        assert (view.state, view.reason) == ("ready", "")
        given_up = await engine.wait_for("endless", "failed")
        assert (given_up.error_code, given_up.restarts) == ("start-timeout", 0), "the download is not begun afresh"
        assert "downloading package" in given_up.reason
        assert given_up.last_exit is not None
        assert given_up.last_exit.stderr[-1].startswith("downloading package")


async def test_dead_servers_delay_nobody(callboard_home: Path) -> None:
    """B04: the list is there at once, and who comes later is announced."""
    dead = {f"dead{number}": faulty("slow", "600") for number in range(5)}
    roster = {**dead, "late": faulty("slow", "1.5"), "good": faulty("env")}
    async with EngineProcess(callboard_home, roster) as engine, await legacy(engine) as client:
        async with client.listening():
            await engine.wait_for("good", "ready")
            await until(lambda: client.of("notifications/tools/list_changed"))
            names = {tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]}
            assert {"good__env", "good__args"} <= names
            client.heard.clear()
            await engine.wait_for("late", "ready")
            await until(lambda: client.of("notifications/tools/list_changed"))
            assert text_of(await client.call("late__echo", {"text": "late"})) == "late"
        assert {view.state for view in await engine.client.servers() if view.name in dead} == {"starting"}


async def test_a_server_that_dies_before_it_answers_shows_how_and_why(callboard_home: Path, tmp_path: Path) -> None:
    """B05."""
    roster = {
        "before": faulty("crash", "before", restart={"max": 2, "delay": 0.05}),
        "after": faulty("crash", "after", restart={"max": 1, "delay": 0.05}),
        "heals": faulty("crash", "until", "2", tmp_path / "starts", restart={"delay": 0.05}),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        for name, restarts in (("before", 2), ("after", 1)):
            view = await engine.wait_for(name, "failed")
            assert (view.error_code, view.restarts, view.restarts_today) == ("crash-loop", restarts, restarts)
            assert 'exited with code 1: KeyError: "EXAMPLE_API_KEY"' in view.reason
            assert view.last_exit is not None
            assert (view.last_exit.code, view.last_exit.stderr[-1]) == (1, 'KeyError: "EXAMPLE_API_KEY"')
            assert (view.action, view.next_retry) == ("retry", None)
        log = await log_of(engine, "before")
        assert sum(line == "mark: exited with code 1" for line in log) == 3, "runs are set apart"
        healed = await engine.wait_for("heals", "ready")
        assert (healed.restarts, healed.reason, healed.error_code) == (2, "", "")
        again = await engine.client.act("before", "retry")
        assert again.attempt == 0, "a person's wish counts anew"


async def test_a_server_that_crashes_for_ever_can_be_stopped(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"crash": faulty("crash", "before", restart={"delay": 60})}) as engine:
        view = await engine.wait_for("crash", "restarting")
        assert view.next_retry is not None
        assert (view.attempt, view.max_attempts, view.action) == (1, 5, "retry")
        await engine.client.act("crash", "stop")
        assert (await engine.wait_for("crash", "stopped")).next_retry is None


async def test_a_bad_gateway_is_told_as_one_and_tried_on(callboard_home: Path) -> None:
    """B06: neither for ever "starting" nor a matter of signing in."""
    with remote("fails", "4") as url, remote("fails", "1000") as hopeless:
        roster = {
            "heals": {"url": f"{url}/mcp", "restart": {"max": 1, "delay": 0.1}},
            "hopeless": {"url": f"{hopeless}/mcp", "restart": {"max": 1, "delay": 0.1}},
        }
        async with EngineProcess(callboard_home, roster) as engine:
            view = await engine.wait_for("hopeless", "failed")
            assert (view.error_code, view.reason) == ("remote-failed", "The server answered HTTP 502.")
            assert view.next_retry is not None, "it goes on trying, with growing pauses"
            assert (view.action, view.severity) == ("retry", "failed")
            await engine.client.act("heals", "retry")
            await engine.wait_for("heals", "ready")
            assert await text(engine, "heals", "echo", text="back") == "back"


async def test_a_refused_token_is_a_matter_of_signing_in_and_nothing_else(callboard_home: Path) -> None:
    with remote("token", "good") as url:
        roster = {
            "stranger": {"url": f"{url}/mcp"},
            "known": {"url": f"{url}/mcp", "auth": {"type": "bearer", "secret": "the-token"}},
        }
        async with EngineProcess(callboard_home, roster) as engine:
            view = await engine.wait_for("stranger", "needs-sign-in")
            assert (view.error_code, view.next_retry, view.restarts) == ("remote-sign-in", None, 0)
            await engine.wait_for("known", "needs-config")
            await engine.client.set_secret("the-token", "bad")
            await engine.wait_for("known", "needs-sign-in")
            await engine.client.set_secret("the-token", "good")
            await engine.client.act("known", "retry")
            await engine.wait_for("known", "ready")


@pytest.mark.parametrize("listening", ["v4", "v6"])
async def test_localhost_is_whatever_answers(callboard_home: Path, listening: str) -> None:
    """B27."""
    try:
        with remote(listening) as url:
            port = url.rpartition(":")[2]
            async with EngineProcess(callboard_home, {"local": {"url": f"http://localhost:{port}/mcp"}}) as engine:
                await engine.wait_for("local", "ready")
                assert await text(engine, "local", "echo", text="found") == "found"
    except ValueError:
        pytest.skip("this machine has no IPv6 loopback")


async def test_a_lost_connection_is_made_again_without_a_word(callboard_home: Path) -> None:
    """B07: one broken call, one missed check change nothing."""
    with remote("reset", script="bad_http.py") as url:
        async with ImpatientEngine(callboard_home, {"far": {"url": f"{url}/mcp"}}) as engine:
            before = await engine.wait_for_view("far", lambda view: view.state == "ready" and view.tools == 1)
            for _ in range(2):
                async with await legacy(engine, "far") as client:
                    assert "error" in await client.call("echo", {"text": "x"})
                    assert len((await client.request("tools/list"))["result"]["tools"]) == 1
            after = await engine.client.server("far")
            assert (after.state, after.since, after.restarts) == ("ready", before.since, 0)


async def test_starting_servers_end_with_the_engine(callboard_home: Path) -> None:
    roster = {"slow": faulty("slow", "600"), "deaf": faulty("silent", "deaf"), "crash": faulty("crash", "before")}
    async with EngineProcess(callboard_home, roster) as engine:
        pids = [(await engine.wait_for_view(name, lambda view: view.pid)).pid for name in ("slow", "deaf")]
    assert not any(is_running(pid or 0) for pid in pids)

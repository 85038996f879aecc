"""The engine's process: one at a time, ended in order or not, and never outlived by what it started."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from callboard.core.errors import CallboardError
from callboard.system.engine_file import read_engine_file
from tests.support.engine import EngineProcess, Entry, entry, fixture_entry
from tests.support.mcp_client import mcp_client, text_of
from tests.support.processes import is_running, odd_server, pid_in, processes_of_home, until

KEYLESS = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


def servers(folder: Path) -> dict[str, Entry]:
    """Three servers that are hard to end: a plain one, a wrapper whose child left the session, and a deaf one."""
    return {
        "plain": fixture_entry(),
        "wrapped": entry(*odd_server("--grandchild", folder / "grandchild", "--setsid")),
        "deaf": entry(*odd_server("--ignore-term")),
    }


async def running_servers(engine: EngineProcess, folder: Path) -> list[int]:
    """The pids of :func:`servers`, once all are ready."""
    views = [await engine.wait_for(name, "ready") for name in ("plain", "wrapped", "deaf")]
    pids = [view.pid for view in views if view.pid is not None]
    assert len(pids) == 3
    return [*pids, await pid_in(folder / "grandchild")]


async def test_what_it_writes_is_for_its_person_alone(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home) as engine:
        address = read_engine_file(engine.paths.engine_file)
        assert address is not None
        assert (address.pid, address.url) == (engine.pid, (await engine.client.engine()).url)
        for folder in (engine.paths.config, engine.paths.state, engine.paths.logs, engine.paths.runtime):
            assert stat.S_IMODE(folder.stat().st_mode) & 0o077 == 0, folder
        for file in (engine.paths.engine_file, engine.paths.clients_file):
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere loopback is one address alone")
async def test_it_listens_where_it_is_told(callboard_home: Path) -> None:
    engine = EngineProcess(callboard_home, environment={**KEYLESS, "CALLBOARD_GATEWAY_HOST": "127.0.0.3"})
    engine.write_roster({}, gateway={"host": "127.0.0.2", "port": 0})
    async with engine:
        view = await engine.client.engine()
        assert view.url == f"http://127.0.0.3:{view.port}"
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(f"{view.url}/healthz")).json() == {"status": "ok"}
            with pytest.raises(httpx2.ConnectError):
                await http.get(f"http://127.0.0.1:{view.port}/healthz")


@pytest.mark.parametrize(
    "forwarded", [{"X-Forwarded-For": "10.0.0.7"}, {"Forwarded": "for=10.0.0.7"}, {"Via": "1.1 p"}]
)
async def test_the_control_api_is_for_this_computer_unless_said_otherwise(
    callboard_home: Path, forwarded: dict[str, str]
) -> None:
    async with EngineProcess(callboard_home, {}) as engine, httpx2.AsyncClient(trust_env=False) as http:
        url, address = (await engine.client.engine()).url, read_engine_file(engine.paths.engine_file)
        assert address is not None
        token = {"Authorization": f"Bearer {address.admin_token}"}
        assert (await http.get(f"{url}/api/v1/engine", headers=token)).status_code == 200
        for headers in ({**token, **forwarded}, forwarded):
            refused = await http.get(f"{url}/api/v1/engine", headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (403, "control-refused")
            assert "gateway: {control: remote}" in refused.json()["fix"]
        assert (await http.get(f"{url}/healthz", headers=forwarded)).status_code == 200
        assert (await http.get(f"{url}/mcp", headers=forwarded)).status_code == 401

        engine.write_roster({}, gateway={"port": 0, "control": "remote"})
        async with asyncio.timeout(60):
            while "control-exposed" not in {notice.code for notice in (await engine.client.engine()).notices}:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (await http.get(f"{url}/api/v1/engine", headers={**token, **forwarded})).status_code == 200
        assert (await http.get(f"{url}/api/v1/engine", headers=forwarded)).status_code == 401


async def test_a_second_engine_refuses_to_start(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "callboard", "engine"),
            env={**os.environ, "CALLBOARD_HOME": str(callboard_home)},
            stderr=subprocess.PIPE,
        )
        _, said = await second.communicate()
        assert second.returncode == 1
        assert said.decode() == (
            "callboard: An engine is running already.\n  Quit it with `callboard quit` to start another one.\n"
        )
        address = read_engine_file(engine.paths.engine_file)
        assert address is not None
        assert address.pid == engine.pid
        assert (await engine.client.engine()).pid == engine.pid


@pytest.mark.parametrize("how", ["quit", "SIGTERM", "SIGINT", "SIGHUP"])
async def test_it_ends_in_order_with_all_its_servers(how: str, callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, servers(tmp_path)) as engine:
        pids = await running_servers(engine, tmp_path)
        if how == "quit":
            await engine.client.quit()
        else:
            os.kill(engine.pid, signal.Signals[how])
        assert await engine.wait_for_end() == 0
        assert not any(map(is_running, pids))
        assert not engine.paths.engine_file.exists()
        assert "Traceback" not in engine.output.read_text()
        log = (engine.paths.logs / "engine.log").read_text()
        assert log.rstrip().endswith("stopping")
        with pytest.raises(CallboardError) as caught:
            await engine.client.engine()
        assert caught.value.code == "engine-unreachable"


async def test_calls_under_way_are_told_when_it_ends_and_stand_in_the_log(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"plain": fixture_entry()}) as engine:
        await engine.wait_for("plain", "ready")
        call = asyncio.create_task(engine.client.call_tool("plain", "slow", {"ms": 60_000}))
        await engine.wait_for_call("slow")
        await engine.client.quit()
        with pytest.raises(CallboardError):
            await call
        assert await engine.wait_for_end() == 0
        await engine.start()
        page = await engine.client.calls()
        assert [(found.tool, found.status) for found in page.calls] == [("slow", "failed")]
        assert page.calls[0].error
        assert page.calls[0].duration_ms is not None


async def test_after_a_kill_the_next_one_ends_what_was_left(callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, servers(tmp_path)) as engine:
        pids = await running_servers(engine, tmp_path)
        engine.kill()
        (tmp_path / "grandchild").unlink()
        await engine.start()
        after = await running_servers(engine, tmp_path)
        assert not set(pids) & set(after)
        assert not any(map(is_running, pids))
        # nothing but the engine and what its servers are now
        await until(lambda: set(processes_of_home(callboard_home.parent)) == {engine.pid, *after})


def trees(folder: Path) -> dict[str, Entry]:
    """Servers behind wrappers and shells, some of which bear every signal but one, and one that dies at once."""
    server = shlex.join(odd_server("--ignore-term"))
    shells = {
        "waiting": f"exec 3<&0; {server} <&3 & wait",
        "helped": f"sleep 1000 & exec 3<&0; {server} <&3 & wait",
        "nested": f"sh -c 'sleep 1000 & exec {server}'",
    }
    return {
        **servers(folder),
        **{name: entry("/bin/sh", "-c", script) for name, script in shells.items()},
        "dying": entry(*odd_server("--crash-before", "3"), restart={"delay": 0.05, "max": 100}),
    }


@pytest.mark.timeout(240)
async def test_nothing_is_left_whenever_it_is_killed(callboard_home: Path, tmp_path: Path) -> None:
    """At the first starts, where a process is there before anything is known of it, and at later moments."""
    for moment in (0.0, 0.01, 0.03, 0.06, 0.1, 0.3, 1.0):
        engine = EngineProcess(callboard_home, trees(tmp_path))
        engine.process = engine.launch()
        notes = engine.paths.state / "processes.json"
        await until(notes.exists, seconds=60)
        await asyncio.sleep(moment)
        engine.kill()
        engine.write_roster({})
        async with engine:
            pids = {engine.pid}
            await until(lambda pids=pids: set(processes_of_home(callboard_home.parent)) == pids, seconds=30)
            assert not notes.exists()


async def test_a_call_that_a_kill_cut_off_is_not_left_running_in_the_log(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"plain": fixture_entry()}) as engine:
        await engine.wait_for("plain", "ready")
        async with mcp_client(engine, "plain") as client:
            assert text_of(await client.call_tool("echo", {"text": "kept"})) == "kept"
        call = asyncio.create_task(engine.client.call_tool("plain", "slow", {"ms": 60_000}))
        await engine.wait_for_call("slow")
        engine.kill()
        with pytest.raises(CallboardError):
            await call
        await engine.start()
        page = await engine.client.calls()
        assert [(found.tool, found.status) for found in page.calls] == [("echo", "completed"), ("slow", "failed")]


async def test_every_route_but_the_health_asks_for_a_token_and_a_local_name(callboard_home: Path) -> None:
    async with (
        EngineProcess(callboard_home, {}) as engine,
        httpx2.AsyncClient(base_url=engine.client.address.url) as http,
    ):
        assert (await http.get("/healthz")).status_code == 200
        admin = {"authorization": f"Bearer {engine.client.address.admin_token}"}
        client = {"authorization": f"Bearer {await engine.token()}"}
        for path in ("/mcp", "/mcp/", "/servers/x/mcp", "/api/v1/engine", "/api/v1/events"):
            for method in ("GET", "POST"):
                assert (await http.request(method, path)).status_code == 401, (method, path)
            assert (await http.get(path, headers={**admin, "host": "evil.example"})).status_code == 403, path
            assert (await http.get(path, headers={**admin, "origin": "https://evil.example"})).status_code == 403, path
        assert (await http.get("/api/v1/engine", headers=admin)).status_code == 200
        # a client's token does not steer the engine
        assert (await http.get("/api/v1/engine", headers=client)).status_code in (401, 403)

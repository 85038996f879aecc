"""What must hold of a server's entry in the roster, and of the credentials in it: the assertions 1 to 9."""

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import psutil
import pytest

from callboard.api.schema import EntryEdit
from callboard.core.errors import CallboardError
from callboard.core.roster import LocalEntry
from tests.e2e.management.recorder import recorder
from tests.support.engine import FIXTURE, EngineProcess, entry, fixture_entry
from tests.support.processes import odd_server

QUIET = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
NO_RESTART = {"max": 0}


async def problems(engine: EngineProcess, written: dict[str, Any], name: str = "new") -> dict[str, str]:
    """What is wrong with an entry, by field."""
    return {each.field: each.message for each in (await engine.client.validate(name, written)).problems}


async def test_assertion_1_an_entry_needs_a_command_alone_and_the_rest_has_defaults(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"plain": entry(sys.executable, str(FIXTURE))}) as engine:
        view = await engine.wait_for("plain", "ready")
        shown = (view.display_name, view.description, view.enabled, view.kind, view.transport, view.start)
        assert shown == ("plain", "", True, "local", "stdio", "at-launch")
    timeouts = LocalEntry(command="x").timeouts
    assert (timeouts.start, timeouts.call, timeouts.idle) == (30.0, 300.0, None)
    assert (LocalEntry(command="x").args, LocalEntry(command="x").env) == ([], {})


async def test_assertion_2_an_unknown_field_is_named_with_the_nearest_right_one(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        found = await problems(engine, {"command": "x", "comand": "y"})
        assert "command" in found["comand"]
        with pytest.raises(CallboardError) as caught:
            await engine.client.save_entry("new", EntryEdit(entry={"command": "x", "tool_timeout": 3}, create=True))
        assert caught.value.code == "entry-invalid"
        assert "tool_timeout" in json.dumps(caught.value.data)


async def test_assertion_3_an_entry_that_cannot_work_is_refused(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        for wrong in (
            {"args": ["x"]},
            {"command": ""},
            {"url": ""},
            {"url": "not an address"},
            {"command": "x", "url": "http://h/mcp"},
            {"command": "x", "auth": {"type": "bearer", "secret": "a"}},
            {"url": "http://h/mcp", "transport": "carrier-pigeon"},
            {"url": "http://h/mcp", "auth": {"type": "magic"}},
        ):
            assert await problems(engine, wrong), wrong
        assert not await problems(engine, {"url": "http://h/sse", "transport": "sse"}), "the old transport is spoken"


async def test_assertion_4_what_is_disabled_or_absent_is_refused_before_anything_starts(
    callboard_home: Path, tmp_path: Path
) -> None:
    mark = tmp_path / "started"
    async with EngineProcess(callboard_home, {"off": entry(*odd_server("--mark", mark), enabled=False)}) as engine:
        for name, code in (("off", "disabled"), ("absent", "server-unknown")):
            with pytest.raises(CallboardError) as caught:
                await engine.client.call_tool(name, "echo", {})
            assert caught.value.code == code
            url = f"{engine.client.address.url}/servers/{name}/mcp/tools/echo"
            headers = {"authorization": f"Bearer {await engine.token()}"}
            async with httpx2.AsyncClient(trust_env=False) as http:
                assert (await http.post(url, json={}, headers=headers)).status_code == 404
        assert not mark.exists()
        assert (await engine.client.server("off")).pid is None


async def test_assertion_5_values_from_the_environment_are_read_at_the_start_and_shown_nowhere(
    callboard_home: Path, tmp_path: Path
) -> None:
    given = tmp_path / "given"
    serve = f'printf %s "$LOCAL" > {shlex.quote(str(given))}; exec {shlex.join(odd_server())}'
    servers = {
        "knows": entry("sh", "-c", serve, env={"LOCAL": "${env:FORGE_TOKEN}"}),
        "lacks": entry(*odd_server(), env={"LOCAL": "${env:SURELY_NOT_SET_4711}"}),
    }
    environment = {**QUIET, "FORGE_TOKEN": "value-4711"}
    async with EngineProcess(callboard_home, servers, environment=environment) as engine:
        await engine.wait_for("knows", "ready")
        assert given.read_text() == "value-4711"
        shown = [msgspec.json.encode(view) for view in (await engine.client.servers(), await engine.client.roster())]
        assert b"FORGE_TOKEN" in shown[1]
        assert not any(b"value-4711" in text for text in shown)
        lacks = await engine.wait_for("lacks", "needs-config")
        assert (lacks.error_code, "SURELY_NOT_SET_4711" in lacks.reason) == ("env-unset", True)


async def test_assertion_6_python_in_a_command_is_the_interpreter_that_runs_callboard(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"own": entry("${python}", str(FIXTURE))}) as engine:
        view = await engine.wait_for("own", "ready")
        assert view.pid is not None
        assert Path(psutil.Process(view.pid).exe()) == Path(os.path.realpath(sys.executable))


async def test_assertion_7_a_server_gets_the_persons_environment_and_nothing_of_callboards_own(
    callboard_home: Path,
) -> None:
    environment = {**QUIET, "DATABASE_URL": "postgresql://nowhere/", "QT_QPA_PLATFORM": "offscreen"}
    async with EngineProcess(callboard_home, {"one": fixture_entry("one")}, environment=environment) as engine:
        view = await engine.wait_for("one", "ready")
        assert view.pid is not None
        got = psutil.Process(view.pid).environ()
        assert got["DATABASE_URL"] == "postgresql://nowhere/", "no entry has to pass on what the person has set"
        ours = {name for name in got if name.startswith(("CALLBOARD_", "QT_"))}
        assert ours == {"CALLBOARD_RUN"}, "the mark by which a process is known as one of ours"


async def test_assertion_8_credentials_go_out_in_the_header_that_the_entry_names(callboard_home: Path) -> None:
    auths = {
        "bearer": ({"type": "bearer", "secret": "key"}, "authorization", "Bearer value-4711"),
        "api-key": ({"type": "api_key", "secret": "key"}, "x-api-key", "value-4711"),
        "api-key-named": ({"type": "api_key", "secret": "key", "header": "X-Other"}, "x-other", "value-4711"),
        "custom": ({"type": "custom_header", "secret": "key"}, "authorization", "value-4711"),
        "custom-named": ({"type": "custom_header", "secret": "key", "header": "X-Own"}, "x-own", "value-4711"),
    }
    async with recorder() as remote:
        servers = {name: {"url": f"{remote.url}/{name}", "auth": auth} for name, (auth, _, _) in auths.items()}
        async with EngineProcess(callboard_home, servers) as engine:
            for name in auths:
                await engine.wait_for(name, "needs-config")
            assert remote.seen == [], "what has no value is asked for, not sent empty"
            await engine.client.set_secret("key", "value-4711")
            for name, (_, header, value) in auths.items():
                await engine.wait_for(name, "ready")
                sent = [
                    (method, headers.get(header))
                    for method, headers in remote.seen
                    if header in headers and headers[header] == value
                ]
                assert {method for method, _ in sent} >= {"server/discover", "initialize"}, (name, remote.seen)


async def test_assertion_9_what_went_wrong_is_told_apart_and_a_bad_token_is_never_printed(callboard_home: Path) -> None:
    codes = {
        "401": "remote-sign-in",
        "403": "remote-forbidden",
        "404": "remote-not-found",
        "500": "remote-failed",
        "empty": "remote-status",
    }
    async with recorder() as remote:
        servers: dict[str, Any] = {
            f"is-{path}": {"url": f"{remote.url}/{path}", "auth": {"type": "none"}, "restart": NO_RESTART}
            for path in codes
        }
        servers["refused"] = {"url": "http://127.0.0.1:9/mcp", "restart": NO_RESTART}
        servers["bad"] = {"url": f"{remote.url}/x", "auth": {"type": "bearer", "secret": "key"}, "restart": NO_RESTART}
        async with EngineProcess(callboard_home, servers) as engine:
            found = {}
            for name in servers:
                view = await engine.wait_for_view(name, lambda view: bool(view.error_code))
                found[name.removeprefix("is-")] = view.error_code
                assert view.reason
                assert view.fix
            assert found == {**codes, "refused": "remote-refused", "bad": "secret-missing"}
            await engine.client.set_secret("key", "sk-4711\nevil")
            view = await engine.wait_for_view("bad", lambda view: view.error_code == "entry-invalid")
            logs = b"".join(file.read_bytes() for file in engine.paths.logs.iterdir())
            for text in (msgspec.json.encode(view), logs, engine.output.read_bytes()):
                assert b"sk-4711" not in text
            assert all("sk-4711" not in value for _, headers in remote.seen for value in headers.values())

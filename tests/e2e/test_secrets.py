"""A secret's value: in the keyring or in memory, handed to its server, and nowhere else."""

from __future__ import annotations

import base64
import contextlib
import json
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from callboard.api.registry_schema import BundleRequest
from callboard.api.schema import EntryEdit, Event
from callboard.core.errors import CallboardError
from tests.support.engine import FIXTURE, EngineProcess, entry
from tests.support.mcp_client import mcp_client, text_of
from tests.support.processes import odd_server
from tests.support.registry_server import RegistryServer

VALUE = "tr0ub4dor&3/\u00fc horse"
SPELLINGS = (
    VALUE,
    json.dumps(VALUE)[1:-1],
    json.dumps(json.dumps(VALUE))[3:-3],
    quote(VALUE),
    quote(VALUE, safe=""),
    base64.b64encode(VALUE.encode()).decode().rstrip("=")[:-1],
)
PRINTS = (
    sys.executable,
    "-c",
    f"import os, sys, runpy; print('my key is', os.environ['API_KEY'], file=sys.stderr); "
    f"sys.argv[1:] = ['--era', 'legacy']; runpy.run_path({str(FIXTURE)!r}, run_name='__main__')",
)


def files_with_value(home: Path) -> list[tuple[Path, str]]:
    """Every file under the folder that holds the value in any spelling."""
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files
    return [
        (path, spelling)
        for path in files
        for spelling in SPELLINGS
        if spelling.encode() in (content := path.read_bytes()) or spelling.encode("utf-16-le") in content
    ]


async def events_so_far(engine: EngineProcess) -> list[Event]:
    """Every event that the engine still keeps."""
    found: list[Event] = []
    async with contextlib.aclosing(engine.client.events()) as events:
        last = (await anext(events)).seq
    async with contextlib.aclosing(engine.client.events(0)) as events:
        async for event in events:
            found.append(event)
            if event.seq >= last:
                break
    return found


async def test_without_a_keyring_a_value_lasts_for_the_session_and_never_reaches_the_disk(callboard_home: Path) -> None:
    roster = {"one": entry(*PRINTS, env={"API_KEY": "${secret:api-key}"})}
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.wait_for("one", "needs-config")
        secrets = await engine.client.secrets()
        assert secrets.kind == "session"
        assert secrets.problem.endswith("Values are kept for this session only.")
        assert secrets.fix
        await engine.client.set_secret("api-key", VALUE)
        await engine.wait_for("one", "ready")
        found = {secret.name: secret for secret in (await engine.client.secrets()).secrets}
        assert (found["api-key"].present, found["api-key"].used_by) == (True, ["one"])
        await engine.client.act("one", "restart")
        await engine.wait_for_view("one", lambda view: view.state == "ready")
        checks = {check.name: check for check in await engine.client.doctor()}
        assert checks["secrets"].status == "warn"
        assert files_with_value(callboard_home) == []

        await engine.stop()
        assert files_with_value(callboard_home) == []
        await engine.start()
        view = await engine.wait_for("one", "needs-config")
        assert view.error_code == "secret-missing"


async def test_a_value_entered_with_an_entry_becomes_a_reference(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        new = entry(*odd_server(), env={"API_KEY": "${secret:one-key}"})
        await engine.client.save_entry("one", EntryEdit(entry=new, secrets={"one-key": VALUE}, create=True))
        await engine.wait_for("one", "ready")
        assert "${secret:one-key}" in engine.paths.roster.read_text()
        assert files_with_value(callboard_home) == []
        assert (await engine.client.server("one")).command[0] == sys.executable


async def test_a_value_is_masked_in_calls_logs_and_events(callboard_home: Path) -> None:
    roster = {"one": entry(*PRINTS, env={"API_KEY": "${secret:api-key}"}), "two": entry(*odd_server())}
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.client.set_secret("api-key", VALUE)
        await engine.wait_for("one", "ready")
        await engine.wait_for("two", "ready")
        async with mcp_client(engine, "one") as client:
            said = f"the key {VALUE}, again {json.dumps({'password': 'hunter2-hunter2'})}"
            assert (
                text_of(await client.call_tool("echo", {"text": said})) == said
            )  # the client's own data is not touched
            await client.call_tool("fail", {"text": f"cannot use {VALUE}"}, raise_on_error=False)
            await client.call_tool("raw", {"url": f"https://example.net/?key={quote(VALUE, safe='')}"})
        # what a server prints of another one's secret is masked too
        await engine.client.call_tool("two", "log", {"text": f"got {VALUE} from one"})
        await engine.wait_for_call("log", "completed")

        log = [line.text for line in (await engine.client.log("one")).lines]
        assert "my key is ***" in log
        assert "got *** from one" in [line.text for line in (await engine.client.log("two")).lines]
        page = await engine.client.calls()
        assert [call.tool for call in page.calls] == ["echo", "fail", "raw", "log"]
        assert "cannot use ***" in page.calls[1].error
        detail = await engine.client.call(page.calls[0].id)
        assert json.loads(detail.arguments)["text"].startswith("the key ***, again")
        assert "hunter2" not in detail.arguments + detail.result
        events = await events_so_far(engine)
        assert {"calls", "log", "server"} <= {event.kind for event in events}
        everything = json.dumps([event.data for event in events]) + repr(page) + repr(detail) + "\n".join(log)
        assert not [spelling for spelling in SPELLINGS if spelling in everything]
        assert not [spelling for spelling in SPELLINGS if json.dumps(spelling)[1:-1] in everything]
        await engine.stop()
        assert files_with_value(callboard_home) == []


async def test_an_error_that_quotes_a_value_is_masked(callboard_home: Path) -> None:
    roster = {"one": entry("no-such-program-${secret:api-key}"), "two": entry(*odd_server())}
    async with EngineProcess(callboard_home, roster) as engine:
        await engine.client.set_secret("api-key", VALUE)
        view = await engine.wait_for("one", "failed", "needs-config")
        doctor = await engine.client.doctor()
        assert VALUE not in repr(view) + repr(doctor)
        with pytest.raises(CallboardError) as caught:
            await engine.client.call_tool("one", "echo", {})
        assert VALUE not in caught.value.message
        await engine.stop()
        assert files_with_value(callboard_home) == []


async def test_the_engines_log_has_no_address_with_what_it_carries(callboard_home: Path) -> None:
    environment = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring", "K": "query-of-the-remote"}
    async with RegistryServer([]) as site:
        remote = {"url": f"{site.url}/mcp?key=${{env:K}}", "start": "at-launch"}
        async with EngineProcess(callboard_home, {"one": remote}, environment=environment) as engine:
            await engine.wait_for_view("one", lambda view: view.error_code != "")
            place = site.url.removeprefix("http://")
            with pytest.raises(CallboardError):
                await engine.client.open_bundle(BundleRequest(url=f"http://user:pass-word@{place}/x.mcpb?sig=signed"))
            assert {"/mcp", "/x.mcpb"} <= {seen.path for seen in site.seen}
            await engine.stop()
            log = (engine.paths.logs / "engine.log").read_text(encoding="utf-8")
            assert "callboard.engine: listening on http://127.0.0.1:" in log
            assert not [said for said in ("query-of-the-remote", "pass-word", "signed", "httpx2") if said in log]

"""Servers over HTTP whose answers, streams and sessions are trouble: told as what it is, and the rest goes on."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.e2e.misbehaving.kit import ImpatientEngine, legacy, remote, text
from tests.support.engine import EngineProcess
from tests.support.gateway import text_of

UNDERSTOOD = (
    "redirect",
    "gzip",
    "bom",
    "nolength",
    "batch",
    "closing",
    "bignum",
    "busy",
    "text-id",
    "tiny",
    "resumable",
)


async def test_odd_answers_that_can_be_understood_are(callboard_home: Path) -> None:
    """As proxies and frameworks give them; nobody need know of it."""
    with contextlib.ExitStack() as stack:
        urls = {how: stack.enter_context(remote(how, script="bad_http.py")) for how in UNDERSTOOD}
        roster = {how: {"url": f"{url}/mcp"} for how, url in urls.items()}
        async with EngineProcess(callboard_home, roster) as engine:
            for how in UNDERSTOOD:
                await engine.wait_for_view(how, lambda view: view.state == "ready" and view.tools == 1)
                for number in range(3):
                    assert await text(engine, how, "echo", text=f"{number}") == f"{number}", how
                assert (await engine.client.server(how)).restarts == 0, how


async def test_what_is_no_answer_is_told_as_such_and_tried_on(callboard_home: Path) -> None:
    """B06, and a page for people where a message should be: not a matter of signing in, and no endless start."""
    said = {
        "page": "The server answered with text/html instead of a message (HTTP 200).",
        "nothing": "The server answered with nothing instead of a message (HTTP 200).",
        "accepted-all": "The server answered with nothing instead of a message (HTTP 202).",
        "away": "The server points to another address (http://192.0.2.1/mcp).",
    }
    with contextlib.ExitStack() as stack:
        urls = {how: stack.enter_context(remote(how, "http://192.0.2.1/mcp", script="bad_http.py")) for how in said}
        roster = {how: {"url": f"{url}/mcp", "restart": {"max": 1, "delay": 0.1}} for how, url in urls.items()}
        async with EngineProcess(callboard_home, roster) as engine:
            for how, reason in said.items():
                view = await engine.wait_for(how, "failed")
                assert (view.error_code, view.reason) == ("remote-status", reason)
                assert view.fix
                assert view.next_retry is not None


async def test_a_stream_that_breaks_fails_its_call_alone(callboard_home: Path) -> None:
    """B07, B15: at once, in the call log too, and the server stays as it is."""
    said = {
        "cut": "The server closed the stream before it had answered.",
        "reset": "The server closed the connection without an answer.",
        "silent": "The server did not answer within 1 s and was told to stop.",
    }
    with contextlib.ExitStack() as stack:
        urls = {how: stack.enter_context(remote(how, script="bad_http.py")) for how in said}
        roster = {how: {"url": f"{url}/mcp", "timeouts": {"call": 1.0}} for how, url in urls.items()}
        async with EngineProcess(callboard_home, roster) as engine:
            for how, reason in said.items():
                before = await engine.wait_for(how, "ready")
                async with await legacy(engine, how) as client:
                    failed = await client.call("echo", {"text": how})
                    assert failed["error"]["message"] == reason
                    assert len((await client.request("tools/list"))["result"]["tools"]) == 1
                calls = (await engine.client.calls(server=how)).calls
                assert [(call.tool, call.error) for call in calls] == [("echo", reason.rstrip("."))]
                after = await engine.client.server(how)
                assert (after.state, after.since, after.restarts) == ("ready", before.since, 0)


@pytest.mark.parametrize("status", ["404", "400", "410"])
async def test_a_session_that_ends_is_begun_anew(callboard_home: Path, status: str) -> None:
    """B28: whatever it says of it, and whether a call or a health check finds it out."""
    with remote("expired", status, "0.2", script="bad_http.py") as url:
        async with ImpatientEngine(callboard_home, {"far": {"url": f"{url}/mcp"}}) as engine:
            before = await engine.wait_for("far", "ready")
            async with await legacy(engine, "far") as client:
                for number in range(10):
                    assert text_of(await client.call("echo", {"text": f"{number}"})) == f"{number}"
            after = await engine.client.server("far")
            assert (after.state, after.since, after.restarts) == ("ready", before.since, 0)

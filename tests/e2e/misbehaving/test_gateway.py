"""Servers, and clients, whose messages are odd: the others go on, and what can be used is used."""

from __future__ import annotations

import asyncio
import base64
import codecs
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.misbehaving.kit import ImpatientEngine, faulty, legacy, remote, text
from tests.support.engine import EngineProcess
from tests.support.gateway import text_of, until

CHANGED = "notifications/tools/list_changed"
SECRET = "s3cr3t-v4lue-4711"


async def names_of(client: Any) -> list[str]:
    """The tools that a client sees."""
    return [tool["name"] for tool in (await client.request("tools/list"))["result"]["tools"]]


async def sees(client: Any, *names: str) -> None:
    """Wait until a client sees just these tools."""
    async with asyncio.timeout(60):
        while await names_of(client) != list(names):  # noqa: ASYNC110  it is another process
            await asyncio.sleep(0.02)


async def test_a_server_meets_one_client_however_many_there_are(callboard_home: Path) -> None:
    """B19: also beside our own health checks."""
    async with ImpatientEngine(callboard_home, {"once": faulty("once")}) as engine:
        before = await engine.wait_for("once", "ready")
        clients = [await legacy(engine, "once", name) for name in ("script", "vscode", "cursor")]
        for client in clients:
            async with client:
                assert text_of(await client.call("echo", {"text": "one of many"})) == "one of many"
        assert (await engine.client.server("once")).pid == before.pid


async def test_no_request_from_outside_ends_anything(callboard_home: Path) -> None:
    """B20, B26."""
    async with EngineProcess(callboard_home, {"good": faulty("env")}) as engine, await legacy(engine) as client:
        url = f"{engine.client.address.url}/mcp"
        for body in (b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff\xfe"):
            assert 400 <= (await client.post(body)).status_code < 500, body
        stray = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
        assert (await client.post({**stray, "method": 5})).status_code == 400
        async with httpx2.AsyncClient(headers={"authorization": client.headers["authorization"]}) as http:
            for host, allowed in (("evil.example", False), ("localhost", True), ("127.0.0.1", True), ("[::1]", True)):
                port = url.rpartition(":")[2].partition("/")[0]
                status = (await http.post(url, json=stray, headers={"host": f"{host}:{port}"})).status_code
                assert (status in (403, 421)) != allowed, host
            evil = await http.post(url, json=stray, headers={"origin": "https://evil.example"})
            assert evil.status_code == 403
            assert "access-control-allow-origin" not in evil.headers
        await sees(client, "good__env", "good__args", "good__cwd")


async def test_a_strict_server_and_an_old_one_get_what_they_ask_for(callboard_home: Path) -> None:
    """B26 from the other side, and the transport of 2024-11-05."""
    with remote("guarded") as guarded, remote("sse") as sse, remote("sse", "evil") as evil:
        roster = {
            "guarded": {"url": f"{guarded}/mcp"},
            "old": {"url": f"{sse}/sse"},
            "told": {"url": f"{sse}/sse", "transport": "sse"},
            "evil": {"url": f"{evil}/sse", "restart": {"max": 0}},
        }
        async with EngineProcess(callboard_home, roster) as engine:
            for name in ("guarded", "old", "told"):
                await engine.wait_for_view(name, lambda view: view.state == "ready" and view.tools == 1)
                assert await text(engine, name, "echo", text=name) == name
            view = await engine.wait_for("evil", "failed")
            assert (view.error_code, view.reason) == (
                "handshake-failed",
                "The server wants messages sent to another host.",
            )


async def test_clients_hear_of_servers_that_come_and_go(callboard_home: Path) -> None:
    """B21."""
    async with EngineProcess(callboard_home, {"one": faulty("env")}) as engine, await legacy(engine) as client:
        await engine.wait_for_view("one", lambda view: view.tools == 3)
        async with client.listening():
            for roster, expected in (
                ({"one": faulty("env"), "two": faulty("once")}, ["one__env", "one__args", "one__cwd", "two__echo"]),
                ({"one": faulty("env", enabled=False), "two": faulty("once")}, ["two__echo"]),
            ):
                client.heard.clear()
                engine.write_roster(roster)
                await until(lambda: client.of(CHANGED))
                await sees(client, *expected)


async def test_a_list_that_changes_is_read_again_and_not_too_often(callboard_home: Path) -> None:
    """B22."""
    roster = {
        "declared": faulty("changing"),
        "undeclared": faulty("changing", "undeclared"),
        "early": faulty("changing", "early"),
    }
    async with EngineProcess(callboard_home, roster) as engine:
        for name in roster:
            await engine.wait_for_view(name, lambda view: view.tools == 4)
            async with await legacy(engine, name) as client, client.listening():
                client.heard.clear()
                await client.call("toggle")
                await until(lambda: client.of(CHANGED))
                await sees(client, "toggle", "storm", "vanish", "reads", "extra")
                assert text_of(await client.call("extra")) == "extra"
                await client.call("vanish")
                await sees(client, "toggle", "storm", "reads", "extra")
                reads = int(text_of(await client.call("reads")))
                await client.call("storm")
                assert int(text_of(await client.call("reads"))) - reads <= 3


async def test_lists_are_read_to_their_end_and_no_further(callboard_home: Path) -> None:
    """B23."""
    tools = {"plain": 23, "stuck": 5, "cycle": 10, "empty": 18, "error": 0}
    roster = {kind: faulty("pages", *([] if kind == "plain" else [kind])) for kind in tools}
    async with EngineProcess(callboard_home, roster) as engine:
        for kind in ("plain", "stuck", "cycle", "empty"):
            view = await engine.wait_for_view(kind, lambda view, kind=kind: view.tools >= tools[kind])
            assert (view.state, view.tools) == ("ready", tools[kind])
        async with await legacy(engine, "plain") as client:
            assert await names_of(client) == [f"tool_{number:02}" for number in range(23)]
        await engine.wait_for("error", "ready")


async def test_names_that_no_client_takes_become_such_that_all_do(callboard_home: Path) -> None:
    """B24."""
    server = "a-server-with-quite-a-long-name-of-its-own"
    async with EngineProcess(callboard_home, {server: faulty("names")}) as engine:
        await engine.wait_for_view(server, lambda view: view.tools > 15)
        async with await legacy(engine) as client:
            names = await names_of(client)
            assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in names)
            assert len({name.casefold() for name in names}) == len(names)
            assert await names_of(client) == names
            answers = [text_of(await client.call(name)) for name in names]
        assert len(set(answers)) == len(names), "each reaches a tool of its own, by its own name"
        shown = {tool.name: tool for tool in await engine.client.tools(server)}
        assert f"called {'d' * 128!r}" in answers
        assert shown["d" * 128].wire_name in names
        assert any("same name" in tool.problem for tool in await engine.client.tools(server))


async def test_odd_schemas_take_no_other_tool_away(callboard_home: Path) -> None:
    """B25."""
    async with EngineProcess(callboard_home, {"odd": faulty("schemas")}) as engine:
        await engine.wait_for_view("odd", lambda view: view.tools)
        tools = await engine.client.tools("odd")
        good = [tool.name for tool in tools if not tool.problem]
        assert {"good_first", "good_last", "ref_self", "ref_remote", "deep", "bad_pattern", "bool_property"} <= set(
            good
        )
        left_out = {tool.name: tool.problem for tool in tools if tool.problem}
        assert left_out["no_schema"]
        assert left_out["boolean_schema"]
        assert await text(engine, "odd", "good_last") == "good_last"
        assert await text(engine, "odd", "deep") == "deep"


async def test_odd_handshakes(callboard_home: Path) -> None:
    works = {
        "bare": ["bare"],
        "nulls": ["nulls"],
        "extra": ["extra"],
        "none": ["no-tools"],
        "old": ["version", "2024-11-05"],
        "strange": ["version", "1999-01-01"],
    }
    roster = {name: faulty("handshake", *options) for name, options in works.items()}
    async with EngineProcess(callboard_home, roster | {"error": faulty("handshake", "error")}) as engine:
        for name in works:
            view = await engine.wait_for(name, "ready", "failed")
            assert view.state == "ready", name
            if name == "strange":  # a revision that nobody knows; what it offers can be used all the same
                assert view.protocol == "1999-01-01"
        refused = await engine.wait_for("error", "failed")
        assert refused.error_code == "handshake-failed"
        assert "unsupported" in refused.reason
        assert await text(engine, "extra", "echo", text="fine") == "fine"


async def test_what_a_server_asks_is_answered(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"asks": faulty("asks")}) as engine:
        await engine.wait_for_view("asks", lambda view: view.state == "ready" and view.tools == 1)
        answered = await text(engine, "asks", "asked")
        for question in ("ping", "roots/list", "sampling/createMessage", "elicitation/create", "x/unknown"):
            assert f'"q-{question}"' in answered
        assert '"q-ping": "result"' in answered


async def test_a_secret_stands_nowhere(callboard_home: Path) -> None:
    """B32: not where the server prints it, answers with it or hides it."""
    leaky = faulty("leaky", "${secret:demo}", env={"DEMO_API_KEY": "${secret:demo}"}, restart={"max": 0})
    async with EngineProcess(callboard_home, {"leaky": leaky}) as engine:
        await engine.client.set_secret("demo", SECRET)
        await engine.wait_for("leaky", "ready")
        async with await legacy(engine, "leaky") as client:
            assert SECRET in text_of(await client.call("echo_all")), "the client itself gets what the server says"
            for tool in ("fail", "encoded"):
                await client.call(tool)
        calls = (await engine.client.calls()).calls
        shown = [repr(await engine.client.call(call.id)) for call in calls]
        shown += [repr(await engine.client.server("leaky")), repr(await engine.client.log("leaky"))]
        shown += [repr(await engine.client.doctor("leaky")), repr((await engine.client.snippet("vscode")).text)]
    kept = [file.read_bytes() for file in callboard_home.rglob("*") if file.is_file()]
    encoded = base64.b64encode(SECRET.encode()).decode()
    for value in (SECRET, encoded):
        assert not [text for text in shown if value in text]
        assert not [content for content in kept if value.encode() in content]


async def test_a_mark_at_the_beginning_of_the_roster_costs_no_server(callboard_home: Path) -> None:
    """B31."""
    engine = EngineProcess(callboard_home, {"good": faulty("env")})
    roster = engine.paths.roster
    roster.write_bytes(codecs.BOM_UTF8 + roster.read_bytes())
    before = roster.read_bytes()
    async with engine:
        await engine.wait_for("good", "ready")
        roster.write_text("servers: [", encoding="utf-8")
        problem = await engine.wait_for_roster_problem()
        assert problem.code == "roster-unreadable"
        assert problem.line
        assert (await engine.client.server("good")).state == "ready", "the last good one stays in force"
        assert roster.read_text() == "servers: [", "and the file is not written over"
        roster.write_bytes(before)
        await engine.wait_for_good_roster()


@pytest.mark.parametrize("keyring", ["keyring.backends.fail.Keyring", "no.such.Backend"])
async def test_without_a_keyring_servers_run(callboard_home: Path, keyring: str) -> None:
    """B34."""
    roster = {"good": faulty("env"), "wants": faulty("env", env={"A": "${secret:a}"})}
    environment = {"PYTHON_KEYRING_BACKEND": keyring, "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
    async with EngineProcess(callboard_home, roster, environment=environment) as engine:
        await engine.wait_for("good", "ready")
        view = await engine.wait_for("wants", "needs-config")
        assert view.fix
        await engine.client.set_secret("a", "for this session")
        await engine.wait_for("wants", "ready")

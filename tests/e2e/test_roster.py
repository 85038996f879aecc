"""The roster's file under a running engine: edited by hand, broken, mended, edited through the API."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from callboard.api.schema import EntryEdit
from callboard.core.errors import CallboardError
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.processes import is_running, odd_server, until


async def test_only_servers_whose_entry_changed_start_anew(callboard_home: Path) -> None:
    roster = {"same": fixture_entry("one"), "changed": fixture_entry("one"), "gone": fixture_entry("one")}
    async with EngineProcess(callboard_home, roster) as engine:
        before = {name: (await engine.wait_for(name, "ready")).pid for name in roster}
        new = {**roster, "changed": fixture_entry("two"), "added": fixture_entry("one")}
        del new["gone"]
        engine.write_roster(new)
        await engine.wait_for("added", "ready")
        await engine.wait_for_view("changed", lambda view: view.state == "ready" and view.pid != before["changed"])
        same = await engine.client.server("same")
        assert (same.state, same.pid, same.restarts) == ("ready", before["same"], 0)
        assert [view.name for view in await engine.client.servers()] == ["same", "changed", "added"]
        await until(lambda: not is_running(int(before["gone"] or 0)))
        with pytest.raises(CallboardError) as caught:
            await engine.client.server("gone")
        assert caught.value.code == "server-unknown"
        assert "raw" in {tool.name for tool in await engine.client.tools("changed")}


async def test_what_is_only_said_about_a_server_restarts_nothing(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry()}) as engine:
        before = await engine.wait_for("one", "ready")
        changed = fixture_entry(display_name="Number one", description="first", timeouts={"call": 7})
        engine.write_roster({"one": changed})
        after = await engine.wait_for_view("one", lambda view: view.display_name == "Number one")
        assert (after.state, after.pid) == ("ready", before.pid)


async def test_a_broken_roster_is_told_with_its_place_and_left_as_it_is(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry()}) as engine:
        before = await engine.wait_for("one", "ready")
        good = engine.paths.roster.read_text()
        broken = good + "  two:\n    command: [unclosed\n    args: []\n"
        engine.paths.roster.write_text(broken)
        problem = await engine.wait_for_roster_problem()
        assert problem.code == "roster-unreadable"
        assert problem.line in (len(broken.splitlines()) - 1, len(broken.splitlines()))
        assert problem.column > 0
        assert f"Line {problem.line}, column {problem.column}" in problem.message
        assert problem.fix

        now = await engine.client.server("one")
        assert (now.state, now.pid) == ("ready", before.pid)
        result = await engine.client.call_tool("one", "echo", {"text": "still here"})
        assert result["content"][0]["text"] == "still here"
        with pytest.raises(CallboardError) as caught:
            await engine.client.save_entry("three", EntryEdit(entry={"command": "true"}))
        assert caught.value.code == "roster-unreadable"
        assert engine.paths.roster.read_text() == broken
        doctor = {check.name: check for check in await engine.client.doctor()}
        assert (doctor["roster"].status, doctor["roster"].code) == ("fail", "roster-unreadable")

        engine.paths.roster.write_text(good)
        await engine.wait_for_good_roster()
        now = await engine.client.server("one")
        assert (now.state, now.pid) == ("ready", before.pid)


async def test_an_unknown_field_is_refused_with_the_nearest_right_one(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry()}) as engine:
        await engine.wait_for("one", "ready")
        text = engine.paths.roster.read_text() + "    evn: {A: b}\n"
        engine.paths.roster.write_text(text)
        problem = await engine.wait_for_roster_problem()
        assert problem.code == "roster-invalid"
        assert problem.line == len(text.splitlines())
        assert problem.message.endswith("servers.one.evn is not a field here; did you mean env.")
        assert engine.paths.roster.read_text() == text


async def test_an_engine_starts_with_a_broken_roster_and_goes_on_when_it_is_mended(callboard_home: Path) -> None:
    engine = EngineProcess(callboard_home)
    engine.paths.create()
    engine.paths.roster.write_text("version: 1\ngateway: {port: 0}\nservers:\n\tone: {}\n")
    async with engine:
        problem = await engine.wait_for_roster_problem()
        assert (problem.line, problem.code) == (4, "roster-unreadable")
        assert await engine.client.servers() == []
        engine.write_roster({"one": fixture_entry()})
        await engine.wait_for("one", "ready")


async def test_a_person_s_comments_survive_edits_from_the_window(callboard_home: Path) -> None:
    engine = EngineProcess(callboard_home)
    engine.paths.create()
    python, *arguments = odd_server()
    text = f"""\
# my servers
version: 1
gateway: {{port: 0}}
servers:
  # the first one
  one:
    command: {python}   # our own
    args: {list(map(str, arguments))}
    env: {{B: "2", A: "1"}}
  two: {{command: {python}, args: {list(map(str, arguments))}, start: manual}}  # on one line
# the end
"""
    engine.paths.roster.write_text(text)
    async with engine:
        first = await engine.wait_for("one", "ready")
        written = (await engine.client.roster()).servers["one"]
        edit = await engine.client.save_entry("one", EntryEdit(entry={**written, "env": {"B": "2", "A": "changed"}}))
        now = engine.paths.roster.read_text()
        assert now == text.replace('A: "1"', "A: changed") or now == text.replace('A: "1"', 'A: "changed"')
        await engine.wait_for_view("one", lambda view: view.state == "ready" and view.pid != first.pid)
        await engine.client.undo(edit.undo)
        assert engine.paths.roster.read_text() == text


async def test_an_edit_on_top_of_another_s_is_refused(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": entry(*odd_server(), start="manual")}) as engine:
        seen = (await engine.client.roster()).revision
        engine.write_roster({"one": entry(*odd_server("--slow", "0"), start="manual")})
        outside = engine.paths.roster.read_text()
        with pytest.raises(CallboardError) as caught:
            await engine.client.save_entry("one", EntryEdit(entry={"command": "mine"}, revision=seen))
        assert caught.value.code == "roster-changed"
        assert engine.paths.roster.read_text() == outside


async def test_a_disabled_server_is_ended_and_says_so_in_the_file(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {"one": fixture_entry()}) as engine:
        before = await engine.wait_for("one", "ready")
        await engine.client.act("one", "disable")
        await engine.wait_for("one", "disabled")
        assert before.pid is not None
        assert not is_running(before.pid)
        assert "enabled: false" in engine.paths.roster.read_text()
        await engine.client.act("one", "enable")
        await engine.wait_for("one", "ready")
        assert "enabled" not in engine.paths.roster.read_text()


async def test_the_bounds_of_the_call_log_are_the_roster_s(callboard_home: Path) -> None:
    servers = {"tools": fixture_entry()}
    engine = EngineProcess(callboard_home)
    engine.write_roster(servers, log={"payload_kb": 1})
    async with engine:
        await engine.wait_for("tools", "ready")
        await engine.client.call_tool("tools", "echo", {"text": "x" * 5000})
        cut = await engine.client.call((await engine.wait_for_call("echo", "completed")).id)
        assert (cut.arguments_cut, cut.result_cut) == (True, True)
        assert max(len(cut.arguments), len(cut.result)) <= 1024
        engine.write_roster(servers, log={"payload_kb": 8})
        whole = cut
        async with asyncio.timeout(60):
            while whole.arguments_cut:
                await engine.client.call_tool("tools", "echo", {"text": "x" * 5000})
                page = await engine.client.calls(status="completed")
                whole = await engine.client.call(page.calls[-1].id)
        assert "x" * 5000 in whole.arguments
        assert "x" * 5000 in whole.result

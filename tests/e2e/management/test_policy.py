"""Clients, policies, profiles and questions through a real engine: command line, control API, and the roster's file."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from callboard.core.errors import CallboardError
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, fixture_entry
from tests.support.gateway import LegacyClient, in_background
from tests.support.processes import until

SERVERS = {"one": fixture_entry("one"), "two": fixture_entry("two")}


def with_hints() -> dict[str, Any]:
    entry = fixture_entry("one")
    entry["args"] = [*entry["args"], "--hints"]  # type: ignore[misc]
    return {"one": entry, "two": fixture_entry("two")}


async def call(
    engine: EngineProcess, path: str, client: str = "script", token: str = "", content: bytes = b"{}"
) -> str:
    """What a plain call is answered: "done", or the error's code."""
    url = (await engine.client.engine()).url
    headers = {"authorization": f"Bearer {token or await engine.token(client)}", "content-type": "application/json"}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        answer = (await http.post(url + path, content=content, headers=headers)).json()
    return "done" if answer.get("success") else str((answer.get("error") or answer)["code"])


async def test_rules_from_the_command_line_count_at_once_and_keep_comments(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, SERVERS) as engine:
        for name in SERVERS:
            await engine.wait_for(name, "ready")
        text = "# mine\n" + engine.paths.roster.read_text() + "# the end\n"
        engine.paths.roster.write_text(text)
        assert await call(engine, "/mcp/tools/two.echo") == "done"
        assert (await callboard("policy", "deny", "script", "two.*")).code == 0
        assert await call(engine, "/mcp/tools/two.echo") == "policy-denied"
        assert await call(engine, "/mcp/tools/two.echo", "vscode") == "done"
        assert await call(engine, "/mcp/tools/one.echo") == "done"
        checked = await callboard("policy", "check", "script", "two.echo", "--json")
        assert (checked.code, checked.json["effect"]) == (1, "deny")
        assert (await callboard("policy", "allow", "script", "two.*")).code == 0
        assert await call(engine, "/mcp/tools/two.echo") == "done"
        assert (await callboard("policy", "deny", "default", "one.echo")).code == 0
        assert await call(engine, "/mcp/tools/one.echo", "vscode") == "policy-denied"
        assert await call(engine, "/mcp/tools/one.echo") == "done"  # it has rules of its own
        assert (await callboard("clients", "reset", "script")).code == 0
        assert await call(engine, "/mcp/tools/one.echo") == "policy-denied"
        after = engine.paths.roster.read_text()
        assert after.startswith("# mine\n")
        assert "# the end" in after
        shown = await callboard("policy")
        assert "one.echo" in shown.out
        wrong = await callboard("policy", "allow", "script", "github")
        assert wrong.code == 1
        assert wrong.err.startswith('callboard: "github" must be SERVER.NAME')
        assert 'like "github.*"' in wrong.err
        for unknown in (
            ["clients", "rotate", "nobody"],
            ["clients", "reset", "nobody"],
            ["policy", "revoke", "nobody"],
        ):
            ended = await callboard(*unknown)
            assert (ended.code, "`callboard clients` lists them" in ended.err) == (4, True)
        assert "`callboard policy approvals`" in (await callboard("policy", "revoke", "script", "one.echo")).err
        assert "the default holds" in (await callboard("clients", "reset", "script")).err
        unknown = await callboard("clients", "show", "vscod")
        assert unknown.code == 4


async def test_clients_and_profiles_from_the_command_line(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, SERVERS) as engine:
        for name in SERVERS:
            await engine.wait_for(name, "ready")
        added = await callboard("clients", "add", "my-bot", "--name", "My bot")
        token = added.out.strip()
        assert await call(engine, "/mcp/tools/one.echo", token=token) == "done"
        assert (await callboard("clients", "add", "my-bot")).code == 1
        rotated = (await callboard("clients", "rotate", "my-bot")).out.strip()
        assert await call(engine, "/mcp/tools/one.echo", token=token) == "unauthorized"
        assert await call(engine, "/mcp/tools/one.echo", token=rotated) == "done"
        assert (await callboard("profiles", "set", "office", "--server", "one", "--deny", "one.raw")).code == 0
        assert (await callboard("clients", "set", "my-bot", "--profile", "office")).code == 0
        assert await call(engine, "/mcp/tools/two.echo", token=rotated) == "policy-denied"
        assert await call(engine, "/profiles/office/mcp/tools/one.echo", token=rotated) == "done"
        assert await call(engine, "/profiles/office/mcp/tools/two.echo") == "policy-denied"
        listed = (await callboard("profiles", "--json")).json
        assert [(each["name"], each["clients"]) for each in listed] == [("office", ["my-bot"])]
        assert listed[0]["endpoint"].endswith("/profiles/office/mcp")
        used = await callboard("profiles", "remove", "office")
        assert (used.code, "my-bot" in used.err) == (1, True)
        assert (await callboard("clients", "set", "my-bot", "--profile", "", "--max-result-chars", "100")).code == 0
        assert (await callboard("profiles", "remove", "office")).code == 0
        assert (await callboard("profiles", "remove", "office")).code == 4
        slip = await callboard("clients", "set", "my-bot", "--profile", "gone")
        assert slip.code == 1
        assert slip.err.splitlines()[0] == 'callboard: Profile names "gone", which is no profile; there are none.'
        shown = (await callboard("clients", "--json")).json
        assert {"id": "my-bot", "name": "My bot", "known": False}.items() <= next(
            each for each in shown if each["id"] == "my-bot"
        ).items()
        roster = engine.paths.roster.read_text()
        assert "max_result_chars: 100" in roster
        assert "my-bot" in (await callboard("clients")).out
        assert "last call:  " in (await callboard("clients", "show", "my-bot")).out
        assert "one.echo, " in (await callboard("clients", "show", "my-bot")).out


async def test_doctor_sees_what_a_slip_of_the_pen_leaves_open(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, SERVERS) as engine:
        await engine.client.policy.save_client("vs-code", {"policy": {"allow": ["one.*"]}})
        await engine.client.policy.save_profile("office", {"servers": ["one", "three"]})
        said = (await callboard("doctor")).out
        assert 'did you mean "vscode"?' in said
        assert "The profile office names three" in said
        await engine.client.policy.reset_client("vs-code")
        await engine.client.policy.save_client("my-bot", {"profile": "office"})
        assert "did you mean" not in (await callboard("doctor")).out


async def test_the_command_that_a_refused_call_names_lets_it_pass(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, with_hints()) as engine:
        await engine.wait_for("one", "ready")
        assert await call(engine, "/mcp/tools/one.raw") == "policy-unanswered"
        allowed = await callboard("policy", "allow", "script", "one.raw")
        assert allowed.code == 0
        assert "script now has rules of its own" in allowed.err
        assert await call(engine, "/mcp/tools/one.raw") == "done"

        asked = await callboard("policy", "ask", "script", "one.r*")
        assert (asked.code, "rules of its own" in asked.err) == (0, False)
        fix = await refusal(engine, "/mcp/tools/one.raw")
        assert "callboard policy allow script 'one.r*'" in fix
        still = await callboard("policy", "allow", "script", "one.raw")
        assert still.code == 1
        assert 'script may still use one.raw only after a question: it is asked for by "one.r*".' in still.err
        assert "callboard policy allow script 'one.r*'" in still.err
        assert (await callboard("policy", "allow", "script", "one.r*")).code == 0
        assert await call(engine, "/mcp/tools/one.raw") == "done"

        assert (await callboard("policy", "deny", "script", "one.*")).code == 0
        still = await callboard("policy", "allow", "script", "one.raw")
        assert still.code == 1
        assert 'script may still not use one.raw: it is denied by "one.*".' in still.err
        assert "callboard policy allow script 'one.*'" in still.err


async def test_a_rule_that_changes_nothing_or_names_nothing_is_told(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, SERVERS) as engine:
        await engine.wait_for("one", "ready")
        vain = (await callboard("policy", "allow", "cursor", "one.*", "tow.*")).err
        assert 'one.* was allowed already, by "*"' in vain
        assert "No server is named tow" in vain
        assert "cursor now has rules of its own" in vain
        assert (await callboard("policy", "allow", "default", "one.echo")).err == ""


async def refusal(engine: EngineProcess, path: str) -> str:
    """What a call is told that mends its refusal."""
    url = (await engine.client.engine()).url
    headers = {"authorization": f"Bearer {await engine.token('script')}", "content-type": "application/json"}
    async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
        return str((await http.post(url + path, content=b"{}", headers=headers)).json())


async def test_a_session_is_told_when_its_profile_changes(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, SERVERS) as engine:
        for name in SERVERS:
            await engine.wait_for(name, "ready")
        await engine.client.policy.save_profile("office", {"servers": ["one"]})
        url = (await engine.client.engine()).url
        async with LegacyClient(f"{url}/profiles/office/mcp", await engine.token(), {}) as client:
            await client.initialize()
            before = {each["name"] for each in (await client.request("tools/list"))["result"]["tools"]}
            assert all(name.startswith("one__") for name in before)
            async with client.listening():
                edit = await engine.client.policy.save_profile("office", {"servers": ["one"], "tools": ["two.echo"]})
                await until(lambda: client.of("notifications/tools/list_changed"))
            after = {each["name"] for each in (await client.request("tools/list"))["result"]["tools"]}
            assert after - before == {"two__echo"}
            await engine.client.undo(edit.undo)
            again = {each["name"] for each in (await client.request("tools/list"))["result"]["tools"]}
            assert again == before


@pytest.mark.timeout(120)
async def test_what_was_allowed_for_good_goes_with_its_server(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, with_hints()) as engine:
        await engine.wait_for("one", "ready")
        heard: list[Any] = []
        async with in_background(_listen(engine, heard)), in_background(call(engine, "/mcp/tools/one.raw")) as waiting:
            await until(lambda: any(event.kind == "questions" and event.data["questions"] for event in heard))
            (question,) = await engine.client.policy.questions()
            await engine.client.policy.answer(question.id, "always")
            assert await waiting == "done"
        servers = with_hints()
        servers["one"]["args"] = [*servers["one"]["args"], "--page-size", "3"]
        engine.write_roster(servers)
        await until_approved(engine, [False])
        engine.write_roster(with_hints())
        await until_approved(engine, [True])
        engine.write_roster({"two": fixture_entry("two")})
        await until_approved(engine, [])


async def until_approved(engine: EngineProcess, holds: list[bool]) -> None:
    """Wait until the approvals that are there hold, or do not."""
    async with asyncio.timeout(60):
        while [each.holds for each in await engine.client.policy.approvals()] != holds:
            pass


async def test_questions_are_answered_from_the_command_line_and_remembered(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    async with EngineProcess(callboard_home, with_hints()) as engine:
        await engine.wait_for("one", "ready")
        refused = await call(engine, "/mcp/tools/one.raw")
        assert refused == "policy-unanswered"
        heard: list[Any] = []
        async with in_background(_listen(engine, heard)), in_background(call(engine, "/mcp/tools/one.raw")) as waiting:
            await until(lambda: any(event.kind == "questions" and event.data["questions"] for event in heard))
            (question,) = (await callboard("policy", "questions", "--json")).json
            assert (question["client"], question["server"], question["name"]) == ("script", "one", "raw")
            assert "one.raw" in (await callboard("policy", "questions")).out
            assert (await callboard("policy", "answer", str(question["id"]), "always")).code == 0
            assert await waiting == "done"
            assert (await callboard("policy", "answer", str(question["id"]), "once")).code == 1
        assert await call(engine, "/mcp/tools/one.raw") == "done"
        assert await call(engine, "/mcp/tools/one.raw", "vscode") == "policy-unanswered"
        await engine.stop()
        await engine.start()
        await engine.wait_for("one", "ready")
        assert await call(engine, "/mcp/tools/one.raw") == "done"
        assert "one.raw" in (await callboard("policy", "approvals")).out
        assert (await callboard("policy", "revoke", "script", "one.raw")).code == 0
        assert await call(engine, "/mcp/tools/one.raw") == "policy-unanswered"
        assert (await callboard("policy", "revoke", "script")).code == 4
        # the person's own calls are the person's consent
        assert (await callboard("call", "one.raw")).code == 0
        await engine.client.policy.save_client("callboard", {"policy": {"allow": ["*"], "deny": ["one.raw"]}})
        with pytest.raises(CallboardError) as caught:
            await engine.client.call_tool("one", "raw", {})
        assert caught.value.code == "policy-denied"


async def test_who_cannot_see_all_arguments_is_told_so_and_cannot_allow_for_good(callboard_home: Path) -> None:
    callboard = CommandLine(callboard_home)
    arguments = b'{"a":"%b"}' % (b"x" * 30_000)
    async with EngineProcess(callboard_home, with_hints()) as engine:
        await engine.wait_for("one", "ready")
        heard: list[Any] = []
        calling = call(engine, "/mcp/tools/one.raw", content=arguments)
        async with in_background(_listen(engine, heard)), in_background(calling) as waiting:
            await until(lambda: any(event.kind == "questions" and event.data["questions"] for event in heard))
            (question,) = (await callboard("policy", "questions", "--json")).json
            shown = await callboard("policy", "questions")
            assert f"not all {len(arguments)} characters of the arguments are shown" in shown.out
            assert (await callboard("policy", "answer", str(question["id"]), "always")).code == 1
            assert (await callboard("policy", "answer", str(question["id"]), "once")).code == 0
            assert await waiting == "done"


async def _listen(engine: EngineProcess, heard: list[Any]) -> None:
    async for event in engine.client.events(asks=True):
        heard.append(event)
        await asyncio.sleep(0)

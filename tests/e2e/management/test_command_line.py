"""Commands that go and look, resources, prompts and secrets, against a real engine with real servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.support.processes import odd_server

ROSTER = {
    "tools": fixture_entry("tools"),
    "new": fixture_entry("new", era="modern"),
    "lazy": fixture_entry("lazy", start="on-demand"),
    "off": entry("x", enabled=False),
    "gone": entry("no-such-program-4711", restart={"max": 0}),
    "waits": entry(*odd_server(), env={"KEY": "${secret:one-key}"}),
}


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    async with EngineProcess(callboard_home, ROSTER) as engine:
        for name in ("tools", "new"):
            await engine.wait_for_view(name, lambda view: view.state == "ready" and view.tools > 0)
        await engine.wait_for_view("lazy", lambda view: view.state == "stopped" and view.tools > 0)
        await engine.wait_for("gone", "failed")
        await engine.wait_for("waits", "needs-config")
        yield engine


@pytest.fixture
def callboard(engine: EngineProcess) -> CommandLine:
    return CommandLine(engine.home)


def rows(output: str) -> dict[str, list[str]]:
    """A table's rows by their first cell; the second is the result."""
    return {cells[0]: cells for line in output.splitlines()[1:] if len(cells := line.split()) > 1}


async def test_health_goes_and_looks_and_the_last_look_is_kept(callboard: CommandLine) -> None:
    nothing = await callboard("health", "--cached")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "Nobody has looked yet.\n")

    looked = await callboard("health")
    assert looked.code == 1, "one of them has failed"
    assert looked.out.splitlines()[0].split() == ["NAME", "HEALTH", "LOOKED", "TIME", "FINDING"]
    found = rows(looked.out)
    words = {name: found[name][1] for name in ROSTER}
    assert words == {"tools": "ok", "new": "ok", "lazy": "off", "off": "off", "gone": "fail", "waits": "warn"}
    assert "gone: Install the program" in looked.out

    kept = await callboard("health", "--cached", "--json")
    assert [view["server"] for view in kept.json] == list(ROSTER)
    again = await callboard("health", "tools", "--json")
    assert again.code == 0
    assert again.json[0]["at"] > kept.json[0]["at"]
    assert (await callboard("health", "tools", "--cached", "--json")).json == again.json
    assert "ok, " in (await callboard("inspect", "tools")).out


async def test_refresh_reads_lists_anew(callboard: CommandLine, engine: EngineProcess) -> None:
    refreshed = await callboard("refresh")
    assert refreshed.code == 1
    found = rows(refreshed.out)
    assert {name: found[name][1] for name in ROSTER}["lazy"] == "ok", "it was started for that"
    assert "tools, 3 resources, 1 prompt" in refreshed.out
    await engine.wait_for("lazy", "stopped")
    one = await callboard("refresh", "new", "--json")
    assert (one.code, [view["status"] for view in one.json]) == (0, ["ok"])
    assert (await callboard("refresh", "nobody")).code == 4


async def test_test_shows_each_step_with_its_time(callboard: CommandLine, engine: EngineProcess) -> None:
    tried = await callboard("test", "lazy")
    assert tried.code == 0
    header, *lines = tried.out.splitlines()
    assert header.split() == ["RESULT", "STEP", "TIME", "FINDING"]
    assert [line.split()[1] for line in lines] == ["settings", "command", "handshake", "lists", "answers"]
    await engine.wait_for("lazy", "stopped")
    steps = (await callboard("test", "tools", "--json")).json
    assert all(step["duration_ms"] is not None for step in steps if step["name"] in ("settings", "lists", "answers"))
    failed = await callboard("test", "gone")
    assert failed.code == 1
    assert failed.out.splitlines()[-1] == "command: Install the program, or give its full path as the command."
    cached = await callboard("health", "gone", "--cached", "--json")
    assert cached.json[0]["code"] == "command-not-found", "one mechanism: a test is a look, too"


@pytest.mark.parametrize("server", ["tools", "new", "lazy"])
async def test_resources_are_listed_and_read(callboard: CommandLine, server: str, tmp_path: Path) -> None:
    listed = (await callboard("resources", server, "--json")).json
    assert [each["uri"] for each in listed if not each["template"]] == [f"doc://{server}/readme", "doc://same"]
    assert [each["uri"] for each in listed if each["template"]] == [f"doc://{server}/page/{{n}}"]
    read = await callboard("resources", server, f"doc://{server}/readme")
    assert (read.code, read.err) == (0, "")
    assert read.out.strip()
    page = await callboard("resources", server, f"doc://{server}/page/{{n}}", "--arg", "n=7", "--json")
    assert page.json["contents"][0]["uri"] == f"doc://{server}/page/7"
    saved = await callboard("resources", server, f"doc://{server}/readme", "--output", str(tmp_path / "readme"))
    assert (saved.code, saved.out) == (0, "")
    assert (tmp_path / "readme").read_text() == read.out.rstrip("\n")


@pytest.mark.parametrize("server", ["tools", "new"])
async def test_resources_that_are_not_there(callboard: CommandLine, server: str) -> None:
    refused = await callboard("resources", server, "nothing://at-all")
    assert (refused.code, refused.out) == (4, "")
    assert "callboard resources" in refused.err
    assert (await callboard("resources", "nobody")).code == 4
    assert (await callboard("resources", "tools", "doc://same", "--arg", "n=1")).code == 2
    assert (await callboard("resources", "tools", "--arg", "n=1")).code == 2
    unwritable = await callboard("resources", server, f"doc://{server}/readme", "-o", "/no/such/folder/x")
    assert unwritable.code == 1


@pytest.mark.parametrize("server", ["tools", "new", "lazy"])
async def test_prompts_are_listed_and_got(callboard: CommandLine, server: str) -> None:
    assert f"{server}.greet  who" in (await callboard("prompts", server)).out
    got = await callboard("prompts", f"{server}.greet", "--arg", "who=Ann")
    assert (got.code, got.err) == (0, "")
    assert "Ann" in got.out
    whole = (await callboard("prompts", f"{server}.greet", "--arg", "who=Ann", "--json")).json
    assert whole["messages"]


async def test_prompts_that_cannot_be_got(callboard: CommandLine) -> None:
    missing = await callboard("prompts", "tools.greet")
    assert (missing.code, missing.out) == (2, "")
    assert "--arg who=VALUE" in missing.err
    assert (await callboard("prompts", "tools.nothing")).code == 4
    assert (await callboard("prompts", "nobody.greet")).code == 4
    assert (await callboard("prompts", "tools", "--arg", "who=Ann")).code == 2


async def test_reads_and_gets_stand_in_the_call_log(callboard: CommandLine) -> None:
    await callboard("resources", "tools", "doc://tools/readme")
    await callboard("prompts", "tools.greet", "--arg", "who=Ann")
    logged = [(each["method"], each["tool"]) for each in (await callboard("calls", "--json")).json]
    assert logged == [("resources/read", "doc://tools/readme"), ("prompts/get", "greet")]


async def test_secrets_are_set_and_deleted_and_never_shown(callboard: CommandLine, engine: EngineProcess) -> None:
    listed = (await callboard("secrets", "--json")).json
    assert [(each["name"], each["present"]) for each in listed["secrets"]] == [("one-key", False)]
    was_set = await callboard("secrets", "set", "one-key", stdin="the-value-4711\n")
    assert (was_set.code, was_set.out) == (0, "one-key: set\n")
    await engine.wait_for("waits", "ready")
    shown = await callboard("secrets")
    assert "4711" not in shown.out + shown.err + was_set.err
    assert rows(shown.out)["one-key"][1:] == ["set", "waits"]
    gone = await callboard("secrets", "delete", "one-key")
    assert (gone.code, gone.out) == (0, "one-key: deleted; still used by waits\n")
    assert (await callboard("secrets", "delete", "one-key")).code == 4
    assert (await callboard("secrets", "set", "one-key", stdin="")).code == 2
    assert (await callboard("secrets", "set", "not a name", stdin="x")).code == 1


async def test_reconnect_is_a_start_anew(callboard: CommandLine, engine: EngineProcess) -> None:
    before = (await engine.client.server("tools")).pid
    again = await callboard("reconnect", "tools")
    assert (again.code, again.err) == (0, "")
    assert (await engine.client.server("tools")).pid not in (None, before)


async def test_a_call_that_is_interrupted_is_cancelled(callboard: CommandLine, engine: EngineProcess) -> None:
    async with callboard.running("call", "tools.slow", "--arg", "ms=60000") as call:
        await engine.wait_for_call("slow", "running")
        assert await call.interrupt() == (130, "")
    await engine.wait_for_call("slow", "cancelled")

"""What the README says, tried: commands, examples, tables and places."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from callboard import cli
from callboard.commands.command_line import USAGE
from callboard.core.backoff import LONGEST, LONGEST_WHEN_FAILED
from callboard.core.health import PRIMARY_ACTION, State
from callboard.core.policy import Policy
from callboard.core.roster import AgentEntry, LocalEntry, RemoteEntry, Restart
from callboard.core.roster_parse import parse_roster
from callboard.core.supervision import HEALTHY_AFTER
from callboard.core.telemetry import plan_export
from callboard.engine.connector import HARD_LIMIT
from callboard.engine.health import HealthPlan
from callboard.engine.output import MAX_BYTES, MAX_LINES
from callboard.ui.words import action_verb
from tests.e2e.command_line import CommandLine
from tests.support.engine import EngineProcess

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def table_after(heading: str) -> list[list[str]]:
    """The cells of the first table after a text, without its head."""
    lines = README[README.index(heading) :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| ---"))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def commands() -> list[list[str]]:
    """Every command line of the README's shell examples, split into words."""
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    return [shlex.split(line, comments=True) for line in lines]


async def test_every_command_works(callboard_home: Path) -> None:
    ours = [words[1:] for words in commands() if words[0] == "callboard"]
    assert len(ours) > 12
    assert ours[-1] == ["quit"]
    async with EngineProcess(callboard_home) as engine:
        await engine.wait_for("local-tools", "ready")
        callboard = CommandLine(callboard_home)
        for words in ours:
            ended = await callboard(*words)
            assert ended.code == 0, (words, ended)
            assert ended.out or words == ["quit"]
            if "--json" in words:
                assert ended.json
            if words[0] == "restart":
                await engine.wait_for("local-tools", "ready")
        assert await engine.wait_for_end() == 0


def test_every_command_of_the_set_up_exists() -> None:
    ours = [words for words in commands() if words[:2] == ["sh", "packaging/dev.sh"]]
    help_text = subprocess.run(
        ["sh", "packaging/dev.sh", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    verbs = set(re.findall(r"^  (\w+) ", help_text, re.MULTILINE)) - {"help"}
    assert {words[2] for words in ours} == verbs
    for words in ours:
        assert all((ROOT / word).exists() for word in words[3:] if word.startswith("tests/"))
    others = {words[0] for words in commands()} - {"callboard", "sh"}
    assert others == {"alias", "podman"}


async def test_the_configuration_for_vs_code_is_the_one_that_is_given_out(callboard_home: Path) -> None:
    shown = json.loads(blocks("json")[0])
    async with EngineProcess(callboard_home, {}) as engine:
        view = await engine.client.engine()
        given = json.loads((await engine.client.snippet("vscode")).text.replace(f":{view.port}/", ":4470/"))
        assert given == shown
        for client in await engine.client.clients():
            assert client.name in README
            assert f"callboard snippet {client.id}" in README


async def test_the_configuration_for_stdio_clients_works(callboard_home: Path) -> None:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    entry = json.loads(blocks("json")[1])["mcpServers"]["callboard"]
    assert entry["command"].endswith("/.venv/bin/callboard")
    async with EngineProcess(callboard_home) as engine:
        await engine.wait_for("local-tools", "ready")
        environment = {**os.environ, "CALLBOARD_HOME": str(callboard_home)}
        arguments = ["-m", "callboard", *entry["args"]]
        transport = StdioTransport(sys.executable, arguments, env=environment, keep_alive=False)
        async with Client(transport, timeout=30) as client:
            result = await client.call_tool("local-tools__echo", {"text": "through the bridge"})
            assert result.content[0].text == "through the bridge"
        call = await engine.wait_for_call("echo", "completed")
        assert call.server == "local-tools"


def test_the_roster_s_example_is_right() -> None:
    example, policy, telemetry, agents, gateway, server = blocks("yaml")
    (dice,) = parse_roster(agents).servers.values()
    assert isinstance(dice, AgentEntry)
    assert (dice.persist, dice.limits.turns) == (True, 200)
    roster = parse_roster(example)
    assert [type(entry) for entry in roster.servers.values()] == [LocalEntry, RemoteEntry, LocalEntry]
    assert roster.settings.gateway.port == 4470
    defaults = parse_roster("version: 1\n").settings
    assert (roster.settings.gateway, roster.settings.log) == (defaults.gateway, defaults.log)
    assert parse_roster(gateway).settings.gateway.hosts == ["mcp.example.com"]
    exported = parse_roster(telemetry).settings.telemetry
    assert plan_export(exported, {}, lambda text: text) is not None
    assert exported.model_copy(update={"endpoint": "", "headers": {}, "interval": None}) == defaults.telemetry
    rules = parse_roster(policy).settings
    assert rules.policy.ask_seconds == defaults.policy.ask_seconds
    assert rules.policy.allow == ["*"]
    cursor = rules.clients["cursor"].policy
    assert cursor is not None
    assert Policy(cursor).decide("prompt", "any", "name").effect == "allow"
    assert Policy(cursor).decide("tool", "files", "move_file").effect == "deny"
    assert rules.clients["build-bot"].profile in rules.profiles
    assert parse_roster(server).settings.storage.startswith("postgresql://")


def test_the_exit_codes_are_those_of_the_program() -> None:
    told = {int(code) for code, _ in table_after("exit code")}
    assert told == {cli.OK, cli.FAILED, USAGE, cli.NO_ENGINE, cli.NOT_FOUND, cli.INTERRUPTED}


def test_every_state_is_explained() -> None:
    told = [state for row in table_after("## States") for state in row[0].split(", ")]
    assert sorted(told) == sorted(State)


def test_the_button_that_helps_is_named_beside_each_state() -> None:
    for states, _, advice in table_after("## States"):
        for state in map(State, states.split(", ")):
            verb = action_verb(PRIMARY_ACTION[state])
            if verb and state is not State.READY:
                assert f"*{verb}*" in advice, state


def test_the_numbers_beside_the_states_are_the_program_s() -> None:
    page = " ".join(README[README.index("## States") : README.index("| trouble |")].split())
    for told in (
        f"`restart.max` ({Restart().max}) tries",
        f"`restart.delay` ({Restart().delay:g}) seconds later, each next one after twice as long, {LONGEST:g} at most",
        f"every {LONGEST_WHEN_FAILED / 60:g} minutes in the end",
        f"the last {MAX_LINES:,} lines of each server (1 MiB)",
    ):
        assert told in page
    numbers = (HEALTHY_AFTER, HARD_LIMIT, MAX_BYTES, HealthPlan().silence, HealthPlan().told, HealthPlan().most)
    assert numbers == (300, 4, 1024 * 1024, 60, 2, 3), "the page says so in words"


def test_every_place_exists() -> None:
    rows = table_after("| code | what |")
    places = [place for row in rows for place in re.findall(r"`([^`]+)`", row[0])]
    assert len(places) > 8
    assert [place for place in places if not (ROOT / place).is_dir()] == []
    linked = re.findall(r"\]\(([^)#]+)\)", README)
    assert [target for target in linked if not (ROOT / target).exists()] == []


@pytest.mark.parametrize("line", [line for line in README.splitlines() if "CALLBOARD_" in line])
def test_every_variable_exists(line: str) -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    code += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "e2e").glob("test_readme_*.py"))
    for name in re.findall(r"CALLBOARD_[A-Z_]+", line):
        assert f'"{name}"' in code


def test_the_changelog_comes_last() -> None:
    sections = re.findall(r"^## (.+)$", README, re.MULTILINE)
    assert sections[-1] == "Changelog"
    assert max(map(len, README.splitlines())) <= 140

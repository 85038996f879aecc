"""The shipped servers, as the engine runs them and as the command line adds them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.command_line import CommandLine
from tests.support import swapper
from tests.support.engine import EngineProcess
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of
from tests.support.postgresql import OWNER, PostgresServer

SECONDS = 5.0
CHROME = Path("/opt/google/chrome/chrome")
STEP = {"thought": "a", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}

both_eras = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    """A running engine with an empty roster."""
    async with EngineProcess(callboard_home, {}) as engine:
        yield engine


@pytest.fixture
def callboard(engine: EngineProcess) -> CommandLine:
    """The command line for that engine."""
    return CommandLine(engine.home)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to read, and beside it one not to."""
    for name in ("root/door", "outside"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "a.txt").write_text("inside\n" if name != "outside" else "SECRET-OUTSIDE\n")
    return tmp_path / "root"


def written(engine: EngineProcess) -> dict[str, Any]:
    servers: dict[str, Any] = yaml.safe_load(engine.paths.roster.read_text())["servers"]
    return servers


# adding


async def test_add_lists_the_catalogue_and_what_is_missing(callboard: CommandLine) -> None:
    shown = await callboard("add")

    assert (shown.code, shown.err) == (0, "")
    header, *lines = shown.out.splitlines()
    assert header.split() == ["NAME", "STATE", "DESCRIPTION"]
    states = {line.split("  ")[0]: line.split("  ", 1)[1].strip().partition("  ")[0] for line in lines[:8]}
    assert states["local-tools"] == "ready"
    assert states["filesystem"] == states["postgres"] == states["github"] == "needs an answer"
    assert states["context7"] == states["exa"] == "ready"
    assert "github: It needs a personal access token. Make one at https://github.com/" in shown.out
    as_json = (await callboard("add", "--json")).json
    assert [shipped["name"] for shipped in as_json] == list(states)


async def test_nothing_of_the_catalogue_is_in_the_roster_before_it_is_wanted(engine: EngineProcess) -> None:
    assert [shipped.added for shipped in await engine.client.shipped()] == [[]] * 8
    assert await engine.client.servers() == []


async def test_add_filesystem_with_a_folder(callboard: CommandLine, engine: EngineProcess, folder: Path) -> None:
    added = await callboard("add", "filesystem", "--folder", str(folder))

    assert (added.code, added.out, added.err) == (0, "filesystem: added; ready\n", "")
    assert written(engine)["filesystem"]["args"] == ["-m", "callboard.servers.filesystem", str(folder)]
    called = await callboard("call", "filesystem.list_directory", "--arg", f"path={folder}")
    assert (called.code, called.out, called.err) == (0, "[DIR] door\n", "")
    assert next(each.added for each in await engine.client.shipped() if each.name == "filesystem") == ["filesystem"]
    again = await callboard("add", "filesystem", "--folder", str(folder))
    assert (again.code, "exists already" in again.err) == (1, True)
    other = await callboard("add", "filesystem", "--folder", str(folder / "door"), "--as", "door", "--json")
    assert (other.code, other.json["name"], other.json["state"]) == (0, "door", "ready")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["filesystem"], 2, "filesystem needs --folder PATH"),
        (["filesystem", "--folder", "/nowhere/at/all"], 1, "/nowhere/at/all is not a folder."),
        (["exa", "--folder", "/tmp"], 2, "exa takes no folders."),
        (["local-tools", "--secret-stdin"], 2, "local-tools takes no secret."),
        (["github"], 2, "It needs a personal access token: give it with --secret-stdin."),
        (["postgres"], 2, "It needs the database's address: give it with --secret-stdin."),
        (["githup"], 4, 'There is no server "githup" in the catalogue.'),
    ],
)
async def test_add_says_what_it_needs(
    callboard: CommandLine, engine: EngineProcess, arguments: list[str], code: int, said: str
) -> None:
    ended = await callboard("add", *arguments)

    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert await engine.client.servers() == []


async def test_assertion_34_playwright_says_before_it_is_started_why_it_cannot_work(
    callboard: CommandLine, engine: EngineProcess
) -> None:
    refused = await callboard("add", "playwright")

    lacks = {need.kind: need.message for need in await needs(engine, "playwright") if need.state == "missing"}
    if not lacks:
        pytest.skip("Node, Chrome and a screen are all here")
    assert refused.code == 1
    assert ("browser" in lacks) == (not CHROME.exists())
    assert ("program" in lacks) == (shutil.which("npx") is None)
    assert all(f"Playwright: {message}" in refused.err for message in lacks.values())
    assert all(need.fix in refused.err for need in await needs(engine, "playwright") if need.state == "missing")
    assert await engine.client.servers() == []

    added = await callboard("add", "playwright", "--disabled")
    assert (added.code, added.out) == (0, "playwright: added; disabled\n")
    assert written(engine)["playwright"]["enabled"] is False
    found = await callboard("doctor", "playwright", "--json")
    assert {check["message"] for check in found.json if check["code"] == "needs-missing"} == set(lacks.values())


async def needs(engine: EngineProcess, name: str) -> list[Any]:
    return next(list(each.needs) for each in await engine.client.shipped() if each.name == name)


async def test_add_keeps_a_token_out_of_the_roster(callboard: CommandLine, engine: EngineProcess) -> None:
    added = await callboard("add", "github", "--disabled", "--secret-stdin", stdin="ghp_secret\n")
    keyed = await callboard("add", "exa", "--disabled", "--secret-stdin", stdin="exa_secret")
    plain = await callboard("add", "context7", "--disabled")

    assert (added.code, keyed.code, plain.code) == (0, 0, 0)
    servers = written(engine)
    assert servers["github"]["auth"] == {"type": "bearer", "secret": "github-token"}
    assert servers["exa"]["auth"] == {"type": "api_key", "secret": "exa-api-key", "header": "x-api-key"}
    assert servers["context7"]["auth"] == "none"
    assert "secret\n" not in engine.paths.roster.read_text().replace("github-token", "")
    present = {secret.name for secret in (await engine.client.secrets()).secrets if secret.present}
    assert {"github-token", "exa-api-key"} <= present
    assert {need.state for need in await needs(engine, "github")} == {"met"}


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal as POSIX has it")
async def test_add_asks_a_person_at_a_terminal_and_shows_no_secret(
    engine: EngineProcess, folder: Path, postgresql: PostgresServer
) -> None:
    code, out, shown = await at_terminal(engine, ["add", "filesystem"], f"{folder}\n")
    assert (code, out) == (0, "filesystem: added; ready\n")
    assert shown.startswith("Folder that may be read: ")

    code, out, shown = await at_terminal(engine, ["add", "postgres"], f"{postgresql.address()}\n")
    assert (code, out) == (0, "postgres: added; ready\n")
    assert "It needs the database's address. It is postgresql://" in shown
    assert "The database's address (Enter to go on without): " in shown
    assert "hunter2" not in shown

    code, out, _ = await at_terminal(engine, ["add", "github", "--as", "later"], "\n")
    assert (code, out) == (0, 'later: added; needs-config: The secret "github-token" has no value.\n')


async def at_terminal(engine: EngineProcess, arguments: list[str], typed: str) -> tuple[int, str, str]:
    """Run the command line with a terminal for input and errors; its exit code, its output, what the terminal shows."""
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "callboard", *arguments),
            env={**os.environ, "CALLBOARD_HOME": str(engine.home)},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        shown = ""
        while not shown.rstrip(" ").endswith(":"):  # the question
            shown += (await asyncio.to_thread(os.read, ours, 4096)).decode()
        os.write(ours, typed.encode())
        out, _ = await process.communicate()
        os.close(theirs)
        theirs = -1
        with contextlib.suppress(OSError):  # what Linux says at the end of a terminal
            while rest := os.read(ours, 4096):
                shown += rest.decode()
        return process.returncode or 0, out.decode(), shown
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


# filesystem


@pytest.fixture
async def files(callboard: CommandLine, engine: EngineProcess, folder: Path) -> EngineProcess:
    """The engine with the server filesystem."""
    assert (await callboard("add", "filesystem", "--folder", str(folder))).code == 0
    return engine


@both_eras
async def test_assertion_31_filesystem_through_the_gateway(files: EngineProcess, folder: Path, mode: str) -> None:
    async with mcp_client(files, "filesystem", mode=mode) as client:
        assert len(await client.list_tools()) == 8
        result = await client.call_tool("read_text_file", {"path": str(folder / "door" / "a.txt")})
        assert (text_of(result), result.structured_content) == ("inside\n", {"content": "inside\n"})
        for path in ("/etc/passwd", str(folder / ".." / "outside" / "a.txt")):
            refused = await client.call_tool("read_text_file", {"path": path}, raise_on_error=False)
            assert refused.is_error
            assert "outside allowed directories" in text_of(refused)
    async with mcp_client(files, mode=mode) as client:
        assert "filesystem__search_files" in {tool.name for tool in await client.list_tools()}


@contextmanager
def exchanging(*names: Path) -> Iterator[None]:
    """Another process exchanges each pair of names without a pause."""
    command = [sys.executable, swapper.__file__, *map(str, names)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == b"begun\n"
            yield
            assert process.poll() is None
        finally:
            process.stdin.close()
            process.wait()


@pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step with renameat2")
@both_eras
async def test_assertion_31_the_symlink_race_of_five_seconds_leaks_nothing_through_the_gateway(
    files: EngineProcess, folder: Path, mode: str
) -> None:
    (folder / "link").symlink_to(folder.parent / "outside")
    found = {"inside": 0, "refused": 0}
    path = str(folder / "door")

    async def attack(client: Any, tool: str, arguments: dict[str, Any]) -> None:
        while time.monotonic() < end or min(found.values()) < 20:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            told = "".join(block.text for block in result.content)
            assert "SECRET" not in told
            found["refused" if result.is_error else "inside"] += 1

    async with mcp_client(files, "filesystem", mode=mode) as client:
        with exchanging(folder / "door", folder / "link"):
            end = time.monotonic() + SECONDS
            await asyncio.gather(
                attack(client, "read_text_file", {"path": f"{path}/a.txt"}),
                attack(client, "read_multiple_files", {"paths": [f"{path}/a.txt"] * 3}),
                attack(client, "list_directory_with_sizes", {"path": path}),
                attack(client, "search_files", {"path": str(folder), "pattern": "**/*.txt"}),
            )


# sequential-thinking


async def test_assertion_32_sessions_and_clients_think_apart(callboard: CommandLine, engine: EngineProcess) -> None:
    assert (await callboard("add", "sequential-thinking")).out == "sequential-thinking: added; ready\n"

    async def think(client: Any, number: int) -> int:
        result = await client.call_tool("sequentialthinking", {**STEP, "thoughtNumber": number})
        length: int = result.structured_content["thoughtHistoryLength"]
        return length

    for modes in ((LEGACY, LEGACY), (MODERN, MODERN), (LEGACY, MODERN)):
        one, other = (
            mcp_client(engine, "sequential-thinking", mode=mode, says=says)
            for mode, says in zip(modes, ("one", "other"), strict=True)
        )
        async with one as first, other as second:
            for number in (1, 2, 3):
                assert await think(first, number) == number
            assert await think(second, 1) == 1
            assert await think(first, 4) == 4
            assert await think(second, 2) == 2


@both_eras
async def test_a_conversation_can_be_named_through_the_gateway(
    callboard: CommandLine, engine: EngineProcess, mode: str
) -> None:
    await callboard("add", "sequential-thinking")
    async with mcp_client(engine, mode=mode) as client:
        for number in (1, 2):
            for handle in ("one", "two"):
                result = await client.call_tool(
                    "sequential-thinking__sequentialthinking",
                    {**STEP, "thoughtNumber": number},
                    meta={"callboard/conversation": handle},
                )
                assert result.structured_content["thoughtHistoryLength"] == number
    async with mcp_client(engine, mode=mode, token_of="vscode") as stranger:
        result = await stranger.call_tool(
            "sequential-thinking__sequentialthinking", STEP, meta={"callboard/conversation": "one"}
        )
        assert result.structured_content["thoughtHistoryLength"] == 1


# postgres


@pytest.fixture
async def shop(callboard: CommandLine, engine: EngineProcess, postgresql: PostgresServer) -> EngineProcess:
    """The engine with the server postgres; its user is a superuser."""
    added = await callboard("add", "postgres", "--secret-stdin", stdin=postgresql.address(OWNER))
    assert (added.code, added.out) == (0, "postgres: added; ready\n")
    return engine


@both_eras
async def test_assertion_33_postgres_through_the_gateway(
    shop: EngineProcess, postgresql: PostgresServer, mode: str
) -> None:
    before = postgresql.ask("SELECT count(*) FROM customers")
    async with mcp_client(shop, "postgres", mode=mode) as client:
        result = await client.call_tool("execute_query", {"sql": "SELECT name FROM customers ORDER BY id"})
        assert result.structured_content["rows"] == [["Ann"], ["Bob"]]
        facts = await client.call_tool("describe_table", {"table": "orders", "schema": "sales"})
        assert facts.structured_content["primaryKey"] == ["id"]
        for sql in (
            "SELECT 1; COMMIT; INSERT INTO customers (name) VALUES ('pwned'); COMMIT",
            "SELECT 1; COMMIT; CREATE TABLE zz (i int); COMMIT",
            "WITH x AS (INSERT INTO customers (name) VALUES ('pwned') RETURNING 1) SELECT * FROM x",
            "EXPLAIN ANALYZE DELETE FROM sales.orders",
        ):
            refused = await client.call_tool("execute_query", {"sql": sql}, raise_on_error=False)
            assert refused.is_error
            assert "Only one statement" in text_of(refused) or "only reads" in text_of(refused)

    assert postgresql.ask("SELECT count(*) FROM customers") == before
    assert postgresql.ask("SELECT to_regclass('zz')") == [(None,)]
    roster = shop.paths.roster.read_text()
    assert "hunter2" not in roster
    assert "${secret:postgres-url}" in roster
    lines = (await shop.client.log("postgres")).lines
    assert any("user owner is a superuser" in line.text for line in lines)
    assert "hunter2" not in json.dumps([line.text for line in lines])


async def test_postgres_without_its_address_waits_for_it(callboard: CommandLine, engine: EngineProcess) -> None:
    assert (await callboard("add", "postgres", "--disabled")).code == 0
    await engine.client.act("postgres", "enable")

    view = await engine.wait_for("postgres", "needs-config")

    assert (view.error_code, "postgres-url" in view.reason) == ("secret-missing", True)

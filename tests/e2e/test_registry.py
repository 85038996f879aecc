"""Servers of registries and bundles: searched, shown, added and removed, through the engine and the command line."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.command_line import CommandLine
from tests.support.bundles import manifest, write_bundle
from tests.support.engine import EngineProcess
from tests.support.processes import until
from tests.support.registry_server import RegistryServer, package, server
from tests.support.site import Said

pytestmark = pytest.mark.skipif(
    sys.platform != "win32" and shutil.which("python3") is None, reason="the bundles of these tests run under python3"
)

OPTIONS = {
    "api_key": {"type": "string", "title": "API key", "sensitive": True, "required": True, "description": "Yours"},
    "folders": {"type": "directory", "title": "Folders", "multiple": True, "default": ["/a", "/b"]},
    "size": {"type": "number", "title": "Size", "required": True, "min": 1, "max": 9},
}
ASKING = manifest(user_config=OPTIONS)
ASKING["server"]["mcp_config"] = {
    "command": "python",
    "args": ["${__dirname}/server/main.py", "--size=${user_config.size}", "${user_config.folders}"],
    "env": {"API_KEY": "${user_config.api_key}"},
}
REMOTE = server(
    "com.example/files",
    title="Files far away",
    remotes=[
        {
            "type": "streamable-http",
            "url": "https://{tenant}.example.com/mcp",
            "variables": {"tenant": {"description": "Your account"}},
            "headers": [
                {
                    "name": "Authorization",
                    "value": "Bearer {token}",
                    "isRequired": True,
                    "variables": {"token": {"isSecret": True}},
                }
            ],
        }
    ],
)


@pytest.fixture
async def registry(tmp_path: Path) -> AsyncIterator[RegistryServer]:
    """A registry with a server of each kind."""
    async with RegistryServer([]) as site:
        body = write_bundle(tmp_path / "served.mcpb").read_bytes()
        site.files["/shouter.mcpb"] = Said(200, body)
        bundle = package("mcpb", f"{site.url}/shouter.mcpb", fileSha256=hashlib.sha256(body).hexdigest())
        forged = package("mcpb", f"{site.url}/shouter.mcpb", fileSha256="0" * 64)
        site.servers = [
            server("io.github.a/weather-one", packages=[package("nuget", "Weather.One", version="1.0.0")]),
            server("io.github.a/weather-two", packages=[package("cargo", "no-such-program-here")]),
            server("io.github.a/weather-three", packages=[bundle]),
            server("io.github.a/weather-forged", packages=[forged]),
            REMOTE,
        ]
        yield site


@pytest.fixture
async def engine(callboard_home: Path, registry: RegistryServer) -> AsyncIterator[EngineProcess]:
    """A running engine whose roster names that registry."""
    engine = EngineProcess(callboard_home)
    engine.write_roster({}, registry={"url": registry.url})
    async with engine:
        yield engine


@pytest.fixture
def callboard(engine: EngineProcess) -> CommandLine:
    """The command line for that engine."""
    return CommandLine(engine.home)


def written(engine: EngineProcess) -> dict[str, Any]:
    servers: dict[str, Any] = yaml.safe_load(engine.paths.roster.read_text())["servers"]
    return servers


def unpacked(engine: EngineProcess) -> list[str]:
    folder = engine.paths.bundles
    return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


async def test_search_lists_what_there_is_and_what_it_needs(
    callboard: CommandLine, engine: EngineProcess, registry: RegistryServer
) -> None:
    await callboard("list")
    assert registry.seen == []  # nobody has searched yet

    shown = await callboard("registry", "search", "weather")

    assert (shown.code, shown.err) == (0, "There are more: use other words, or --all.\n")
    header, *lines = shown.out.splitlines()
    assert header.split() == ["NAME", "VERSION", "NEEDS", "DESCRIPTION"]
    assert [line.split()[:3] for line in lines] == [
        ["io.github.a/weather-one", "1.0.0", "dnx"],
        ["io.github.a/weather-two", "1.0.0", "cargo"],
    ]
    whole = await callboard("registry", "search", "weather", "--all", "--json")
    assert [each["offer"]["version"] for each in whole.json["offers"]] == ["1.0.0"] * 4
    assert written(engine) == {}


async def test_search_in_files(callboard: CommandLine, tmp_path: Path, registry: RegistryServer) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "server.json").write_text(json.dumps(REMOTE))
    for place in ("here", "here/server.json"):
        shown = await callboard("registry", "search", "FAR", "--from", str(tmp_path / place))
        assert "com.example/files" in shown.out
        assert "HTTP, 2 answers" in shown.out
    nothing = await callboard("registry", "search", "near", "--from", str(tmp_path / "here"))
    assert (nothing.code, nothing.out) == (1, "")
    assert registry.seen == []


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["registry", "search", "x", "--from", "/nowhere/at/all"], 1, "cannot be read"),
        (["registry", "show", "weather-nine"], 4, 'There is no server "weather-nine"'),
        (["registry", "search"], 2, "WORD"),
        (["add", "local-tools", "--way", "1"], 2, "--way goes with --from-registry"),
        (["add", "--from-registry"], 2, "needs the name of a server"),
        (
            ["add", "files", "--from-registry"],
            2,
            "Needed: tenant: Your account. Give what is missing: --set tenant=VALUE",
        ),
        (["add", "files", "--from-registry", "--set", "x=1"], 2, "the keys are tenant, token"),
        (["add", "files", "--from-registry", "--way", "2"], 2, "1 ways"),
        (["add", "files", "--from-registry", "--folder", "/tmp"], 2, "say it with --set"),
        (["add", "weather-forged", "--from-registry", "--yes"], 1, "its checksum differs"),
        (["add", "/nowhere/at/all.mcpb", "--yes"], 1, "cannot be read"),
    ],
)
async def test_what_is_wrong_is_said(
    callboard: CommandLine, engine: EngineProcess, arguments: list[str], code: int, said: str
) -> None:
    ended = await callboard(*arguments)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert written(engine) == {}
    assert unpacked(engine) == []


async def test_show_tells_the_ways_and_what_each_asks_for(callboard: CommandLine) -> None:
    shown = await callboard("registry", "show", "files")
    assert shown.code == 0
    assert "1. HTTP at https://{tenant}.example.com/mcp" in shown.out
    assert "tenant (needed, text): Your account" in shown.out
    assert "token (needed, secret)" in shown.out
    lacking = await callboard("registry", "show", "weather-two")
    assert "Install the program first: cargo install no-such-program-here" in lacking.out
    assert "the program no-such-program-here was not found" in lacking.out


async def test_a_remote_server_is_added_with_its_token_in_the_secret_store(
    callboard: CommandLine, engine: EngineProcess
) -> None:
    added = await callboard(
        *("add", "files", "--from-registry", "--set", "tenant=acme", "--secret-stdin", "--disabled", "--yes"),
        stdin="t0ken\n",
    )
    assert (added.code, added.out) == (0, "files: added; disabled\n")
    assert "files is going to reach: https://acme.example.com/mcp" in added.err
    assert written(engine)["files"]["auth"] == {"type": "bearer", "secret": "files-token"}
    assert "t0ken" not in engine.paths.roster.read_text()
    present = {secret.name for secret in (await engine.client.secrets()).secrets if secret.present}
    assert present == {"files-token"}


async def test_what_this_machine_lacks_is_said_before_anything_is_added(
    callboard: CommandLine, engine: EngineProcess
) -> None:
    refused = await callboard("add", "weather-two", "--from-registry", "--yes")
    assert (refused.code, refused.out) == (1, "")
    assert "the program no-such-program-here was not found" in refused.err
    assert written(engine) == {}
    later = await callboard("add", "weather-two", "--from-registry", "--yes", "--disabled")
    assert (later.code, later.out) == (0, "weather-two: added; disabled\n")


async def test_nothing_is_added_without_a_yes(callboard: CommandLine, engine: EngineProcess, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb")
    refused = await callboard("add", str(bundle))
    assert refused.code == 2
    assert "say --yes" in refused.err
    assert written(engine) == {}
    assert unpacked(engine) == []


async def test_a_bundle_is_fetched_verified_and_run(callboard: CommandLine, engine: EngineProcess) -> None:
    added = await callboard("add", "weather-three", "--from-registry", "--yes")
    assert (added.code, added.out) == (0, "shouter: added; ready\n")
    assert "The bundle is fetched from 127.0.0.1" in added.err
    called = await callboard("call", "shouter.shout")
    (folder,) = unpacked(engine)
    assert json.loads(called.out) == [[], "", str(engine.paths.bundles / folder)]


async def test_a_bundle_from_a_file_asks_runs_and_goes(
    callboard: CommandLine, engine: EngineProcess, tmp_path: Path
) -> None:
    bundle = write_bundle(tmp_path / "asking.mcpb", ASKING)
    wrong = await callboard("add", str(bundle), "--yes", "--set", "size=12", "--secret-stdin", stdin="k3y")
    assert (wrong.code, "It must be at most 9." in wrong.err) == (2, True)
    added = await callboard("add", str(bundle), "--yes", "--set", "size=5", "--secret-stdin", stdin="k3y")
    assert (added.code, added.out) == (0, "shouter: added; ready\n")

    entry = written(engine)["shouter"]
    assert entry["env"] == {"API_KEY": "${secret:shouter-api-key}"}
    assert "k3y" not in engine.paths.roster.read_text()
    result = await engine.client.call_tool("shouter", "shout", {})
    (folder,) = unpacked(engine)
    arguments, _, cwd = json.loads(result["content"][0]["text"])
    assert (arguments, cwd) == (["--size=5", "/a", "/b"], str(engine.paths.bundles / folder))

    removed = await engine.client.remove_entry("shouter")
    back = await engine.client.undo(removed.undo)
    assert unpacked(engine) == [folder]  # as long as the removal can be taken back
    await engine.client.undo(back.undo)
    await engine.stop()
    assert unpacked(engine) == []


async def test_a_bundle_stays_while_its_server_does(
    callboard: CommandLine, engine: EngineProcess, tmp_path: Path
) -> None:
    await callboard("add", str(write_bundle(tmp_path / "b.mcpb")), "--yes")
    (folder,) = unpacked(engine)
    await engine.stop()
    (engine.paths.bundles / "left-over").mkdir()
    await engine.start()
    await until(lambda: unpacked(engine) == [folder], seconds=60)
    called = await callboard("call", "shouter.shout")
    assert called.code == 0


async def test_a_bundle_that_is_only_looked_at_goes_again(engine: EngineProcess, tmp_path: Path) -> None:
    from callboard.api.registry_schema import BundleRequest

    opened = await engine.client.open_bundle(BundleRequest(path=str(write_bundle(tmp_path / "b.mcpb", ASKING))))
    assert (opened.title, opened.author, opened.version) == ("Shouter", "Somebody", "1.2.3")
    assert [each.key for each in opened.way.inputs] == ["api_key", "size", "folders"]
    assert [need.state for need in opened.needs] == ["met"]
    assert unpacked(engine) == [opened.id]
    await engine.client.release_bundle(opened.id)
    assert unpacked(engine) == []

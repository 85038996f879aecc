"""What must hold of the servers that come with Callboard: the assertions 27 to 30.

Those of filesystem (31), sequential-thinking (32), postgres (33) and playwright (34) stand with the tests of these
servers: tests/unit/servers and tests/e2e/test_shipped.py.
"""

from pathlib import Path
from typing import Any

import pytest

from callboard.api.schema import ShippedView
from tests.e2e.command_line import CommandLine
from tests.e2e.management.recorder import recorder
from tests.support.engine import EngineProcess
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of


async def shipped(engine: EngineProcess, name: str) -> ShippedView:
    """A server of the catalogue."""
    found = next((each for each in await engine.client.shipped() if each.name == name), None)
    assert found is not None
    return found


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_assertion_27_local_tools_tell_the_time_echo_and_count_words(callboard_home: Path, mode: str) -> None:
    async with EngineProcess(callboard_home) as engine:  # the first start makes a roster with it
        await engine.wait_for_view("local-tools", lambda view: view.state == "ready" and view.tools > 0)
        assert (await shipped(engine, "local-tools")).added == ["local-tools"]
        async with mcp_client(engine, "local-tools", mode=mode) as client:
            assert {tool.name for tool in await client.list_tools()} == {"current_time", "echo", "word_count"}
            assert text_of(await client.call_tool("echo", {"text": "as it is "})) == "as it is "
            counted = (await client.call_tool("word_count", {"text": "to be or not\nto be"})).structured_content
            assert counted == {"words": 6, "characters": 18, "lines": 2}
            assert text_of(await client.call_tool("current_time", {}))


async def test_assertion_28_github_is_ready_to_be_added_and_wants_a_token(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        github = await shipped(engine, "github")
        assert github.entry["url"].startswith("https://")
        assert [(need.kind, need.state) for need in github.needs if need.kind == "secret"] == [("secret", "asked")]
        callboard = CommandLine(callboard_home)
        refused = await callboard("add", "github")
        assert refused.code == 2
        assert "--secret-stdin" in refused.err
        assert await engine.client.servers() == [], "nothing is added by halves"
        added = await callboard("add", "github", "--disabled", "--secret-stdin", stdin="ghp_4711")
        assert added.code == 0
        assert "ghp_4711" not in engine.paths.roster.read_text()
        assert (await engine.client.server("github")).state == "disabled"
        assert [each.present for each in (await engine.client.secrets()).secrets] == [True]


@pytest.mark.parametrize("name", ["context7", "exa"])
async def test_assertions_29_and_30_context7_and_exa_work_without_a_key_and_take_one(
    callboard_home: Path, name: str
) -> None:
    async with EngineProcess(callboard_home, {}) as engine:
        found = await shipped(engine, name)
        assert found.entry["url"].startswith("https://")
        assert found.can_run
        need = next(need for need in found.needs if need.kind == "secret")
        assert need.state == "optional"
        async with recorder() as remote:
            entry: dict[str, Any] = {**found.entry, **need.fields, "url": f"{remote.url}/mcp"}
            engine.write_roster({name: entry})
            await engine.wait_for(name, "needs-config")
            (wanted,) = (await engine.client.secrets()).secrets
            assert remote.seen == []
            await engine.client.set_secret(wanted.name, "key-4711")
            await engine.wait_for(name, "ready")
            assert any("key-4711" in value for _, headers in remote.seen for value in headers.values())

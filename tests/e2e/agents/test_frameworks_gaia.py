"""A real MCPAgent of GAIA: its tools with their own schemas, and arguments in every form that clients send them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents.frameworks import ERAS, FIXTURES, ready, until_file
from tests.support.agent_environments import AgentEnvironments
from tests.support.engine import EngineProcess
from tests.support.mcp_client import mcp_client, text_of

pytestmark = pytest.mark.timeout(1200)


async def test_gaia(agent_environments: AgentEnvironments, callboard_home: Path, tmp_path: Path) -> None:
    greeter = {
        "agent": f"{FIXTURES / 'gaia_agent.py'}:GreeterAgent",
        "python": str(agent_environments.python("gaia")),
        "params": {"greeting": "Hi"},
        "aliases": "gaia",
    }
    async with EngineProcess(callboard_home, {"greeter": greeter}) as engine:
        await ready(engine, "greeter")
        for mode in ERAS:
            async with mcp_client(engine, "greeter", mode=mode) as client:

                async def call(name: str, arguments: dict[str, Any], client: Any = client) -> Any:
                    return await client.call_tool(name, arguments, raise_on_error=False)

                tools = {tool.name: tool for tool in await client.list_tools()}
                assert set(tools) == {"greet", "build", "wait", "boom"}
                greet = tools["greet"].input_schema
                assert greet["properties"]["tone"] == {"type": ["string", "null"], "enum": ["warm", "cool", None]}
                assert greet["properties"]["name"]["description"] == "Whom to greet"

                for arguments in ({"name": "Ann"}, {"kwargs": {"name": "Ann"}}, {"kwargs": '{"name": "Ann"}'}):
                    greeted = await call("greet", arguments)
                    assert json.loads(text_of(greeted)) == {"message": "Hi, Ann!"}
                malformed = await call("greet", {"kwargs": "{name:Ann"})
                assert malformed.is_error
                assert "line 1 column 2" in text_of(malformed)
                assert (await call("greet", {"name": "Ann", "tone": "loud"})).is_error
                for arguments in ({"app_dir": "/a/b"}, {"kwargs": {"directory": "/a/b"}}):
                    assert json.loads(text_of(await call("build", arguments)))["built"] == "b"
                assert (await call("build", {"appPath": "/a", "port": 99999999})).is_error

                failed = await call("boom", {})
                assert failed.is_error
                assert "kaboom in boom" in text_of(failed)

                file = tmp_path / f"{mode}.txt"
                waiting = asyncio.create_task(call("wait", {"file": str(file)}))
                await until_file(file, "started")
                assert not (await call("greet", {"name": "Bob"})).is_error  # it is not in the way of others
                waiting.cancel()
                await asyncio.wait([waiting])
                await until_file(file, "cancelled")

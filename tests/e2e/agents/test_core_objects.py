"""FastMCP servers, the GAIA contract and our own base class, through the gateway, in both eras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents.frameworks import ready
from tests.support.engine import EngineProcess, Entry
from tests.support.mcp_client import LEGACY, MODERN, mcp_client, text_of

ERAS = pytest.mark.parametrize("mode", [LEGACY, MODERN])

FASTMCP = '''
from fastmcp import Context, FastMCP
from fastmcp.utilities.types import File, Image

agent = FastMCP("shop", version="3.1", instructions="Ask for prices.")
sub = FastMCP("sub")
agent.mount(sub, namespace="sub")

@agent.tool
async def add(a: int, b: int, context: Context) -> int:
    """Adds."""
    await context.report_progress(1, 2, "half")
    return a + b

@agent.tool
async def session(context: Context) -> str:
    return context.session_id

@agent.tool
def picture() -> Image:
    return Image(data=b"\\x89PNG\\r\\n\\x1a\\n", format="png")

@agent.tool
def paper() -> File:
    return File(data=b"%PDF-", format="pdf", name="r")

@agent.tool
def crash() -> str:
    raise ValueError("boom detail")

@sub.tool
def inner(text: str) -> dict:
    return {"said": text}

@agent.prompt
def ask(who: str) -> str:
    return f"Ask {who}"

@agent.resource("shop://prices")
def prices() -> str:
    return "1 EUR"
'''

GAIA = '''
import time

class Docker:
    """Builds containers."""

    def __init__(self, verbose=False):
        self.verbose = verbose

    def get_mcp_server_info(self):
        return {"name": "GAIA Docker", "version": "2.0.0"}

    def get_mcp_tool_definitions(self):
        path = {"type": "object", "properties": {"appPath": {"type": "string"}, "port": {"type": ["integer", "null"]}}}
        return [
            {"name": "dockerize", "description": "Builds", "inputSchema": {**path, "required": ["appPath"]}},
            {"name": "broken", "description": "Fails", "inputSchema": {"type": "object", "properties": {}}},
        ]

    def execute_mcp_tool(self, name, arguments):
        if name == "broken":
            raise RuntimeError("no docker at /var/run/docker.sock")
        return {"got": arguments, "verbose": self.verbose}

agent = Docker
'''

OWN = '''
from callboard.agents import Agent, Data, Failure, Text, tool

class Mine(Agent):
    """Does things."""
    name = "mine"

    async def run(self, request, context):
        if request == "fail":
            yield Text("so far")
            yield Failure("model overloaded", "500")
        elif request == "label":
            yield Data([{"a": 1}], "application/a2ui+json")
        elif request:
            context.state["n"] = context.state.get("n", 0) + 1
            yield f"{request} {context.state['n']}"

agent = Mine
'''


def entry(folder: Path, text: str, **fields: object) -> Entry:
    (folder / "my_agent.py").write_text(text, encoding="utf-8")
    return {"agent": f"{folder}/my_agent.py:agent", **fields}


@ERAS
async def test_a_fastmcp_server(mode: str, callboard_home: Path, tmp_path: Path) -> None:
    async with EngineProcess(callboard_home, {"shop": entry(tmp_path, FASTMCP)}) as engine:
        await ready(engine, "shop")
        async with mcp_client(engine, "shop", mode=mode) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert set(tools) == {"add", "session", "picture", "paper", "crash", "sub_inner"}
            assert tools["add"].description == "Adds."
            heard: list[Any] = []

            async def hear(*progress: Any) -> None:
                heard.append(progress)

            added = await client.call_tool("add", {"a": 1, "b": 2}, progress_handler=hear)
            assert (added.data, text_of(added)) == (3, "3")
            assert heard[0] == (1.0, 2.0, "half")
            assert (await client.call_tool("sub_inner", {"text": "x"})).structured_content == {"said": "x"}
            sessions = [text_of(await client.call_tool("session", {})) for _ in range(2)]
            assert (sessions[0] == sessions[1]) == (mode == LEGACY)
            assert (await client.call_tool("picture", {})).content[0].mime_type == "image/png"
            paper = (await client.call_tool("paper", {})).content[0].resource
            assert (paper.mime_type, paper.blob) == ("application/pdf", "JVBERi0=")
            assert (await client.read_resource(paper.uri))[0].blob == "JVBERi0="
            crash = await client.call_tool("crash", {}, raise_on_error=False)
            assert crash.is_error
            assert text_of(crash) == "Error calling tool 'crash': boom detail"
            wrong = await client.call_tool("add", {"a": "x", "b": 1}, raise_on_error=False)
            assert text_of(wrong) == "Invalid arguments: a: 'x' is not of type 'integer'"
            assert [prompt.name for prompt in await client.list_prompts()] == ["ask"]
            assert (await client.get_prompt("ask", {"who": "Ann"})).messages[0].content.text == "Ask Ann"
            assert (await client.read_resource("shop://prices"))[0].text == "1 EUR"


@ERAS
async def test_the_gaia_contract(mode: str, callboard_home: Path, tmp_path: Path) -> None:
    docker = entry(tmp_path, GAIA, aliases="gaia", params={"verbose": True})
    async with EngineProcess(callboard_home, {"docker": docker}) as engine:
        await ready(engine, "docker")
        async with mcp_client(engine, "docker", mode=mode) as client:

            async def call(arguments: dict[str, Any], tool: str = "dockerize") -> Any:
                return await client.call_tool(tool, arguments, raise_on_error=False)

            for arguments in (
                {"appPath": "/a", "port": 1},
                {"app_dir": "/a", "port": 1},
                {"kwargs": {"directory": "/a", "port": 1}},
                {"kwargs": '{"project_path": "/a", "port": 1}'},
            ):
                result = await call(arguments)
                assert '"appPath": "/a"' in text_of(result), arguments
                assert '"verbose": true' in text_of(result)
                assert "app_dir" not in text_of(result)
            malformed = await call({"kwargs": "{appPath:/a"})
            assert malformed.is_error
            assert text_of(malformed) == "Invalid arguments: kwargs is not valid JSON: line 1 column 2"
            both = await call({"appPath": "/a", "directory": "/b"})
            assert text_of(both) == (
                "Invalid arguments: appPath and directory are the same argument; give only one of them"
            )
            broken = await call({}, "broken")
            assert broken.is_error
            assert text_of(broken).startswith("RuntimeError: no docker at …/docker.sock (error ")
            number = broken.meta["callboard/error"]["id"]
        log = "\n".join(line.text for line in (await engine.client.log("docker")).lines)
        assert f"Error {number}: Traceback" in log
        assert "my_agent.py" in log


@ERAS
async def test_our_own_base_class(mode: str, callboard_home: Path, tmp_path: Path) -> None:
    mine = entry(tmp_path, OWN, expose="whole", name="helper", instructions="Ask it.")
    async with EngineProcess(callboard_home, {"mine": mine}) as engine:
        await ready(engine, "mine")
        async with mcp_client(engine, "mine", mode=mode) as client:
            (tool,) = await client.list_tools()
            assert (tool.name, tool.description) == ("helper", "Does things.")
            if mode == LEGACY:
                assert client.initialize_result.instructions == "Ask it."
            said = await client.call_tool("helper", {"request": "hi"})
            assert text_of(said) == "hi 1"
            failed = await client.call_tool("helper", {"request": "fail"}, raise_on_error=False)
            assert failed.is_error
            assert [block.text for block in failed.content] == ["so far", "model overloaded (500)"]
            labelled = await client.call_tool("helper", {"request": "label"})
            assert labelled.structured_content == {"result": [{"a": 1}]}
            assert labelled.meta["media_type"] == "application/a2ui+json"
            assert labelled.meta["fastmcp"] == {"wrap_result": True}
            assert text_of(labelled) == '[{"a":1}]'
            assert text_of(await client.call_tool("helper", {"request": ""})) == "(no output)"

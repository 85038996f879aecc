"""Looking at agents before they are served."""

import asyncio
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from callboard.agents.discovery import Interpreter, describe, interpreters_for, list_agents
from callboard.agents.link import AgentError
from callboard.api.agent_schema import AgentLook, AgentLookRequest
from callboard.core.errors import CallboardError
from callboard.engine.agent_look import look

OURS = Interpreter(sys.executable, "callboard")
SOURCE = '''
from callboard.agents import Agent, tool
class Mine(Agent):
    """Does things."""
    def run(self, request): return request
    @tool
    def double(self, number: int) -> int:
        """Doubles."""
        return 2 * number
def echo(request):
    """Says it again."""
    return request
'''


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    file = tmp_path / "project" / "src" / "my_agent.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE, encoding="utf-8")
    return file


def environment(folder: Path) -> str:
    venv.create(folder, with_pip=False)
    return str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def test_an_environment_beside_the_file(agent: Path) -> None:
    python = environment(agent.parent / "venv")
    assert interpreters_for(agent) == [Interpreter(python, "environment"), OURS]


def test_the_environment_of_the_project(agent: Path) -> None:
    (agent.parents[1] / "pyproject.toml").write_text("", encoding="utf-8")
    python = environment(agent.parents[1] / ".venv")
    environment(agent.parents[2] / ".venv")  # another project's business
    assert interpreters_for(agent) == [Interpreter(python, "project"), OURS]


def test_no_environment(agent: Path) -> None:
    (agent.parent / ".venv").mkdir()  # a folder of that name is none
    (agent.parents[1] / "uv.lock").write_text("", encoding="utf-8")
    assert interpreters_for(agent) == [OURS]


async def test_the_agents_of_a_file_and_what_one_offers(agent: Path) -> None:
    assert await list_agents(str(agent)) == [
        {"name": "Mine", "kind": "own", "description": "Does things."},
        {"name": "echo", "kind": "plain", "description": "Says it again."},
    ]
    (mine,) = await describe(f"{agent}:Mine")
    assert [tool["name"] for tool in mine["tools"]] == ["double"]
    assert mine["can_run"]


async def test_what_cannot_be_looked_at(agent: Path) -> None:
    with pytest.raises(AgentError, match="There is no file"):
        await list_agents(str(agent.parent / "nope.py"))
    with pytest.raises(AgentError, match="cannot be started"):
        await list_agents(str(agent), "/not/there")
    agent.write_text("import os\nos._exit(1)\n", encoding="utf-8")
    with pytest.raises(AgentError, match="ended the program"):
        await list_agents(str(agent))
    with pytest.raises(AgentError, match="the worker ended while it loaded"):
        await describe(f"{agent}:x")


async def test_a_look_that_is_given_up_leaves_no_process(agent: Path) -> None:
    agent.write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
    looking = asyncio.create_task(list_agents(str(agent)))
    await asyncio.sleep(0.3)
    looking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await looking


async def looked(agent: object, **more: Any) -> AgentLook:
    return await look(AgentLookRequest(agent=str(agent), **more))


async def test_what_the_window_asks(agent: Path) -> None:
    python = environment(agent.parent / ".venv")
    found = await looked(agent)
    assert found.python == python  # which is used unless another one is named
    assert [each.origin for each in found.interpreters] == ["environment", "callboard"]
    assert [(each.name, each.agent) for each in found.agents] == [
        ("Mine", f"{agent}:Mine"),
        ("echo", f"{agent}:echo"),
    ]
    tools = (await looked(f"{agent}:Mine", python=sys.executable)).tools
    assert [(tool.name, tool.whole) for tool in tools] == [("double", False), ("Mine", True)]
    module = await looked("my_agent:echo", cwd=str(agent.parent))
    assert [(tool.name, tool.description) for tool in module.tools] == [("echo", "Says it again.")]


async def test_what_is_wrong_is_part_of_the_answer(agent: Path) -> None:
    assert (await looked("a b:c d")).error.startswith('"a b:c d" is not of the form')
    agent.write_text("1 / 0\n", encoding="utf-8")
    error = (await looked(f"{agent}:x")).error
    assert "ZeroDivisionError" in error
    assert "line 1" in error
    refers = await looked(f"{agent}:x", params={"key": "${secret:key}"})
    assert refers.error.startswith("The parameters refer to secrets")
    with pytest.raises(CallboardError, match="There is no folder"):
        await looked("a:b", cwd="/not/there")

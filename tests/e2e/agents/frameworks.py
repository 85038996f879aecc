"""What the tests of agent frameworks share: which agents there are, and how one is called through the gateway."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.engine import EngineProcess, Entry
from tests.support.mcp_client import LEGACY, MODERN

FIXTURES = Path(__file__).parent / "fixtures"
ERAS = (LEGACY, MODERN)
WEATHER = {"city": "Rome", "temp": 21.5}
SECONDS = 30.0


@dataclass(frozen=True)
class Case:
    """A framework with the agents in its fixture, which do what fixtures/replies.py says.

    ``roll`` is what the caller hears while a tool is called, ``picture`` the kinds of the blocks that show an image;
    ``weather`` is the attribute of the agent that answers in JSON; ``has_schema`` tells whether its schema is known.
    """

    framework: str
    file: str
    roll: tuple[str, ...] = ("→ roll(sides=6)", "← 4")
    picture: tuple[str, ...] = ("text", "image")
    weather: str = "weather"
    has_schema: bool = True
    streams: bool = True
    params: dict[str, Any] = field(default_factory=dict)

    def entry(self, python: Path, attribute: str = "agent", **fields: Any) -> Entry:
        """A roster's entry for one of its agents."""
        spec = f"{FIXTURES / self.file}:{attribute}"
        return {"agent": spec, "python": str(python), "params": dict(self.params), **fields}


CASES = (
    Case("pydantic-ai", "pydantic_ai_agent.py"),
    Case("langgraph", "langgraph_agent.py", has_schema=False),
    Case("openai-agents", "openai_agents_agent.py"),
    Case(
        "google-adk",
        "google_adk_agent.py",
        roll=("→ roll(sides=6)", '← {"result": 4}'),
        picture=("text", "image", "resource_link"),
    ),
    Case("smolagents", "smolagents_agent.py", picture=("image",), weather="agent", has_schema=False, streams=False),
    Case("agentkernel", "agent_kernel_agent.py", roll=(), weather="agent", has_schema=False, streams=False),
)


class Caller:
    """Calls one tool through a client of fastmcp's, and keeps what it hears meanwhile."""

    def __init__(self, client: Any, tool: str) -> None:
        self.client = client
        self.tool = tool
        self.heard: list[tuple[float, str]] = []

    async def __call__(self, request: str, **arguments: Any) -> Any:
        self.heard = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            self.heard.append((progress, message or ""))

        arguments = {"request": request, **arguments}
        return await self.client.call_tool(self.tool, arguments, progress_handler=hear, raise_on_error=False)

    @property
    def said(self) -> str:
        """All that was heard during the last call; a text may have come in several pieces."""
        return "".join(message for _, message in self.heard)


def conversation_of(result: Any) -> str:
    """The conversation that an answer belongs to, as its metadata says."""
    conversation: str = result.meta["callboard/conversation"]
    return conversation


def kinds_of(result: Any) -> tuple[str, ...]:
    """The kinds of the content blocks."""
    return tuple(block.type for block in result.content)


async def ready(engine: EngineProcess, *names: str) -> None:
    """Wait until these servers run and their tools have been read."""
    for name in names:
        await engine.wait_for_view(name, lambda view: view.state == "ready" and view.tools > 0)


async def until_file(file: Path, text: str) -> None:
    """Wait until the file says this."""
    async with asyncio.timeout(SECONDS):
        while not file.exists() or file.read_text() != text:  # noqa: ASYNC110
            await asyncio.sleep(0.02)

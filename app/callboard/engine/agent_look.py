"""What a person may want to know of a Python agent before it is served: interpreters, agents, tools."""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from callboard.api.agent_schema import AgentLook, AgentLookRequest, FoundAgent, InterpreterView, OfferedTool
from callboard.core.errors import CallboardError

if TYPE_CHECKING:
    from callboard.agents.loading import Spec


@dataclass(frozen=True)
class _Place:
    """Where an agent is, and which interpreters there are for it."""

    spec: "Spec"
    folder: Path
    interpreters: list[InterpreterView]
    python: str


async def look(request: AgentLookRequest) -> AgentLook:
    """Look at a file, a module or an agent, in a process of its own; raises ``bad-request`` for a wrong folder.

    What is wrong with the agent's code is part of the answer. Engine loop only.
    """
    # imported late: nothing of it is needed to serve
    from callboard.agents.link import AgentError
    from callboard.agents.loading import LoadError

    try:
        place = await asyncio.to_thread(_find, request)
    except LoadError as error:
        return AgentLook(python=request.python, interpreters=[], agents=[], tools=[], error=_sentence(error))
    agents: list[FoundAgent] = []
    tools: list[OfferedTool] = []
    problem = ""
    try:
        if place.spec.attribute and refers_to_values(request.params):
            problem = "The parameters refer to secrets or variables, so the tools are seen once the server runs."
        elif place.spec.attribute:
            tools = await _tools(request, place)
        else:
            agents = await _agents(place)
    except AgentError as error:
        problem = _sentence(error)
    return AgentLook(python=place.python, interpreters=place.interpreters, agents=agents, tools=tools, error=problem)


def _find(request: AgentLookRequest) -> _Place:
    from callboard.agents.discovery import interpreters_for
    from callboard.agents.loading import parse_spec

    folder = Path(request.cwd).expanduser() if request.cwd else Path.home()
    if not folder.is_dir():
        raise CallboardError("cwd-missing", f"There is no folder {folder}.")
    spec = parse_spec(request.agent)
    found = [InterpreterView(path=sys.executable, origin="callboard")]
    if spec.is_file or request.cwd:
        file = folder / Path(spec.module).expanduser() if spec.is_file else folder
        found = [InterpreterView(path=each.path, origin=each.origin) for each in interpreters_for(file)]
    python = str(Path(request.python).expanduser()) if request.python else found[0].path
    return _Place(spec, folder, found, python)


async def _agents(place: _Place) -> list[FoundAgent]:
    from callboard.agents.discovery import list_agents

    module = place.spec.module
    return [
        FoundAgent(
            agent=f"{module}:{each['name']}", name=each["name"], kind=each["kind"], description=each["description"]
        )
        for each in await list_agents(module, place.python, place.folder)
    ]


async def _tools(request: AgentLookRequest, place: _Place) -> list[OfferedTool]:
    from callboard.agents.discovery import describe

    found = []
    for each in await describe(request.agent, place.python, request.params, place.folder):
        found += [OfferedTool(name=tool["name"], description=_first(tool["description"])) for tool in each["tools"]]
        if each["can_run"]:
            found.append(OfferedTool(name=each["name"], description=_first(each["description"]), whole=True))
    return found


def refers_to_values(params: dict[str, Any]) -> bool:
    """True for parameters with a reference in them, whose values are for the server's own process alone."""
    return b"${" in msgspec.json.encode(params)


def _first(text: str) -> str:
    return text.partition("\n")[0]


def _sentence(error: Exception) -> str:
    text = str(error).rstrip(".")
    begin = text[:1].upper() if text.partition(" ")[0].isalpha() else text[:1]
    return begin + text[1:] + "."

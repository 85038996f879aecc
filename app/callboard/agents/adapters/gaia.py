"""Agents with ``get_mcp_tool_definitions()`` and ``execute_mcp_tool(name, arguments)``, as GAIA's MCPAgent has them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from typing import Any

from callboard.agents.contract import (
    TOOL_FAILED,
    AdaptedAgent,
    Answer,
    Context,
    Data,
    Failure,
    PromptSpec,
    ResourceSpec,
    ToolSpec,
    construct,
)
from callboard.agents.parts import NotPlainError, events_of, plain

_DEFINITIONS, _EXECUTE = "get_mcp_tool_definitions", "execute_mcp_tool"


def matches(value: Any) -> bool:
    """Either method marks the contract, so that a class with only one is told what it lacks."""
    return any(callable(getattr(value, name, None)) for name in (_DEFINITIONS, _EXECUTE))


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """Raises TypeError naming a method that is missing or a parameter that the constructor does not take."""
    kind = value if isinstance(value, type) else type(value)
    missing = [name for name in (_DEFINITIONS, _EXECUTE) if not callable(getattr(value, name, None))]
    if missing:
        raise TypeError(f"{kind.__name__} must have {' and '.join(missing)}")
    if abstract := sorted(getattr(value, "__abstractmethods__", ())) if isinstance(value, type) else []:
        raise TypeError(f"{kind.__name__} must have {' and '.join(abstract)}")
    return GaiaAgent(construct(value, params))


class GaiaAgent(AdaptedAgent):
    """An object of the contract. Conversations are not part of it: the object serves every caller."""

    keeps_conversations = False

    def __init__(self, agent: Any) -> None:
        kind = type(agent)
        about = _about(agent)
        super().__init__(str(about.get("name") or kind.__name__), inspect.getdoc(kind) or "")
        self.version = str(about.get("version") or "")
        self._agent = agent
        self.tools = [_tool(definition) for definition in agent.get_mcp_tool_definitions()]
        self._prompts = _listed(agent, "get_mcp_prompts", "name")
        self._resources = _listed(agent, "get_mcp_resources", "uri")
        self.prompts = [
            PromptSpec(name, str(each.get("description", "")), list(each.get("arguments") or []))
            for name, each in self._prompts.items()
        ]
        self.resources = [
            ResourceSpec(
                uri,
                str(each.get("name") or uri),
                str(each.get("description", "")),
                str(each.get("mimeType") or each.get("mime_type") or ""),
            )
            for uri, each in self._resources.items()
        ]

    def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Answer:
        """Run the tool; a mapping that says ``success: False`` with an error is a failure too."""
        result = self._agent.execute_mcp_tool(tool, arguments)
        if inspect.isawaitable(result):
            return _awaited(result)
        return _answer(result)

    def prompt(self, name: str, arguments: dict[str, Any], context: Context) -> Answer:
        """The messages of a prompt, or its text with the arguments filled in."""
        found = self._prompts[name]
        if isinstance(messages := found.get("messages"), list):
            return Data(messages)
        text = str(found.get("template") or found.get("text") or found.get("content") or found.get("description", ""))
        for key, value in arguments.items():
            text = text.replace("{" + key + "}", str(value))
        return text

    def read(self, uri: str, context: Context) -> Answer:
        """What the resource holds: asked of the agent where it can tell, else what stands in its definition."""
        reader = getattr(self._agent, "read_mcp_resource", None)
        if callable(reader):
            return reader(uri)
        found = self._resources[uri]
        for key in ("text", "content", "blob", "data"):
            if key in found:
                return found[key] if isinstance(found[key], (str, bytes)) else json.dumps(plain(found[key]))
        return Failure(f"the agent lists {uri} without saying what is in it")


async def _awaited(result: Any) -> Any:
    return _answer(await result)


def _answer(result: Any) -> Any:
    if not isinstance(result, dict):
        return result
    try:
        value = plain(result)
    except NotPlainError:
        return events_of(result)  # says which part it is
    data = Data(value, text=json.dumps(value, indent=2, ensure_ascii=False))
    failed = value.get("success") is False and "error" in value
    return [data, Failure("", TOOL_FAILED)] if failed else data


def _about(agent: Any) -> dict[str, Any]:
    teller = getattr(agent, "get_mcp_server_info", None)
    about = teller() if callable(teller) else None
    return about if isinstance(about, dict) else {}


def _tool(definition: Any) -> ToolSpec:
    if not isinstance(definition, Mapping) or not isinstance(definition.get("name"), str):
        raise TypeError(f"{_DEFINITIONS}() must return mappings with a name, not {type(definition).__name__}")
    schema = next((definition[key] for key in ("inputSchema", "input_schema", "parameters") if key in definition), None)
    output = definition.get("outputSchema") or definition.get("output_schema")
    return ToolSpec(
        name=definition["name"],
        description=str(definition.get("description", "")),
        input_schema=dict(schema) if isinstance(schema, Mapping) else {"type": "object"},
        output_schema=dict(output) if isinstance(output, Mapping) else None,
        annotations=definition.get("annotations"),
        title=str(definition.get("title") or ""),
    )


def _listed(agent: Any, method: str, key: str) -> dict[str, Mapping[str, Any]]:
    lister = getattr(agent, method, None)
    found = lister() if callable(lister) else None
    return {
        str(each[key]): each
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, Mapping) and key in each
    }

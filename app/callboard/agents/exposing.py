"""Which tools a server has: each of an agent's own, or each agent as one tool; filtered by name."""

import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from callboard.agents.arguments import ENVELOPE, Arguments, validator_of
from callboard.agents.keeper import Keeper
from callboard.agents.link import Message
from callboard.agents.results import Shape
from callboard.agents.settings import AgentSettings, argument_aliases
from callboard.agents.signatures import WRAPS

_BAD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
_GLOB: Final = re.compile(r"[*?\[]")
REQUEST: Final = "request"
CONVERSATION: Final = "conversation"
ATTACHMENTS: Final = "attachments"


class ExposeError(ValueError):
    """Names to expose that do not exist; the message says which."""


@dataclass(frozen=True)
class Tool:
    """A tool as it is published, and how its calls reach the agent. Immutable."""

    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    annotations: dict[str, Any] | None
    meta: dict[str, Any] | None
    keeper: Keeper = field(repr=False, compare=False)
    agent: str
    own_name: str  # of the agent's tool; empty: the agent as a whole
    converses: bool
    arguments: Arguments = field(repr=False, compare=False)
    shape: Shape = field(repr=False, compare=False)

    @property
    def is_whole(self) -> bool:
        """True where the agent itself is the tool."""
        return not self.own_name


def tools_of(
    keepers: Iterable[Keeper], settings: AgentSettings, *, listed: tuple[str, ...] | None = None
) -> list[Tool]:
    """All tools of a server. Raises :class:`ExposeError`.

    ``listed`` are patterns over the agents' names, whatever the settings say, also where there is only one agent.
    """
    pairs = [(keeper, agent) for keeper in keepers for agent in keeper.agents]
    several = len(pairs) > 1 or listed is not None
    if listed is None and isinstance(settings.expose, tuple):
        listed = settings.expose
    if listed is not None and several:
        names = [agent["name"] for _, agent in pairs if not agent["is_always_exposed"]]
        wanted = chosen(names, listed)
        pairs = [pair for pair in pairs if pair[1]["name"] in wanted or pair[1]["is_always_exposed"]]
    found: list[Tool] = []
    for keeper, agent in pairs:
        found += _tools_of_agent(keeper, agent, settings, several=several, listed=listed)
    if listed is not None and not several:
        wanted = chosen([tool.name for tool in found], listed)
        found = [tool for tool in found if tool.name in wanted]
    return _unique(found)


def chosen(names: list[str], patterns: Iterable[str]) -> set[str]:
    """The names that globs and ``!globs`` leave; raises :class:`ExposeError` for one that means nothing."""
    patterns = list(patterns)
    for pattern in patterns:
        plain = pattern.removeprefix("!")
        if not _GLOB.search(plain) and plain not in names:
            near = difflib.get_close_matches(plain, names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there is {', '.join(names) or 'none'}"
            raise ExposeError(f"expose: there is no {plain}; {hint}")
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")] or ["*"]
    refused = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return {
        name
        for name in names
        if any(fnmatch.fnmatchcase(name, each) for each in wanted)
        and not any(fnmatch.fnmatchcase(name, each) for each in refused)
    }


def proper_name(name: str) -> str:
    """A name that every client takes: letters, digits, ``_``, ``-`` and ``.``, at most 128 of them."""
    return _BAD.sub("_", name).strip("_")[:128] or "agent"


def _tools_of_agent(
    keeper: Keeper, agent: Message, settings: AgentSettings, *, several: bool, listed: tuple[str, ...] | None
) -> list[Tool]:
    wants_whole = settings.expose == "whole" or (listed is not None and several)
    if settings.expose == "tools" and not agent["tools"] and agent["no_tools"]:
        raise ExposeError(f'expose: tools of {agent["name"]}: {agent["no_tools"]}; as a single tool it is "whole"')
    if agent["can_run"] and (wants_whole or not agent["tools"]):
        return [_whole(keeper, agent, settings, several=several)]
    if settings.expose == "whole":
        raise ExposeError(f'{agent["name"]} answers no requests, it only has tools: set expose to "tools"')
    found = [_own(keeper, agent, spec, settings) for spec in agent["tools"]]
    if listed is not None and agent["has_inner_tools"]:
        found.append(_whole(keeper, agent, settings, several=several))  # its name may be listed too
    return found


def _own(keeper: Keeper, agent: Message, spec: Message, settings: AgentSettings) -> Tool:
    schema, output = spec["input_schema"], spec["output_schema"]
    shown = schema
    if not settings.typed:
        shown, output = _enveloped(schema), _WRAPPED
    name = proper_name(spec["name"])
    converses = agent["inner_tools_converse"] or not agent["has_inner_tools"]
    check = validator_of(spec["name"], output) if output is not None and settings.typed else None
    shape = Shape(
        agent["name"],
        output,
        wrapped=not settings.typed or bool(output and output.get(WRAPS)),
        flagged=settings.typed,
        label=settings.label,
        limit=_bytes(settings),
        check=check,
    )
    return Tool(
        name=name,
        title=spec["title"] or (spec["name"] if spec["name"] != name else ""),
        description=spec["description"],
        input_schema=shown,
        output_schema=output,
        annotations=spec["annotations"],
        meta=spec["meta"],
        keeper=keeper,
        agent=agent["name"],
        own_name=spec["name"],
        converses=converses and agent["keeps_conversations"] and not settings.stateless,
        arguments=Arguments(spec["name"], schema, argument_aliases(settings, spec["name"])),
        shape=shape,
    )


def _whole(keeper: Keeper, agent: Message, settings: AgentSettings, *, several: bool) -> Tool:
    converses = agent["keeps_conversations"] and not settings.stateless
    properties: dict[str, Any] = {REQUEST: {"type": "string", "description": "What the agent is to do or to answer"}}
    if converses:
        properties[CONVERSATION] = _CONVERSATION
    if settings.attachments:
        properties[ATTACHMENTS] = _ATTACHMENTS
    schema = {"type": "object", "properties": properties, "required": [REQUEST], "additionalProperties": False}
    shown = agent["name"] if several else settings.name or agent["name"]
    name = proper_name(shown)
    output = agent["output_schema"] or (_ANSWER if converses else None)
    check = validator_of(name, agent["output_schema"]) if agent["output_schema"] else None
    return Tool(
        name=name,
        title=agent["title"] or (shown if shown != name else ""),
        description=agent["description"] or f"Run the {shown} agent.",
        input_schema=schema,
        output_schema=output,
        annotations=agent["annotations"] or _ANYTHING,
        meta=None,
        keeper=keeper,
        agent=agent["name"],
        own_name="",
        converses=converses,
        arguments=Arguments(name, schema, argument_aliases(settings, name)),
        shape=Shape(agent["name"], agent["output_schema"], label=settings.label, limit=_bytes(settings), check=check),
    )


def _unique(tools: list[Tool]) -> list[Tool]:
    """Tools of several agents that share a name get their agent's before it."""
    counts: dict[str, int] = {}
    for tool in tools:
        counts[tool.name] = counts.get(tool.name, 0) + 1
    found: dict[str, Tool] = {}
    for tool in tools:
        name = tool.name if counts[tool.name] == 1 else proper_name(f"{tool.agent}_{tool.name}")
        if name in found:
            raise ExposeError(f"two tools have the name {name}; give their agents other names")
        found[name] = tool if name == tool.name else replace(tool, name=name)
    return list(found.values())


def _enveloped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The one argument of the untyped form; the tool's own schema tells what goes into it."""
    inner = {key: value for key, value in schema.items() if key not in ("$schema", "$defs", "definitions")}
    whole: dict[str, Any] = {
        "type": "object",
        "properties": {
            ENVELOPE: {
                "title": ENVELOPE,
                "description": "The arguments, as an object or as its JSON text",
                "anyOf": [inner, {"type": "string"}],
            }
        },
        "required": [ENVELOPE],
    }
    return whole | {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def _bytes(settings: AgentSettings) -> int:
    return int(settings.limits.result_kb * 1024)


_WRAPPED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"result": {"title": "Result"}},
    "required": ["result"],
}
_ANYTHING: Final[dict[str, Any]] = {"openWorldHint": True}  # of what an agent changes, nothing is known
_ANSWER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "result": {"description": "The agent's answer"},
        "conversation": {"type": "string", "description": "Pass it as conversation to go on"},
    },
}
_CONVERSATION: Final[dict[str, Any]] = {
    "type": "string",
    "description": (
        "The conversation to go on with, as an earlier answer named it; left out, the one of this session, or a new one"
    ),
}
_ATTACHMENTS: Final[dict[str, Any]] = {
    "type": "array",
    "description": "Files for the agent: each with its content in base64, or the address that it is at",
    "items": {
        "type": "object",
        "properties": {
            "data": {"type": "string", "description": "The content in base64"},
            "uri": {"type": "string", "description": "An address of the content"},
            "mimeType": {"type": "string"},
            "name": {"type": "string"},
        },
        "additionalProperties": False,
    },
}

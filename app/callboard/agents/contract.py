"""What host, worker and adapters agree on: messages on the pipe, events of a call, and what an adapted agent offers.

Standard library only and Python 3.10 or later, because the worker imports this under the agent's own interpreter.

The pipe
    One JSON object a line in each direction, UTF-8, no limit on a line's length but the host's own. The worker writes
    on a duplicate of its standard output; file descriptor 1 itself points to standard error by then, so that nothing
    an agent prints can stand among the messages, and standard input is empty for the agent.

    host to worker::

        {"type": "load", "version": 1, "agent": SPEC, "params": {...}, "persist": bool, "thoughts": bool,
         "tools": bool}
        {"type": "open", "conversation": ID, "client": NAME, "turn": int, "state": {...} | null}
        {"type": "run", "id": N, "agent": NAME, "conversation": ID, "request": str, "attachments": [PART, ...]}
        {"type": "call", "id": N, "agent": NAME, "conversation": ID, "tool": NAME, "arguments": {...}}
        {"type": "prompt", "id": N, "agent": NAME, "name": NAME, "arguments": {...}}
        {"type": "read", "id": N, "agent": NAME, "uri": URI}
        {"type": "cancel", "id": N}
        {"type": "close", "conversation": ID}
        {"type": "recall", "id": N, "conversation": ID}                   # an answer without parts, with the state
        {"type": "remember"}                                              # "persist" from now on

    worker to host::

        {"type": "hello", "version": 1, "pid": int, "python": "3.12.1"}
        {"type": "schema", "agents": [AGENT, ...], "files": [PATH, ...], "seconds": float}   # the answer to "load"
        {"type": "refused", "error": ERROR}                                                  # or this, and the end
        {"type": "progress", "id": N, "kind": KIND, "text": str, "current": float?, "total": float?}
        {"type": "result", "id": N, "parts": [PART, ...], "state": {...}?}
        {"type": "error", "id": N, "error": ERROR, "parts": [PART, ...], "state": {...}?}

    KIND is ``delta`` (text as it is written), ``progress`` (a remark), ``tool_call``, ``tool_result`` or ``thought``.
    ERROR is ``{"code", "message", "kind", "traceback", "file", "line"}``: ``kind`` names the exception's class, the
    last three are empty or 0 where nothing is known. Each message with an ``id``, but for ``cancel``, gets exactly one
    ``result`` or ``error``; after a ``cancel`` it is an error with the code ``cancelled``.
    PART and AGENT are the dictionaries that :func:`part_to_wire` and :func:`agent_to_wire` make.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

VERSION = 1

# codes of ERROR
CANCELLED = "cancelled"
LOAD_FAILED = "agent-load"
RAISED = "agent-raised"  # the agent raised an exception
REPORTED = "agent-error"  # the agent said itself that it failed; the message is meant for the caller
TOOL_FAILED = "tool-failed"  # a tool of the agent's said so, in words of its own
BAD_TOOL = "tool-unknown"


# What a call yields while it runs, in any number and order


@dataclass(frozen=True)
class Progress:
    """A remark on how far the work is; never part of the answer."""

    text: str
    current: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class Delta:
    """Text as the model writes it; shown meanwhile, never part of the answer: a :class:`Text` must follow."""

    text: str


@dataclass(frozen=True)
class Thought:
    """What a model thinks aloud; hidden unless asked for, and never part of the answer."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """The agent calls a tool of its own."""

    name: str
    arguments: Any = None  # shown shortened


@dataclass(frozen=True)
class ToolReturn:
    """A tool of the agent's own has answered."""

    name: str
    summary: Any = None  # shown shortened


# Parts of the answer


@dataclass(frozen=True)
class Chunk:
    """A piece of the answer's text as it comes: shown meanwhile, and joined with the pieces before and after it."""

    text: str


@dataclass(frozen=True)
class Text:
    """One text of the answer."""

    text: str


@dataclass(frozen=True)
class Blob:
    """An image, a sound or any other file, by its media type."""

    data: bytes
    media_type: str = "application/octet-stream"
    name: str = ""


@dataclass(frozen=True)
class Link:
    """A resource that the caller may fetch from somewhere else."""

    uri: str
    name: str = ""
    media_type: str = ""
    description: str = ""


@dataclass(frozen=True)
class Data:
    """A JSON value. With a ``media_type`` it is a labelled reply: structured content under that label.

    Without a label it is structured content where the agent has an output schema, else text. ``text`` is what stands
    beside the structured content, if it is not simply the value as JSON; "" for nothing.
    """

    value: Any
    media_type: str = ""
    text: str | None = None


@dataclass(frozen=True)
class Failure:
    """The agent says that it failed. What it yielded before is still shown; nothing is read after it."""

    message: str
    code: str = ""


Part = Text | Blob | Link | Data
Event = Progress | Delta | Thought | ToolCall | ToolReturn | Chunk | Text | Blob | Link | Data | Failure


# What an adapter is given


@dataclass
class Conversation:
    """One conversation, from "open" to "close", in the worker. One call at a time uses it.

    ``state`` holds plain JSON values; where the server persists conversations it is stored after each call and there
    again after a restart. ``memory`` holds live objects of this process (a session, an agent of this conversation's
    own); they end with the worker. ``turn`` is 1 in the first call.
    """

    id: str
    client: str = ""
    turn: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)


class Context(ABC):
    """One call, as adapters and agents see it. Usable from any thread."""

    conversation: Conversation
    attachments: list[Part]  # Blob and Link only

    @property
    @abstractmethod
    def is_cancelled(self) -> bool:
        """True once nobody waits for the answer any more."""

    @abstractmethod
    def emit(self, event: Event) -> None:
        """Hand on an event at once: the same as yielding it."""

    def progress(self, text: str, current: float | None = None, total: float | None = None) -> None:
        """Tell the caller how far the work is."""
        self.emit(Progress(text, current, total))

    @property
    def state(self) -> dict[str, Any]:
        """The conversation's JSON state."""
        return self.conversation.state


# What an adapter returns


@dataclass
class ToolSpec:
    """A tool as it is published: the schemas verbatim, None for no output schema."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object"})
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None  # MCP's ToolAnnotations, camelCase
    title: str = ""
    meta: dict[str, Any] | None = None


@dataclass
class PromptSpec:
    """A prompt that the agent offers; ``arguments`` are MCP's PromptArgument objects."""

    name: str
    description: str = ""
    arguments: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class ResourceSpec:
    """A resource that the agent offers."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""


# What call() and run() may return: a value or an event, something to await for one, or a sync or async iterator of
# events and values. What :mod:`callboard.agents.parts` makes of plain values: text for str, a blob for bytes, data
# for what is JSON, a dataclass or a pydantic model, nothing for None.
Answer = Any


class NoToolsError(Exception):
    """An agent's own tools cannot be called from outside of it; the message says why, and what to use instead."""


class AdaptedAgent:
    """An agent in the one shape that the worker runs. Adapters subclass it.

    Only what the agent can do is overridden: :meth:`call` for an agent with ``tools``, :meth:`run` (and
    ``can_run = True``) for one that answers requests. A plain (not async) method that is no generator function runs in
    a thread of its own; sync generators are read in a thread too. A coroutine is cancelled with CancelledError.
    """

    name: str = "agent"
    title: str = ""
    description: str = ""
    version: str = ""
    instructions: str = ""
    tools: list[ToolSpec]
    prompts: list[PromptSpec]
    resources: list[ResourceSpec]
    can_run: bool = False
    keeps_conversations: bool = True  # False: every call stands by itself
    is_always_exposed: bool = False  # whatever names are chosen to be exposed
    has_inner_tools: bool = False  # its tools were gathered: they are those that it uses itself to answer requests
    inner_tools_converse: bool = False  # and belong to a conversation, as run() does
    no_tools: str = ""  # why it has none that can be called from outside, where they were asked for
    output_schema: dict[str, Any] | None = None  # of run()
    annotations: dict[str, Any] | None = None  # of run() as a tool

    def __init__(self, name: str = "", description: str = "") -> None:
        self.name = name or type(self).name
        self.description = description
        self.tools = []
        self.prompts = []
        self.resources = []

    async def prepare(self) -> None:
        """Called once, on the worker's loop, before the rest of what stands above is read."""

    async def gather_tools(self) -> list[ToolSpec]:
        """The tools that it uses itself to answer requests, for :meth:`call`.

        Called once after :meth:`prepare`, on the worker's loop, only where they are to be published and ``tools`` is
        empty. Raises :class:`NoToolsError`.
        """
        return []

    def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Answer:
        """Run one of ``tools``; the arguments have passed its schema."""
        raise NotImplementedError

    def run(self, request: str, context: Context) -> Answer:
        """Answer a request; ``context.conversation`` has what was said before."""
        raise NotImplementedError

    def prompt(self, name: str, arguments: dict[str, Any], context: Context) -> Answer:
        """One of ``prompts``: a text, or a list of MCP's PromptMessage objects."""
        raise NotImplementedError

    def read(self, uri: str, context: Context) -> Answer:
        """One of ``resources``: text or bytes."""
        raise NotImplementedError

    def close_conversation(self, conversation: Conversation) -> Answer:
        """The conversation is over: let go of what belongs to it outside of ``conversation.memory``."""
        return None

    def shutdown(self) -> Answer:
        """The worker ends."""
        return None


def construct(value: Any, params: Mapping[str, Any]) -> Any:
    """``value`` itself, or an instance of it where it is a class; ``params`` go to the constructor.

    Raises what the constructor raises, and TypeError for params that nothing takes.
    """
    if isinstance(value, type):
        return value(**params)
    if params:
        raise TypeError(f"params are given, but {type(value).__name__} is not a class that could take them")
    return value


# On the wire


def part_to_wire(part: Part) -> dict[str, Any]:
    """A part as the JSON object that stands on the pipe."""
    kind = type(part).__name__.lower()
    if isinstance(part, Blob):
        data = base64.b64encode(part.data).decode("ascii")
        return {"part": kind, "data": data, "media_type": part.media_type, "name": part.name}
    return {"part": kind, **{name: getattr(part, name) for name in part.__dataclass_fields__}}


def part_from_wire(value: Mapping[str, Any]) -> Part:
    """The reverse of :func:`part_to_wire`; raises ValueError for anything else."""
    fields = dict(value)
    kind = fields.pop("part", None)
    try:
        if kind == "blob":
            return Blob(base64.b64decode(fields.pop("data"), validate=True), **fields)
        if kind in _PARTS:
            part: Part = _PARTS[kind](**fields)
            return part
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"not a part: {error}") from error
    raise ValueError(f"not a part: {kind!r}")


_PARTS: dict[Any, Any] = {"text": Text, "link": Link, "data": Data}


def agent_to_wire(agent: AdaptedAgent) -> dict[str, Any]:
    """What the host must know of an agent."""
    return {
        "name": agent.name,
        "title": agent.title,
        "description": agent.description,
        "version": agent.version,
        "instructions": agent.instructions,
        "can_run": agent.can_run,
        "keeps_conversations": agent.keeps_conversations,
        "is_always_exposed": agent.is_always_exposed,
        "has_inner_tools": agent.has_inner_tools,
        "inner_tools_converse": agent.inner_tools_converse,
        "no_tools": agent.no_tools,
        "output_schema": agent.output_schema,
        "annotations": agent.annotations,
        "tools": [asdict(tool) for tool in agent.tools],
        "prompts": [asdict(prompt) for prompt in agent.prompts],
        "resources": [asdict(resource) for resource in agent.resources],
    }

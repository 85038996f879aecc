"""The server that lets a model think in numbered steps: it counts them, and keeps track of branches.

What is thought is not kept: of each conversation only the number of its thoughts and the names of its branches are.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from callboard.servers import importing_fastmcp
from callboard.servers.kit import add_tool, new_server, refused, text_block

with importing_fastmcp():
    from fastmcp import FastMCP
    from fastmcp.server.dependencies import get_context
    from fastmcp.tools import ToolResult

NAME: Final = "sequential-thinking"
META_CONVERSATION: Final = "callboard/conversation"  # the handle of a conversation, in a call's _meta and its answer's
META_CLIENT: Final = "callboard/client"  # who calls, where the engine says so
META_SESSION: Final = "callboard/session"
META_PROGRAM: Final = "io.modelcontextprotocol/clientInfo"
MODERN: Final = "2026-07-28"  # from this revision on calls belong to no session

_MOST_CONVERSATIONS: Final = 500
_MOST_BRANCHES: Final = 1_000  # of one conversation
_LONGEST_NAME: Final = 200  # characters of a branch's name or a handle
_LONGEST_THOUGHT: Final = 100_000  # characters
_LARGEST: Final = 2**53 - 1  # that every JSON reader takes for a whole number

_INSTRUCTIONS: Final = (
    "A place to think a hard problem through in steps, one call of sequentialthinking for each. The answer counts the "
    "steps and lists the branches so far; the thinking itself is the caller's."
)
_OUTPUT: Final = {
    "type": "object",
    "properties": {
        "thoughtNumber": {"type": "number"},
        "totalThoughts": {"type": "number"},
        "nextThoughtNeeded": {"type": "boolean"},
        "branches": {"type": "array", "items": {"type": "string"}},
        "thoughtHistoryLength": {"type": "number"},
    },
    "required": ["thoughtNumber", "totalThoughts", "nextThoughtNeeded", "branches", "thoughtHistoryLength"],
    "additionalProperties": False,
}


def _flag(value: Any) -> Any:
    """Some models write a boolean as text."""
    words = {"true": True, "false": False}
    return words.get(value.strip().lower(), value) if isinstance(value, str) else value


def _as_written(schema: dict[str, Any]) -> None:
    schema["type"] = ["boolean", "string"]


Flag = Annotated[bool, BeforeValidator(_flag), Field(strict=True, json_schema_extra=_as_written)]
Number = Annotated[int, Field(ge=1, le=_LARGEST)]
Nothing = SkipJsonSchema[None]


@dataclass
class Thoughts:
    """What is known of one conversation."""

    handle: str = ""
    count: int = 0
    branches: dict[str, None] = field(default_factory=dict)


class Conversations:
    """All conversations of this process; the one used longest ago goes first. Used on one event loop."""

    def __init__(self, limit: int = _MOST_CONVERSATIONS) -> None:
        self._limit = limit
        self._known: OrderedDict[tuple[str, str], Thoughts] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def find(self, client: str, kind: str, name: str = "", *, anew: bool = False) -> Thoughts:
        """The conversation that a client's handle or session names, begun if there is none, or ``anew``."""
        key = (client, f"{kind}:{name}")
        thoughts = self._known.get(key)
        if thoughts is None or anew:
            thoughts = self._known[key] = Thoughts()
        self._touch(key)
        return thoughts

    def name(self, client: str, thoughts: Thoughts) -> None:
        """Let a conversation be found by its handle, too."""
        key = (client, f"handle:{thoughts.handle}")
        self._known[key] = thoughts
        self._touch(key)

    def _touch(self, key: tuple[str, str]) -> None:
        self._known.move_to_end(key)
        if len(self._known) > self._limit:
            self._known.popitem(last=False)


class Thinking:
    """The tool, with its conversations."""

    def __init__(self, conversations: Conversations) -> None:
        self._conversations = conversations

    async def sequentialthinking(
        self,
        thought: Annotated[str, Field(max_length=_LONGEST_THOUGHT, description="This step of the thinking")],
        nextThoughtNeeded: Annotated[Flag, Field(description="Whether another step is to follow")],
        thoughtNumber: Annotated[Number, Field(description="The number of this step, from 1 on")],
        totalThoughts: Annotated[Number, Field(description="How many steps it will take, as estimated now")],
        isRevision: Annotated[Flag | Nothing, Field(description="Whether this step revises an earlier one")] = None,
        revisesThought: Annotated[Number | Nothing, Field(description="The number of the step that it revises")] = None,
        branchFromThought: Annotated[
            Number | Nothing, Field(description="The number of the step at which a branch begins")
        ] = None,
        branchId: Annotated[
            Annotated[str, Field(max_length=_LONGEST_NAME)] | Nothing, Field(description="The name of the branch")
        ] = None,
        needsMoreThoughts: Annotated[
            Flag | Nothing, Field(description="Whether it will take more steps than were estimated")
        ] = None,
    ) -> ToolResult:
        """Thinks a problem through in steps that can be revised, branched off and added to. One call is one step.

        Use it for problems whose end is not in sight: plans, designs, analyses that may have to change course, work in
        several parts whose thread must not be lost.

        How to use it:
        - Begin with thoughtNumber 1 and a rough estimate in totalThoughts, and correct the estimate on the way; a
          thoughtNumber beyond it raises it.
        - To take back or improve an earlier step, set isRevision and say in revisesThought which one.
        - To try another way from an earlier step on, say in branchFromThought which one and name the way in branchId.
        - Say what is uncertain, pass over what does not matter, put up a hypothesis and test it against the steps.
        - Set needsMoreThoughts where the estimate has run out too early.
        - Set nextThoughtNeeded to false only when the answer stands.
        """
        begins = thoughtNumber == 1 and not isRevision and branchFromThought is None
        thoughts = self._conversation(begins=begins)
        thoughts.count += 1
        if branchFromThought is not None and branchId:
            if len(thoughts.branches) >= _MOST_BRANCHES and branchId not in thoughts.branches:
                raise refused(f"A conversation may have {_MOST_BRANCHES} branches at most.")
            thoughts.branches[branchId] = None
        answer = {
            "thoughtNumber": thoughtNumber,
            "totalThoughts": max(thoughtNumber, totalThoughts),
            "nextThoughtNeeded": nextThoughtNeeded,
            "branches": list(thoughts.branches),
            "thoughtHistoryLength": thoughts.count,
        }
        meta = {META_CONVERSATION: thoughts.handle} if thoughts.handle else None
        return ToolResult([text_block(json.dumps(answer, indent=2, ensure_ascii=False))], answer, meta)

    def _conversation(self, *, begins: bool) -> Thoughts:
        """The conversation that a call belongs to: the one that it names, or that of its session.

        A call of the newest revision that names none belongs to no session. Its client is taken to think about one
        thing at a time: a first step begins a conversation anew, whose handle stands in the answer.
        """
        context = get_context()
        request = context.request_context
        meta: dict[str, Any] = dict((request.meta if request is not None else None) or {})
        client = f"{_word(meta, META_CLIENT)} {_program(meta)}"
        if handle := _word(meta, META_CONVERSATION):
            thoughts = self._conversations.find(client, "handle", handle)
            thoughts.handle = handle
            return thoughts
        if session := _word(meta, META_SESSION):
            return self._conversations.find(client, "session", session)
        if request is not None and request.protocol_version < MODERN:
            return self._conversations.find(client, "connection", context.session_id)
        thoughts = self._conversations.find(client, "latest", anew=begins)
        if not thoughts.handle:
            thoughts.handle = secrets.token_urlsafe(12)
            self._conversations.name(client, thoughts)
        return thoughts


def make_server(limit: int = _MOST_CONVERSATIONS) -> FastMCP[Any]:
    """The MCP server; ``limit`` is how many conversations it knows at once."""
    server = new_server(NAME, _INSTRUCTIONS)
    add_tool(server, Thinking(Conversations(limit)).sequentialthinking, "Sequential thinking", _OUTPUT)
    return server


def main() -> None:
    """Serves on standard input and output until the client closes the input."""
    make_server().run(transport="stdio", show_banner=False)


def _program(meta: dict[str, Any]) -> str:
    """The name that a client gives itself in every request of the newest revision."""
    info = meta.get(META_PROGRAM)
    return str(info.get("name", ""))[:_LONGEST_NAME] if isinstance(info, dict) else ""


def _word(meta: dict[str, Any], key: str) -> str:
    value = meta.get(key)
    if isinstance(value, str) and len(value) > _LONGEST_NAME:
        raise refused(f"{key} may have {_LONGEST_NAME} characters at most.")
    return value if isinstance(value, str) else ""


if __name__ == "__main__":
    main()

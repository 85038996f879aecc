"""Python agents as MCP servers: what an agent's own code imports, and what a program that embeds one does.

The names for agents (:class:`Agent`, :func:`tool`, :class:`Context` and the events) need only the standard library and
are there in every agent's interpreter, whether or not this package is installed in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callboard.agents.base import Agent, tool
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Chunk,
    Context,
    Conversation,
    Data,
    Delta,
    Event,
    Failure,
    Link,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
)

if TYPE_CHECKING:
    from callboard.agents.registry import AgentRegistry
    from callboard.agents.server import AgentServer, to_mcp_server

__all__ = [
    "AdaptedAgent",
    "Agent",
    "AgentRegistry",
    "AgentServer",
    "Blob",
    "Chunk",
    "Context",
    "Conversation",
    "Data",
    "Delta",
    "Event",
    "Failure",
    "Link",
    "Progress",
    "Text",
    "Thought",
    "ToolCall",
    "ToolReturn",
    "to_mcp_server",
    "tool",
]

_LATE = {
    "AgentRegistry": "callboard.agents.registry",
    "AgentServer": "callboard.agents.server",
    "to_mcp_server": "callboard.agents.server",
}


def __getattr__(name: str) -> Any:
    """What embeds agents is imported when it is first asked for: it needs more than the standard library."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATE[name]), name)

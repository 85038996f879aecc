"""Python agents as MCP servers: what an agent's own code imports, and what a program that embeds one does.

The names for agents (:class:`Agent`, :func:`tool`, :class:`Context` and the events) need only the standard library and
are there in every agent's interpreter, whether or not this package is installed in it.
"""

from __future__ import annotations

from callboard.agents.base import Agent, tool
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Chunk,
    Context,
    Conversation,
    Data,
    Delta,
    Failure,
    Link,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
)

__all__ = [
    "AdaptedAgent",
    "Agent",
    "Blob",
    "Chunk",
    "Context",
    "Conversation",
    "Data",
    "Delta",
    "Failure",
    "Link",
    "Progress",
    "Text",
    "Thought",
    "ToolCall",
    "ToolReturn",
    "tool",
]

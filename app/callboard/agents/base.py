"""The small base class for agents written anew. Needs nothing but the standard library, wherever the agent runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from callboard.agents.contract import Context, Conversation

F = TypeVar("F", bound=Callable[..., Any])
TOOL_MARK = "__callboard_tool__"


class Agent:
    """An agent: override :meth:`run`, mark methods with :func:`tool`, or both.

    One object serves all conversations: what belongs to one is kept in ``context.state`` (plain JSON values, there
    again after a restart if the server persists conversations). Methods may be plain, async or generators; plain ones
    run in a thread. The roster's ``params`` are the constructor's keyword arguments.
    """

    name: str = ""
    """What the agent is called; empty for the name of the class."""
    description: str = ""
    """What it is for, as the client's model reads it; empty for the class's docstring."""
    instructions: str = ""
    """How to work with the server, for the client's model."""
    version: str = ""

    def run(self, request: str, context: Context) -> Any:
        """Answer a request: return or yield text, bytes, JSON values or events of :mod:`callboard.agents`."""
        raise NotImplementedError

    def close(self, conversation: Conversation) -> Any:
        """A conversation is over."""


@overload
def tool(function: F) -> F: ...
@overload
def tool(*, name: str = "", description: str = "", annotations: dict[str, Any] | None = None) -> Callable[[F], F]: ...
def tool(
    function: F | None = None,
    *,
    name: str = "",
    description: str = "",
    annotations: dict[str, Any] | None = None,
) -> F | Callable[[F], F]:
    """Mark a method of an :class:`Agent` as a tool: its schema comes from the annotations.

    ``annotations`` are MCP's tool annotations, such as ``{"readOnlyHint": True}``.
    """

    def mark(method: F) -> F:
        setattr(method, TOOL_MARK, {"name": name, "description": description, "annotations": annotations})
        return method

    return mark if function is None else mark(function)

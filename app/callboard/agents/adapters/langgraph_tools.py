"""The tools that LangGraph's graphs use themselves, called without the model."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from typing import Any

from callboard.agents.adapters.kinds import is_kind
from callboard.agents.adapters.langchain import jsonable, message_parts
from callboard.agents.contract import TOOL_FAILED, Event, Failure, Progress, Text


def tools_of(graph: Any) -> dict[str, Any]:
    """All tools in the graph's nodes of tools, those of graphs within it too, by name."""
    found: dict[str, Any] = {}
    for node in getattr(graph, "nodes", {}).values():
        bound: Any = getattr(node, "bound", None)
        if is_kind(bound, "langgraph", "ToolNode"):
            found |= bound.tools_by_name
        elif is_kind(bound, "langgraph", "Pregel"):
            found |= tools_of(bound)
    return found


async def call(tool: Any, arguments: dict[str, Any]) -> AsyncIterator[Event]:
    """Call a tool in a graph of its own, so that it finds what LangGraph gives its tools: a stream, state, runtime."""
    from langchain_core.messages import AIMessage

    wanted = {"name": tool.name, "args": arguments, "id": uuid.uuid4().hex}
    final: Any = None
    async for mode, chunk in _graph_of(tool).astream(
        {"messages": [AIMessage("", tool_calls=[wanted])]}, stream_mode=["values", "custom"]
    ):
        if mode == "values":
            final = chunk
        else:
            yield Progress(chunk if isinstance(chunk, str) else str(jsonable(chunk)))
    answer = final["messages"][-1]
    if getattr(answer, "status", "") == "error":
        yield Failure(str(answer.content), TOOL_FAILED)
        return
    parts = list(message_parts(answer))
    for part in parts or [Text("")]:
        yield part


def _graph_of(tool: Any) -> Any:
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([tool]))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile()

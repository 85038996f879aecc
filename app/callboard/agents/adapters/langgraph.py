"""LangGraph's graphs and LangChain's runnables."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from callboard.agents.adapters import langgraph_memory, langgraph_tools
from callboard.agents.adapters.kinds import is_kind, take_params
from callboard.agents.adapters.langchain import (
    Chain,
    ChatModel,
    Input,
    Tool,
    answer_of,
    json_schema,
    jsonable,
    message_parts,
    schema_of_tool,
    written,
)
from callboard.agents.contract import (
    AdaptedAgent,
    Context,
    Data,
    Event,
    NoToolsError,
    Progress,
    Text,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)

SAVER = "saver"
STRUCTURED = "structured_response"
MODES = ("values", "updates", "messages", "custom")


def matches(value: Any) -> bool:
    return is_kind(value, "langchain_core", "Runnable") or is_kind(value, "langgraph", "StateGraph")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """``params``: ``input`` and ``output`` name the keys for request and answer, ``config`` is LangChain's own."""
    ours, rest = take_params(params, ["input", "output", "config"])
    agent = construct(value, rest)
    if is_kind(agent, "langgraph", "StateGraph"):
        agent = agent.compile()
    if is_kind(agent, "langchain_core", "BaseTool"):
        return Tool(agent)
    if is_kind(agent, "langchain_core", "BaseChatModel"):
        return ChatModel(agent)
    if config := ours.get("config"):
        agent = agent.with_config(config)
    kind = Graph if is_kind(agent, "langgraph", "Pregel") else Chain
    return kind(agent, ours.get("input", ""), ours.get("output", ""))


class Graph(AdaptedAgent):
    """A compiled graph. Its own checkpointer keeps the conversations if it has a lasting one; else they are ours."""

    def __init__(self, graph: Any, input_key: str, output_key: str) -> None:
        super().__init__(graph.get_name() if graph.get_name() != "LangGraph" else "", "")
        self._graph = graph
        self._output_key = output_key
        self._inner: dict[str, Any] = {}  # tools that it uses itself, while they are published
        schema = json_schema(graph.get_input_jsonschema)
        self._input = Input(schema, input_key)
        self.can_run = self._input.takes_text
        outputs = json_schema(graph.get_output_jsonschema).get("properties", {})
        if schema.get("type") == "object" and not self._input.takes_messages:
            self.tools = [ToolSpec(self.name, f"Run the graph {self.name}.", schema)]
        if not self.can_run and not self.tools:
            raise TypeError("the graph takes neither messages nor a text nor an object")
        self._outputs = [name for name in outputs if name != self._input.key]
        self._keeps_itself = _is_lasting(graph.checkpointer)

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        async for event in self._answer(request, self._input.of(request, context), context):
            yield event

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> AsyncIterator[Event]:
        inner = self._inner.get(tool)
        events = self._answer(None, arguments, context) if inner is None else langgraph_tools.call(inner, arguments)
        async for event in events:
            yield event

    async def gather_tools(self) -> list[ToolSpec]:
        self._inner = langgraph_tools.tools_of(self._graph)
        if not self._inner:
            raise NoToolsError("it has no node of tools (ToolNode); name the tools themselves, as a list of them")
        return [ToolSpec(tool.name, tool.description, schema_of_tool(tool)) for tool in self._inner.values()]

    async def _answer(self, request: str | None, value: Any, context: Context) -> AsyncIterator[Event]:
        graph, config = self._conversation(context)
        if request is not None and (await graph.aget_state(config)).interrupts:
            from langgraph.types import Command

            value = Command(resume=request)
        final: Any = None
        async for namespace, mode, chunk in graph.astream(value, config, stream_mode=list(MODES), subgraphs=True):
            if mode == "values":
                final = chunk if not namespace else final
                continue
            for shown in _shown(mode, chunk):
                yield shown
        waiting = (await graph.aget_state(config)).interrupts
        self._keep(context, graph)
        for part in _questions(waiting) if waiting else self._parts(final):
            yield part

    def _parts(self, final: Any) -> Iterator[Event]:
        if not isinstance(final, Mapping) or self._output_key:
            yield from answer_of(final, self._output_key)
        elif final.get(STRUCTURED) is not None:
            yield Data(jsonable(final[STRUCTURED]))
        elif final.get("messages"):
            yield from message_parts(final["messages"][-1])
        elif len(named := [name for name in self._outputs if name in final]) == 1:
            yield from answer_of(final[named[0]])
        else:
            yield Data(jsonable({name: final[name] for name in named} or dict(final)))

    def _conversation(self, context: Context) -> tuple[Any, dict[str, Any]]:
        if self._keeps_itself:
            return self._graph, {"configurable": {"thread_id": context.conversation.id or uuid.uuid4().hex}}
        memory = context.conversation.memory
        if SAVER not in memory:
            kept = context.state.get(langgraph_memory.STATE)
            memory[SAVER] = langgraph_memory.load(kept) if kept else langgraph_memory.new_saver()
        config = {"configurable": {"thread_id": langgraph_memory.THREAD}}
        return self._graph.copy({"checkpointer": langgraph_memory.fork(memory[SAVER])}), config

    def _keep(self, context: Context, graph: Any) -> None:
        if self._keeps_itself:
            return
        saver = langgraph_memory.prune(graph.checkpointer, graph)
        context.conversation.memory[SAVER] = saver
        context.state[langgraph_memory.STATE] = langgraph_memory.dump(saver)


def _is_lasting(checkpointer: Any) -> bool:
    return is_kind(checkpointer, "langgraph", "BaseCheckpointSaver") and not is_kind(
        checkpointer, "langgraph", "InMemorySaver"
    )


def _questions(interrupts: Any) -> Iterator[Event]:
    """What a graph that was interrupted wants to know; the next request is the answer to it."""
    for interrupt in interrupts:
        yield Text(interrupt.value) if isinstance(interrupt.value, str) else Data(jsonable(interrupt.value))


def _shown(mode: str, chunk: Any) -> Iterator[Event]:
    if mode == "messages":
        yield from written(chunk[0])
    elif mode == "custom":
        yield Progress(chunk if isinstance(chunk, str) else str(jsonable(chunk)))
    elif isinstance(chunk, Mapping):
        for update in chunk.values():
            yield from _tools_in(update)


def _tools_in(update: Any) -> Iterator[Event]:
    messages = update.get("messages") if isinstance(update, Mapping) else None
    for message in messages if isinstance(messages, list) else []:
        for call in getattr(message, "tool_calls", None) or []:
            yield ToolCall(call["name"], call["args"])
        if is_kind(message, "langchain_core", "ToolMessage"):
            yield ToolReturn(message.name or "tool", message.content)

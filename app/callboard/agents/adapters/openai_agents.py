"""Agents of the OpenAI Agents SDK."""

from __future__ import annotations

import base64
import copy
import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

from callboard.agents.adapters.kinds import attachments_of, family, is_kind, of_objects, parsed, take_params
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Context,
    Conversation,
    Data,
    Delta,
    Event,
    Failure,
    NoToolsError,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)

HISTORY = "items"  # in the conversation's state: the SDK's own input items
SPEAKER = "agent"  # in its memory: whom the request was last handed to
_DELTAS: dict[str, Callable[[str], Event]] = {
    "response.output_text.delta": Delta,
    "response.refusal.delta": Delta,
    "response.reasoning_text.delta": Thought,
    "response.reasoning_summary_text.delta": Thought,
}


def matches(value: Any) -> bool:
    """The package is called ``agents``, and so may others be: the class must look like the SDK's too."""
    return is_kind(value, "agents.agent", "Agent") and hasattr(value, "handoffs") and hasattr(value, "model_settings")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """``params``: ``max_turns`` of one call, ``context`` that the tools get."""
    ours, rest = take_params(params, ["max_turns", "context"])
    return OpenAIAgent(construct(value, rest), ours)


class OpenAIAgent(AdaptedAgent):
    """Answers requests; a conversation is the list of its items, and goes on with the agent that spoke last."""

    can_run = True

    def __init__(self, agent: Any, options: dict[str, Any]) -> None:
        super().__init__(agent.name, agent.handoff_description or "")
        self._agent = agent
        self._options = options
        self._tools: dict[str, Any] = {}
        if agent.output_type is not None and agent.output_type is not str:
            self.output_schema = of_objects(_output_schema(agent.output_type))

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        from agents import Runner

        conversation = context.conversation
        items = [*conversation.state.get(HISTORY, []), *_input(request, context)]
        speaker = conversation.memory.get(SPEAKER, self._agent)
        result = Runner.run_streamed(speaker, items, **self._options)
        calls: dict[str, str] = {}
        try:
            async for event in result.stream_events():
                if (shown := _shown(event, calls)) is not None:
                    yield shown
        except Exception as error:
            if (refusal := _refusal(error)) is None:
                raise
            yield refusal
            return
        finally:
            if not result.is_complete:
                result.cancel()
        if waiting := getattr(result, "interruptions", None):
            # not remembered: a conversation with a call that has no output cannot go on
            names = ", ".join(str(_field(item.raw_item, "name") or "a tool") for item in waiting)
            yield Failure(f"the agent waits for a person to decide on: {names}", code="paused")
            return
        _remember(conversation, result)
        for part in _answer(result):
            yield part

    async def gather_tools(self) -> list[ToolSpec]:
        functions = [tool for tool in self._agent.tools if is_kind(tool, "agents", "FunctionTool")]
        free = [tool for tool in functions if not getattr(tool, "needs_approval", False)]
        if not free:
            others = ", ".join(tool.name for tool in self._agent.tools)
            raise NoToolsError(
                f"{others} cannot be called without the agent" if others else "it has no function tools of its own"
            )
        self._tools = {tool.name: _raising(tool) for tool in free}
        return [ToolSpec(tool.name, tool.description, tool.params_json_schema) for tool in free]

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Any:
        from agents.tool_context import ToolContext

        given = json.dumps(arguments)
        within = ToolContext(
            self._options.get("context"), tool_name=tool, tool_call_id=f"call_{uuid.uuid4().hex}", tool_arguments=given
        )
        return await self._tools[tool].on_invoke_tool(within, given)


def _raising(tool: Any) -> Any:
    """A copy of the tool that raises what its function raises, unless its author has said what to answer then."""
    if getattr(tool, "_use_default_failure_error_function", False):
        tool = copy.copy(tool)
        tool._use_default_failure_error_function = False
        tool._failure_error_function = None
    return tool


def _output_schema(output_type: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter

    if is_kind(output_type, "agents", "AgentOutputSchemaBase"):
        schema: dict[str, Any] = output_type.json_schema()
        return schema
    return TypeAdapter(output_type).json_schema()


def _input(request: str, context: Context) -> list[dict[str, Any]]:
    if not context.attachments:
        return [{"role": "user", "content": request}]
    content: list[dict[str, Any]] = [{"type": "input_text", "text": request}]
    for attached in attachments_of(context):
        is_image = family(attached.media_type) == "image"
        if isinstance(attached, Blob):
            uri = f"data:{attached.media_type};base64,{base64.b64encode(attached.data).decode('ascii')}"
            file = {"type": "input_file", "file_data": uri, "filename": attached.name or "attachment"}
        else:
            uri = attached.uri
            file = {"type": "input_file", "file_url": uri}
        content.append({"type": "input_image", "image_url": uri, "detail": "auto"} if is_image else file)
    return [{"role": "user", "content": content}]


def _remember(conversation: Conversation, result: Any) -> None:
    conversation.state[HISTORY] = [_plain(item) for item in result.to_input_list()]
    conversation.memory[SPEAKER] = result.last_agent


def _plain(item: Any) -> Any:
    dump = getattr(item, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else item


def _refusal(error: Exception) -> Failure | None:
    """A guardrail's word, which is meant for the caller; None for any other error."""
    kind = type(error).__name__
    if not is_kind(error, "agents", "AgentsException") or not kind.endswith("GuardrailTripwireTriggered"):
        return None
    result: Any = getattr(error, "guardrail_result", None)
    name = f" {result.guardrail.get_name()}" if result is not None else ""
    what = "request" if kind.startswith("Input") else "answer"
    return Failure(f"the guardrail{name} has refused the {what}", code="guardrail")


def _shown(event: Any, calls: dict[str, str]) -> Event | None:
    if event.type == "raw_response_event":
        kind = _DELTAS.get(event.data.type)
        return kind(event.data.delta) if kind else None
    if event.type != "run_item_stream_event":
        return None
    raw = event.item.raw_item
    if event.name == "tool_called":
        name = _field(raw, "name") or _field(raw, "type") or "tool"
        calls[str(_field(raw, "call_id") or _field(raw, "id"))] = name
        return ToolCall(name, parsed(_field(raw, "arguments")))
    if event.name == "tool_output":
        return ToolReturn(calls.get(str(_field(raw, "call_id")), "tool"), event.item.output)
    if event.name == "handoff_occured":
        return Progress(f"handed over to {event.item.target_agent.name}")
    return None


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _answer(result: Any) -> Iterator[Event]:
    output = result.final_output
    if isinstance(output, str):
        yield Text(output)
    elif output is not None:
        from pydantic import TypeAdapter

        yield Data(TypeAdapter(type(output)).dump_python(output, mode="json"))
    for item in result.new_items:
        raw = item.raw_item
        if _field(raw, "type") == "image_generation_call" and _field(raw, "result"):
            yield Blob(base64.b64decode(_field(raw, "result")), "image/png")

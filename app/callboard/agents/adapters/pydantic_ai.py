"""Pydantic AI agents."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from callboard.agents.adapters.kinds import attachments_of, family, is_kind, of_objects, parsed, take_params
from callboard.agents.contract import (
    TOOL_FAILED,
    AdaptedAgent,
    Blob,
    Context,
    Data,
    Delta,
    Event,
    Failure,
    NoToolsError,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)
from callboard.agents.parts import events_of

HISTORY = "messages"  # in the conversation: live objects in its memory, JSON in its state


def matches(value: Any) -> bool:
    return is_kind(value, "pydantic_ai", "AbstractAgent")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    ours, rest = take_params(params, ["deps"])
    return PydanticAgent(construct(value, rest), ours.get("deps"))


class PydanticAgent(AdaptedAgent):
    """Answers requests; a conversation is the list of its messages.

    ``deps`` is what the agent's tools get as dependencies: arguments for the agent's ``deps_type``.
    """

    can_run = True

    def __init__(self, agent: Any, deps: Any) -> None:
        super().__init__(getattr(agent, "name", None) or "", _plain(getattr(agent, "description", None)))
        self._agent = agent
        self._deps = _dependencies(agent.deps_type, deps)
        self._toolset: Any = None  # while its tools are published
        if hasattr(agent, "output_json_schema"):
            self.output_schema = of_objects(agent.output_json_schema())

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        history = _history(context)
        options = {"message_history": list(history), "deps": self._deps}
        stream = self._agent.run_stream_events(_prompt(request, context), **options)
        # Pydantic AI 1 had a plain generator here.
        async with stream if hasattr(stream, "__aenter__") else aclosing(stream) as events:
            async for event in events:
                if event.event_kind == "agent_run_result":
                    if (waiting := _waiting(event.result.output)) is not None:
                        yield waiting  # not remembered: a conversation with a call that has no answer cannot go on
                        return
                    _remember(context, history, event.result)
                    for part in _answer(event.result):
                        yield part
                elif (shown := _shown(event)) is not None:
                    yield shown

    async def gather_tools(self) -> list[ToolSpec]:
        from pydantic_ai.toolsets import CombinedToolset

        self._toolset = await CombinedToolset(self._agent.toolsets).__aenter__()
        found = [each.tool_def for each in (await self._toolset.get_tools(self._tool_context(""))).values()]
        free = [each for each in found if each.kind == "function"]
        if not free:
            raise NoToolsError("its tools wait for a person's word" if found else "it has no tools")
        return [ToolSpec(each.name, each.description or "", each.parameters_json_schema) for each in free]

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> AsyncIterator[Event]:
        from pydantic_ai import ModelRetry

        within = self._tool_context(tool)
        found = (await self._toolset.get_tools(within))[tool]
        taken = found.args_validator.validate_json(json.dumps(arguments), context=within.validation_context)
        try:
            returned = await self._toolset.call_tool(tool, taken, within, found)
        except ModelRetry as error:
            yield Failure(error.message, TOOL_FAILED)
            return
        for event in _returned(returned):
            yield event

    async def shutdown(self) -> None:
        if self._toolset is not None:
            await self._toolset.__aexit__(None, None, None)

    def _tool_context(self, tool: str) -> Any:
        from pydantic_ai import RunContext
        from pydantic_ai.usage import RunUsage

        called = {"tool_name": tool, "tool_call_id": uuid.uuid4().hex} if tool else {}
        return RunContext(deps=self._deps, model=self._agent.model, usage=RunUsage(), **called)


def _returned(value: Any) -> Iterator[Any]:
    """What a tool has returned; files stand in it as they are, alone or among other things."""
    if is_kind(value, "pydantic_ai", "ToolReturn"):
        yield from _returned(value.return_value)
        if value.content is not None:
            yield from _returned(value.content)
    elif isinstance(value, (list, tuple)) and any(is_kind(each, "pydantic_ai", "BinaryContent") for each in value):
        for each in value:
            yield from _returned(each)
    elif is_kind(value, "pydantic_ai", "BinaryContent"):
        yield Blob(value.data, value.media_type)
    else:
        yield from events_of(value)


def _plain(text: Any) -> str:
    return text if isinstance(text, str) else ""


def _dependencies(kind: Any, given: Any) -> Any:
    if isinstance(kind, type) and isinstance(given, Mapping) and not issubclass(kind, (dict, type(None))):
        return kind(**given)
    return given


# ---- the conversation


def _history(context: Context) -> list[Any]:
    memory = context.conversation.memory
    if HISTORY not in memory:
        from pydantic_ai.messages import ModelMessagesTypeAdapter

        memory[HISTORY] = ModelMessagesTypeAdapter.validate_python(context.state.get(HISTORY, []))
    history: list[Any] = memory[HISTORY]
    return history


def _remember(context: Context, before: list[Any], result: Any) -> None:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    messages, added = result.all_messages(), result.new_messages()
    kept = context.state.get(HISTORY, [])
    if len(messages) == len(before) + len(added) and len(kept) == len(before):
        kept = [*kept, *ModelMessagesTypeAdapter.dump_python(added, mode="json")]
    else:  # the agent has shortened its history
        kept = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    context.state[HISTORY] = kept
    context.conversation.memory[HISTORY] = messages


def _prompt(request: str, context: Context) -> Any:
    from pydantic_ai import messages

    if not context.attachments:
        return request
    urls = {
        "image": messages.ImageUrl,
        "audio": messages.AudioUrl,
        "video": messages.VideoUrl,
        "document": messages.DocumentUrl,
    }
    prompt: list[Any] = [request]
    for attached in attachments_of(context):
        if isinstance(attached, Blob):
            prompt.append(messages.BinaryContent(attached.data, media_type=attached.media_type))
        else:
            prompt.append(urls[family(attached.media_type)](attached.uri, media_type=attached.media_type or None))
    return prompt


# ---- what comes back


def _shown(event: Any) -> Event | None:
    if event.event_kind == "part_start":
        return _written(event.part.part_kind, getattr(event.part, "content", None))
    if event.event_kind == "part_delta":
        return _written(event.delta.part_delta_kind, getattr(event.delta, "content_delta", None))
    if event.event_kind == "function_tool_call":
        return ToolCall(event.part.tool_name, parsed(event.part.args))
    if event.event_kind == "function_tool_result":
        answered = event.part if hasattr(event, "part") else event.result
        return ToolReturn(answered.tool_name or "tool", answered.content)
    return None


def _written(kind: str, text: Any) -> Event | None:
    if not isinstance(text, str) or not text:
        return None
    if kind == "thinking":
        return Thought(text)
    return Delta(text) if kind == "text" else None


def _waiting(output: Any) -> Failure | None:
    if not is_kind(output, "pydantic_ai", "DeferredToolRequests"):
        return None
    names = ", ".join(call.tool_name for call in (*output.approvals, *output.calls))
    return Failure(f"the agent waits for a person to decide on: {names}", code="paused")


def _answer(result: Any) -> Iterator[Event]:
    output = result.output
    files = list(_files(result.new_messages()))
    if isinstance(output, str):
        yield from _in_order(result.new_messages(), output)
        return
    if is_kind(output, "pydantic_ai", "BinaryContent"):
        yield Blob(output.data, output.media_type)
        files = [file for file in files if file.data != output.data]
    elif output is not None:
        from pydantic import TypeAdapter

        yield Data(TypeAdapter(type(output)).dump_python(output, mode="json"))
    yield from files


def _files(messages: list[Any]) -> Iterator[Blob]:
    for message in messages:
        if message.kind == "response":
            for part in message.parts:
                if part.part_kind == "file":
                    yield Blob(part.content.data, part.content.media_type)


def _in_order(messages: list[Any], output: str) -> Iterator[Event]:
    """Text and files as the model put them; where the text was changed on its way, the text first."""
    *earlier, last = messages
    texts = [part.content for part in last.parts if part.part_kind == "text"]
    if last.kind != "response" or "".join(texts) != output:
        yield Text(output)
        yield from _files(messages)
        return
    yield from _files(earlier)
    for part in last.parts:
        if part.part_kind == "text":
            yield Text(part.content)
        elif part.part_kind == "file":
            yield Blob(part.content.data, part.content.media_type)

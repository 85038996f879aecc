"""LangChain's messages, and runnables that are no graph: chains, chat models and tools."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from callboard.agents.adapters.kinds import attachments_of, family, is_kind
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Chunk,
    Context,
    Data,
    Delta,
    Event,
    Link,
    NoToolsError,
    Text,
    Thought,
    ToolSpec,
)

HISTORY = "messages"  # in the conversation: live objects in its memory, JSON in its state
QUESTIONS = ("input", "question", "query", "request", "prompt", "task", "text", "topic")


class Tool(AdaptedAgent):
    """A LangChain tool, published with its own schema."""

    keeps_conversations = False

    def __init__(self, tool: Any) -> None:
        super().__init__(tool.name, tool.description)
        self._tool = tool
        self.tools = [ToolSpec(tool.name, tool.description, schema_of_tool(tool))]

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Any:
        return await run_tool(self._tool, arguments)


class ChatModel(AdaptedAgent):
    """A chat model by itself; a conversation is the list of its messages."""

    can_run = True

    def __init__(self, model: Any) -> None:
        super().__init__(type(model).__name__, "")
        self._model = model

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        messages = [*history(context), human_message(request, context)]
        reply: Any = None
        async for chunk in self._model.astream(messages):
            reply = chunk if reply is None else reply + chunk
            for shown in written(chunk):
                yield shown
        remember(context, [*messages, as_message(reply)])
        for part in answer_of(reply):
            yield part


class Chain(AdaptedAgent):
    """Any other runnable: a tool with the runnable's own input schema, and where a text will do, an agent."""

    keeps_conversations = False

    def __init__(self, runnable: Any, input_key: str, output_key: str) -> None:
        super().__init__(runnable.get_name(), "")
        self._runnable = runnable
        self._output_key = output_key
        schema = json_schema(runnable.get_input_jsonschema)
        self._input = Input(schema, input_key)
        self.can_run = self._input.takes_text
        if schema.get("type") == "object" and not self._input.takes_messages:
            self.tools = [ToolSpec(self.name, runnable.get_name(), schema)]

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        async for event in self._stream(self._input.of(request, context)):
            yield event

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> AsyncIterator[Event]:
        async for event in self._stream(arguments):
            yield event

    async def gather_tools(self) -> list[ToolSpec]:
        raise NoToolsError("a chain's tools are its model's to ask for; name the tools themselves, as a list of them")

    async def _stream(self, value: Any) -> AsyncIterator[Event]:
        total: Any = None
        async for chunk in self._runnable.astream(value):
            if isinstance(chunk, str):
                yield Chunk(chunk)
                continue
            for shown in written(chunk):
                yield shown
            total = chunk if total is None else _joined(total, chunk)
        for part in answer_of(total, self._output_key):
            yield part


class Input:
    """How a request becomes what a runnable takes, by its input schema.

    ``key`` names the property for the request; without it the only one is taken, or one with a usual name.
    """

    def __init__(self, schema: Mapping[str, Any], key: str = "") -> None:
        properties: dict[str, Any] = schema.get("properties", {})
        if key and key not in properties:
            raise TypeError(f"the agent takes no {key!r}; it takes {', '.join(properties) or 'no object'}")
        self.takes_messages = not key and "messages" in properties
        texts = [name for name, each in properties.items() if each.get("type", "string") == "string"]
        usual = [name for name in QUESTIONS if name in texts]
        self.key = key or (texts[0] if len(texts) == 1 else usual[0] if usual else "")
        self._is_bare = not properties and schema.get("type", "string") == "string"
        self.takes_text = self.takes_messages or self._is_bare or bool(self.key)

    def of(self, request: str, context: Context) -> Any:
        """The input for a request with its attachments."""
        if self.takes_messages:
            return {"messages": [human_message(request, context)]}
        return request if self._is_bare else {self.key: request}


# ---- tools


def schema_of_tool(tool: Any) -> dict[str, Any]:
    """A tool's input schema, without what its caller does not give."""
    arguments = tool.tool_call_schema
    schema: dict[str, Any] = arguments if isinstance(arguments, dict) else arguments.model_json_schema()
    return schema


async def run_tool(tool: Any, arguments: dict[str, Any]) -> Any:
    """Run a tool; of content and artifact it is the content that comes back."""
    return await tool.ainvoke(arguments)


# ---- messages


def json_schema(function: Any) -> dict[str, Any]:
    """A runnable's schema, or one that says nothing where its types have none."""
    from pydantic.errors import PydanticUserError

    try:
        schema: dict[str, Any] = function()
    except (PydanticUserError, TypeError, NameError):
        return {}
    return schema


def human_message(request: str, context: Context) -> Any:
    """The request and its attachments as a message."""
    from langchain_core.messages import HumanMessage

    if not context.attachments:
        return HumanMessage(request)
    blocks: list[Any] = [{"type": "text", "text": request}]
    for attached in attachments_of(context):
        kind = family(attached.media_type)
        block = {"type": "file" if kind == "document" else kind, "mime_type": attached.media_type}
        if isinstance(attached, Blob):
            block["base64"] = base64.b64encode(attached.data).decode("ascii")
        else:
            block["url"] = attached.uri
        blocks.append(block if hasattr(HumanMessage, "content_blocks") else _block_before_1_0(block))
    return HumanMessage(content=blocks)


def _block_before_1_0(block: dict[str, Any]) -> dict[str, Any]:
    if "base64" in block:
        return {**block, "source_type": "base64", "data": block["base64"]}
    return {**block, "source_type": "url"}


def history(context: Context) -> list[Any]:
    """The conversation's messages so far."""
    memory = context.conversation.memory
    if HISTORY not in memory:
        from langchain_core.messages import messages_from_dict

        memory[HISTORY] = messages_from_dict(context.state.get(HISTORY, []))
    messages: list[Any] = memory[HISTORY]
    return messages


def remember(context: Context, messages: list[Any]) -> None:
    """Keep the conversation's messages, of which those kept before are the first."""
    from langchain_core.messages import messages_to_dict

    kept = context.state.get(HISTORY, [])
    context.state[HISTORY] = [*kept, *messages_to_dict(messages[len(kept) :])]
    context.conversation.memory[HISTORY] = messages


def as_message(message: Any) -> Any:
    """A message put together from chunks, as one that was never in pieces."""
    from langchain_core.messages import message_chunk_to_message

    return message_chunk_to_message(message) if is_kind(message, "langchain_core", "BaseMessageChunk") else message


def blocks_of(message: Any) -> list[dict[str, Any]]:
    """The content of a message in LangChain's standard blocks."""
    blocks = getattr(message, "content_blocks", None)
    if blocks is None:  # before LangChain 1.0
        blocks = [{"type": "text", "text": message.content}] if isinstance(message.content, str) else message.content
    return [block if isinstance(block, dict) else {"type": "text", "text": block} for block in blocks]


def written(chunk: Any) -> Iterator[Event]:
    """What a piece of a message shows while it is written."""
    if not is_kind(chunk, "langchain_core", "AIMessageChunk"):
        return
    for block in blocks_of(chunk):
        if block["type"] == "text" and block.get("text"):
            yield Delta(block["text"])
        elif block["type"] == "reasoning" and block.get("reasoning"):
            yield Thought(block["reasoning"])


def message_parts(message: Any) -> Iterator[Event]:
    """The parts of a message that are an answer."""
    for block in blocks_of(message):
        if block["type"] in ("text", "text-plain"):
            if block.get("text"):
                yield Text(block["text"])
        elif (media := _media(block)) is not None:
            yield media


def _media(block: dict[str, Any]) -> Event | None:
    """A block that is a file, by its content or address, in LangChain's own form or in OpenAI's for images."""
    media_type, url = block.get("mime_type") or "", block.get("url") or ""
    data = block.get("base64") or (block.get("data") if block.get("source_type") == "base64" else None)
    if block["type"] == "image_url":
        url = block["image_url"] if isinstance(block["image_url"], str) else block["image_url"]["url"]
    if url.startswith("data:") and ";base64," in url:
        head, _, data = url.partition(";base64,")
        media_type = head.removeprefix("data:")
    if data:
        default = "image/png" if block["type"].startswith("image") else "application/octet-stream"
        return Blob(base64.b64decode(data), media_type or default)
    return Link(url, media_type=media_type) if url else None


def answer_of(value: Any, key: str = "") -> Iterator[Event]:
    """What a runnable has returned, as an answer; ``key`` picks from a mapping."""
    if isinstance(value, Mapping):
        if not key:
            key = next((name for name in ("output", "answer", "result", "text") if name in value), "")
        if key in value:
            value = value[key]
    if value is None:
        return
    if is_kind(value, "langchain_core", "BaseMessage"):
        yield from message_parts(value)
    elif isinstance(value, str):
        yield Text(value)
    elif isinstance(value, list) and value and all(is_kind(item, "langchain_core", "BaseMessage") for item in value):
        yield from message_parts(value[-1])
    else:
        yield Data(jsonable(value))


def jsonable(value: Any) -> Any:
    """``value`` as JSON: LangChain's objects by their own fields, anything else that has no form as its text."""

    def other(item: Any) -> Any:
        dump = getattr(item, "model_dump", None)
        if callable(dump) and not isinstance(item, type):
            return dump(mode="json")
        if isinstance(item, (set, frozenset, tuple)):
            return list(item)
        return str(item)

    return json.loads(json.dumps(value, default=other))


def _joined(total: Any, chunk: Any) -> Any:
    try:
        return total + chunk
    except TypeError:
        return chunk

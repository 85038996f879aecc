"""Agents of Agent Kernel."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from callboard.agents.adapters.kinds import attachments_of, family, is_kind, take_params
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Chunk,
    Context,
    Conversation,
    Data,
    Event,
    Failure,
    Link,
    NoToolsError,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)

_LABELS = ("media_type", "format", "label")


def matches(value: Any) -> bool:
    return is_kind(value, "agentkernel", "Agent")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """``params``: ``stream``, true for an agent whose answers are text only, shown as it comes."""
    ours, rest = take_params(params, ["stream"])
    return KernelAgent(construct(value, rest), bool(ours.get("stream")))


class KernelAgent(AdaptedAgent):
    """Answers requests through the current runtime; a conversation with an agent is a session of its own.

    The kernel gives its stream no images and no structured replies, so it is read only where asked for.
    """

    can_run = True

    def __init__(self, agent: Any, streams: bool) -> None:
        super().__init__(agent.name, agent.get_description() or "")
        self._agent = agent
        self._streams = streams

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        session = self._session(context.conversation)
        turn = (self._agent, session, _requests(request, context))
        completed = False
        try:
            if self._streams:
                async with aclosing(_runtime().stream(*turn, **_user(context))) as chunks:
                    async for event in _events(chunks):
                        yield event
            else:
                for part in _answer(await _runtime().run(*turn, **_user(context))):
                    yield part
            completed = True
        finally:
            self._keep(context.conversation, session, completed)

    async def gather_tools(self) -> list[ToolSpec]:
        raise NoToolsError("Agent Kernel has its tools in the agent of the framework beneath: name that one, or them")

    def close_conversation(self, conversation: Conversation) -> None:
        """The kernel's store in memory keeps every session; other stores are their owner's."""
        session = conversation.memory.pop(self._key, None)
        if session is not None and _is_in_memory():
            _runtime().sessions()._sessions.pop(session.id, None)

    @property
    def _key(self) -> str:
        """In a conversation's memory the kernel's session; in its state what that holds, where it is JSON."""
        return f"session:{self.name}"

    def _session(self, conversation: Conversation) -> Any:
        if self._key not in conversation.memory:
            name = f"{conversation.id or uuid.uuid4().hex}:{self.name}"
            conversation.memory[self._key] = (
                _session_from(name, conversation.state.get(self._key)) if _is_in_memory() else _load(name)
            )
        return conversation.memory[self._key]

    def _keep(self, conversation: Conversation, session: Any, completed: bool) -> None:
        """A call that failed leaves the session as it was before, where what it held is known."""
        if not _is_in_memory():
            return
        if completed:
            conversation.state[self._key] = _data_of(session)
        elif conversation.state.get(self._key, {}) is not None:
            self.close_conversation(conversation)


# ---- the kernel's runtime and sessions


def _runtime() -> Any:
    from agentkernel.core import Runtime

    return Runtime.current()


def _is_in_memory() -> bool:
    return is_kind(_runtime().sessions(), "agentkernel", "InMemorySessionStore")


def _load(name: str) -> Any:
    return _runtime().sessions().load(name)


def _session_from(name: str, data: Mapping[str, Any] | None) -> Any:
    from agentkernel.core import Session

    session = Session(name)
    for key, value in (data or {}).items():
        session.set(key, value)
    return session


def _data_of(session: Any) -> dict[str, Any] | None:
    """What the session holds beside its caches; None where it holds more than JSON."""
    data = {
        key: value
        for key, value in session.get_all(volatile=False)
        if not is_kind(value, "agentkernel", "KeyValueCache")
    }
    try:
        return data if json.loads(json.dumps(data)) == data else None
    except (TypeError, ValueError):
        return None


def _user(context: Context) -> dict[str, Any]:
    return {"acting_user_id": context.conversation.client} if context.conversation.client else {}


def _requests(request: str, context: Context) -> list[Any]:
    from agentkernel.core import AgentRequestFile, AgentRequestImage, AgentRequestText

    requests: list[Any] = [AgentRequestText(prompt=request)]
    for number, attached in enumerate(attachments_of(context), 1):
        fields = {"name": attached.name or f"attachment-{number}", "mime_type": attached.media_type or None}
        if isinstance(attached, Link):
            requests.append(AgentRequestFile(file_data=attached.uri, **fields))
            continue
        data = base64.b64encode(attached.data).decode("ascii")
        if family(attached.media_type) == "image":
            requests.append(AgentRequestImage(image_data=data, **fields))
        else:
            requests.append(AgentRequestFile(file_data=data, **fields))
    return requests


# ---- what comes back


def _answer(reply: Any) -> Iterator[Event]:
    if reply.type == "paused":
        waiting = ", ".join(each.tool_name or each.message or each.kind for each in reply.interruptions)
        yield Failure(f"the agent waits for a person to decide on: {waiting}", code="paused")
    elif reply.type == "other":
        label = next((text for name in _LABELS if isinstance(text := getattr(reply, name, None), str)), "")
        yield Data(reply.content, media_type=label, text=None if label else str(reply))
    else:
        if reply.response:
            yield Text(reply.response)
        if reply.type == "image":
            yield Blob(base64.b64decode(reply.image_data), reply.mime_type or "image/png", reply.name)


async def _events(chunks: AsyncIterator[Any]) -> AsyncIterator[Event]:
    calls: dict[str, str] = {}
    async for chunk in chunks:
        if chunk.error:
            yield Failure(chunk.error)
        elif chunk.event is not None and (shown := _shown(chunk.event, calls)) is not None:
            yield shown


def _shown(event: Any, calls: dict[str, str]) -> Event | None:
    kind = event.type
    if kind == "text_delta":
        return Chunk(event.content)
    if kind == "reasoning_delta":
        return Thought(event.content)
    if kind == "tool_call_start":
        calls[event.tool_call_id] = event.name
        return ToolCall(event.name)
    if kind == "tool_call_result":
        return ToolReturn(calls.get(event.tool_call_id, "tool"), event.content)
    if kind == "run_paused":
        waiting = ", ".join(each.tool_name or each.message or each.kind for each in event.interruptions)
        return Failure(f"the agent waits for a person to decide on: {waiting}", code="paused")
    return None

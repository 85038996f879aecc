"""Agents of Google's Agent Development Kit: agents, workflows, apps and runners."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from callboard.agents.adapters import google_adk_tools
from callboard.agents.adapters.kinds import attachments_of, is_kind, of_objects
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Context,
    Conversation,
    Data,
    Delta,
    Event,
    Failure,
    Link,
    NoToolsError,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)

EVENTS = "events"  # in the conversation's state: the session's events as JSON, where the session lives in memory only
SESSION = "session"  # in its memory: the session's id, once the runner's session service has it


def matches(value: Any) -> bool:
    return is_kind(value, "google.adk", "BaseAgent", "BaseNode", "App", "Runner")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    agent = construct(value, params)
    return AdkAgent(agent if is_kind(agent, "google.adk", "Runner") else _runner(agent))


def _runner(agent: Any) -> Any:
    from google.adk.runners import InMemoryRunner

    if is_kind(agent, "google.adk", "App"):
        return InMemoryRunner(app=agent)
    if is_kind(agent, "google.adk", "BaseAgent"):
        return InMemoryRunner(agent=agent, app_name=agent.name)
    return InMemoryRunner(node=agent, app_name=agent.name)


class AdkAgent(AdaptedAgent):
    """Answers requests through a runner: a conversation is one of its sessions, a client one of its users.

    A call that fails leaves a session in memory as it was before, so that the next one does not answer it too.
    """

    can_run = True
    inner_tools_converse = True  # tools keep their state in the session

    def __init__(self, runner: Any) -> None:
        root = runner.agent
        super().__init__(root.name, getattr(root, "description", "") or "")
        self._runner = runner
        self._tools: dict[str, Any] = {}
        self._lives_in_memory = is_kind(runner.session_service, "google.adk", "InMemorySessionService")
        self._is_structured = getattr(root, "output_schema", None) is not None
        if self._is_structured:
            self.output_schema = of_objects(_output_schema(root.output_schema))

    async def run(self, request: str, context: Context) -> AsyncIterator[Event]:
        conversation = context.conversation
        await self._open(conversation)
        reader = _Reader(self._is_structured)
        completed = False
        try:
            stream = self._runner.run_async(
                **_place(conversation), new_message=_message(request, context), run_config=_run_config()
            )
            async with aclosing(stream) as events:
                async for event in events:
                    for shown in reader.read(event):
                        yield shown
            completed = reader.error is None
        finally:
            await self._keep(conversation, completed)
        for artifact in await self._artifacts(conversation, reader.artifacts):
            yield artifact
        for part in reader.rest():
            yield part

    async def gather_tools(self) -> list[ToolSpec]:
        root = self._runner.agent
        if not hasattr(root, "canonical_tools"):
            raise NoToolsError("only agents with a model have tools; name the one whose tools are meant")
        self._tools = {tool.name: tool for tool in await root.canonical_tools()}
        found = [google_adk_tools.spec_of(tool) for tool in self._tools.values()]
        specs = [spec for spec in found if spec is not None]
        if not specs:
            names = ", ".join(self._tools)
            raise NoToolsError(f"{names} run where the model runs" if names else "it has no tools of its own")
        return specs

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> AsyncIterator[Event]:
        conversation = context.conversation
        await self._open(conversation)
        completed = False
        try:
            session = await self._runner.session_service.get_session(**self._address(conversation))
            called = await google_adk_tools.call(self._runner, session, self._tools[tool], arguments)
            completed = called.failure is None
        finally:
            await self._keep(conversation, completed)
        for artifact in await self._artifacts(conversation, called.artifacts):
            yield artifact
        yield called.failure or called.answer

    async def close_conversation(self, conversation: Conversation) -> None:
        """Sessions elsewhere are their owner's; those in memory would stay there for ever."""
        if self._lives_in_memory and SESSION in conversation.memory:
            await self._runner.session_service.delete_session(**self._address(conversation))
            del conversation.memory[SESSION]

    async def shutdown(self) -> None:
        await self._runner.close()

    def _address(self, conversation: Conversation) -> dict[str, str]:
        return {"app_name": self._runner.app_name, **_place(conversation)}

    async def _open(self, conversation: Conversation) -> None:
        if SESSION in conversation.memory:
            return
        conversation.memory[SESSION] = conversation.id or uuid.uuid4().hex
        service, address = self._runner.session_service, self._address(conversation)
        if await service.get_session(**address) is None:
            session = await service.create_session(**address)
            if self._lives_in_memory:
                from google.adk.events import Event as SessionEvent

                for event in conversation.state.get(EVENTS, []):
                    await service.append_event(session, SessionEvent.model_validate(event))

    async def _keep(self, conversation: Conversation, completed: bool) -> None:
        if not self._lives_in_memory:
            return
        if not completed:
            await self.close_conversation(conversation)
            return
        session = await self._runner.session_service.get_session(**self._address(conversation))
        kept = conversation.state.setdefault(EVENTS, [])
        for event in session.events[len(kept) :]:
            kept.append(event.model_dump(mode="json", exclude_none=True, by_alias=True))

    async def _artifacts(self, conversation: Conversation, names: Mapping[str, int]) -> list[Event]:
        service = self._runner.artifact_service
        found: list[Event] = []
        for name, version in names.items() if service else ():
            part = await service.load_artifact(**self._address(conversation), filename=name, version=version)
            if part is not None:
                found.extend(_media(part, name))
        return found


def _place(conversation: Conversation) -> dict[str, str]:
    return {"user_id": conversation.client or "user", "session_id": conversation.memory[SESSION]}


def _run_config() -> Any:
    from google.adk.agents.run_config import RunConfig, StreamingMode

    return RunConfig(streaming_mode=StreamingMode.SSE)


def _output_schema(schema: Any) -> dict[str, Any]:
    if isinstance(schema, Mapping):
        return dict(schema)
    from pydantic import TypeAdapter

    return TypeAdapter(schema).json_schema()


def _message(request: str, context: Context) -> Any:
    from google.genai import types

    parts = [types.Part(text=request)]
    for attached in attachments_of(context):
        if isinstance(attached, Blob):
            parts.append(types.Part.from_bytes(data=attached.data, mime_type=attached.media_type))
        else:
            parts.append(types.Part.from_uri(file_uri=attached.uri, mime_type=attached.media_type or None))
    return types.Content(role="user", parts=parts)


class _Reader:
    """Makes events of ours of a run's; what is known only at the end is in :meth:`rest`."""

    def __init__(self, is_structured: bool) -> None:
        self.artifacts: dict[str, int] = {}
        self.error: Failure | None = None
        self._is_structured = is_structured
        self._was_streamed = False
        self._output: Any = None
        self._has_answer = False

    def read(self, event: Any) -> Iterator[Event]:
        if event.partial:
            yield from self._read_partial(event)
            return
        self.artifacts.update(event.actions.artifact_delta or {})
        if event.error_code or event.error_message:
            code = str(event.error_code or "")
            self.error = Failure(event.error_message or f"the model stopped: {code}", code=code)
        elif event.is_final_response() and _parts(event):
            self.error = None  # it has recovered
        if getattr(event, "output", None) is not None:
            self._output = event.output
        for part in _parts(event):
            yield from self._read_part(part, event.is_final_response())
        self._was_streamed = False

    def rest(self) -> Iterator[Event]:
        if self.error is not None:
            yield self.error
        elif not self._has_answer and self._output is not None:
            yield Text(self._output) if isinstance(self._output, str) else Data(self._output)

    def _read_partial(self, event: Any) -> Iterator[Event]:
        for part in _parts(event):
            if part.text:
                self._was_streamed = self._was_streamed or not part.thought
                yield Thought(part.text) if part.thought else Delta(part.text)

    def _read_part(self, part: Any, is_final: bool) -> Iterator[Event]:
        if part.text and part.thought:
            if not self._was_streamed:
                yield Thought(part.text)
        elif part.text and is_final:
            self._has_answer = True
            yield self._answer(part.text)
        elif part.text and not self._was_streamed:
            yield Progress(part.text)
        elif part.function_call:
            yield ToolCall(part.function_call.name or "tool", part.function_call.args)
        elif part.function_response:
            yield ToolReturn(part.function_response.name or "tool", part.function_response.response)
        elif part.executable_code:
            yield ToolCall("code", part.executable_code.code)
        elif part.code_execution_result:
            output = part.code_execution_result.output
            yield ToolReturn("code", output)
            if is_final and output:
                self._has_answer = True
                yield Text(output)
        for media in _media(part):
            self._has_answer = True
            yield media

    def _answer(self, text: str) -> Event:
        if self._is_structured:
            try:
                return Data(json.loads(text))
            except ValueError:
                pass
        return Text(text)


def _parts(event: Any) -> list[Any]:
    return (event.content.parts or []) if event.content else []


def _media(part: Any, name: str = "") -> Iterator[Event]:
    if part.inline_data and part.inline_data.data is not None:
        media_type = part.inline_data.mime_type or "application/octet-stream"
        yield Blob(part.inline_data.data, media_type, name or part.inline_data.display_name or "")
    elif part.file_data and part.file_data.file_uri:
        media_type = part.file_data.mime_type or ""
        yield Link(part.file_data.file_uri, name or part.file_data.display_name or "", media_type)
    elif name and part.text is not None:
        yield Blob(part.text.encode(), "text/plain", name)

"""The tools of Google's Agent Development Kit, called without the model."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from callboard.agents.contract import TOOL_FAILED, Data, Event, Failure, Text, ToolSpec
from callboard.agents.parts import plain


@dataclass(frozen=True)
class Called:
    """What came of a call: an answer or a failure, and the artifacts that the tool has saved, with their versions."""

    answer: Event
    failure: Failure | None
    artifacts: dict[str, int]


def spec_of(tool: Any) -> ToolSpec | None:
    """How a tool is published; None for one that is the model's own, such as a search."""
    declaration = tool._get_declaration()  # what models are told of it; there is no other way to its schema
    if declaration is None:
        return None
    schema = declaration.parameters_json_schema
    if schema is None and declaration.parameters is not None:
        schema = declaration.parameters.json_schema.model_dump(mode="json", by_alias=True, exclude_none=True)
    return ToolSpec(tool.name, declaration.description or tool.description or "", schema or {"type": "object"})


async def call(runner: Any, session: Any, tool: Any, arguments: dict[str, Any]) -> Called:
    """Call a tool in a session, which keeps what the tool changes in its state."""
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events import Event as SessionEvent
    from google.adk.tools import ToolContext

    invocation = InvocationContext(
        invocation_id=f"e-{uuid.uuid4()}",
        agent=runner.agent,
        session=session,
        session_service=runner.session_service,
        artifact_service=runner.artifact_service,
        memory_service=runner.memory_service,
        credential_service=runner.credential_service,
    )
    within = ToolContext(invocation, function_call_id=f"call-{uuid.uuid4().hex}")
    value = await tool.run_async(args=arguments, tool_context=within)
    actions = within.actions
    if actions.requested_tool_confirmations or actions.requested_auth_configs:
        failure = Failure(f"{tool.name} waits for a person's word", code="paused")
        return Called(Text(""), failure, {})
    if actions.state_delta or actions.artifact_delta:
        event = SessionEvent(author=runner.agent.name, invocation_id=invocation.invocation_id, actions=actions)
        await runner.session_service.append_event(session, event)
    if isinstance(value, dict) and value.keys() == {"error"}:  # the kit's own way to tell the model
        return Called(Text(""), Failure(str(value["error"]), TOOL_FAILED), {})
    answer = Text(value) if isinstance(value, str) else Data(plain(value))
    return Called(answer, None, dict(actions.artifact_delta))

"""The steps that a smolagents agent remembers, as JSON and back: as much of them as its model is shown again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any


def forget_inputs(steps: Iterable[Any]) -> None:
    """Each step holds the whole conversation before it a second time: memory that grows with its square."""
    for step in steps:
        if getattr(step, "model_input_messages", None):
            step.model_input_messages = []


def dump(steps: Iterable[Any]) -> list[dict[str, Any]]:
    """Steps in terms of JSON; images are left out."""
    return [_dumped(step) for step in steps]


def load(kept: Iterable[dict[str, Any]], logger: Any) -> list[Any]:
    """The reverse of :func:`dump`; ``logger`` is the agent's, which its errors ask for."""
    return [_loaded(step, logger) for step in kept]


def _dumped(step: Any) -> dict[str, Any]:
    kind = type(step).__name__
    if kind == "TaskStep":
        return {"kind": kind, "task": step.task}
    if kind == "PlanningStep":
        return {"kind": kind, "plan": step.plan}
    return {
        "kind": "ActionStep",
        "number": step.step_number,
        "model_output": step.model_output if isinstance(step.model_output, str) else None,
        "tool_calls": [
            {"name": call.name, "arguments": json.loads(json.dumps(call.arguments, default=str)), "id": call.id}
            for call in step.tool_calls or []
        ],
        "observations": step.observations,
        "error": str(step.error) if step.error is not None else None,
    }


def _loaded(kept: dict[str, Any], logger: Any) -> Any:
    from smolagents import memory
    from smolagents.models import ChatMessage, MessageRole
    from smolagents.monitoring import Timing
    from smolagents.utils import AgentError

    if kept["kind"] == "TaskStep":
        return memory.TaskStep(task=kept["task"])
    timing = Timing(start_time=0.0, end_time=0.0)
    if kept["kind"] == "PlanningStep":
        message = ChatMessage(role=MessageRole.ASSISTANT, content=kept["plan"])
        return memory.PlanningStep([], message, kept["plan"], timing)
    return memory.ActionStep(
        step_number=kept["number"],
        timing=timing,
        model_output=kept["model_output"],
        tool_calls=[memory.ToolCall(**call) for call in kept["tool_calls"]] or None,
        observations=kept["observations"],
        error=AgentError(kept["error"], logger) if kept["error"] is not None else None,
    )

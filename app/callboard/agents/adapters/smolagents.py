"""Agents of smolagents."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

from callboard.agents.adapters import smolagents_memory
from callboard.agents.adapters.kinds import attachments_of, family, is_kind
from callboard.agents.contract import (
    AdaptedAgent,
    Blob,
    Context,
    Conversation,
    NoToolsError,
    Progress,
    Text,
    Thought,
    ToolCall,
    ToolReturn,
    ToolSpec,
    construct,
)

TWIN = "agent"  # in the conversation's memory: an agent of its own
STEPS = "steps"  # in its state


def matches(value: Any) -> bool:
    return is_kind(value, "smolagents", "MultiStepAgent")


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    return SmolAgent(construct(value, params))


class SmolAgent(AdaptedAgent):
    """Answers requests. The framework keeps one conversation in an agent, so each conversation has a twin of it.

    Twins share model and tools; memory, state and a code agent's interpreter are their own.
    """

    can_run = True

    def __init__(self, agent: Any) -> None:
        super().__init__(agent.name or "", agent.description or "")
        self._agent = agent

    def run(self, request: str, context: Context) -> Iterator[Any]:
        agent = self._twin(context.conversation)
        before = len(agent.memory.steps)
        images, others = _attached(context)
        options = {"images": images or None, "additional_args": others or None}
        completed, last = False, None
        steps = agent.run(request, stream=True, reset=False, **options)
        try:
            for step in steps:
                if step is not last:  # the step that used up the last one allowed comes twice
                    yield from _shown(step)
                last = step
                if context.is_cancelled:
                    agent.interrupt()
            completed = True
        finally:
            if not completed:
                with suppress(RuntimeError):  # it yields once more when it is closed
                    steps.close()
                del agent.memory.steps[before:]
        smolagents_memory.forget_inputs(agent.memory.steps)
        kept = context.state.setdefault(STEPS, [])
        kept.extend(smolagents_memory.dump(agent.memory.steps[len(kept) :]))

    async def gather_tools(self) -> list[ToolSpec]:
        from smolagents.models import get_tool_json_schema

        found = [
            get_tool_json_schema(tool)["function"] for name, tool in self._agent.tools.items() if name != "final_answer"
        ]
        if not found:
            raise NoToolsError("it has no tools of its own")
        return [ToolSpec(each["name"], each["description"], each["parameters"]) for each in found]

    def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Any:
        return _answer(self._agent.tools[tool](**arguments, sanitize_inputs_outputs=True))

    def close_conversation(self, conversation: Conversation) -> None:
        agent = conversation.memory.pop(TWIN, None)
        if agent is not None and hasattr(agent, "cleanup"):
            agent.cleanup()

    def _twin(self, conversation: Conversation) -> Any:
        if TWIN not in conversation.memory:
            twin = _twin_of(self._agent)
            twin.memory.steps.extend(smolagents_memory.load(conversation.state.get(STEPS, []), twin.logger))
            conversation.memory[TWIN] = twin
        return conversation.memory[TWIN]


def _twin_of(agent: Any) -> Any:
    twin = copy.copy(agent)
    twin.memory = type(agent.memory)(agent.system_prompt)
    twin.state = dict(agent.state)
    twin.tools = dict(agent.tools)
    twin.managed_agents = {name: _twin_of(managed) for name, managed in agent.managed_agents.items()}
    twin.monitor = type(agent.monitor)(agent.model, agent.logger)
    twin.step_callbacks = copy.copy(agent.step_callbacks)
    twin.step_callbacks._callbacks = {
        kind: [twin.monitor.update_metrics if each == agent.monitor.update_metrics else each for each in callbacks]
        for kind, callbacks in agent.step_callbacks._callbacks.items()
    }
    if (executor := getattr(agent, "python_executor", None)) is not None:
        twin.python_executor = _executor_like(executor, agent)
    return twin


def _executor_like(executor: Any, agent: Any) -> Any:
    """An interpreter in this process as a copy with variables of its own; any other is made anew by the agent."""
    if not is_kind(executor, "smolagents", "LocalPythonExecutor"):
        return agent.create_python_executor()
    twin = copy.copy(executor)
    twin.state = dict(executor.state)
    return twin


def _attached(context: Context) -> tuple[list[Any], dict[str, Any]]:
    """Images as the model sees them, everything else as variables for the agent's code."""
    images: list[Any] = []
    others: dict[str, Any] = {}
    for number, attached in enumerate(attachments_of(context), 1):
        if isinstance(attached, Blob) and family(attached.media_type) == "image":
            from PIL import Image

            images.append(Image.open(BytesIO(attached.data)))
        elif isinstance(attached, Blob):
            others[attached.name or f"attachment_{number}"] = attached.data
        else:
            others[attached.name or f"attachment_{number}"] = attached.uri
    return images, others


def _shown(step: Any) -> Iterator[Any]:
    kind = type(step).__name__
    if kind == "ChatMessageStreamDelta" and step.content:
        yield Thought(step.content)  # the answer itself is what it gives its last tool
    elif kind == "ToolCall" and step.name != "final_answer":
        yield ToolCall(step.name, step.arguments)
    elif kind == "ToolOutput" and not step.is_final_answer:
        yield ToolReturn(step.tool_call.name, step.observation)
    elif kind == "PlanningStep":
        yield Thought(step.plan)
    elif kind == "ActionStep" and step.error is not None:
        yield Progress(f"step {step.step_number}: {step.error}")
    elif kind == "FinalAnswerStep":
        yield _answer(step.output)


def _answer(output: Any) -> Any:
    if is_kind(output, "smolagents", "AgentText"):
        return Text(output.to_string())
    if is_kind(output, "smolagents", "AgentAudio"):
        return Blob(Path(output.to_string()).read_bytes(), "audio/wav")
    if is_kind(output, "PIL", "Image"):
        data = BytesIO()
        output.save(data, format="PNG")
        return Blob(data.getvalue(), "image/png")
    return output

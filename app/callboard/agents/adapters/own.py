"""Agents on our own base class, and whatever is adapted already."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from callboard.agents.base import TOOL_MARK, Agent
from callboard.agents.contract import AdaptedAgent, Answer, Context, Conversation, construct
from callboard.agents.signatures import context_parameter, tool_of


def matches(value: Any) -> bool:
    """An :class:`Agent` or :class:`AdaptedAgent`, as a class or an object."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, (Agent, AdaptedAgent))


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """Raises TypeError for an agent that neither runs nor has tools."""
    agent = construct(value, params)
    if isinstance(agent, AdaptedAgent):
        return agent
    adapted = OwnAgent(agent)
    if not adapted.tools and not adapted.can_run:
        raise TypeError(f"{type(agent).__name__} has no run() and no method marked with @tool")
    return adapted


class OwnAgent(AdaptedAgent):
    """An object of the base class."""

    def __init__(self, agent: Agent) -> None:
        kind = type(agent)
        documented = "" if kind.__doc__ is Agent.__doc__ else inspect.getdoc(kind) or ""
        super().__init__(agent.name or kind.__name__, agent.description or documented)
        self.instructions = agent.instructions
        self.version = agent.version
        self._agent = agent
        self._methods: dict[str, Callable[..., Any]] = {}
        for attribute, function in inspect.getmembers(kind, callable):
            mark = getattr(function, TOOL_MARK, None)
            if mark is not None:
                method = getattr(agent, attribute)
                spec = tool_of(method, mark["name"], mark["description"])
                spec.annotations = mark["annotations"]
                self.tools.append(spec)
                self._methods[spec.name] = method
        self.can_run = kind.run is not Agent.run
        self._takes_context = len(inspect.signature(agent.run).parameters) > 1

    def run(self, request: str, context: Context) -> Answer:
        """Answer with the agent's own method, which need not take the context."""
        method = self._agent.run
        return method(request, context) if self._takes_context else method(request)  # type: ignore[call-arg]

    def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Answer:
        """Run a marked method."""
        return call_with_context(self._methods[tool], arguments, context)

    def close_conversation(self, conversation: Conversation) -> Answer:
        """Tell the agent."""
        return self._agent.close(conversation)


def call_with_context(function: Callable[..., Any], arguments: Mapping[str, Any], context: Context) -> Any:
    """Call ``function`` with its arguments by name, and the context if it asks for it."""
    name = context_parameter(function)
    return function(**arguments, **({name: context} if name else {}))

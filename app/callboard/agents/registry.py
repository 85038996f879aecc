"""Agents and tools gathered for one server, in any order, before it runs and while it does.

Standard library only, so that a registry can also be what a roster's entry names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from callboard.agents.adapters.plain import FunctionTools
from callboard.agents.contract import AdaptedAgent
from callboard.agents.loading import adapt_all

if TYPE_CHECKING:
    from fastmcp import FastMCP

    from callboard.agents.gathered import GatheredService

F = TypeVar("F", bound=Callable[..., Any])


class AgentRegistry:
    """What one server offers: agents, each as one tool (or its own tools, where it answers no requests), and functions.

    ``expose`` are globs over the agents' names; one that begins with ``!`` leaves out. Changes while the server runs
    are told to its clients; make them on the server's loop.
    """

    def __init__(self, name: str = "agents", *, expose: Iterable[str] = ("*",), stateless: bool = False) -> None:
        self.name = name
        self.stateless = stateless
        self.exposed = tuple(expose)
        self._agents: dict[str, AdaptedAgent] = {}
        self._functions: dict[str, AdaptedAgent] = {}
        self._service: GatheredService | None = None

    @property
    def adapted(self) -> list[AdaptedAgent]:
        """Everything that was added, agents first."""
        return [*self._agents.values(), *self._functions.values()]

    @overload
    def tool(self, function: F) -> F: ...
    @overload
    def tool(self, *, name: str = "", description: str = "") -> Callable[[F], F]: ...
    def tool(self, function: F | None = None, *, name: str = "", description: str = "") -> F | Callable[[F], F]:
        """Add a function as a tool; a decorator, with or without arguments."""

        def add(added: F) -> F:
            tools = FunctionTools({name or added.__name__: added}, {})
            tools.is_always_exposed = True
            tools.tools[0].description = description or tools.tools[0].description
            self._functions[tools.name] = tools
            self._changed()
            return added

        return add if function is None else add(function)

    def add(self, agent: Any, *, name: str = "") -> None:
        """Add an agent of any kind that is known. Raises TypeError for what is none, ValueError for a name taken."""
        for adapted in adapt_all(agent, {}):
            adapted.name = name or adapted.name
            if adapted.name in self._agents:
                raise ValueError(f"there is an agent {adapted.name} already")
            self._agents[adapted.name] = adapted
        self._changed()

    def remove(self, name: str) -> None:
        """Take an agent or a tool out. Raises KeyError."""
        if self._functions.pop(name, None) is None:
            del self._agents[name]
        self._changed()

    def expose(self, *patterns: str) -> None:
        """Say anew which agents are offered. Raises ExposeError for a name that there is not, if the server runs."""
        self.exposed = patterns
        self._changed()

    def server(self) -> FastMCP[Any]:
        """The FastMCP server of all this, to be run as one likes; always the same one."""
        from callboard.agents.front import make_server
        from callboard.agents.gathered import GatheredService

        self._service = GatheredService(self)
        return make_server(self._service, name=self.name)

    def _changed(self) -> None:
        if self._service is not None:
            self._service.refresh()

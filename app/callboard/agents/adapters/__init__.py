"""The adapters, one module for each kind of agent, found by looking at the agent object.

Each module has ``matches(value) -> bool`` and ``adapt(value, params) -> AdaptedAgent``. ``value`` is what stands under
the attribute that the roster names: a class or an object. An adapter imports the standard library and
:mod:`callboard.agents.contract`; its framework only inside functions, and only after ``matches`` said yes, because by
then the agent's own module has imported it.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from callboard.agents.contract import AdaptedAgent


class Adapter(Protocol):
    """What a module of this package offers."""

    def matches(self, value: Any) -> bool:
        """True if ``value`` is an agent of this kind."""

    def adapt(self, value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
        """The agent in our shape; raises TypeError with a sentence that says what is missing."""


@dataclass(frozen=True)
class AdapterSource:
    """Where an adapter is: looked at only if one of ``packages`` has been imported (empty: always)."""

    module: str
    packages: tuple[str, ...] = ()

    @property
    def is_possible(self) -> bool:
        """True if an object of this kind can exist in this process."""
        return not self.packages or any(package in sys.modules for package in self.packages)

    def load(self) -> Adapter:
        """The adapter itself."""
        return cast("Adapter", importlib.import_module(f"{__name__}.{self.module}"))


# Asked in this order: what says clearly what it is comes first, plain functions last.
ADAPTERS: tuple[AdapterSource, ...] = (
    AdapterSource("own"),
    AdapterSource("gaia"),
    AdapterSource("fastmcp_server", ("fastmcp", "mcp")),
    AdapterSource("google_adk", ("google.adk",)),
    AdapterSource("agent_kernel", ("agentkernel",)),
    AdapterSource("pydantic_ai", ("pydantic_ai",)),
    AdapterSource("openai_agents", ("agents",)),
    AdapterSource("smolagents", ("smolagents",)),
    AdapterSource("langgraph", ("langchain_core", "langgraph")),
    AdapterSource("plain"),
)


def find_adapter(value: Any) -> Adapter | None:
    """The first adapter that knows ``value``, or None."""
    for source in ADAPTERS:
        if source.is_possible:
            adapter = source.load()
            if adapter.matches(value):
                return adapter
    return None

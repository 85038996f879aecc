"""Shapes of the control API for looking at Python agents before they are served; see :mod:`callboard.api.schema`."""

from typing import Any, Literal

import msgspec

from callboard.api.schema import View


class AgentLookRequest(View, frozen=True, kw_only=True):
    """POST /agents/look: what there is at ``agent``, a file, a module, or an agent in one.

    ``python`` empty: the likeliest of the interpreters found. The agent's module is imported, and an agent that is
    named with its attribute is made, as it would be to be served.
    """

    agent: str
    python: str = ""
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    cwd: str = ""


class InterpreterView(View, frozen=True, kw_only=True):
    """A Python that may have the agent's packages."""

    path: str
    origin: Literal["environment", "project", "callboard"]


class FoundAgent(View, frozen=True, kw_only=True):
    """An agent in the file or module; ``agent`` is how an entry names it."""

    agent: str
    name: str
    kind: str
    description: str = ""


class OfferedTool(View, frozen=True, kw_only=True):
    """A tool that clients would see; ``whole``: the agent itself."""

    name: str
    description: str = ""
    whole: bool = False


class AgentLook(View, frozen=True, kw_only=True):
    """Answer: the agents of a place, or the tools of one agent. ``error`` is what kept it from being looked at."""

    python: str
    interpreters: list[InterpreterView]
    agents: list[FoundAgent]
    tools: list[OfferedTool]
    error: str = ""


class ConversationView(View, frozen=True, kw_only=True):
    """One conversation that an agent's server holds. ``client`` is empty for one of no client's."""

    id: str
    agent: str
    client: str
    turns: int
    used: float  # when the last call came or ended
    busy: bool = False  # a call is in it, or waits for its turn


class ConversationsView(View, frozen=True, kw_only=True):
    """What a Python agent's server holds now, the one used last first.

    ``limit`` is how many are held at most (0: no limit), ``stored`` how many are kept beyond the server's life. Of a
    server that does not run nothing is known.
    """

    running: bool
    held: int = 0
    stored: int = 0
    limit: int = 0
    conversations: list[ConversationView] = msgspec.field(default_factory=list)

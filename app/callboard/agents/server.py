"""For programs that embed agents: serve a class, or make a FastMCP server of an agent's object."""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from callboard.agents.adapters import gaia
from callboard.agents.contract import AdaptedAgent
from callboard.agents.exposing import proper_name
from callboard.agents.keeper import AnyLink, MakeLink
from callboard.agents.loading import adapt_all
from callboard.agents.local_link import LocalLink
from callboard.agents.service import Service
from callboard.agents.serving import TRANSPORTS, Address, Stop, banner, listen, say, serve_http, serve_stdio
from callboard.agents.settings import AgentSettings

if TYPE_CHECKING:
    from fastmcp import FastMCP

DEFAULT_PORT: Final = 8080
DEFAULT_HOST: Final = "localhost"
log = logging.getLogger(__name__)


class AgentServer:
    """Serves an agent class with ``get_mcp_tool_definitions`` and ``execute_mcp_tool`` in this process.

    :meth:`start` blocks until :meth:`stop`, a signal, or, on stdio, the end of the input.
    """

    def __init__(
        self,
        agent_class: type,
        name: str | None = None,
        port: int | None = None,
        host: str | None = None,
        verbose: bool = False,
        agent_params: Mapping[str, Any] | None = None,
        transport: str = "streamable-http",
        register_typed_tools: bool = False,
    ) -> None:
        """Make the agent. Without ``register_typed_tools`` each tool is published with the one argument ``kwargs``;
        plain arguments are taken either way.

        Raises TypeError for what is no such class or takes no such parameter, and ValueError for an unknown transport.
        """
        if not isinstance(agent_class, type):
            raise TypeError(f"agent_class must be a class, not {type(agent_class).__name__}")
        _check_transport(transport)
        self.transport = transport
        self.port = DEFAULT_PORT if port is None else port
        self.host = DEFAULT_HOST if host is None else host
        self.verbose = verbose
        self._adapted = gaia.adapt(agent_class, dict(agent_params or {}))
        self.agent_class = agent_class
        maker = "GAIA " if agent_class.__module__.partition(".")[0] == "gaia" else ""
        self.name = name or f"{maker}{agent_class.__name__} MCP"
        self.settings = AgentSettings(
            agent=(f"{agent_class.__module__}:{agent_class.__qualname__}",),
            name=self.name,
            typed=register_typed_tools,
        )
        self._stop = Stop()

    def start(self, transport: str | None = None) -> None:
        """Serve. Raises ``port-in-use`` before anything is printed, and ValueError for an unknown transport."""
        chosen = self.transport if transport is None else transport
        _check_transport(chosen)
        self._stop = Stop()
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(self._serve(chosen, self._stop))

    def stop(self) -> None:
        """End :meth:`start`, from any thread."""
        self._stop()

    async def _serve(self, transport: str, stop: Stop) -> None:
        from callboard.agents.front import make_server

        address = Address(self.host, self.port)
        sock = None if transport == "stdio" else listen(address)
        service = Service(self.settings, [local_maker([self._adapted])])
        service.verbose = self.verbose
        try:
            await service.start()
            server = make_server(service, name=self.name, owns_service=False)
            text = banner(service, self.name, self.agent_class.__name__, transport, address.url, verbose=self.verbose)
            say(text, sys.stderr if sock is None else sys.stdout)
            if sock is None:
                await serve_stdio(server, stop)
            else:
                await serve_http(server, service, address, sock, stop)
        finally:
            if sock is not None:
                sock.close()
            await service.close()


def to_mcp_server(
    agent: Any, *, name: str | None = None, instructions: str | None = None, runner: Any = None
) -> "FastMCP[Any]":
    """A FastMCP server of an agent's object: one tool that runs the agent, or its tools where it runs no requests.

    ``runner`` stands in for the agent where its framework has such (Google ADK's Runner, with services of your own).
    How it is served is the caller's to choose: ``to_mcp_server(agent).run("http", port=8000)``.
    Raises TypeError for what is no agent.
    """
    from callboard.agents.front import make_server

    adapted = adapt_all(runner if runner is not None else agent, {})
    whole = all(each.can_run for each in adapted)
    shown = name or (adapted[0].name if len(adapted) == 1 else "agents")
    if proper_name(shown) != shown:
        log.warning('"%s" cannot be the name of a tool: it is called %s.', shown, proper_name(shown))
    settings = AgentSettings(agent=(shown,), name=shown, expose="whole" if whole else "tools")
    service = Service(settings, [local_maker(adapted)])
    told = instructions or "\n\n".join(each.instructions for each in adapted if each.instructions)
    return make_server(service, name=shown, instructions=told, version=adapted[0].version)


def local_maker(adapted: list[AdaptedAgent]) -> MakeLink:
    """Links to agents in this process."""

    async def make() -> AnyLink:
        link = LocalLink(adapted)
        await link.start()
        return link

    return make


def _check_transport(transport: str) -> None:
    if transport not in TRANSPORTS:
        raise ValueError(f"There is no transport {transport!r}; there is {', '.join(TRANSPORTS)}.")

"""``callboard agent``: serve a Python agent on its own, without the engine, and look what there is to serve."""

import asyncio
import json
import logging
import os
import sys
from argparse import Namespace
from typing import Any

from callboard.agents import discovery
from callboard.agents.exposing import ExposeError
from callboard.agents.host import quiet_libraries, sentence, serve_with
from callboard.agents.link import AgentError
from callboard.agents.loading import LoadError, parse_spec
from callboard.agents.service import Service
from callboard.agents.serving import Address, Stop, banner, listen, say, serve_http, serve_stdio
from callboard.agents.settings import CONFIG, AgentSettings, SettingsError, read_settings, variable_of
from callboard.agents.stores import StoreError
from callboard.commands.arguments import UsageError
from callboard.commands.terminal import Terminal
from callboard.core.errors import CallboardError


def serve(options: Namespace) -> int:
    """Serve until the client or Ctrl-C ends it. Raises CallboardError for a port that is in use."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s: %(message)s")
    quiet_libraries()
    try:
        settings = _settings(options)
        asyncio.run(_serve(settings, options))
    except (AgentError, ExposeError, StoreError) as error:
        say(f"callboard: {sentence(error)}")
        return 1
    except SettingsError as error:
        raise UsageError(sentence(error)) from error
    except KeyboardInterrupt:
        return 0
    return 0


def list_agents(options: Namespace) -> int:
    """The agents of a file or module, or the tools of one agent."""
    terminal = Terminal.standard()
    try:
        rows = asyncio.run(_looked_at(options))
    except AgentError as error:
        say(f"callboard: {sentence(error)}")
        return 1
    if options.json:
        terminal.json(rows)
    elif rows:
        terminal.table(tuple(name.upper() for name in rows[0]), [tuple(row.values()) for row in rows])
    else:
        terminal.note("There is no agent that is known here.")
    return 0


async def _looked_at(options: Namespace) -> list[dict[str, str]]:
    try:
        spec = parse_spec(options.agent)
    except LoadError as error:
        raise AgentError(error.wire) from error
    if not spec.attribute:
        return await discovery.list_agents(options.agent, options.python or "")
    found = []
    for agent in await discovery.describe(options.agent, options.python or ""):
        tools = agent["tools"]
        if agent["can_run"] and (agent["has_inner_tools"] or not tools):
            tools = [{"name": agent["name"], "description": agent["description"]}, *tools]
        found += [
            {"agent": agent["name"], "tool": tool["name"], "description": tool["description"].partition("\n")[0]}
            for tool in tools
        ]
    return found


async def _serve(settings: AgentSettings, options: Namespace) -> None:
    stdio = options.transport == "stdio"
    address = Address(options.host, options.port, _token(options.token_env), stateless=settings.stateless)
    if not stdio and not address.is_loopback and not address.token:
        raise UsageError(f"Others can reach {address.host}: name a token's variable with --token-env.")
    sock = None if stdio else listen(address)
    stop = Stop()

    async def serve_here(server: Any, service: Service) -> None:
        agents = ", ".join(agent["name"] for agent in service.agents)
        say(banner(service, server.name, agents, options.transport, address.url), sys.stderr if stdio else sys.stdout)
        if sock is None:
            await serve_stdio(server, stop)
        else:
            await serve_http(server, service, address, sock, stop)

    try:
        await serve_with(settings, serve_here)
    finally:
        if sock is not None:
            sock.close()


def _settings(options: Namespace) -> AgentSettings:
    """The command line over the environment: its words over ``CALLBOARD_AGENT_…``, those over the defaults."""
    given: dict[str, Any] = {"agent": options.agents if len(options.agents) > 1 else options.agents[0]}
    if options.whole:
        given["expose"] = "whole"
    environment = dict(os.environ)
    for setting in options.set:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"--set wants NAME=VALUE, not {setting!r}.")
        environment[variable_of(name)] = text
    if options.python:
        given["python"] = options.python
    if options.reload:
        given["reload"] = True
    return read_settings({**environment, CONFIG: json.dumps(given)})


def _token(variable: str | None) -> str:
    if variable is None:
        return ""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise CallboardError("env-unset", f"The environment variable {variable} is not set.")
    return token

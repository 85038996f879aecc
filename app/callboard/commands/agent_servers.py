"""``callboard agent reload`` and ``callboard agent conversations``: the Python agents that the engine serves."""

import time
from argparse import Namespace

from callboard.api.client import EngineClient
from callboard.commands.terminal import Cell, Terminal, span
from callboard.core.errors import CallboardError


async def reload(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Load the agents of some servers anew, and say what they offer now."""
    failed = False
    tools: dict[str, list[str]] = {}
    for name in options.servers:
        try:
            await client.reload(name)
        except CallboardError as error:
            if error.code != "agent-load":
                raise
            terminal.failure(error)
            failed = True
            continue
        tools[name] = [tool.name for tool in await client.tools(name)]
        if not options.json:
            terminal.line(f"{name}: loaded anew; its tools: {', '.join(tools[name]) or 'none'}")
    if options.json:
        terminal.json({name: {"tools": names} for name, names in tools.items()})
    return 1 if failed else 0


async def conversations(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The conversations of one server, the one used last first."""
    told = await client.conversations(options.server)
    if options.json:
        terminal.json(told)
        return 0
    if not told.running:
        terminal.note(f"{options.server} does not run.")
        return 0
    now = time.time()
    rows = [
        (each.id, each.agent, each.client, str(each.turns), Cell("busy", "busy") if each.busy else _ago(now, each.used))
        for each in told.conversations
    ]
    if rows:
        terminal.table(("CONVERSATION", "AGENT", "CLIENT", "TURNS", "USED"), rows)
    limit = f" of at most {told.limit}" if told.limit else ""
    stored = f", {told.stored} stored" if told.stored else ""
    terminal.note(f"{told.held}{limit} held{stored}")
    return 0


def _ago(now: float, used: float) -> str:
    return f"{span(now - used)} ago"

"""Commands about a server's entry in the roster as a whole: remove, enable, disable."""

from argparse import Namespace
from typing import Any

from callboard.api.client import EngineClient
from callboard.commands import asking
from callboard.commands.servers import settled
from callboard.commands.shipped import tell_state
from callboard.commands.terminal import Terminal

_PATIENCE = 60.0  # seconds for a server to end


async def remove(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Take servers out of the roster; they are stopped."""
    for name in options.servers:
        await client.server(name)  # none is removed if one is not there
    names = ", ".join(options.servers)
    if not options.yes and not asking.agrees(f"Remove {names} from the roster? [y/N] ", "removed"):
        return 1
    for name in options.servers:
        await client.remove_entry(name)
        terminal.line(f"{name}: removed")
    return 0


async def enable(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Enable servers, and wait for those that start by themselves."""
    codes = []
    for name in options.servers:
        await client.act(name, "enable")
        codes.append(await tell_state(client, name, "enabled", options, terminal))
    return max(codes)


async def disable(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Disable servers, and wait until they have ended."""
    shown: list[Any] = []
    for name in options.servers:
        server = await settled(client, await client.act(name, "disable"), "stop", _PATIENCE)
        shown.append(server)
        if not options.json:
            terminal.line(f"{name}: {server.state}")
    if options.json:
        terminal.json(shown)
    return 0

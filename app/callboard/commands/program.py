"""Commands about the program itself: snippet, quit, doctor, metrics."""

import asyncio
from argparse import Namespace
from typing import Final

from callboard.api.client import EngineClient
from callboard.commands.looks import tell_check_fixes
from callboard.commands.terminal import Cell, Terminal
from callboard.core.errors import FIXES, CallboardError
from callboard.core.meanings import MEANINGS

_MEANING: Final = {"ok": "fine", "warn": "attention", "fail": "failed"}
_QUIT_WAIT: Final = 30.0  # seconds for the engine and its servers to end
_POLL: Final = 0.1


async def snippet(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """A client's configuration, ready to paste; without a name the clients that we know."""
    if not options.client:
        known = await client.clients()
        if options.json:
            terminal.json(known)
        else:
            terminal.table(("CLIENT", "NAME", "FILE"), [(each.id, each.name, each.file) for each in known])
        return 0
    view = await client.snippet(options.client, server=options.server or "", with_token=options.with_token)
    if options.json:
        terminal.json(view)
        return 0
    terminal.raw(view.text)
    terminal.flush()
    terminal.note(view.note or f"Put this into {view.file}.")
    return 0


async def quit_engine(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Stop the engine with all its servers, and wait until it has ended."""
    await client.quit()
    try:
        async with asyncio.timeout(_QUIT_WAIT):
            while True:
                await client.engine()
                await asyncio.sleep(_POLL)
    except TimeoutError:
        terminal.error("The engine has not ended yet.", "Wait a moment, then look again with `callboard list`.")
        return 1
    except CallboardError as error:
        if error.code != "engine-unreachable":
            raise
    return 0


async def metrics(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The figures of all calls as they are."""
    terminal.raw((await client.metrics()).rstrip("\n"))
    return 0


def explain(code: str, terminal: Terminal, *, as_json: bool) -> int:
    """Say what an error code means and what mends it. Needs no engine."""
    if as_json:
        terminal.json({"code": code, "meaning": MEANINGS[code], "fix": FIXES[code]})
    else:
        terminal.pairs([("code", code), ("meaning", MEANINGS[code]), ("fix", FIXES[code])])
    return 0


async def doctor(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Look for what is wrong with the engine, or with one server."""
    checks = await client.doctor(options.server or "")
    if options.json:
        terminal.json(checks)
    else:
        rows = [(Cell(each.status, _MEANING[each.status]), each.name, each.message) for each in checks]
        terminal.table(("RESULT", "CHECK", "FINDING"), rows)
        tell_check_fixes(checks, terminal)
    return 1 if any(each.status == "fail" for each in checks) else 0

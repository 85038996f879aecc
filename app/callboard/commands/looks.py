"""Commands that go and look: health, refresh, test."""

import time
from argparse import Namespace
from typing import Final

from callboard.api.client import EngineClient
from callboard.api.schema import Check, HealthView
from callboard.commands.servers import offer
from callboard.commands.terminal import Cell, Terminal, duration, span

_MEANING: Final = {"ok": "fine", "warn": "attention", "fail": "failed", "off": "off"}


async def health(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Ask servers for a sign of life, or tell what the last look found."""
    if options.cached:
        views = await client.health()
        if options.servers:
            views = [view for name in options.servers if (view := (await client.server(name)).health) is not None]
    elif options.servers:
        views = [await client.check_health(name) for name in options.servers]
    else:
        views = await client.check_all()
    if options.json:
        terminal.json(views)
    elif not views:
        terminal.note("Nobody has looked yet." if options.cached else "No server is in the roster yet.")
    else:
        rows = [(*_start(view), aged(view), duration(view.duration_ms), view.message) for view in views]
        terminal.table(("NAME", "HEALTH", "LOOKED", "TIME", "FINDING"), rows)
        _tell_fixes(views, terminal)
    return _code(views)


async def refresh(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Read the lists of servers anew, and ask each for a sign of life."""
    if options.servers:
        views = [await client.refresh(name) for name in options.servers]
    else:
        views = await client.refresh_all()
    if options.json:
        terminal.json(views)
    elif not views:
        terminal.note("No server is in the roster yet.")
    else:
        offers = {server.name: offer(server) for server in await client.servers()}
        rows = [
            (
                *_start(view),
                duration(view.duration_ms),
                (view.status == "ok" and offers.get(view.server)) or view.message,
            )
            for view in views
        ]
        terminal.table(("NAME", "HEALTH", "TIME", "FINDING"), rows)
        _tell_fixes(views, terminal)
    return _code(views)


async def test(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Try a server: every step from its settings to its answer, with the time that it took."""
    checks = await client.test(options.server)
    if options.json:
        terminal.json(checks)
    else:
        rows = [
            (Cell(each.status, _MEANING[each.status]), each.name, duration(each.duration_ms), each.message)
            for each in checks
        ]
        terminal.table(("RESULT", "STEP", "TIME", "FINDING"), rows)
        tell_check_fixes(checks, terminal)
    return 1 if any(each.status == "fail" for each in checks) else 0


def tell_check_fixes(checks: list[Check], terminal: Terminal) -> None:
    """What mends each check that is not as it should be, below their table."""
    for fix in dict.fromkeys(f"{each.name}: {each.fix}" for each in checks if each.status != "ok" and each.fix):
        terminal.line(fix)


def aged(view: HealthView) -> str:
    """How long ago somebody looked."""
    seconds = time.time() - view.at
    return "just now" if seconds < 2 else f"{span(seconds)} ago"


def _start(view: HealthView) -> tuple[str, Cell]:
    return view.server, Cell(view.status, _MEANING[view.status])


def _tell_fixes(views: list[HealthView], terminal: Terminal) -> None:
    for view in views:
        if view.fix and view.status in ("warn", "fail"):
            terminal.line(f"{view.server}: {view.fix}")


def _code(views: list[HealthView]) -> int:
    return 1 if any(view.status == "fail" for view in views) else 0

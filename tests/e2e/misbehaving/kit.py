"""What tests of misbehaving servers share: their entries in a roster, and an engine that loses patience sooner."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

from tests.support.engine import EngineProcess, Entry, entry
from tests.support.gateway import LegacyClient, http_server

SERVERS = Path(__file__).parents[2] / "support" / "servers"
FAULTY = SERVERS / "faulty"
_WORDS = {
    *("asks", "lines", "giant", "bytes", "late", "changing", "names", "noisy", "handshake", "schemas", "pages"),
    "progress",
}
# Pauses of a minute become such of tenths of a second, and a busy machine still answers in time; everything else is the
# engine as it is.
_IMPATIENT = """
import callboard.engine.health as health, callboard.engine.relay.catalogue as catalogue
health.HealthPlan.__init__.__defaults__ = (0.3, 0.2, 1.0, 1.0, 2, 3)
catalogue.LIST_SECONDS = 1.0
from callboard.engine_main import main
raise SystemExit(main())
"""


def faulty(kind: str, *options: str | Path, **fields: object) -> Entry:
    """A roster's entry for a server of servers/faulty on stdio."""
    script = FAULTY / ("words.py" if kind in _WORDS else "life.py")
    return entry(sys.executable, "-S", "-E", str(script), kind, *map(str, options), **fields)


class ImpatientEngine(EngineProcess):
    """An engine whose health checks come soon and whose reading of lists does not take long."""

    command = (sys.executable, "-c", _IMPATIENT)


def remote(kind: str, *options: str, script: str = "faulty/remote.py") -> contextlib.AbstractContextManager[str]:
    """A server over HTTP; its address without a path."""
    return http_server(SERVERS / script, kind, *options)


async def legacy(engine: EngineProcess, server: str = "", client: str = "script") -> LegacyClient:
    """A client of the handshake era with an open session, at one server or at all of them."""
    path = f"/servers/{server}/mcp" if server else "/mcp"
    connected = LegacyClient(engine.client.address.url + path, await engine.token(client), {})
    await connected.initialize()
    return connected


async def text(engine: EngineProcess, server: str, tool: str, **arguments: object) -> str:
    """The text that a tool answers, called by hand."""
    result = await engine.client.call_tool(server, tool, arguments)
    return str(result["content"][0]["text"])


async def log_of(engine: EngineProcess, server: str) -> list[str]:
    """The lines of a server's log, each with its stream."""
    return [f"{line.stream}: {line.text}" for line in (await engine.client.log(server)).lines]

"""FastMCP's client as a client of the gateway: somebody else's implementation of the protocol, in both eras."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.engine import EngineProcess

LEGACY = "legacy"
MODERN = "2026-07-28"


@asynccontextmanager
async def mcp_client(
    engine: EngineProcess,
    server: str = "",
    *,
    mode: str = MODERN,
    token_of: str = "script",
    says: str = "tests",
    **options: Any,
) -> AsyncIterator[Any]:
    """A connected client of the aggregate, or of one server's endpoint. ``says`` is the name that it gives itself."""
    from fastmcp import Client
    from fastmcp.client.transports import StreamableHttpTransport
    from mcp_types import Implementation

    path = f"/servers/{server}/mcp" if server else "/mcp"
    transport = StreamableHttpTransport(engine.client.address.url + path, auth=await engine.token(token_of))
    info = Implementation(name=says, version="1")
    async with Client(transport, mode=mode, timeout=30, client_info=info, **options) as client:
        yield client


def text_of(result: Any) -> str:
    """The first text of a tool's result."""
    text: str = result.content[0].text
    return text

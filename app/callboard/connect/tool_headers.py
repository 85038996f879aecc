"""Arguments that a tool wants mirrored into headers (2026-07-28, server/tools "x-mcp-header")."""

from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

import msgspec

from callboard.connect.message import Message, parse
from callboard.core.mcp_headers import annotated, encode_value, text_of, value_at
from callboard.core.protocol import META_VERSION

_PAGES: Final = 100


class Carrier(Protocol):
    """What is needed of the bridge."""

    def exchange(self, message: Message) -> AsyncIterator[bytes]:
        """Send a message; the messages that come of it."""


class ToolHeaders:
    """Finds the headers of a call that the gateway refused for want of them.

    The client on stdio knows no headers; the schemas that name them are read when they are first missed.
    """

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier

    async def of(self, message: Message) -> dict[str, str]:
        """``Mcp-Param-*`` headers of a tools/call; empty if its tool wants none. Raises CallboardError."""
        params = msgspec.json.decode(message.line, type=dict[str, Any]).get("params")
        if not isinstance(params, dict):
            return {}
        schema = await self._schema(params.get("name"), params.get("_meta"))
        try:
            paths = annotated(schema)
        except ValueError:
            return {}
        texts = {name: text_of(value_at(params.get("arguments"), path)) for name, path in paths.items()}
        return {f"mcp-param-{name}": encode_value(text) for name, text in texts.items() if text is not None}

    async def _schema(self, name: Any, meta: Any) -> Any:
        """The input schema of a tool, asked for in the client's own name."""
        own = {key: value for key, value in meta.items() if key != "progressToken"} if isinstance(meta, dict) else {}
        cursor: Any = None
        for _ in range(_PAGES):
            params = {"_meta": own} | ({"cursor": cursor} if cursor is not None else {})
            request = {"jsonrpc": "2.0", "id": "callboard-tools", "method": "tools/list", "params": params}
            result = await self._ask(parse(msgspec.json.encode(request)))
            for tool in result.get("tools") or []:
                if isinstance(tool, dict) and tool.get("name") == name:
                    return tool.get("inputSchema")
            cursor = result.get("nextCursor")
            if cursor is None:
                break
        return None

    async def _ask(self, message: Message) -> dict[str, Any]:
        assert message.headers, f"{META_VERSION} is missing"
        result: Any = None
        async for body in self._carrier.exchange(message):
            result = msgspec.json.decode(body).get("result", result)
        return result if isinstance(result, dict) else {}

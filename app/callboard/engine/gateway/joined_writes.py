"""One system call for an answer instead of two: head and body, written one after the other, leave together."""

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class JoinedWrites(asyncio.Transport):
    """A transport that passes what is written in one turn of the loop on as one piece.

    Belongs to one connection; everything but writing goes straight to the transport beneath.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self.is_closing = transport.is_closing  # type: ignore[method-assign]  # asked for in every request
        self.pause_reading = transport.pause_reading  # type: ignore[method-assign]
        self.resume_reading = transport.resume_reading  # type: ignore[method-assign]
        self.get_extra_info = transport.get_extra_info  # type: ignore[method-assign]

    def write(self, data: Any) -> None:
        """Send ``data`` at the end of this turn of the loop."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        """Send several pieces at the end of this turn of the loop."""
        for data in list_of_data:
            self.write(data)

    def close(self) -> None:
        """Close once everything is written."""
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._waiting.clear()
        self._transport.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hand the connection to another protocol."""
        self._flush()
        self._transport.set_protocol(protocol)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if len(waiting) == 1:
            self._transport.write(waiting[0])
        elif waiting:
            self._transport.writelines(waiting)


class GatewayProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol on joined writes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(JoinedWrites(transport, self.loop))

"""The control API in the engine: from HTTP to the handlers of its routes. Plain ASGI, JSON by msgspec.

How a route is added stands in :mod:`callboard.api.routes`.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator
from typing import Any

import msgspec

from callboard.api.routes import ROUTES
from callboard.api.routes.route import Route
from callboard.core.errors import CallboardError
from callboard.engine import tasks
from callboard.engine.engine import Engine
from callboard.engine.gateway.http import (
    JSON,
    Receive,
    Send,
    disconnected,
    read_body,
    respond,
    respond_error,
    while_client_waits,
)

log = logging.getLogger(__name__)

_STREAM = ((b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store"))


class ControlServer:
    """Answers ``/api/v1``. The gateway has checked the admin token. Engine loop only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # a fixed word in a path goes before a parameter in its place
        self._routes = sorted(ROUTES, key=lambda route: len(route.parameters))

    async def __call__(self, method: str, path: str, query: str, receive: Receive, send: Send) -> None:
        """See ControlApi."""
        try:
            route, arguments = self._find(method, path)
            if route.streams:
                arguments |= route.arguments(query, b"")
                await send_stream(_lines(route.call(self._engine, arguments)), receive, send)
                return
            arguments |= route.arguments(query, await read_body(receive))
            answering = route.call(self._engine, arguments)
            result = await (while_client_waits(answering, receive) if route.waits else answering)
        except CallboardError as error:
            allowed = error.data.get("allowed")
            await respond_error(send, error, headers=[(b"allow", allowed.encode())] if allowed else ())
            return
        except ConnectionError:
            raise
        except Exception:
            log.exception("%s %s failed", method, path)
            await respond_error(send, CallboardError("internal", "The engine failed to answer; see its log."))
            return
        if result is None:
            await respond(send, 204, headers=())
        elif isinstance(result, str):
            await respond(send, 200, result.encode(), ((b"content-type", route.media.encode()),))
        else:
            await respond(send, 200, msgspec.json.encode(result), (JSON,))

    def _find(self, method: str, path: str) -> tuple[Route, dict[str, Any]]:
        found = [(route, values) for route in self._routes if (values := route.match(path)) is not None]
        if not found:
            raise CallboardError("not-found", f"There is nothing at {path}.")
        for route, values in found:
            if route.method == method:
                return route, values
        allowed = ", ".join(sorted({route.method for route, _ in found}))
        raise CallboardError("method-not-allowed", f"{path} takes {allowed}, not {method}.", data={"allowed": allowed})


async def _lines(batches: AsyncGenerator[list[Any], None]) -> AsyncGenerator[bytes, None]:
    """One JSON object a line; an empty line for an empty batch."""
    encoder = msgspec.json.Encoder()
    async with contextlib.aclosing(batches):
        async for batch in batches:
            yield b"".join(encoder.encode(item) + b"\n" for item in batch) or b"\n"


async def send_stream(parts: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    """Send what comes until it ends or the client goes away, which only :func:`receive` tells."""
    sending = tasks.spawn(_send_parts(parts, send), name="stream to a client")
    gone = tasks.spawn(disconnected(receive), name="watch for disconnect")
    try:
        await asyncio.wait([sending, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await tasks.cancel_and_wait(sending, gone)


async def _send_parts(parts: AsyncGenerator[bytes, None], send: Send) -> None:
    async with contextlib.aclosing(parts):
        await send({"type": "http.response.start", "status": 200, "headers": list(_STREAM)})
        async for part in parts:
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

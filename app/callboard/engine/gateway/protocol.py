"""HTTP/1.1 as the gateway speaks it: uvicorn's protocol, with a shorter way from request to answer.

A call's way through uvicorn costs as much as all that the gateway does with it: a task for each request, checks of
header values that are ours, a timer started and stopped for each answer, an answer in two writes. Here a message that
has come whole is taken at once, and its answer is written as soon as it is there; only what takes long or streams gets
a task. What stays uvicorn's: the parser, pipelining, flow control, the end of connections.

A client that closes its side of a connection counts as gone, though it could still read: nothing is written to it any
more, and what it asked for is taken back in the modern era. Nothing else tells who went away from who waits.
"""

import asyncio
import logging
from typing import Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from callboard.core.errors import CallboardError
from callboard.engine.gateway.app import GatewayApp
from callboard.engine.gateway.cycle import Cycle, head_bytes
from callboard.engine.gateway.http import HttpScope, error_reply
from callboard.engine.gateway.upgrade import without_upgrade

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 2000
LARGEST_HEAD: Final = 64 * 1024  # bytes of a request's first line and headers, or of what trails its body
HEADER_COST: Final = 32  # bytes that a header counts for beside its text (as in RFC 9113, 6.5.2)
HEAD_SECONDS: Final = 20.0  # from a head's beginning to its end
STRANGER_SECONDS: Final = 60.0  # for which a connection may be idle on which nobody was let in


class GatewayProtocol(HttpToolsProtocol):
    """One connection. Engine loop only."""

    app: GatewayApp
    cycle: Cycle | None  # type: ignore[assignment]
    _fresh: Cycle | None = None  # not yet begun
    _answering: Cycle | None = None  # the last one that was begun; later ones wait in uvicorn's ``pipeline``

    _declined = b""  # the head of a request for another protocol, without that wish

    is_admitted = False  # somebody with a good token was answered
    _head_open = False  # lines of a head, or of what trails a body in chunks, are being read
    _head_size = 0  # bytes of them in earlier pieces
    _head_since = 0.0  # the loop's time
    _head_timer: asyncio.TimerHandle | None = None

    # idle connections: one timer for the life of the connection, which looks when the last answer was

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client connected."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._idle_timer = self.loop.call_later(STRANGER_SECONDS, self._look_if_idle)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(CallboardError("connections-exhausted", "The gateway has too many connections."))

    def connection_lost(self, exc: Exception | None) -> None:
        """The client, or we, closed the connection."""
        self._idle_timer.cancel()
        if self._head_timer is not None:
            self._head_timer.cancel()
        if self._answering is not None:
            self._answering.lost(self.app)
        super().connection_lost(exc)

    def _look_if_idle(self) -> None:
        answering = self.cycle is not None and not self.cycle.response_complete
        most = self.timeout_keep_alive if self.is_admitted else STRANGER_SECONDS
        left = most - (0.0 if answering else self.loop.time() - self._idle_since)
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_if_idle)
        else:
            self.transport.close()

    # requests

    def on_message_begin(self) -> None:
        """A request begins to arrive."""
        self._head_open = True
        self._head_size = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []

    def on_headers_complete(self) -> None:
        """Answer the request, once the one before it on this connection is answered; its body may still be coming."""
        self._head_open = False
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._declined = without_upgrade(method, self.url, self.parser.get_http_version(), self.headers)
            return
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope: HttpScope = {
            "type": "http",
            "method": method.decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "query_string": url.query or b"",
            "headers": self.headers,
            "client": self.client,
        }
        self.headers = []  # what trails the body is no header (RFC 9110, 6.5.1)
        previous, cycle = self.cycle, Cycle(self, scope)
        self.cycle = cycle
        if previous is None or previous.response_complete:
            self._fresh = cycle
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))  # type: ignore[arg-type]

    def on_body(self, body: bytes) -> None:
        """A part of a body has come; what comes after the answer nobody needs."""
        self._head_open = False
        cycle = self.cycle
        if cycle is None or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_chunk_header(self) -> None:
        """A part of a body in chunks follows, or what trails it."""
        self._head_open = True
        self._head_size = 0

    def on_message_complete(self) -> None:
        """A request has come whole."""
        self._head_open = False
        cycle = self.cycle
        if not self._declined and cycle is not None and not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """Parse; then begin the request that has come."""
        self._parse(data)
        cycle, self._fresh = self._fresh, None
        if self.transport.is_closing():
            return
        if self._head_open:
            self._watch_head(len(data))
        if cycle is None or self.transport.is_closing():
            return
        self._answering = cycle
        if (len(data) > LARGEST_HEAD or self._head_size) and _is_large(cycle.scope["path"], cycle.scope["headers"]):
            cycle.refuse(_too_large())
        elif not cycle.begin_at_once(self.app):
            self._start_asgi_task(cycle, self.app)  # type: ignore[arg-type]

    def _parse(self, data: bytes | memoryview) -> None:
        try:
            while data:
                try:
                    self.parser.feed_data(data)
                    return
                except httptools.HttpParserUpgrade as upgrade:
                    # what follows it takes for the other protocol: let a new one parse the head, without that wish
                    data = memoryview(data)[upgrade.args[0] :]
                    head, self._declined = self._declined, b""
                    self.parser = httptools.HttpRequestParser(self)
                    self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                    self.parser.feed_data(head)
        except httptools.HttpParserError:
            log.warning("What a client sent is no HTTP request")
            self.send_400_response("Invalid HTTP request received.")

    # heads: whoever has not yet shown a token must not fill our memory

    def _watch_head(self, size: int) -> None:
        """A piece of this size ended within a head: bound it, and the time until its end."""
        if not self._head_size:
            self._head_since = self.loop.time()
            size = 1  # whatever came before it in the piece is not counted
        self._head_size += size
        if self._head_size > LARGEST_HEAD or _is_large(self.url, self.headers):
            self._refuse(_too_large())
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._look_at_head)

    def _look_at_head(self) -> None:
        self._head_timer = None
        if not self._head_open or self.transport.is_closing():
            return
        if self.flow.read_paused:  # an earlier request is being answered: we do not read on
            self._head_since = self.loop.time()
        left = self._head_since + HEAD_SECONDS - self.loop.time()
        if left > 0:
            self._head_timer = self.loop.call_later(left, self._look_at_head)
        else:
            self._refuse(CallboardError("head-timeout", f"The request's head took more than {HEAD_SECONDS:g} s."))

    def _refuse(self, error: CallboardError) -> None:
        """Close, and say why if no earlier request is being answered."""
        if self.cycle is None or self.cycle.response_complete:
            reply = error_reply(error)
            body = b"".join(reply.body) if not isinstance(reply.body, bytes) else reply.body
            length = b"content-length: %d\r\n" % len(body)
            self.transport.write(head_bytes(reply.status, reply.headers, length, keep_alive=False) + body)
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request and close. No refusal gets into an answer, or before one that is still to come."""
        answering = self._answering
        if answering is None or answering.response_complete or answering.may_be_refused:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """An answer is written: read on, and answer a request that came meanwhile."""
        if self.transport.is_closing():
            return
        self._idle_since = self.loop.time()
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._answering = cycle  # type: ignore[assignment]
            self._start_asgi_task(cycle, app)


def _is_large(url: bytes | str, headers: list[tuple[bytes, bytes]]) -> bool:
    return len(url) + sum(len(name) + len(value) + HEADER_COST for name, value in headers) > LARGEST_HEAD


def _too_large() -> CallboardError:
    return CallboardError("head-too-large", f"The request's head is larger than {LARGEST_HEAD // 1024} KiB.")

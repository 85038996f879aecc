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
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from callboard.core.errors import CallboardError
from callboard.engine.gateway.app import HEALTH_PATH, GatewayApp
from callboard.engine.gateway.http import WHOLE, App, HttpScope, Message, Reply, error_reply
from callboard.engine.gateway.mcp import Begun
from callboard.engine.gateway.upgrade import without_upgrade

log = logging.getLogger(__name__)

MOST_CONNECTIONS: Final = 2000
LARGEST_HEAD: Final = 64 * 1024  # bytes of a request's first line and headers, or of what trails its body
HEADER_COST: Final = 32  # bytes that a header counts for beside its text (as in RFC 9113, 6.5.2)
HEAD_SECONDS: Final = 20.0  # from a head's beginning to its end
STRANGER_SECONDS: Final = 60.0  # for which a connection may be idle on which nobody was let in
_BEFORE_CHUNKS: Final = ("1.0", "0.9")  # clients of these get a stream as it is, up to the end of the connection
_FAILED: Final = "A request to %s could not be answered"

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


class GatewayProtocol(HttpToolsProtocol):
    """One connection. Engine loop only."""

    app: GatewayApp
    cycle: "Cycle | None"  # type: ignore[assignment]
    _fresh: "Cycle | None" = None  # not yet begun
    _answering: "Cycle | None" = None  # the last one that was begun; later ones wait in uvicorn's ``pipeline``

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
        if (len(data) > LARGEST_HEAD or self._head_size) and cycle.has_large_head():
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
            self.transport.write(_head(reply.status, reply.headers, length, keep_alive=False) + body)
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


class Cycle:
    """One request and its answer, as ASGI has them; uvicorn's protocol fills in the body and tells of disconnection.

    Besides ASGI's messages :meth:`send` takes one that is a whole answer (see ``WHOLE``), which it sends in one piece.
    """

    __slots__ = (
        "_begun",
        "_flow",
        "_knows_chunks",
        "_may_continue",
        "_protocol",
        "_scope",
        "_started",
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "response_complete",
    )

    def __init__(self, protocol: GatewayProtocol, scope: HttpScope) -> None:
        self._protocol = protocol
        self._flow: FlowControl = protocol.flow
        self._scope = scope
        self._started = False
        self._begun: Begun | None = None  # has no task and waits for its answer
        self._knows_chunks = protocol.parser.get_http_version() not in _BEFORE_CHUNKS
        self._may_continue = self._knows_chunks and protocol.expect_100_continue
        self.keep_alive = self._knows_chunks and protocol.parser.should_keep_alive()
        self.body = bytearray()
        self.more_body = True
        self.message_event = asyncio.Event()
        self.disconnected = False
        self.response_complete = False

    def begin_at_once(self, app: GatewayApp) -> bool:
        """Take the request if it has come whole and needs no task; false if nothing was done."""
        if self.more_body:
            return False
        try:
            begun = app.begin(self._scope, bytes(self.body))
        except Exception:
            log.exception(_FAILED, self._scope["path"])
            self._write_failure()
            return True
        if begun is None:
            return False
        self.body = bytearray()
        self.message_event.clear()
        self._may_continue = False
        if isinstance(begun, Reply):
            self._write(begun)
        elif begun.exchange.silent:
            self._begun = begun
            begun.exchange.on_wake = partial(self._go_on, app, begun)
        else:
            self._go_on(app, begun)
        return True

    def _go_on(self, app: GatewayApp, begun: Begun) -> None:
        """The exchange has something for the client, or has lasted for a while."""
        begun.exchange.on_wake = self._begun = None
        reply = app.reply(begun) if not self._flow.write_paused else None
        if reply is not None:
            self._write(reply)
        else:
            serve = partial(app.serve, begun)
            self._protocol._start_asgi_task(self, lambda _, receive, send: serve(receive, send))  # type: ignore[arg-type]

    def lost(self, app: GatewayApp) -> None:
        """The connection has ended: nobody waits for the answer any more."""
        self.disconnected = not self.response_complete
        self.message_event.set()
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.exchange.on_wake = None
            app.gone(begun)

    def has_large_head(self) -> bool:
        """Whether its head is larger than is allowed, all of it having come at once."""
        return _is_large(self._scope["path"], self._scope["headers"])

    @property
    def may_be_refused(self) -> bool:
        """Whether the request is still coming and nothing of its answer is written."""
        return self.more_body and not self._started

    def refuse(self, error: CallboardError) -> None:
        """Answer with an error and close: the rest of what was sent is not wanted."""
        self.keep_alive = False
        self._write(error_reply(error))

    async def run_asgi(self, app: App) -> None:
        """Let the application answer; what it fails to answer is an error of ours."""
        try:
            await app(self._scope, self.receive, self.send)
        except Exception:
            log.exception(_FAILED, self._scope["path"])
            self._write_failure()
        finally:
            if not self.response_complete:
                self._protocol.transport.close()

    async def receive(self) -> Message:
        """The part of the body that has come, or the client's going away; see ASGI."""
        if self._may_continue:
            self._may_continue = False
            if not self._started and not self._protocol.transport.is_closing():
                self._protocol.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if not self.disconnected and not self.response_complete:
            self._flow.resume_reading()
            await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: Message) -> None:
        """Take a whole answer, or the beginning or a part of one. Waits while the client does not read."""
        if self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected or self.response_complete:
            return
        transport = self._protocol.transport
        if message["type"] == WHOLE:
            self._write(message["reply"])
        elif not self._started:
            self._started = True
            length = b"transfer-encoding: chunked\r\n" if self._knows_chunks else b""
            transport.write(self._head(message["status"], message["headers"], length))
        else:
            part, more = message.get("body", b""), message.get("more_body")
            if self._knows_chunks:
                last = b"" if more else b"0\r\n\r\n"
                part = b"%x\r\n%b\r\n%b" % (len(part), part, last) if part else last
            transport.write(part)
            if not more:
                self._complete()

    def _write(self, reply: Reply) -> None:
        if self.disconnected:
            return
        self._started = True
        transport = self._protocol.transport
        body = (reply.body,) if isinstance(reply.body, bytes) else reply.body
        # an answer 204 has no length (RFC 9110, 8.6)
        length = b"content-length: %d\r\n" % sum(map(len, body)) if reply.status != HTTPStatus.NO_CONTENT else b""
        head = self._head(reply.status, reply.headers, length)
        if self._scope["method"] == "HEAD":
            transport.write(head)
        else:
            # not writelines: that of 3.12.1 and 3.13.0 heeds neither a lost connection nor a client that does not read
            transport.write(b"".join((head, *body)))
        self._complete()

    def _write_failure(self) -> None:
        if not self._started:
            self.keep_alive = False
            self._write(Reply(500, headers=()))

    def _head(self, status: int, headers: Iterable[tuple[bytes, bytes]], length: bytes) -> bytes:
        if not self._protocol.is_admitted and status < 400 and self._scope["path"] != HEALTH_PATH:
            self._protocol.is_admitted = True
        return _head(status, headers, length, keep_alive=self.keep_alive)

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self._protocol.transport.close()
        self._protocol.on_response_complete()


def _head(status: int, headers: Iterable[tuple[bytes, bytes]], length: bytes, *, keep_alive: bool) -> bytes:
    """Status line and headers. Names and values are the gateway's own and are not looked at again."""
    lines = [_STATUS_LINES[status]]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines += (length, b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines)


def _is_large(url: bytes | str, headers: list[tuple[bytes, bytes]]) -> bool:
    return len(url) + sum(len(name) + len(value) + HEADER_COST for name, value in headers) > LARGEST_HEAD


def _too_large() -> CallboardError:
    return CallboardError("head-too-large", f"The request's head is larger than {LARGEST_HEAD // 1024} KiB.")

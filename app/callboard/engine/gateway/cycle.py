"""One request on a connection and its answer."""

import asyncio
import logging
from collections.abc import Iterable
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from uvicorn.protocols.http.flow_control import FlowControl

from callboard.core.errors import CallboardError
from callboard.engine.gateway.app import HEALTH_PATH, GatewayApp
from callboard.engine.gateway.http import JSON, WHOLE, App, HttpScope, Message, Reply, error_reply
from callboard.engine.gateway.mcp import Begun

if TYPE_CHECKING:
    from callboard.engine.gateway.protocol import GatewayProtocol

log = logging.getLogger(__name__)

_BEFORE_CHUNKS: Final = ("1.0", "0.9")  # clients of these get a stream as it is, up to the end of the connection
_FAILED: Final = "A request to %s could not be answered"

_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}


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
        "_started",
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "response_complete",
        "scope",
    )

    def __init__(self, protocol: "GatewayProtocol", scope: HttpScope) -> None:
        self._protocol = protocol
        self._flow: FlowControl = protocol.flow
        self.scope = scope
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
            begun = app.begin(self.scope, bytes(self.body))
        except Exception:
            log.exception(_FAILED, self.scope["path"])
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
            await app(self.scope, self.receive, self.send)
        except Exception:
            log.exception(_FAILED, self.scope["path"])
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
        if self.scope["method"] == "HEAD":
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
        if not self._protocol.is_admitted and status < 400 and self.scope["path"] != HEALTH_PATH:
            self._protocol.is_admitted = True
        return head_bytes(status, headers, length, keep_alive=self.keep_alive)

    def _complete(self) -> None:
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self._protocol.transport.close()
        self._protocol.on_response_complete()


def head_bytes(status: int, headers: Iterable[tuple[bytes, bytes]], length: bytes, *, keep_alive: bool) -> bytes:
    """Status line and headers. Names and values are the gateway's own and are not looked at again."""
    if keep_alive and status == HTTPStatus.OK and headers == _JSON_ALONE:  # as of most answers
        return b"%b%b\r\n" % (_JSON_HEAD, length)
    lines = [_STATUS_LINES[status]]
    for name, value in headers:
        lines += (name, b": ", value, b"\r\n")
    lines += (length, b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(lines)


_JSON_ALONE: Final = (JSON,)
_JSON_HEAD: Final = head_bytes(200, [JSON], b"", keep_alive=True).removesuffix(b"\r\n")

"""The MCP endpoints over streamable HTTP, for clients of both eras."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from callboard.core.mcp_headers import NAMED, decode_value, same_value
from callboard.core.protocol import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LEGACY,
    LOGGED,
    META_VERSION,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    MODERN,
    PARSE_ERROR,
    UNSUPPORTED_VERSION,
)
from callboard.engine.gateway.http import EVENT_STREAM, JSON, Headers, Receive, Reply, Send, read_body, respond
from callboard.engine.gateway.plain_calls import PlainCalls
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.envelope import (
    Envelope,
    Raw,
    answer_bytes,
    answer_pieces,
    check_utf8,
    decode_envelope,
    decode_json,
    decode_params,
    sse_event,
)
from callboard.engine.relay.errors import RpcError
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.legacy import LegacyEra
from callboard.engine.relay.modern import ModernEra
from callboard.engine.relay.relay import Relay
from callboard.engine.relay.replay import ReplayStream
from callboard.engine.relay.sessions import Session
from callboard.engine.tasks import spawn
from callboard.engine.telemetry.tracing import with_trace_headers
from callboard.engine.upstream.answers import error_code
from callboard.engine.upstream.base import Params
from callboard.engine.upstream.rpc import LISTEN

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS: Final = 15.0
KEEP_ALIVE: Final = b": keep-alive\n\n"
_ERROR_STATUS: Final = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CAPABILITY: 400,
    UNSUPPORTED_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}
_VERSION_MARK: Final = META_VERSION.encode()


_ACCEPTED: Final = Reply(202, headers=())


class Begun(NamedTuple):
    """A client's request on its way, and what its header ``Accept`` says."""

    exchange: Exchange
    accept: bytes

    @property
    def takes_json(self) -> bool:
        """Whether the answer may be one JSON object; a client that takes neither it nor a stream gets it too."""
        return b"application/json" in self.accept or b"*/*" in self.accept or not _may_stream(self.accept)


class McpEndpoint:
    """Serves every MCP endpoint of the gateway. Engine loop only."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._legacy = LegacyEra(relay)
        self._modern = ModernEra(relay)
        self.plain = PlainCalls(relay)

    async def __call__(
        self, method: str, scope: str, caller: Caller, headers: Headers, receive: Receive, send: Send
    ) -> None:
        """Answer one HTTP request; ``scope`` is "" for the aggregate or a server's name."""
        if method == "POST":
            await self._post(scope, caller, headers, receive, send)
        elif headers.get(b"mcp-protocol-version") == MODERN.encode() or method not in ("GET", "DELETE"):
            await respond(send, 405, headers=((b"allow", b"POST, GET, DELETE"),))
        elif method == "GET":
            await self._get(scope, caller, headers, receive, send)
        else:
            await self._delete(scope, caller, headers, send)

    # POST

    async def _post(self, scope: str, caller: Caller, headers: Headers, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        begun = self.begin(scope, caller, headers, body)
        if begun is None:
            await self._initialize(scope, caller, decode_envelope(body), send)
        elif isinstance(begun, Reply):
            await respond(send, *begun)
        else:
            await self.serve(begun, receive, send)

    def begin(self, scope: str, caller: Caller, headers: Headers, body: bytes) -> "Begun | Reply | None":
        """Take one message: a request that is on its way now, or the answer; None for ``initialize``: it takes time."""
        if not headers.get(b"content-type", b"").lower().startswith(b"application/json"):
            return _refusal(415, INVALID_REQUEST, "Content-Type must be application/json")
        try:
            check_utf8(body)
            envelope = decode_envelope(body)
        except msgspec.ValidationError as error:
            batch = body.lstrip()[:1] == b"["
            reason = "Batches are not part of this protocol" if batch else f"Invalid Request: {error}"
            return _refusal(400, INVALID_REQUEST, reason)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refusal(400, PARSE_ERROR, f"Parse error: {error}")
        if self._relay.tracing is not None and envelope.method in LOGGED:
            envelope = with_trace_headers(envelope, headers)
        version = headers.get(b"mcp-protocol-version")
        if version is None:
            modern = envelope.method != "initialize" and _names_version(envelope, body)
        else:
            modern = version.decode("latin-1") not in LEGACY
            if modern and envelope.method == "initialize":
                # a handshake is a legacy one, unless its metadata too speaks of a revision that has none
                modern = _names_version(envelope, body)
        if modern:
            return self._begin_modern(scope, caller, headers, envelope)
        return self._begin_legacy(scope, caller, headers, envelope)

    def _begin_modern(self, scope: str, caller: Caller, headers: Headers, envelope: Envelope) -> "Begun | Reply":
        if not envelope.method or not _proper_id(envelope):
            return _refusal(400, INVALID_REQUEST, "Invalid Request: a request or a notification is expected")
        if not envelope.id:
            return _ACCEPTED
        accept = headers.get(b"accept", b"*/*")
        if envelope.method == LISTEN and not _may_stream(accept):
            return _refusal(406, INVALID_REQUEST, "Accept must name text/event-stream", envelope)
        try:
            params = decode_params(envelope.params)
            meta = decode_params(params.get("_meta", Raw(b"")))
            self._check_headers(scope, caller, headers, envelope.method, params, meta)
        except RpcError as error:
            return Reply(400, answer_bytes(bytes(envelope.id), error.answer()))
        except msgspec.DecodeError as error:
            answer = RpcError(INVALID_PARAMS, f"Invalid params: {error}").answer()
            return Reply(400, answer_bytes(bytes(envelope.id), answer))
        return Begun(self._modern.request(scope, caller, envelope, params, meta), accept)

    def _check_headers(
        self, scope: str, caller: Caller, headers: Headers, method: str, params: Params, meta: Params
    ) -> None:
        """Headers and body must say the same (2026-07-28, transports/streamable-http "Server Validation")."""
        version = headers.get(b"mcp-protocol-version")
        _must_match("MCP-Protocol-Version", version, meta.get(META_VERSION))
        _must_match("Mcp-Method", headers.get(b"mcp-method"), Raw(msgspec.json.encode(method)))
        if method in NAMED:
            raw = params.get(NAMED[method])
            if raw is not None:
                _must_match("Mcp-Name", headers.get(b"mcp-name"), raw, encoded=True)
        if method == "tools/call":
            self._check_argument_headers(scope, caller, headers, params)

    def _check_argument_headers(self, scope: str, caller: Caller, headers: Headers, params: Params) -> None:
        expected = self._relay.argument_headers(scope, caller, params)
        for name, value in expected.items():
            header = headers.get(b"mcp-param-" + name.encode())
            if value is None:
                if header is not None:
                    raise RpcError(HEADER_MISMATCH, f"Header mismatch: Mcp-Param-{name} has no argument")
                continue
            decoded = decode_value(header.decode("latin-1")) if header is not None else None
            if decoded is None or not same_value(decoded, value):
                raise RpcError(HEADER_MISMATCH, f"Header mismatch: Mcp-Param-{name} does not match the argument")

    def _begin_legacy(self, scope: str, caller: Caller, headers: Headers, envelope: Envelope) -> "Begun | Reply | None":
        if not _proper_id(envelope) or not (envelope.method or envelope.result or envelope.error):
            return _refusal(400, INVALID_REQUEST, "Invalid Request")
        if envelope.method == "initialize" and envelope.id:
            return None
        session: Session | None = None
        session_id = headers.get(b"mcp-session-id")
        if session_id is not None:
            name = session_id.decode("latin-1")
            session = self._relay.sessions.find(name, scope, caller)
            if session is None and self._relay.sessions.refuse(name):
                return _refusal(404, INVALID_REQUEST, "Session not found; send initialize again", envelope)
        if not envelope.method:
            self._legacy.answer(session, envelope)
            return _ACCEPTED
        if not envelope.id:
            self._legacy.notification(session, envelope)
            return _ACCEPTED
        exchange = self._legacy.request(scope, caller, session, envelope)
        accept = headers.get(b"accept", b"*/*")
        if not _may_stream(accept):
            exchange.asker = None  # the question could not get there
        return Begun(exchange, accept)

    async def _initialize(self, scope: str, caller: Caller, envelope: Envelope, send: Send) -> None:
        try:
            session, answer = await self._legacy.initialize(scope, caller, decode_params(envelope.params))
        except RpcError as error:
            await respond(send, 400, answer_bytes(bytes(envelope.id), error.answer()))
            return
        except msgspec.DecodeError as error:
            refusal = RpcError(INVALID_PARAMS, f"Invalid params: {error}").answer()
            await respond(send, 400, answer_bytes(bytes(envelope.id), refusal))
            return
        body = answer_bytes(bytes(envelope.id), answer)
        await respond(send, 200, body, (JSON, (b"mcp-session-id", session.id.encode())))

    # the answer to a request

    async def serve(self, begun: "Begun", receive: Receive, send: Send, *, woken: bool = False) -> None:
        """Answer a request: with one JSON object if nothing comes before the answer, else with a stream.

        ``woken``: it has been waited for already, and something has come.
        """
        exchange = begun.exchange
        watcher: asyncio.Task[None] | None = None
        may_stream = _may_stream(begun.accept)
        try:
            while not (exchange.answered if woken else await exchange.wait()):
                woken = False
                if exchange.modern and watcher is None:
                    watcher = spawn(_cancel_on_disconnect(exchange, receive), name="watch for disconnect")
                if (exchange.messages or exchange.streaming) and may_stream:
                    await self._stream(exchange, send)
                    return
                exchange.messages.clear()
                exchange.streaming = False
            if not begun.takes_json:
                await self._stream(exchange, send)
                return
            if exchange.kept is not None and not exchange.cancelled:
                await exchange.kept.wait()
            await respond(send, *self._reply(exchange))
        finally:
            if watcher is not None:
                watcher.cancel()
            self.gone(begun)

    def gone(self, begun: "Begun") -> None:
        """The client hears no more of a request; in the modern era that cancels it."""
        exchange = begun.exchange
        if exchange.modern and not exchange.done and not exchange.interim:
            exchange.cancel("the client disconnected")

    def reply(self, begun: "Begun") -> Reply | None:
        """The answer to a request, if that is all there is, and it can be sent at once as one JSON object."""
        exchange = begun.exchange
        at_once = exchange.answered and exchange.kept is None and begun.takes_json
        return self._reply(exchange) if at_once else None

    def _reply(self, exchange: Exchange) -> Reply:
        answer = exchange.answer
        assert answer is not None
        if exchange.cancelled:
            return Reply(200, b"", EVENT_STREAM)
        status = exchange.http_status
        if exchange.modern and answer.error is not None:
            status = _ERROR_STATUS.get(error_code(answer), 200)
        return Reply(status, answer_pieces(exchange.request_id, answer))

    async def _stream(self, exchange: Exchange, send: Send) -> None:
        if isinstance(exchange.asker, Session):
            await self._replay(exchange.asker.replays.open(exchange), 0, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_STREAM)})
        while True:
            while exchange.messages:
                await _event(send, sse_event(exchange.messages.popleft()))
            if exchange.answer is not None:
                break
            await exchange.next(KEEP_ALIVE_SECONDS)
            if not exchange.messages and exchange.answer is None:
                await _event(send, KEEP_ALIVE)
        if not exchange.cancelled:
            if exchange.kept is not None:
                await exchange.kept.wait()
            await _event(send, sse_event(answer_bytes(exchange.request_id, exchange.answer)))
        await send({"type": "http.response.body", "body": b""})

    async def _replay(self, replay: ReplayStream, number: int, send: Send) -> None:
        """Serve a stream that can be taken up again, from the event after ``number`` on."""
        reader = replay.take_over()
        await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_STREAM)})
        while replay.reader == reader:
            if replay.exchange.kept is not None:
                await replay.exchange.kept.wait()
            events = replay.after(number)
            number = replay.last
            for event in events:
                await _event(send, event)
            if replay.complete and number == replay.last:
                break
            await replay.exchange.next(KEEP_ALIVE_SECONDS)
            if not replay.exchange.messages and replay.exchange.answer is None:
                await _event(send, KEEP_ALIVE)
        await send({"type": "http.response.body", "body": b""})

    # GET and DELETE

    async def _get(self, scope: str, caller: Caller, headers: Headers, receive: Receive, send: Send) -> None:
        session_id = headers.get(b"mcp-session-id")
        if session_id is None:
            await respond(send, 405, headers=((b"allow", b"POST"),))
            return
        session = self._relay.sessions.find(session_id.decode("latin-1"), scope, caller)
        if session is None:
            await respond(send, *_refusal(404, INVALID_REQUEST, "Session not found; send initialize again"))
            return
        found = session.replays.find(headers.get(b"last-event-id", b"").decode("latin-1"))
        if found is not None:
            await self._replay(*found, send)
            return
        stream = session.open_stream()
        watcher = spawn(_close_on_disconnect(stream.close, receive), name="watch for disconnect")
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(EVENT_STREAM)})
            await _event(send, KEEP_ALIVE)  # so that the client sees the stream begin
            while not stream.closed:
                await stream.next(KEEP_ALIVE_SECONDS)
                if not stream.messages and not stream.closed:
                    await _event(send, KEEP_ALIVE)
                while stream.messages and not stream.closed:
                    await _event(send, sse_event(stream.messages.popleft()))
            await send({"type": "http.response.body", "body": b""})
        finally:
            watcher.cancel()
            session.close_stream(stream)

    async def _delete(self, scope: str, caller: Caller, headers: Headers, send: Send) -> None:
        session_id = headers.get(b"mcp-session-id", b"").decode("latin-1")
        session = self._relay.sessions.find(session_id, scope, caller)
        if session is None:
            await respond(send, *_refusal(404, INVALID_REQUEST, "Session not found"))
            return
        self._relay.sessions.close(session)
        await respond(send, 204, headers=())


async def _event(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _refusal(status: int, code: int, message: str, envelope: Envelope | None = None) -> Reply:
    request_id = bytes(envelope.id) if envelope is not None and envelope.id else b"null"
    return Reply(status, answer_bytes(request_id, RpcError(code, message).answer()))


async def _cancel_on_disconnect(exchange: Exchange, receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    if not exchange.interim:
        exchange.cancel("the client disconnected")


async def _close_on_disconnect(close: Callable[[], None], receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    close()


def _may_stream(accept: bytes) -> bool:
    return b"text/event-stream" in accept or b"*/*" in accept


def _names_version(envelope: Envelope, body: bytes) -> bool:
    """True if a request says in its metadata which revision it is of, as only modern ones do."""
    if _VERSION_MARK not in body:
        return False
    try:
        return META_VERSION in decode_params(decode_params(envelope.params).get("_meta", Raw(b"")))
    except msgspec.DecodeError:
        return False


def _proper_id(envelope: Envelope) -> bool:
    """An id is a string or an integer (basic, "Requests")."""
    raw = bytes(envelope.id)
    return not raw or raw[:1] == b'"' or raw.lstrip(b"-").isdigit()


def _must_match(name: str, header: bytes | None, raw: Raw | None, *, encoded: bool = False) -> None:
    if raw is None:
        return  # the body is wrong by itself, which is told elsewhere
    value = decode_json(raw)
    text = header.decode("latin-1") if header is not None else None
    if encoded and text is not None:
        text = decode_value(text)
    if text is None:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is missing or malformed")
    if text != value:
        raise RpcError(HEADER_MISMATCH, f"Header mismatch: {name} is '{text}', the body says '{value}'")

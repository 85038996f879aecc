"""JSON-RPC with a server over a channel of messages: ids, progress tokens, cancellation, handshake, both eras.

Transports subclass :class:`RpcConnection`: they deliver each incoming message to :meth:`RpcConnection.received` and
send what :meth:`RpcConnection.transmit` is given.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from time import monotonic
from typing import Any

import msgspec

from callboard import __version__
from callboard.core.errors import CallboardError
from callboard.core.protocol import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LATEST_LEGACY,
    LEGACY,
    LOGGED,
    META_CAPABILITIES,
    META_CLIENT,
    META_SUBSCRIPTION,
    META_VERSION,
    MODERN,
    MODERN_ERRORS,
)
from callboard.engine.relay.envelope import (
    Envelope,
    Raw,
    answer_bytes,
    answer_of,
    check_utf8,
    decode_envelope,
    decode_json,
    decode_params,
    error_answer,
    notification_bytes,
    raw_json,
    request_bytes,
    result_answer,
)
from callboard.engine.tasks import spawn
from callboard.engine.upstream.answers import (
    Waiter,
    discovered,
    error_code,
    error_text,
    gone,
    initialized,
    supported_revisions,
)
from callboard.engine.upstream.base import Answer, Closed, Listener, Params, Peer, ServerInfo

log = logging.getLogger(__name__)

OWN_IDENTITY = {"name": "callboard", "title": "Callboard", "version": __version__}
# A legacy server learns that it may ask; whom its question reaches is decided when it asks.
LEGACY_CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {"context": {}, "tools": {}}}
PROBE_SECONDS = 5.0
LISTEN = "subscriptions/listen"
# they say something of the server, whatever stream they come on
_CHANGES = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    }
)
Finding = Coroutine[Any, Any, Answer]
_UNKNOWN = ServerInfo(protocol="", modern=False)


class Call:
    """One request in flight on a connection."""

    __slots__ = ("_connection", "id", "listener", "method")

    def __init__(self, connection: "RpcConnection", number: int, method: str, listener: Listener) -> None:
        self._connection = connection
        self.id = number
        self.method = method
        self.listener = listener

    def cancel(self, reason: str) -> None:
        """Tell the server and forget the request; a late answer is dropped."""
        if self._connection.pending.pop(self.id, None) is not None:
            if self.method in LOGGED and self._connection.given_up is None:
                self._connection.given_up = monotonic()
            self._connection.cancelled(self.id, reason)


class RpcConnection:
    """The part of an upstream that does not depend on its transport. Engine loop only."""

    def __init__(self, peer: Peer, *, modern: bool | None = None, capabilities: dict[str, Any] | None = None) -> None:
        """``modern`` is the era remembered from an earlier run, None to probe."""
        self.peer = peer
        self.info = _UNKNOWN
        self.pid: int | None = None
        self.closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.pending: dict[int, Call] = {}
        self.last_heard = monotonic()
        self.given_up: float | None = None
        self._answering: dict[bytes, asyncio.Task[None]] = {}  # the server's own requests, by id
        self.probing = False  # nothing but server/discover was sent so far
        self._next = 0
        self._era = modern
        self._capabilities = LEGACY_CAPABILITIES if capabilities is None else capabilities
        self._own_meta: Params = {
            META_VERSION: raw_json(MODERN),
            META_CLIENT: raw_json(OWN_IDENTITY),
            META_CAPABILITIES: raw_json({}),
        }
        self._own_meta_params: Params = {"_meta": raw_json(self._own_meta)}

    # what a transport provides

    def transmit(self, message: bytes) -> None:
        """Send one message; overridden by the transport. Never waits, never raises."""
        raise NotImplementedError

    # requests

    @property
    def busy(self) -> bool:
        """See :class:`~callboard.engine.upstream.base.Upstream`."""
        return any(call.method != LISTEN for call in self.pending.values())

    async def ping(self, *, seconds: float = 10.0) -> None:
        """See :class:`~callboard.engine.upstream.base.Upstream`. Revision 2026-07-28 has no ping."""
        await self.request("server/discover" if self.info.modern else "ping", seconds=seconds)

    def send(self, method: str, params: Params, listener: Listener) -> Call:
        """See :class:`~callboard.engine.upstream.base.Upstream`."""
        self._next += 1
        number = self._next
        call = Call(self, number, method, listener)
        if self.closed.done():
            listener.on_gone(gone(self.closed.result()))
            return call
        if self.info.modern or listener.wants_progress:
            params = self._with_meta(params, number if listener.wants_progress else None)
        self.pending[number] = call
        self.transmit(request_bytes(number, method, params))
        return call

    async def request(self, method: str, params: Params | None = None, *, seconds: float = 30.0) -> Answer:
        """See :class:`~callboard.engine.upstream.base.Upstream`."""
        waiter = Waiter()
        call = self.send(method, params or {}, waiter)
        try:
            async with asyncio.timeout(seconds):
                return await waiter.future
        except TimeoutError:
            call.cancel("timed out")
            raise CallboardError("call-timeout", f"The server did not answer {method} within {seconds:g} s.") from None
        except asyncio.CancelledError:
            call.cancel("cancelled")
            raise

    def notify(self, method: str, params: Params) -> None:
        """See :class:`~callboard.engine.upstream.base.Upstream`."""
        if not self.closed.done():
            self.transmit(notification_bytes(method, params))

    def cancelled(self, number: int, reason: str) -> None:
        """Tell the server that request ``number`` is not wanted any more."""
        self.notify("notifications/cancelled", {"requestId": raw_json(number), "reason": raw_json(reason)})

    def _with_meta(self, params: Params, token: int | None) -> Params:
        if token is not None and "_meta" not in params and not self.info.modern:  # as of most calls
            return params | {"_meta": Raw(b'{"progressToken":%d}' % token)}
        meta = decode_params(params.get("_meta", Raw(b"")))
        if self.info.modern:
            meta = self._own_meta | meta
            meta[META_VERSION] = self._own_meta[META_VERSION]
        if token is not None:
            meta["progressToken"] = Raw(b"%d" % token)
        return params | {"_meta": raw_json(meta)}

    # what comes in

    def received(self, message: bytes, own: Call | None = None) -> bool:
        """Take one incoming message; False if it is not a JSON-RPC message.

        ``own`` is the request on whose stream the message came, where requests have streams of their own. An answer
        there that names no id of ours (some servers err so) is the answer to that request.
        """
        self.last_heard = monotonic()
        message = _as_utf8(message)
        try:
            envelope = decode_envelope(message)
        except msgspec.DecodeError:
            return False
        if envelope.method:
            if envelope.id:
                self._on_request(envelope, own)
            else:
                self._on_notification(envelope, own)
            return True
        answer = answer_of(envelope)
        if answer is None:
            return False
        number = _number(envelope.id)
        if number is None and own is not None:
            number = own.id
        call = self.pending.pop(number, None) if number is not None else None
        if call is not None:
            self.given_up = None
            call.listener.on_answer(answer)
        return bool(envelope.id) or own is not None  # a late answer, or one to an id not ours, is dropped

    def is_answer(self, message: bytes) -> bool:
        """True if a message is the answer to a request in flight."""
        try:
            envelope = decode_envelope(message)
        except msgspec.DecodeError:
            return False
        return not envelope.method and _number(envelope.id) in self.pending and answer_of(envelope) is not None

    def _on_notification(self, envelope: Envelope, own: Call | None) -> None:
        try:
            params = decode_params(envelope.params)
        except msgspec.DecodeError:
            return
        if envelope.method == "notifications/progress":
            call = self._call_of(params.get("progressToken"))
            if call is not None:
                call.listener.on_progress(params)
        elif envelope.method == "notifications/cancelled":
            task = self._answering.get(bytes(params.get("requestId", b"")))
            if task is not None:
                task.cancel()
        else:
            call = self.subscription_of(params)
            if call is None and own is not None and (own.method == LISTEN or envelope.method not in _CHANGES):
                call = own
            if call is not None:
                call.listener.on_notification(envelope.method, params)
            else:
                self.peer.on_server_notification(envelope.method, params)

    def subscription_of(self, params: Params) -> Call | None:
        """The ``subscriptions/listen`` request that a notification belongs to (2026-07-28, patterns/subscriptions)."""
        if not self.info.modern or "_meta" not in params:
            return None
        try:
            meta = decode_params(params["_meta"])
        except msgspec.DecodeError:
            return None
        return self._call_of(meta.get(META_SUBSCRIPTION))

    def _call_of(self, number: Raw | None) -> Call | None:
        found = _number(number) if number is not None else None
        return self.pending.get(found) if found is not None else None

    def _on_request(self, envelope: Envelope, own: Call | None) -> None:
        request_id = bytes(envelope.id)
        if envelope.method == "ping":
            self.transmit(answer_bytes(request_id, result_answer({})))
            return
        try:
            params = decode_params(envelope.params)
        except msgspec.DecodeError:
            self.transmit(answer_bytes(request_id, error_answer(INVALID_PARAMS, "params must be an object")))
            return
        # called here, not in the task: whom it concerns is decided by what is in flight now
        handler = self.peer.on_server_request if own is None else own.listener.on_request
        finding = handler(envelope.method, params)
        task = spawn(self._answer(request_id, finding), name=f"answer {envelope.method}")
        self._answering[request_id] = task
        task.add_done_callback(lambda done: self._answered(request_id, done, finding))

    def _answered(self, request_id: bytes, task: "asyncio.Task[None]", finding: Finding) -> None:
        finding.close()
        if self._answering.get(request_id) is task:
            del self._answering[request_id]

    async def _answer(self, request_id: bytes, finding: Finding) -> None:
        """Answer a request of the server; cancelled when the server withdraws it, or ends."""
        try:
            answer = await finding
        except CallboardError as error:
            answer = error_answer(INTERNAL_ERROR, error.message)
        except msgspec.DecodeError:
            answer = error_answer(INVALID_PARAMS, "malformed params")
        if not self.closed.done():
            self.transmit(answer_bytes(request_id, answer))

    # handshake

    async def shake_hands(self) -> None:
        """Find the server's era and learn who it is, without a time limit; raises ``handshake-failed``.

        A server is probed with ``server/discover`` first (2026-07-28, transports/stdio "Backward Compatibility"):
        anything but a result or a modern error means a legacy server. One that says nothing for five seconds may be
        either, just slow: it gets ``initialize`` too, and its first proper answer decides.
        """
        if self._era is False:
            try:
                return await self._initialize(None)
            except CallboardError as error:
                if error.code != "handshake-failed":
                    raise
                log.info("a server refused the era that it spoke last time")
        waiter = Waiter()
        self.probing = True
        probe = self.send("server/discover", dict(self._own_meta_params), waiter)
        try:
            done, _ = await asyncio.wait([waiter.future], timeout=PROBE_SECONDS)
            if done and self._take_discovery(await self.insist(waiter.future.result())):
                return None
            self.probing = False
            await self._initialize(waiter.future if not done else None)
        finally:
            self.probing = False
            self.pending.pop(probe.id, None)
            waiter.future.cancel()
        return None

    async def insist(self, answer: Answer) -> Answer:
        """Probe again where a server refused our revision but names it among its own (2026-07-28, basic/versioning)."""
        if MODERN not in supported_revisions(answer):
            return answer
        return await self.request("server/discover", dict(self._own_meta_params), seconds=PROBE_SECONDS)

    def _take_discovery(self, answer: Answer) -> bool:
        if answer.result is not None:
            with contextlib.suppress(msgspec.DecodeError):
                found = decode_json(answer.result, dict[str, Any])
                supported = found.get("supportedVersions")
                if isinstance(supported, list) and MODERN in supported:
                    self.info = discovered(found)
                    return True
        elif error_code(answer) in MODERN_ERRORS and not supported_revisions(answer).intersection(LEGACY):
            raise CallboardError(
                "handshake-failed", f"The server speaks no revision of the protocol known here: {error_text(answer)}."
            )
        return False

    async def _initialize(self, discovery: "asyncio.Future[Answer] | None") -> None:
        params: Params = {
            "protocolVersion": raw_json(LATEST_LEGACY),
            "capabilities": raw_json(self._capabilities),
            "clientInfo": raw_json(OWN_IDENTITY),
        }
        waiter = Waiter()
        call = self.send("initialize", params, waiter)
        try:
            if discovery is not None:
                await asyncio.wait([waiter.future, discovery], return_when=asyncio.FIRST_COMPLETED)
                if waiter.future.done() and waiter.future.result().error is not None:
                    await asyncio.wait([discovery], timeout=PROBE_SECONDS)
                if discovery.done() and self._take_discovery(discovery.result()):
                    return
            answer = await waiter.future
        finally:
            self.pending.pop(call.id, None)
            waiter.future.cancel()
        if answer.error is not None or answer.result is None:
            raise CallboardError("handshake-failed", f"The server refused the handshake: {error_text(answer)}.")
        try:
            found = decode_json(answer.result, dict[str, Any])
        except msgspec.DecodeError:
            raise CallboardError("handshake-failed", "The server's answer to initialize is no object.") from None
        self.info = initialized(found)
        await self.announce()

    async def announce(self) -> None:
        """Say that we are ready, before anything else is said."""
        self.notify("notifications/initialized", {})

    # the end

    def end(self, closed: Closed) -> None:
        """The connection has ended: every request in flight fails at once. Safe to call twice."""
        if self.closed.done():
            return
        self.closed.set_result(closed)
        self.fail_pending(closed)
        for task in self._answering.values():
            task.cancel()

    def fail_pending(self, closed: Closed) -> None:
        """Whoever waits for an answer will not get one."""
        pending, self.pending = self.pending, {}
        for call in pending.values():
            call.listener.on_gone(gone(closed))


def _as_utf8(message: bytes) -> bytes:
    """The message, with U+FFFD for what is not UTF-8."""
    try:
        check_utf8(message)
    except UnicodeDecodeError:
        return message.decode("utf-8", "replace").encode()
    return message


def _number(raw: Raw) -> int | None:
    """An id of ours, None for one that cannot be."""
    try:
        return int(bytes(raw))
    except ValueError:
        return None

"""A remote server over streamable HTTP, of either era (2025-11-25 basic/transports, 2026-07-28 transports)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import msgspec

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, RemoteLaunch
from callboard.core.mcp_headers import NAMED, encode_value, text_of, value_at
from callboard.core.protocol import INTERNAL_ERROR, MODERN
from callboard.engine.relay.envelope import (
    Raw,
    decode_envelope,
    decode_json,
    error_answer,
    notification_bytes,
    request_bytes,
)
from callboard.engine.tasks import cancel_and_wait, spawn
from callboard.engine.upstream.answers import gone
from callboard.engine.upstream.base import Closed, Listener, Params, Peer
from callboard.engine.upstream.event_stream import EventParser, TooLargeError
from callboard.engine.upstream.http_answers import (
    is_error,
    is_session_gone,
    no_message,
    on_second_loopback,
    read_message,
    retry_after,
    same_origin,
    split_batch,
)
from callboard.engine.upstream.http_client import failure, make_client, refused
from callboard.engine.upstream.rpc import Call, RpcConnection
from callboard.engine.upstream.sse import SseChannel

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10.0
MAX_FAILURES: Final = 3  # calls in a row that could not be delivered before the connection counts as gone
RETURN_SECONDS: Final = 1.0  # before a GET stream that ended is opened again, doubling
LONGEST_RETURN: Final = 60.0
MAX_REDIRECTS: Final = 3
RENEW_SECONDS: Final = 30.0
# statuses with which a server may turn down what it does not know
_PERHAPS_LEGACY: Final = frozenset({*range(400, 500), 500, 501} - {401, 403, 407})
_PERHAPS_SSE: Final = frozenset({400, 404, 405, 406, 410, 415, 501})
HeaderPaths = Callable[[str], dict[str, tuple[str, ...]]]


class HttpUpstream(RpcConnection):
    """See :class:`~callboard.engine.upstream.base.Upstream`. Each request is a POST with a task of its own."""

    def __init__(
        self,
        peer: Peer,
        *,
        modern: bool | None = None,
        capabilities: dict[str, Any] | None = None,
        header_paths: HeaderPaths = lambda tool: {},
        auth: httpx2.Auth | None = None,
    ) -> None:
        """``header_paths`` tells which arguments of a tool are mirrored into headers (``x-mcp-header``); ``auth`` signs
        requests, and raises ``remote-sign-in`` for one that only a person can help.
        """
        super().__init__(peer, modern=modern, capabilities=capabilities)
        self._header_paths = header_paths
        self._auth = auth
        self._signed_out: Closed | None = None
        self._http: httpx2.AsyncClient | None = None
        self._url = ""
        self._session = ""
        self._session_changed = asyncio.Event()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._failures = 0
        self._renewing: asyncio.Task[None] | None = None
        self._sse: SseChannel | None = None

    # connection

    async def open(self, launch: Launch) -> None:
        """Find out what the server speaks; raises ``remote-…`` or ``handshake-failed``."""
        if not isinstance(launch, RemoteLaunch):
            raise TypeError("a remote server is needed")
        self._url = launch.url
        self._http = await make_client(launch, self._auth)
        try:
            await self._connect(launch.transport)
        except CallboardError as error:
            second = on_second_loopback(launch.url) if error.code == "remote-refused" else None
            if second is None:
                raise
            self._url = second
            self._http.headers["host"] = urlsplit(launch.url).netloc
            await self._connect(launch.transport)

    async def _connect(self, transport: str) -> None:
        if transport == "sse":
            await self._open_sse()
            return
        if self._era is not False and await self._probe():
            return
        try:
            await self._initialize(None)
        except CallboardError as error:
            answered = error.code == "handshake-failed" or error.data.get("status", 0) in _PERHAPS_LEGACY
            if self._era is False and answered and await self._probe():
                return  # it does not speak any more what it spoke last time
            if error.data.get("status", 0) not in _PERHAPS_SSE:
                raise
            await self._open_sse(error)
            return
        self._background(self._listen(), "server's messages")

    async def _probe(self) -> bool:
        try:
            answer = await self.request("server/discover", dict(self._own_meta_params), seconds=PROBE_SECONDS)
        except CallboardError as error:
            if error.code == "call-timeout":
                return False
            if error.code == "remote-unreachable" or error.data.get("status", 0) in _PERHAPS_LEGACY:
                return False  # whatever it was: initialize will tell
            raise
        return self._take_discovery(await self.insist(answer))

    async def _open_sse(self, first: CallboardError | None = None) -> None:
        """The transport of 2024-11-05; raises ``first`` if the server does not speak that either."""
        assert self._http is not None
        channel = SseChannel(
            self._http, self._url, on_message=self.received, on_refused=self._on_refused, on_end=self.end
        )
        try:
            await channel.open()
        except CallboardError as error:
            # what it does wrong on that transport tells more than that it does not speak the other one
            raise error if first is None or error.code == "handshake-failed" else first from None
        self._sse = channel
        await self._initialize(None)

    async def close(self) -> None:
        """End the session and every stream."""
        self.end(Closed("disconnected"))
        await cancel_and_wait(*self._tasks.values(), *self._others)
        if self._sse is not None:
            await self._sse.close()
        http, self._http = self._http, None
        if http is not None:
            if self._session:
                with contextlib.suppress(httpx2.HTTPError):
                    await http.delete(self._url, headers=self._headers("", {}), timeout=2.0)
            await http.aclose()

    def _background(self, coro: Any, name: str) -> None:
        task = spawn(coro, name=name)
        self._others.add(task)
        task.add_done_callback(self._others.discard)

    # sending

    def transmit(self, message: bytes) -> None:
        """Send an answer or a notification of ours; nobody waits for what becomes of it."""
        if self._sse is not None:
            self._sse.send(message)
        elif not self.closed.done() and not self.info.modern:  # a modern server is sent requests alone
            self._background(self._post_quietly(message), "message to a remote server")

    def send(self, method: str, params: Params, listener: Listener) -> Call:
        """See Upstream."""
        if self._sse is not None:
            return super().send(method, params, listener)
        self._next += 1
        call = Call(self, self._next, method, listener)
        if self.closed.done():
            listener.on_gone(gone(self.closed.result()))
            return call
        if self.info.modern or listener.wants_progress:
            params = self._with_meta(params, call.id if listener.wants_progress else None)
        self.pending[call.id] = call
        self._tasks[call.id] = spawn(self._exchange(call, params), name=f"{method} to a remote server")
        return call

    def cancelled(self, number: int, reason: str) -> None:
        """Modern: closing the stream is the signal; legacy: a notification is."""
        task = self._tasks.pop(number, None)
        if task is not None:
            task.cancel()
        if not self.info.modern or self._sse is not None:
            super().cancelled(number, reason)

    def _headers(self, method: str, params: Params) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        if self._session:
            headers["mcp-session-id"] = self._session
        if method == "server/discover" or self.info.modern:
            headers["mcp-protocol-version"] = MODERN
            headers["mcp-method"] = method
            if method in NAMED and NAMED[method] in params:
                headers["mcp-name"] = encode_value(str(decode_json(params[NAMED[method]])))
            if method == "tools/call":
                headers |= self._argument_headers(params)
        elif self.info.protocol:
            headers["mcp-protocol-version"] = self.info.protocol
        return headers

    def _argument_headers(self, params: Params) -> dict[str, str]:
        paths = self._header_paths(str(decode_json(params.get("name", Raw(b'""')))))
        if not paths:
            return {}
        arguments = decode_json(params.get("arguments", Raw(b"{}")))
        texts = {name: text_of(value_at(arguments, path)) for name, path in paths.items()}
        return {f"mcp-param-{name}": encode_value(text) for name, text in texts.items() if text is not None}

    # one request

    async def _exchange(self, call: Call, params: Params) -> None:
        try:
            await self._deliver(call, params)
        except CallboardError as error:
            self._fail(call, error)
            if error.code == "remote-sign-in":
                self._signed_out = Closed(error.message.rstrip("."), error=error.code)
        except TooLargeError:
            if self.pending.pop(call.id, None) is not None:
                call.listener.on_answer(error_answer(INTERNAL_ERROR, "The server's answer is larger than 64 MiB."))
        except httpx2.HTTPError as error:
            lost = failure(error)
            self._fail(call, lost)
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                self.end(Closed(lost.message.rstrip("."), error=lost.code))
        finally:
            self._tasks.pop(call.id, None)
            if self._signed_out is not None and not self.busy:
                self.end(self._signed_out)  # what was let in before may end first

    def _fail(self, call: Call, error: CallboardError) -> None:
        if self.pending.pop(call.id, None) is not None:
            call.listener.on_gone(error)

    def _on_refused(self, message: bytes, error: CallboardError) -> None:
        """A message was not taken over the transport of 2024-11-05."""
        with contextlib.suppress(msgspec.DecodeError, ValueError):
            call = self.pending.get(int(bytes(decode_envelope(message).id)))
            if call is not None:
                self._fail(call, error)

    async def _deliver(self, call: Call, params: Params) -> None:
        """Send a request and take what comes. It is repeated, once for each reason, where it surely was not taken."""
        body = request_bytes(call.id, call.method, params)
        tried: set[str] = set()
        while True:
            if self._renewing is not None and call.method != "initialize":
                await self._renewed()  # without a session it would be refused
            session, pause = self._session, 0.0
            async with self._post(body, self._headers(call.method, params)) as answer:
                self._failures = 0
                if session and "session" not in tried and await is_session_gone(answer):
                    tried.add("session")
                elif len(tried) < MAX_REDIRECTS and (target := same_origin(self._url, answer)) is not None:
                    tried.add(self._url)
                    self._url = target
                    continue
                elif "pause" not in tried and (pause := retry_after(answer)):
                    tried.add("pause")
                else:
                    await self._accept(call, answer)
                    return
            if pause:
                await asyncio.sleep(pause)
            else:
                await self._renew(session)

    async def _accept(self, call: Call, answer: httpx2.Response) -> None:
        if answer.status_code == 401 or not self._is_message(answer):
            raise refused(answer.status_code, await answer.aread(), answer.headers.get("location", ""))
        if call.method == "initialize":
            self._session = answer.headers.get("mcp-session-id", "")
        await self._read(call, answer)

    def _is_message(self, answer: httpx2.Response) -> bool:
        """A success, or an error that may carry a JSON-RPC error in its body."""
        kind = answer.headers.get("content-type", "")
        return answer.status_code < 300 or (answer.status_code in (400, 404, 500) and "application/json" in kind)

    async def _read(self, call: Call, answer: httpx2.Response) -> None:
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            body = await read_message(answer)
            if answer.status_code >= 400 and not is_error(body):
                raise refused(answer.status_code, body)
            taken = [self.received(message, call) for message in split_batch(body)]
            if not any(taken):
                raise no_message(answer, body)
            return
        parser = EventParser()
        async for chunk in answer.aiter_bytes():
            for event in parser.feed(chunk):
                self.received(event.data, call)
                if call.id not in self.pending:
                    return
        await self._resume(call, parser)

    async def _resume(self, call: Call, parser: EventParser) -> None:
        """The stream ended before the answer: ask for the rest where the server offers it (2025-11-25 only)."""
        for _ in range(10):
            if not parser.last_id or self.info.modern:
                break
            await asyncio.sleep((parser.retry_ms or 1000) / 1000)
            headers = self._headers("", {}) | {"last-event-id": parser.last_id}
            async with self._stream("GET", headers=headers) as answer:
                if answer.status_code != 200:
                    break
                async for chunk in answer.aiter_bytes():
                    for event in parser.feed(chunk):
                        self.received(event.data, call)
                        if call.id not in self.pending:
                            return
        raise CallboardError("upstream-gone", "The server closed the stream before it had answered.")

    async def _post_quietly(self, message: bytes) -> None:
        try:
            async with self._post(message, self._headers("", {})) as answer:
                await answer.aread()
        except (httpx2.HTTPError, CallboardError) as error:
            log.info("a message to a remote server was lost: %s", error)

    def _post(self, body: bytes, headers: dict[str, str]) -> Any:
        return self._stream("POST", headers=headers, content=body)

    @contextlib.asynccontextmanager
    async def _stream(self, verb: str, **arguments: Any) -> AsyncIterator[httpx2.Response]:
        if self._http is None:
            raise CallboardError("upstream-gone", "The connection is closed.")
        async with self._http.stream(verb, self._url, **arguments) as answer:
            yield answer

    # the session

    async def _renew(self, expired: str) -> None:
        """Begin a new session in place of an expired one; however many requests find it out, once."""
        if self._session == expired:
            self._session = ""
            self._renewing = spawn(self._begin_anew(), name="new session")
        await self._renewed()

    async def _renewed(self) -> None:
        """Wait for the new session, if one is being begun; raises ``upstream-gone`` if there is none."""
        if self._renewing is not None and not self._renewing.done():
            await asyncio.shield(self._renewing)
        if self.closed.done():
            raise gone(self.closed.result())

    async def _begin_anew(self) -> None:
        try:
            async with asyncio.timeout(RENEW_SECONDS):
                await self._initialize(None)
        except CallboardError as error:
            self.end(Closed(f"its session expired, and there is no new one: {error.message.rstrip('.')}"))
        except TimeoutError:
            self.end(Closed("its session expired, and there is no new one"))
        else:
            self._session_changed.set()
            self._session_changed = asyncio.Event()
            self.peer.on_renewed()

    async def announce(self) -> None:
        """See RpcConnection. Here messages may overtake each other."""
        if self._sse is not None:
            await super().announce()
        else:
            await self._post_quietly(notification_bytes("notifications/initialized", {}))

    async def _listen(self) -> None:
        """Hear what a legacy server says outside of any request, as long as it offers that."""
        pause = RETURN_SECONDS
        while not self.closed.done():
            parser = EventParser()
            changed = self._session_changed
            try:
                async with self._stream("GET", headers=self._headers("", {})) as answer:
                    kind = answer.headers.get("content-type", "")
                    if answer.status_code == 404 and self._session:
                        await answer.aread()
                        await changed.wait()
                        continue
                    if answer.status_code != 200 or "text/event-stream" not in kind:
                        return
                    pause = RETURN_SECONDS
                    async for chunk in answer.aiter_bytes():
                        for event in parser.feed(chunk):
                            self.received(event.data)
            except (httpx2.HTTPError, CallboardError, TooLargeError):
                log.debug("the stream of a remote server's messages broke")
            await asyncio.sleep(max(pause, (parser.retry_ms or 0) / 1000))
            pause = min(pause * 2, LONGEST_RETURN)

    def notify(self, method: str, params: Params) -> None:
        """See Upstream."""
        if not self.closed.done() and not (self.info.modern and self._sse is None):
            self.transmit(notification_bytes(method, params))

"""A remote server over streamable HTTP, of either era (2025-11-25 basic/transports, 2026-07-28 transports)."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, RemoteLaunch
from callboard.core.mcp_headers import NAMED, encode_value, text_of, value_at
from callboard.core.protocol import MODERN
from callboard.engine.relay.envelope import Raw, decode_json, notification_bytes, request_bytes
from callboard.engine.tasks import cancel_and_wait, spawn
from callboard.engine.upstream.base import Closed, Listener, Params, Peer
from callboard.engine.upstream.event_stream import EventParser
from callboard.engine.upstream.http_client import failure, make_client, refused
from callboard.engine.upstream.rpc import Call, RpcConnection, gone
from callboard.engine.upstream.sse import SseChannel

log = logging.getLogger(__name__)

PROBE_SECONDS: Final = 10.0
MAX_FAILURES: Final = 3  # calls in a row that could not be delivered before the connection counts as gone
RETURN_SECONDS: Final = 1.0  # before a GET stream that ended is opened again, doubling
LONGEST_RETURN: Final = 60.0
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
    ) -> None:
        """``header_paths`` tells which arguments of a tool are mirrored into headers (``x-mcp-header``)."""
        super().__init__(peer, modern=modern, capabilities=capabilities)
        self._header_paths = header_paths
        self._http: httpx2.AsyncClient | None = None
        self._launch: RemoteLaunch | None = None
        self._session = ""
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
        self._launch = launch
        self._http = await make_client(launch)
        if launch.transport == "sse":
            await self._open_sse()
            return
        if self._era is not False and await self._probe():
            return
        try:
            await self._initialize(None)
        except CallboardError as error:
            if error.data.get("status") not in (400, 404, 405, 406, 415, 501):
                raise
            await self._open_sse(error)
            return
        self._background(self._listen(), "server's messages")

    async def _probe(self) -> bool:
        try:
            answer = await self.request("server/discover", dict(self._own_meta_params), seconds=PROBE_SECONDS)
        except CallboardError as error:
            status = error.data.get("status", 0)
            if error.code == "call-timeout" or (error.code == "remote-status" and 400 <= status < 500):
                return False
            raise
        return self._take_discovery(await self.insist(answer))

    async def _open_sse(self, first: CallboardError | None = None) -> None:
        """The transport of 2024-11-05; raises ``first`` if the server does not speak that either."""
        assert self._http is not None
        assert self._launch is not None
        channel = SseChannel(self._http, self._launch.url, on_message=self.received, on_end=self.end)
        try:
            await channel.open()
        except CallboardError as error:
            raise first or error from None
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
            if self._session and self._launch is not None:
                with contextlib.suppress(httpx2.HTTPError):
                    await http.delete(self._launch.url, headers=self._headers("", {}), timeout=2.0)
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
        elif not self.closed.done():
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
            self._failures = 0
        except CallboardError as error:
            self._fail(call, error)
        except httpx2.HTTPError as error:
            self._fail(call, failure(error))
            self._failures += 1
            if self._failures >= MAX_FAILURES:
                self.end(Closed(failure(error).message.rstrip(".")))
        finally:
            self._tasks.pop(call.id, None)

    def _fail(self, call: Call, error: CallboardError) -> None:
        if self.pending.pop(call.id, None) is not None:
            call.listener.on_gone(error)

    async def _deliver(self, call: Call, params: Params, *, again: bool = True) -> None:
        session = self._session
        body = request_bytes(call.id, call.method, params)
        async with self._post(body, self._headers(call.method, params)) as answer:
            if answer.status_code == 404 and session and again:
                await answer.aread()
                renew = True
            elif answer.status_code == 401 or not self._is_message(answer):
                raise refused(answer.status_code, await answer.aread(), answer.headers.get("location", ""))
            else:
                renew = False
                if call.method == "initialize":
                    self._session = answer.headers.get("mcp-session-id", "")
                await self._read(call, answer)
        if renew:
            # the server has forgotten the session and did not take the request: it is safe to repeat
            await self._renew(session)
            await self._deliver(call, params, again=False)

    def _is_message(self, answer: httpx2.Response) -> bool:
        """A success, or an error that may carry a JSON-RPC error in its body."""
        kind = answer.headers.get("content-type", "")
        return answer.status_code < 300 or (answer.status_code in (400, 404, 500) and "application/json" in kind)

    async def _read(self, call: Call, answer: httpx2.Response) -> None:
        if "text/event-stream" not in answer.headers.get("content-type", ""):
            body = await answer.aread()
            if not self.received(body, call):
                raise refused(answer.status_code, body)
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
        if self._http is None or self._launch is None:
            raise CallboardError("upstream-gone", "The connection is closed.")
        async with self._http.stream(verb, self._launch.url, **arguments) as answer:
            yield answer

    # the session

    async def _renew(self, expired: str) -> None:
        """Begin a new session in place of an expired one; however many requests find it out, once."""
        if self._session == expired and (self._renewing is None or self._renewing.done()):
            self._session = ""
            self._renewing = spawn(self._initialize(None), name="new session")
        if self._renewing is not None:
            await asyncio.shield(self._renewing)

    async def _listen(self) -> None:
        """Hear what a legacy server says outside of any request, as long as it offers that."""
        pause = RETURN_SECONDS
        while not self.closed.done():
            parser = EventParser()
            try:
                async with self._stream("GET", headers=self._headers("", {})) as answer:
                    kind = answer.headers.get("content-type", "")
                    if answer.status_code != 200 or "text/event-stream" not in kind:
                        return
                    pause = RETURN_SECONDS
                    async for chunk in answer.aiter_bytes():
                        for event in parser.feed(chunk):
                            self.received(event.data)
            except (httpx2.HTTPError, CallboardError):
                log.debug("the stream of a remote server's messages broke")
            await asyncio.sleep(max(pause, (parser.retry_ms or 0) / 1000))
            pause = min(pause * 2, LONGEST_RETURN)

    def notify(self, method: str, params: Params) -> None:
        """See Upstream."""
        if not self.closed.done() and not (self.info.modern and self._sse is None):
            self.transmit(notification_bytes(method, params))

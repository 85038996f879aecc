"""A small gateway with the manners of the real one, and a bridge to it on two pipes."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvicorn

from callboard.connect.bridge import Bridge
from callboard.connect.endpoint import Place
from callboard.connect.stdio import Input, Output

MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


@dataclass
class Seen:
    """A request as it arrived at the gateway."""

    verb: str
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> dict[str, Any]:
        """The body, decoded."""
        found: dict[str, Any] = json.loads(self.body)
        return found


Answer = Callable[["Turn"], Awaitable[None]]


@dataclass
class Turn:
    """One request that a test answers as it likes."""

    seen: Seen
    receive: Callable[[], Awaitable[Any]]
    send: Callable[[Any], Awaitable[None]]

    async def json(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Answer with a JSON body."""
        await self._start(status, {"content-type": "application/json", **headers})
        await self.send({"type": "http.response.body", "body": body})

    async def result(self, value: Any, **headers: str) -> None:
        """Answer with a JSON-RPC result."""
        await self.json(encode({"jsonrpc": "2.0", "id": self.seen.message["id"], "result": value}), **headers)

    async def stream(self) -> None:
        """Begin a stream of events."""
        await self._start(200, {"content-type": "text/event-stream"})

    async def event(self, data: bytes) -> None:
        """One event, its bytes as they go over the wire."""
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End the stream."""
        await self.send({"type": "http.response.body", "body": b""})

    async def gone(self) -> None:
        """Return when the client has closed the connection."""
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _start(self, status: int, headers: dict[str, str]) -> None:
        raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})


@dataclass
class Gateway:
    """Records what comes in; ``answers`` holds by JSON-RPC method (or HTTP verb) what a test wants done."""

    seen: list[Seen] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    sessions: set[str] = field(default_factory=set)
    opened: int = 0
    port: int = 0
    _server: uvicorn.Server | None = None
    _running: "asyncio.Task[None] | None" = None
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """The ASGI entry point."""
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen = Seen(scope["method"], headers, body)
        self.seen.append(seen)
        async with self._arrived:
            self._arrived.notify_all()
        turn = Turn(seen, receive, send)
        key = scope["method"] if scope["method"] != "POST" else _method(body)
        session = headers.get("mcp-session-id")
        if key in self.answers:
            await self.answers[key](turn)
        elif session is not None and session not in self.sessions:
            await turn.json(encode({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "?"}}), 404)
        else:
            await self._usual(key, turn)

    async def _usual(self, key: str, turn: Turn) -> None:
        if key == "initialize":
            self.opened += 1
            name = f"session-{self.opened}"
            self.sessions.add(name)
            await turn.result({"protocolVersion": "2025-06-18"}, mcp_session_id=name)
        elif key in ("GET", "DELETE"):
            await turn.json(b"", 405)
        elif turn.seen.message.get("id") is None or "method" not in turn.seen.message:
            await turn.json(b"", 202)
        else:
            await turn.result({"echo": turn.seen.message.get("params")})

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something about what has arrived."""
        async with self._arrived:
            await self._arrived.wait_for(condition)

    def methods(self) -> list[str]:
        """HTTP verbs and JSON-RPC methods in the order in which they came."""
        return [seen.verb if seen.verb != "POST" else _method(seen.body) for seen in self.seen]

    async def start(self) -> None:
        """Listen on a free port, the same one after a stop."""
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        config = uvicorn.Config(self, lifespan="off", ws="none", log_config=None, timeout_graceful_shutdown=1)
        self._server = _Server(config)
        self._running = asyncio.create_task(self._server.serve(sockets=[listener]))
        while not self._server.started:  # noqa: ASYNC110  # uvicorn sends no event
            await asyncio.sleep(0.005)

    async def stop(self) -> None:
        """Close all connections and the port."""
        if self._server is not None and self._running is not None:
            self._server.should_exit = self._server.force_exit = True
            for connection in list(self._server.server_state.connections):
                connection.transport.abort()  # type: ignore[union-attr]  # as a killed engine does
            await self._running
            self._server = None


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class AbsentEndpoint:
    """An endpoint that may be away for a time; counts how often it had to be looked for."""

    encrypted = False

    def __init__(self, place: Place) -> None:
        self.there = asyncio.Event()
        self.there.set()
        self.losses = 0
        self._place = place

    async def ready(self) -> Place:
        """The place; waits until it is there."""
        await self.there.wait()
        return self._place

    async def look(self) -> Place | None:
        """The place if it is there."""
        return self._place if self.there.is_set() else None

    def lost(self, place: Place) -> None:
        """Counted."""
        self.losses += 1


class Client:
    """The client's end: writes lines, reads lines."""

    def __init__(self, write: int, reader: asyncio.StreamReader) -> None:
        self._write = write
        self._reader = reader

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        """Write messages, each on a line of its own."""
        data = b"".join((each if isinstance(each, bytes) else encode(each)) + b"\n" for each in messages)
        await asyncio.to_thread(_write_all, self._write, data)

    async def line(self) -> bytes:
        """The next line."""
        return (await self._reader.readuntil(b"\n"))[:-1]

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        message: dict[str, Any] = json.loads(await self.line())
        return message

    async def ask(self, method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
        """Send a request and read the next message."""
        await self.send(request(method, request_id, **params))
        return await self.receive()

    async def shake_hands(self) -> None:
        """The handshake of the legacy era."""
        assert "result" in await self.ask("initialize", 0, protocolVersion="2025-06-18")
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def hang_up(self) -> None:
        """End the bridge's stdin."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1


@dataclass
class Setting:
    """Gateway, bridge and client, connected."""

    gateway: Gateway
    endpoint: AbsentEndpoint
    client: Client
    ended: asyncio.Event
    serving: "asyncio.Task[None]"


@pytest.fixture
async def setting() -> AsyncIterator[Setting]:
    """A bridge between a client and a gateway, both played by the test."""
    gateway = Gateway()
    await gateway.start()
    endpoint = AbsentEndpoint(Place(f"http://127.0.0.1:{gateway.port}/mcp", "secret"))
    our_in, their_out = os.pipe()
    our_out, their_in = os.pipe()
    reader = asyncio.StreamReader(limit=2**28)
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(our_out, "rb"))
    client = Client(their_out, reader)
    ended = asyncio.Event()

    async def serve() -> None:
        output = Output(their_in, ended.set)
        async with Bridge(endpoint, output) as bridge:
            await bridge.serve(Input(our_in), ended)
        await output.close()

    serving = asyncio.create_task(serve())
    try:
        async with asyncio.timeout(20):
            yield Setting(gateway, endpoint, client, ended, serving)
    finally:
        client.hang_up()
        ended.set()
        await serving
        await gateway.stop()
        pipe.close()
        for descriptor in (our_in, their_in):
            os.close(descriptor)


def encode(message: Any) -> bytes:
    """JSON as a client would write it."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def _method(body: bytes) -> str:
    message = json.loads(body)
    return message.get("method", "answer") if isinstance(message, dict) else "batch"


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

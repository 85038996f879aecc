"""An agent on a transport of its own: standard input and output, or HTTP with a guard before every route."""

import asyncio
import contextlib
import errno
import hmac
import json
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO
from urllib.parse import unquote, urlsplit

from uvicorn import Config, Server

from callboard.agents.conversations import Caller
from callboard.agents.results import Result
from callboard.agents.service import Service, UnknownError
from callboard.core.errors import CallboardError

if TYPE_CHECKING:
    from fastmcp import FastMCP

TRANSPORTS: Final = ("stdio", "http", "streamable-http")
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY: Final = 64 * 1024 * 1024
PLAIN: Final = "/mcp/tools/"
CLIENT_KEY: Final = "callboard.client"  # in the ASGI scope: who the guard let in
_GOODBYE: Final = 2  # seconds for open requests at the end

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Address:
    """Where to listen, and who may call. ``token`` empty: anybody who can reach it; only right on loopback."""

    host: str = "localhost"
    port: int = 8080
    token: str = ""
    stateless: bool = False

    @property
    def is_loopback(self) -> bool:
        """True if nobody but this machine can reach it."""
        return self.host.lower() in LOOPBACK

    @property
    def url(self) -> str:
        """The MCP endpoint."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/mcp"


class Stop:
    """Ends a server from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._event: asyncio.Event | None = None
        self._asked = False

    def __call__(self) -> None:
        """End it; again, or before it runs, is fine."""
        self._asked = True
        if self._loop is not None and self._event is not None:
            with contextlib.suppress(RuntimeError):  # it has ended meanwhile
                self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        """Wait until it was asked for; once per server, on the server's loop."""
        self._loop, self._event = asyncio.get_running_loop(), asyncio.Event()
        if not self._asked:
            await self._event.wait()


def listen(address: Address) -> socket.socket:
    """The listening socket. Raises ``port-in-use``, and ``bad-request`` for a host that is none of this machine's."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CallboardError("bad-request", f"The host {address.host} is not known: {error.strerror}.") from error
    try:
        option = getattr(socket, "SO_EXCLUSIVEADDRUSE", socket.SO_REUSEADDR)
        sock.setsockopt(socket.SOL_SOCKET, option, 1)
        sock.bind(place)
        sock.listen(128)
    except OSError as error:
        sock.close()
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            fix = "Choose another port with --port, or end the program that has it."
            message = f"Port {address.port} of {address.host} is in use."
            raise CallboardError("port-in-use", message, fix=fix) from error
        raise CallboardError("bad-request", f"{address.host}: {error.strerror}.") from error
    sock.setblocking(False)
    return sock


async def serve_stdio(server: "FastMCP[Any]", stop: Stop) -> None:
    """Serve one client until it closes the input, or until ``stop``."""
    await _until(server.run_stdio_async(show_banner=False), stop)


async def serve_http(
    server: "FastMCP[Any]", service: Service, address: Address, sock: socket.socket, stop: Stop
) -> None:
    """Serve until ``stop`` or a signal that asks for the end."""
    inner = server.http_app(path="/mcp", stateless_http=address.stateless, host_origin_protection=False)
    config = Config(
        Guard(inner, service, address),
        lifespan="on",
        ws="none",
        log_config=None,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=_GOODBYE,
    )
    with _signals_stop(stop):
        web = _Web(config)
        serving = asyncio.get_running_loop().create_task(web.serve(sockets=[sock]))
        waiting = asyncio.get_running_loop().create_task(stop.wait())
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        web.should_exit = True
        await serving


class _Web(Server):
    """uvicorn without its signal handlers: ours end the agent too."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


class Guard:
    """What stands before every route: Host and Origin, the token, plain calls, and one form of the endpoint's path."""

    def __init__(self, inner: Any, service: Service, address: Address) -> None:
        self._inner = inner
        self._service = service
        self._token = address.token.encode()
        self._hosts = LOOPBACK | {address.host.lower()}
        # Any of the machine's names may be meant then. A page that points its own name here is known by its Origin.
        self._any_host = not address.is_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        refused = self._refusal(headers)
        if refused is not None:
            status, code, message = refused
            await _respond(send, status, _failure(code, message))
            return
        path: str = scope["path"]
        client = "token" if self._token else ""
        if path == "/healthz":
            await _respond(send, 200, {"status": "ok"})
        elif path.startswith(PLAIN):
            await self._plain(scope["method"], unquote(path.removeprefix(PLAIN)), client, receive, send)
        elif path in ("/mcp", "/mcp/"):
            # both forms, without a redirect that strict clients do not follow
            await self._inner({**scope, "path": "/mcp", "raw_path": b"/mcp", CLIENT_KEY: client}, receive, send)
        else:
            await _respond(send, 404, _failure("not-found", f"There is nothing at {path}."))

    def _refusal(self, headers: Mapping[bytes, bytes]) -> tuple[int, str, str] | None:
        """Refuse names that a foreign page could have pointed here, and callers without the token."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._any_host and not self._is_ours("//" + host):
            return 421, "host-refused", f'The host name "{host}" is not one of this server.'
        origin = headers.get(b"origin")
        if origin is not None and not self._is_ours(origin.decode("latin-1")):
            return 403, "host-refused", f'Pages from "{origin.decode("latin-1")}" may not call this server.'
        if self._token:
            given = headers.get(b"authorization", b"")
            if given[:7].lower() != b"bearer " or not hmac.compare_digest(given[7:].strip(), self._token):
                return 401, "unauthorized", "A valid bearer token is needed."
        return None

    def _is_ours(self, address: str) -> bool:
        try:
            name = urlsplit(address).hostname
        except ValueError:
            return False
        return name is not None and name.lower() in self._hosts

    async def _plain(self, method: str, tool: str, client: str, receive: Receive, send: Send) -> None:
        if method != "POST":
            await _respond(send, 405, _failure("bad-request", "Only POST calls a tool."), ((b"allow", b"POST"),))
            return
        try:
            arguments = json.loads(await _body(receive) or b"{}")
            if not isinstance(arguments, dict):
                raise ValueError("it must be an object of arguments")
        except ValueError as error:
            await _respond(send, 400, _failure("bad-request", f"The body is not JSON: {error}."))
            return
        except OverflowError:
            await _respond(send, 413, _failure("body-too-large", "The request is larger than 64 MiB."))
            return
        try:
            result = await self._service.call(tool, arguments, Caller(client))
        except UnknownError as error:
            await _respond(send, 404, _failure("tool-unknown", f"{error}."))
            return
        await _respond(send, 422 if result.is_error else 200, plain_answer(result))


def plain_answer(result: Result) -> dict[str, Any]:
    """A result as the plain calls give it: ``{"success", "status", "result"}``, or ``"error"`` in place of the last."""
    texts = "\n".join(block["text"] for block in result.content if block["type"] == "text")
    answer: dict[str, Any]
    if result.is_error:
        answer = _failure("tool-failed", texts)
    else:
        value: Any = result.structured
        if value is None:
            value = texts
            if texts[:1] in ("{", "["):
                with contextlib.suppress(ValueError):
                    value = json.loads(texts)
        elif value.keys() == {"result"}:
            value = value["result"]
        answer = {"success": True, "status": "completed", "result": value}
        if any(block["type"] != "text" for block in result.content):
            answer["content"] = result.content
    return {**answer, "_meta": result.meta} if result.meta else answer


def banner(
    service: Service, name: str, agent: str, transport: str, url: str, *, verbose: bool = False, width: int = 60
) -> str:
    """What is said at the start: plain ASCII but for what the agent says of itself."""
    lines = [
        "=" * width,
        name,
        "=" * width,
        f"Server: {name}",
        f"Agent: {agent}",
        f"Tools: {len(service.tools)}",
        *(f"  - {tool.name}: {tool.description.partition(chr(10))[0]}" for tool in service.tools.values()),
    ]
    if transport == "stdio":
        lines.append("Transport: stdio (JSON-RPC over stdin/stdout)")
    else:
        lines.append(f"MCP Endpoint: {url}")
    if verbose:
        lines.append("Verbose Mode: ENABLED")
    if transport != "stdio":
        lines.append("Press Ctrl+C to stop")
    return "\n".join([*lines, "=" * width])


def say(text: str, stream: TextIO | None = None) -> None:
    """Print to a console that may know few characters; the others become question marks."""
    stream = stream if stream is not None else sys.stderr
    encoding = stream.encoding or "ascii"
    stream.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()


async def _until(serving: Awaitable[None], stop: Stop) -> None:
    loop = asyncio.get_running_loop()
    task: asyncio.Task[None] = loop.create_task(_as_coroutine(serving))
    waiting = loop.create_task(stop.wait())
    try:
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()
        task.cancel()
        await asyncio.wait([task, waiting])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


async def _as_coroutine(work: Awaitable[None]) -> None:
    await work


@contextlib.contextmanager
def _signals_stop(stop: Stop) -> Iterator[None]:
    """Ctrl+C and SIGTERM ask for the end, instead of ending the process under the agent."""
    previous: dict[Any, Any] = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            previous[number] = signal.signal(number, lambda *_: stop())
    except ValueError:  # not the main thread: signals are somebody else's
        pass
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _failure(code: str, message: str) -> dict[str, Any]:
    return {"success": False, "status": "failed", "error": {"code": code, "message": message}}


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError("the client went away")
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            raise OverflowError
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _respond(send: Send, status: int, value: Any, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    challenge = ((b"www-authenticate", b'Bearer realm="callboard"'),) if status == 401 else ()
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            *challenge,
            *headers,
        ],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})

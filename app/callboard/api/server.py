"""The control API in the engine: routes from HTTP to the engine's methods. Plain ASGI, JSON by msgspec."""

import asyncio
import contextlib
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec

from callboard.api.agent_schema import AgentLookRequest
from callboard.api.schema import CallRequest, EntryEdit, NetworkChange, SecretValue, UndoRequest, ValidateRequest
from callboard.api.sign_in_schema import SignInAnswer
from callboard.core.errors import CallboardError
from callboard.engine import tasks
from callboard.engine.agent_look import look
from callboard.engine.engine import Engine
from callboard.engine.gateway.http import JSON, Receive, Send, read_body, respond, respond_error

log = logging.getLogger(__name__)

_STREAM = ((b"content-type", b"application/x-ndjson"), (b"cache-control", b"no-store"))


@dataclass(frozen=True)
class Request:
    """What a handler gets: path parameters, query, and the decoded body if the route has one."""

    path: tuple[str, ...]
    query: dict[str, str]
    body: Any

    def number(self, name: str, default: int) -> int:
        """A query parameter that is an integer; raises ``bad-request``."""
        try:
            return int(self.query.get(name, default))
        except ValueError:
            raise CallboardError("bad-request", f"The parameter {name} must be an integer.") from None


Handler = Callable[[Request], Awaitable[Any]]


class ControlServer:
    """Answers ``/api/v1``. The gateway has checked the admin token. Engine loop only."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._routes = _routes(engine)

    async def __call__(self, method: str, path: str, query: str, receive: Receive, send: Send) -> None:
        """See ControlApi."""
        values = {key: entries[-1] for key, entries in parse_qs(query, keep_blank_values=True).items()}
        try:
            stream = self._stream(path, values) if method == "GET" else None
            if stream is not None:
                await send_stream(stream, receive, send)
                return
            handler, parts, body_type = self._find(method, path)
            body = await _body(receive, body_type)
            result = await handler(Request(parts, values, body))
        except CallboardError as error:
            await respond_error(send, error)
            return
        except ConnectionError:
            raise
        except Exception:
            log.exception("%s %s failed", method, path)
            await respond_error(send, CallboardError("internal", "The engine failed to answer; see its log."))
            return
        if result is None:
            await respond(send, 204, headers=())
        else:
            await respond(send, 200, result if isinstance(result, bytes) else msgspec.json.encode(result), (JSON,))

    def _find(self, method: str, path: str) -> tuple[Handler, tuple[str, ...], Any]:
        allowed = []
        for verb, pattern, handler, body_type in self._routes:
            found = pattern.fullmatch(path)
            if found and verb == method:
                return handler, tuple(unquote(part) for part in found.groups()), body_type
            if found:
                allowed.append(verb)
        if allowed:
            raise CallboardError("bad-request", f"{path} takes {', '.join(allowed)}, not {method}.")
        raise CallboardError("not-found", f"There is nothing at {path}.")

    def _stream(self, path: str, values: dict[str, str]) -> AsyncGenerator[bytes, None] | None:
        """What a path that streams gives out, None for any other path."""
        if path == "/events":
            return self._events(Request((), values, None).number("after", -1))
        return self._figures() if path == "/figures" else None

    async def _events(self, after: int) -> AsyncGenerator[bytes, None]:
        """One JSON object a line; empty lines keep the connection alive."""
        yield b"\n"
        encoder = msgspec.json.Encoder()
        async with contextlib.aclosing(self._engine.bus.read(after)) as batches:
            async for batch in batches:
                yield b"".join(encoder.encode(event) + b"\n" for event in batch) or b"\n"

    async def _figures(self) -> AsyncGenerator[bytes, None]:
        """One sample of CPU and memory a line; they are taken as long as somebody reads here."""
        async with contextlib.aclosing(self._engine.figures.follow()) as samples:
            async for sample in samples:
                yield msgspec.json.encode(sample) + b"\n"


async def send_stream(parts: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    """Send what comes until it ends or the client goes away, which only :func:`receive` tells."""
    sending = tasks.spawn(_send_parts(parts, send), name="stream to a client")
    gone = tasks.spawn(_disconnected(receive), name="watch for disconnect")
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


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Receive, body_type: Any) -> Any:
    data = await read_body(receive)
    if body_type is None:
        return None
    try:
        return msgspec.json.decode(data, type=body_type)
    except msgspec.DecodeError as error:
        raise CallboardError("bad-request", f"The body is wrong: {error}.") from None


def _routes(engine: Engine) -> list[tuple[str, re.Pattern[str], Handler, Any]]:
    async def calls(request: Request) -> Any:
        filters = {key: request.query.get(key, "") for key in ("server", "tool", "client", "status", "text")}
        return await engine.call_log.page(request.number("offset", -1), request.number("limit", 256), **filters)

    async def call(request: Request) -> Any:
        if not request.path[0].isdigit():
            raise CallboardError("not-found", "A call has a number.")
        return await engine.call(int(request.path[0]))

    async def log_page(request: Request) -> Any:
        return engine.log_page(request.path[0], request.number("after", 0), request.number("limit", 5000))

    async def servers(request: Request) -> Any:
        if request.query.get("figures"):
            await engine.figures.fresh()
        return engine.server(*request.path) if request.path else engine.servers()

    async def call_tool(request: Request) -> Any:
        return await engine.call_tool(request.path[0], request.body.tool, request.body.arguments)

    async def save(request: Request) -> Any:
        return await engine.save_entry(request.path[0], request.body)

    async def remove(request: Request) -> Any:
        return await engine.remove_entry(request.path[0], request.query.get("revision", ""))

    async def snippet(request: Request) -> Any:
        query = request.query
        return engine.snippet(request.path[0], query.get("server", ""), with_token=bool(query.get("with_token")))

    async def set_secret(request: Request) -> Any:
        await engine.set_secret(request.path[0], request.body.value)

    async def delete_secret(request: Request) -> Any:
        await engine.delete_secret(request.path[0])

    async def doctor(request: Request) -> Any:
        return await engine.doctor(request.query.get("server", ""))

    async def act(request: Request) -> Any:
        return await engine.act(*request.path)

    async def sign_in_view(request: Request) -> Any:
        return await engine.sign_ins.view(request.path[0])

    async def sign_in(request: Request) -> Any:
        return await engine.sign_ins.begin(request.path[0])

    async def sign_in_answer(request: Request) -> Any:
        return engine.sign_ins.pasted(request.path[0], request.body.answer)

    async def cancel_sign_in(request: Request) -> Any:
        await engine.sign_ins.cancel(request.path[0])
        return await engine.sign_ins.view(request.path[0])

    async def sign_out(request: Request) -> Any:
        return await engine.sign_ins.sign_out(request.path[0])

    async def agent_look(request: Request) -> Any:
        return await look(request.body)

    async def validate(request: Request) -> Any:
        return engine.validate(request.body.name, request.body.entry, request.body.editing)

    async def undo(request: Request) -> Any:
        return await engine.undo(request.body.undo)

    async def token(request: Request) -> Any:
        return {"token": engine.token(request.path[0])}

    async def quit_engine(request: Request) -> Any:
        engine.ask_to_quit()

    async def network(request: Request) -> Any:
        engine.network(online=request.body.online)

    async def engine_view(request: Request) -> Any:
        return await engine.view()

    async def shipped(request: Request) -> Any:
        return await engine.shipped()

    async def secrets(request: Request) -> Any:
        return await engine.secrets_view()

    async def tools(request: Request) -> Any:
        return await engine.tools(*request.path)

    def plain(function: Callable[..., Any]) -> Handler:
        async def handler(request: Request) -> Any:
            return function(*request.path)

        return handler

    table: list[tuple[str, str, Handler, Any]] = [
        ("GET", "/engine", engine_view, None),
        ("POST", "/engine/quit", quit_engine, None),
        ("POST", "/engine/network", network, NetworkChange),
        ("GET", "/doctor", doctor, None),
        ("GET", "/servers", servers, None),
        ("GET", "/servers/*", servers, None),
        ("GET", "/servers/*/tools", tools, None),
        ("GET", "/servers/*/log", log_page, None),
        ("POST", "/servers/*/call", call_tool, CallRequest),
        ("GET", "/servers/*/sign-in", sign_in_view, None),
        ("POST", "/servers/*/sign-in", sign_in, None),
        ("POST", "/servers/*/sign-in/answer", sign_in_answer, SignInAnswer),
        ("DELETE", "/servers/*/sign-in", cancel_sign_in, None),
        ("POST", "/servers/*/sign-out", sign_out, None),
        ("POST", "/servers/*/*", act, None),
        ("POST", "/agents/look", agent_look, AgentLookRequest),
        ("GET", "/shipped", shipped, None),
        ("GET", "/roster", plain(engine.roster_view), None),
        ("POST", "/roster/validate", validate, ValidateRequest),
        ("POST", "/roster/undo", undo, UndoRequest),
        ("PUT", "/roster/servers/*", save, EntryEdit),
        ("DELETE", "/roster/servers/*", remove, None),
        ("GET", "/secrets", secrets, None),
        ("PUT", "/secrets/*", set_secret, SecretValue),
        ("DELETE", "/secrets/*", delete_secret, None),
        ("GET", "/calls", calls, None),
        ("GET", "/calls/*", call, None),
        ("GET", "/clients", plain(engine.client_views), None),
        ("GET", "/snippet/*", snippet, None),
        ("GET", "/token/*", token, None),
    ]
    return [
        (verb, re.compile(path.replace("*", "([^/]+)")), handler, body_type) for verb, path, handler, body_type in table
    ]

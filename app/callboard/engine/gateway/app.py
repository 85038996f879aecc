"""The ASGI application of the engine: checks who calls, then hands on to the endpoint that answers."""

import logging
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import unquote

from callboard.core.errors import CallboardError
from callboard.engine.gateway.access import Access, Admin, Visitor
from callboard.engine.gateway.http import Headers, HttpScope, Receive, Reply, Send, error_reply, respond, respond_error
from callboard.engine.gateway.mcp import Begun, McpEndpoint
from callboard.engine.policy.callers import PERSON, Caller, Policies
from callboard.engine.relay.gate import denied

log = logging.getLogger(__name__)

API_PREFIX: Final = "/api/v1"
HEALTH_PATH: Final = "/healthz"
CALLBACK_PATH: Final = "/oauth/callback"
_PATH: Final = re.compile(r"(?:/(servers|profiles)/([^/]+))?/mcp(?:/tools/([^/]+))?/?")
_LONGEST_PATH: Final = 1000  # characters; paths are remembered, also those of strangers
_PAGE: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
)
_CHALLENGE: Final = ((b"www-authenticate", b'Bearer realm="callboard"'),)


@dataclass(frozen=True)
class Target:
    """What a path of the gateway names: all servers, one, or a profile; with a tool for a call by plain HTTP."""

    server: str = ""
    profile: str = ""
    tool: str = ""


class ControlApi(Protocol):
    """The control API, mounted by the engine's composition root."""

    async def __call__(self, method: str, path: str, query: str, receive: Receive, send: Send) -> None:
        """Answer one request whose admin token was checked; ``path`` is without the prefix."""


class GatewayApp:
    """Routes HTTP requests. Engine loop only."""

    def __init__(
        self,
        access: Access,
        mcp: McpEndpoint,
        policies: Policies,
        server_exists: Callable[[str], bool],
        on_caller: Callable[[str], None],
        callback: Callable[[str], Awaitable[tuple[int, bytes]]] | None = None,
        is_ready: Callable[[], bool] = lambda: True,
        may_control: Callable[[str], bool] = lambda _: True,
    ) -> None:
        """``on_caller`` hears of each request that a client was let in with; ``callback`` answers a browser that comes
        back from a sign-in with this query; ``is_ready`` tells a load balancer whether clients can be let in;
        ``may_control`` whether the control API is for whoever comes from this address, "" for one not known.
        """
        self._access = access
        self._mcp = mcp
        self._policies = policies
        self._server_exists = server_exists
        self._on_caller = on_caller
        self._callback = callback
        self._is_ready = is_ready
        self._may_control = may_control
        self.control: ControlApi | None = None

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        """The ASGI entry point."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        except CallboardError as error:
            await respond_error(send, error)
        except ConnectionError:
            log.debug("a client went away in the middle of its request")

    def begin(self, scope: HttpScope, body: bytes) -> Begun | Reply | None:
        """Take a message for an MCP endpoint whose body has come; None for what has to go the way of ASGI: all other
        requests, those that are refused, and what takes time.
        """
        target = find_target(scope["path"]) if scope["method"] == "POST" else None
        if target is None or target.tool:
            return None
        try:
            headers = self._checked_headers(scope)
            visitor = self._access.caller(headers.get(b"authorization"))
            if visitor is None:
                return None
            caller = self._admit(visitor, target)
        except CallboardError:
            return None
        self._on_caller(caller.client)
        try:
            return self._mcp.begin(target.server, caller, headers, body)
        except CallboardError as error:
            return error_reply(error)

    def reply(self, begun: Begun) -> Reply | None:
        """The answer to what was begun, if it is there and can be sent as one piece."""
        return self._mcp.reply(begun)

    def gone(self, begun: Begun) -> None:
        """The client of what was begun went away."""
        self._mcp.gone(begun)

    async def serve(self, begun: Begun, receive: Receive, send: Send) -> None:
        """Go on with what was begun when there is something else than an answer."""
        await self._mcp.serve(begun, receive, send, woken=True)

    def _checked_headers(self, scope: HttpScope) -> Headers:
        headers: Headers = {}
        for name, value in scope["headers"]:
            if name in headers and name in _SINGLE:
                raise CallboardError("bad-request", f"The header {name.decode('latin-1')} stands there twice.")
            headers[name] = value.strip()  # the parser leaves the white space around a value (RFC 9110, 5.5)
        # a browser comes back from another site, with the unguessable state of its sign-in instead of a token
        origin = None if scope["path"] == CALLBACK_PATH else headers.get(b"origin")
        refused = self._access.check_host(headers.get(b"host"), origin)
        if refused is not None:
            raise refused
        return headers

    async def _answer(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        headers = self._checked_headers(scope)
        path: str = scope["path"]
        if path == HEALTH_PATH:
            ready = self._is_ready()
            await respond(send, 200 if ready else 503, b'{"status":"ok"}' if ready else b'{"status":"waiting"}')
            return
        if path == CALLBACK_PATH and self._callback is not None:
            await self._come_back(scope, send)
            return
        visitor = self._access.caller(headers.get(b"authorization"))
        target = find_target(path)
        if target is None and not path.startswith(API_PREFIX + "/"):
            raise CallboardError("not-found", f"There is nothing at {path}.")
        if target is None and not self._may_control(_peer_of(scope, headers)):
            raise CallboardError("control-refused", "The control API is for programs on the engine's computer.")
        if visitor is None or (target is None and visitor is not Admin.ADMIN):
            await respond_error(
                send, CallboardError("unauthorized", "A valid bearer token is needed."), headers=_CHALLENGE
            )
            return
        if target is None:
            await self._control(scope, path, receive, send)
            return
        caller = self._admit(visitor, target)
        self._on_caller(caller.client)
        if target.tool:
            await self._mcp.plain(scope["method"], target.server, target.tool, caller, headers, receive, send)
        else:
            await self._mcp(scope["method"], target.server, caller, headers, receive, send)

    def _admit(self, visitor: Visitor, target: Target) -> Caller:
        """Who calls at an endpoint, if it may use anything there; what is denied is so before it is looked for."""
        caller = self._policies.caller(PERSON if visitor is Admin.ADMIN else visitor, target.profile)
        if target.server:
            if not caller.may_use(target.server):
                raise denied(caller)
            if not self._server_exists(target.server):
                raise CallboardError("server-unknown", f'There is no enabled server named "{target.server}".')
        return caller

    async def _come_back(self, scope: HttpScope, send: Send) -> None:
        if self._callback is None or scope["method"] != "GET":
            raise CallboardError("bad-request", "A browser comes back here with GET.")
        status, body = await self._callback(scope["query_string"].decode("latin-1"))
        await respond(send, status, body, _PAGE)

    async def _control(self, scope: HttpScope, path: str, receive: Receive, send: Send) -> None:
        if self.control is None:
            raise CallboardError("not-found", "The control API is not ready.")
        query = scope["query_string"].decode("latin-1")
        await self.control(scope["method"], path.removeprefix(API_PREFIX), query, receive, send)


def find_target(path: str) -> Target | None:
    """What a path of an MCP endpoint, or of a plain call, names; None for any other path, and for a very long one."""
    return _find_target(path) if len(path) <= _LONGEST_PATH else None


@lru_cache(maxsize=1000)
def _find_target(path: str) -> Target | None:
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    group, name, tool = found[1], unquote(found[2] or ""), unquote(found[3] or "")
    return Target(profile=name, tool=tool) if group == "profiles" else Target(server=name, tool=tool)


def _peer_of(scope: HttpScope, headers: Headers) -> str:
    """The address that a request comes from; "" if a proxy says that it comes from elsewhere."""
    if not _FORWARDED.isdisjoint(headers) or not scope["client"]:
        return ""
    peer: str = scope["client"][0]
    return peer


# what proxies add (RFC 7239, and what was before it)
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"})
# headers that decide something must not be ambiguous (2026-07-28, transports/streamable-http)
_SINGLE: Final = frozenset(
    {b"host", b"origin", b"authorization", b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"}
)

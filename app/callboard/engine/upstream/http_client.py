"""The HTTP client of remote servers, and what its failures mean in our words."""

import asyncio
import ssl
from functools import cache
from typing import Any

import httpx2

from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch

CONNECT_SECONDS = 10.0
_REFUSED = {
    401: ("remote-sign-in", "The server wants a sign-in (HTTP 401)."),
    403: ("remote-forbidden", "The server refuses this token (HTTP 403)."),
    407: ("remote-status", "The proxy wants a sign-in (HTTP 407)."),
}


async def make_client(launch: RemoteLaunch) -> httpx2.AsyncClient:
    """A client for one server; the caller closes it. Certificates are loaded once, off the loop."""
    verify: Any = False
    if launch.url.startswith("https:"):
        verify = await asyncio.to_thread(_context)
    return httpx2.AsyncClient(
        headers=launch.headers,
        verify=verify,
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,  # credentials must not travel to wherever a server points
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0),
    )


@cache
def _context() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def failure(error: Exception) -> CallboardError:
    """What a failed exchange means."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return CallboardError("remote-tls", f"The secure connection failed: {_text(cause)}.")
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx2.TimeoutException):
        return CallboardError("remote-unreachable", "The server did not answer in time.")
    return CallboardError("remote-unreachable", f"The server cannot be reached: {_text(error)}.")


def refused(status: int, body: bytes = b"", location: str = "") -> CallboardError:
    """What an HTTP status that is no success means; ``data["status"]`` holds it."""
    if status in _REFUSED:
        code, message = _REFUSED[status]
    elif 300 <= status < 400:
        code, message = "remote-status", f"The server points to another address ({location or 'none given'})."
    else:
        code, message = "remote-status", f"The server answered HTTP {status}{_excerpt(body)}."
    return CallboardError(code, message, data={"status": status})


def _excerpt(body: bytes) -> str:
    text = body[:200].decode("utf-8", "replace").strip()
    return f": {text.splitlines()[0].rstrip('.')}" if text and not text.startswith(("<", "{")) else ""


def _text(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__

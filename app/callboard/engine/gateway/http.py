"""Plain ASGI: the few shapes of answers that the engine's HTTP front gives."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from callboard.api.schema import ErrorView
from callboard.core.errors import FIXES, CallboardError
from callboard.engine import tasks

Message = MutableMapping[str, Any]
HttpScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[HttpScope, Receive, Send], Awaitable[None]]
Headers = dict[bytes, bytes]
T = TypeVar("T")
Piece = bytes | memoryview

WHOLE: Final = "callboard.response"
"""A message besides ASGI's own: a whole answer, a Reply under ``reply``."""

MAX_BODY: Final = 64 * 1024 * 1024
JSON: Final = (b"content-type", b"application/json")
EVENT_STREAM: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
)
# Not understood: 400; understood, and refused for what it says: 422 (if not listed); a server's trouble: 502 to 504.
STATUS: Final = {
    "bad-request": 400,
    "unauthorized": 401,
    **dict.fromkeys(("host-refused", "control-refused"), 403),
    **dict.fromkeys(("policy-denied", "policy-refused", "policy-unanswered"), 403),
    "method-not-allowed": 405,
    **dict.fromkeys(
        (
            "not-found",
            "server-unknown",
            "client-unknown",
            "profile-unknown",
            "tool-unknown",
            "prompt-unknown",
            "resource-unknown",
            "shipped-unknown",
            "sign-in-unknown",
        ),
        404,
    ),
    **dict.fromkeys(
        (
            "disabled",
            "name-taken",
            "no-agent",
            "profile-in-use",
            "question-over",
            "roster-changed",
            "secret-missing",
            "sign-in-unavailable",
        ),
        409,
    ),
    "head-timeout": 408,
    "body-too-large": 413,
    "head-too-large": 431,
    "internal": 500,
    **dict.fromkeys(("upstream-gone", *(code for code in FIXES if code.startswith("remote-"))), 502),
    **dict.fromkeys(
        (
            "server-not-ready",
            "needs-missing",
            "env-unset",
            "command-not-found",
            "command-not-executable",
            "start-refused",
            "start-timeout",
            "exited-early",
            "exited",
            "not-responding",
            "crash-loop",
            "handshake-failed",
            "offline",
            "secrets-unavailable",
            "secrets-locked",
            "roster-unwritable",
            "storage-away",
            "connections-exhausted",
        ),
        503,
    ),
    "call-timeout": 504,
}


def status_of(error: CallboardError) -> int:
    """The HTTP status that goes with an error."""
    return STATUS.get(error.code, 422)


async def respond(
    send: Send, status: int, body: bytes | Sequence[Piece] = b"", headers: Iterable[tuple[bytes, bytes]] = (JSON,)
) -> None:
    """Send a whole answer; its body may come in pieces, which large ones need not be copied for."""
    await send({"type": WHOLE, "reply": Reply(status, body, headers)})


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes | Sequence[Piece] = b""
    headers: Iterable[tuple[bytes, bytes]] = (JSON,)


async def respond_error(send: Send, error: CallboardError, *, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send an error of the control API's form."""
    await respond(send, *error_reply(error, headers=headers))


def error_reply(error: CallboardError, *, headers: Iterable[tuple[bytes, bytes]] = ()) -> Reply:
    """An error of the control API's form."""
    view = ErrorView(code=error.code, message=error.message, fix=error.fix, data=error.data)
    return Reply(status_of(error), msgspec.json.encode(view), (JSON, *headers))


async def read_body(receive: Receive) -> bytes:
    """The whole body; raises ``body-too-large``, or ConnectionError when the client went away."""
    message = await receive()
    if message["type"] != "http.request":
        raise ConnectionError
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body
    parts, size = [body], len(body)
    while message.get("more_body"):
        message = await receive()
        if message["type"] != "http.request":
            raise ConnectionError
        part = message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY:
            parts.append(part)
        else:
            parts.clear()  # read on, so that the client gets to read the answer
    if size > MAX_BODY:
        raise CallboardError("body-too-large", "The request is larger than 64 MiB.")
    return b"".join(parts)


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone away; the body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_client_waits(answering: Coroutine[Any, Any, T], receive: Receive) -> T:
    """What comes of answering a request; raises ConnectionError, with it cancelled, if the client goes away first."""
    task = tasks.spawn(_outcome(answering), name="answer a client")
    gone = tasks.spawn(disconnected(receive), name="watch for disconnect")
    try:
        await asyncio.wait([task, gone], return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ConnectionError
        outcome = task.result()
    finally:
        await tasks.cancel_and_wait(task, gone)
    if isinstance(outcome, CallboardError):
        raise outcome
    return outcome


async def _outcome(answering: Coroutine[Any, Any, T]) -> T | CallboardError:
    """A refusal is an outcome, not a task that failed."""
    try:
        return await answering
    except CallboardError as error:
        return error

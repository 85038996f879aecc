"""What answers of remote servers mean before anything of the protocol is looked at."""

import contextlib
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx2
import msgspec

from callboard.core.errors import CallboardError
from callboard.core.protocol import METHOD_NOT_FOUND
from callboard.engine.relay.envelope import answer_of, decode_envelope, decode_json
from callboard.engine.upstream.answers import error_code
from callboard.engine.upstream.event_stream import MAX_EVENT, TooLargeError

MAX_PAUSE: Final = 10  # seconds that a request is kept back when the server asks for it


async def read_message(answer: httpx2.Response) -> bytes:
    """The body of an answer, without a byte-order mark; raises TooLargeError."""
    parts, size = [], 0
    async for part in answer.aiter_bytes():
        size += len(part)
        if size > MAX_EVENT:
            raise TooLargeError
        parts.append(part)
    return b"".join(parts).removeprefix(b"\xef\xbb\xbf")


def split_batch(body: bytes) -> list[bytes]:
    """The messages in a body: several in an array were allowed in revision 2025-03-26."""
    if body.lstrip()[:1] == b"[":
        with contextlib.suppress(msgspec.DecodeError):
            return [bytes(message) for message in decode_json(body, list[msgspec.Raw])]
    return [body]


def is_error(body: bytes) -> bool:
    """True for an error of the protocol; servers and proxies have error documents of their own."""
    try:
        answer = answer_of(decode_envelope(body))
    except msgspec.DecodeError:
        return False
    return answer is not None and error_code(answer) != 0


def no_message(answer: httpx2.Response, body: bytes) -> CallboardError:
    """A success that brings no message."""
    kind = answer.headers.get("content-type", "").partition(";")[0].strip() if body else "nothing"
    message = f"The server answered with {kind or 'something'} instead of a message (HTTP {answer.status_code})."
    return CallboardError("remote-status", message, data={"status": answer.status_code})


async def is_session_gone(answer: httpx2.Response) -> bool:
    """True if the server does not know our session any more, and so has not taken the request.

    The specification wants 404; others say so with 400 or 410.
    """
    if answer.status_code not in (400, 404, 410):
        return False
    body = await answer.aread()
    if answer.status_code == 400:
        return b"session" in body.lower()
    return b"%d" % METHOD_NOT_FOUND not in body


def same_origin(url: str, answer: httpx2.Response) -> str | None:
    """Where a redirect points, if a request may be repeated there with its body and its credentials."""
    location = answer.headers.get("location", "")
    if answer.status_code not in (307, 308) or not location:
        return None
    try:
        target = urljoin(url, location)
        return target if origin(target) == origin(url) else None
    except ValueError:
        return None


def on_second_loopback(url: str) -> str | None:
    """The address with ``localhost`` taken for ::1, which not every machine's table of hosts knows it to be."""
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname != "localhost" or not parts.port:
        return None
    return parts._replace(netloc=f"[::1]:{parts.port}").geturl()


def origin(url: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address; raises ValueError for a malformed one."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def retry_after(answer: httpx2.Response) -> float:
    """Seconds after which a server that has too much to do wants the request again, 0 if it does not soon."""
    text = answer.headers.get("retry-after", "")
    seconds = int(text) if answer.status_code == 429 and text.isdecimal() else 0
    return float(seconds) if seconds <= MAX_PAUSE else 0.0

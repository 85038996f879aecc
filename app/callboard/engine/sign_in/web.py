"""The exchanges of a sign-in: bounded, recorded, and only with addresses that may be trusted with secrets."""

import asyncio
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec

from callboard.api.sign_in_schema import SignInRequest
from callboard.core.errors import CallboardError
from callboard.engine.sign_in.trace import Trace, masked_url, shown_body

if TYPE_CHECKING:
    import httpx2

SECONDS: Final = 15.0  # for each part of an exchange
LARGEST: Final = 1024 * 1024  # bytes of an answer that are read
MAX_REDIRECTS: Final = 3
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
FORM: Final = "application/x-www-form-urlencoded"
_DATA: Final = {"accept": "application/json", "mcp-protocol-version": "2025-11-25"}


class Reply(msgspec.Struct, frozen=True):
    """An answer. ``data`` is its JSON object, None if it holds none."""

    status: int
    headers: dict[str, str]
    kind: str
    data: dict[str, Any] | None

    @property
    def ok(self) -> bool:
        """True for a success that holds data."""
        return self.status in (200, 201) and self.data is not None

    @property
    def what(self) -> str:
        """What came, as the end of a sentence; errors of OAuth with what they say of themselves."""
        data = self.data or {}
        if isinstance(error := data.get("error"), str):
            more = data.get("error_description")
            return f"{error[:100]}: {more[:300].rstrip('.')}" if isinstance(more, str) and more else error[:100]
        if self.ok:
            return "data that does not fit"
        if self.status in (200, 201):
            return f"something else than data ({self.kind or 'of no kind'})"
        return f"HTTP {self.status}"


class Web:
    """Sends the requests of one sign-in; use as an async context manager. Engine loop only.

    ``local`` allows addresses on this computer, which a server that is elsewhere must not make us call.
    """

    def __init__(self, trace: Trace, *, local: bool) -> None:
        self.trace = trace
        self._local = local
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def get(self, url: str) -> Reply:
        """Read a document; follows redirects within its origin."""
        for _ in range(MAX_REDIRECTS):
            reply = await self._send("GET", url, _DATA, b"")
            target = _within_origin(url, reply)
            if target is None:
                break
            url = target
        return reply

    async def post_form(self, url: str, form: dict[str, str], headers: dict[str, str]) -> Reply:
        """Send a form; redirects are not followed."""
        return await self._send("POST", url, {**_DATA, **headers, "content-type": FORM}, urlencode(form).encode())

    async def post_json(self, url: str, body: dict[str, Any]) -> Reply:
        """Send JSON; redirects are not followed."""
        return await self._send("POST", url, {**_DATA, "content-type": "application/json"}, msgspec.json.encode(body))

    async def look(self, method: str, url: str, headers: dict[str, str], body: bytes) -> Reply:
        """The status and headers of an answer whose body may never end; ``url`` may be anywhere."""
        return await self._send(method, url, headers, body, whole=False)

    def check(self, url: str, name: str) -> str:
        """``url`` if secrets may be sent there (2026-07-28, authorization "Communication Security").

        Raises ``sign-in-failed`` for an address without TLS, unless it is on this computer, and for one on this
        computer that a server elsewhere named.
        """
        parts = urlsplit(url)
        here = parts.hostname in LOOPBACK
        if not parts.hostname or parts.scheme not in ("http", "https") or (parts.scheme == "http" and not here):
            raise CallboardError("sign-in-failed", f"The {name} {masked_url(url)} is not an https address.")
        if here and not self._local:
            raise CallboardError(
                "sign-in-failed", f"The {name} {masked_url(url)} is on this computer, the server is not."
            )
        return url

    async def _send(self, method: str, url: str, headers: dict[str, str], body: bytes, *, whole: bool = True) -> Reply:
        import httpx2

        from callboard.engine.upstream.http_client import failure, no_proxy_for_this_computer, system_trust

        if self._client is None:
            self._client = httpx2.AsyncClient(
                verify=await system_trust(), timeout=SECONDS, mounts=no_proxy_for_this_computer()
            )
        began = time.perf_counter()
        sent = SignInRequest(method=method, url=masked_url(url), sent=shown_body(body, headers.get("content-type", "")))
        try:
            async with (
                asyncio.timeout(2 * SECONDS),
                self._client.stream(method, url, headers=headers, content=body or None) as answer,
            ):
                content = await _read(answer) if whole else b""
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            lost = failure(error)
            self._record(sent, began, error=lost.message)
            raise CallboardError(lost.code, f"{_host(url)}: {lost.message}", fix=lost.fix) from None
        kind = answer.headers.get("content-type", "").lower()
        self._record(sent, began, status=answer.status_code, received=shown_body(content, kind))
        return Reply(answer.status_code, dict(answer.headers), kind, _object(content))

    def _record(self, sent: SignInRequest, began: float, **came: Any) -> None:
        duration = round((time.perf_counter() - began) * 1000, 1)
        self.trace.add(msgspec.structs.replace(sent, duration_ms=duration, **came))


async def _read(answer: "httpx2.Response") -> bytes:
    parts, size = [], 0
    async for chunk in answer.aiter_bytes():
        size += len(chunk)
        if size > LARGEST:
            raise CallboardError("sign-in-failed", "The sign-in server's answer is larger than 1 MiB.")
        parts.append(chunk)
    return b"".join(parts)


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return found if isinstance(found, dict) else None


def _within_origin(url: str, reply: Reply) -> str | None:
    if not 300 <= reply.status < 400 or not reply.headers.get("location"):
        return None
    target = urljoin(url, reply.headers["location"])
    return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None


def _host(url: str) -> str:
    return urlsplit(url).netloc or url

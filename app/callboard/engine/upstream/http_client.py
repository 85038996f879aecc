"""The HTTP client of remote servers, and what its failures mean in our words."""

import asyncio
import errno
import socket
import ssl
from functools import cache
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2

from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch, TlsLaunch

CONNECT_SECONDS = 10.0
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_REFUSED = {
    401: ("remote-sign-in", "The server wants a sign-in (HTTP 401)."),
    403: ("remote-forbidden", "The server refuses this token (HTTP 403)."),
    407: ("remote-proxy", "The proxy wants a sign-in (HTTP 407)."),
}


async def make_client(launch: RemoteLaunch, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """A client for one server; the caller closes it. Raises ``remote-certificate`` for files that cannot be used."""
    return httpx2.AsyncClient(
        headers=launch.headers,
        auth=auth,
        verify=await trust_for(launch),
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,  # credentials must not travel to wherever a server points
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=30.0),
        mounts=no_proxy_for_this_computer(),
    )


async def system_trust() -> ssl.SSLContext:
    """A context that trusts whom the system trusts. Certificates are loaded once, off the loop."""
    return await asyncio.to_thread(_system_trust)


def no_proxy_for_this_computer() -> dict[str, None]:
    """What makes a client reach loopback directly, whatever the system's proxy settings say: a proxy cannot."""
    return dict.fromkeys(f"all://{host}" for host in _LOOPBACK)


async def trust_for(launch: RemoteLaunch) -> ssl.SSLContext | bool:
    """Whom to trust and who we are; False for a server without TLS. Raises ``remote-certificate``."""
    if not launch.url.lower().startswith("https:"):
        return False
    if launch.tls is None:
        return await system_trust()
    return await asyncio.to_thread(_with_certificate, launch.tls)


@cache
def _system_trust() -> ssl.SSLContext:
    return httpx2.create_ssl_context()


def _with_certificate(tls: TlsLaunch) -> ssl.SSLContext:
    try:
        context = httpx2.create_ssl_context() if tls.ca is None else ssl.create_default_context(cafile=tls.ca)
    except OSError as error:
        raise _unusable(f"The CA bundle {tls.ca} {_why(error)}.") from None
    try:
        # without a function that gives it, OpenSSL would ask for the passphrase on a terminal
        context.load_cert_chain(tls.certificate, tls.key, password=lambda: tls.passphrase)
    except OSError as error:
        raise _unusable(_certificate_problem(tls, error)) from None
    return context


def _certificate_problem(tls: TlsLaunch, error: OSError) -> str:
    """OpenSSL says neither which file nor which fault it means."""
    for name, path in (("certificate", tls.certificate), ("key", tls.key)):
        if path is None:
            continue
        try:
            text = path.read_bytes()
        except OSError as unreadable:
            return f"The file of the {name}, {path}, {_why(unreadable)}."
        if b"-----BEGIN " not in text:
            return f"The file of the {name}, {path}, is not in PEM format."
    if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
        return "The key does not belong to the certificate."
    if b"ENCRYPTED" in (tls.key or tls.certificate).read_bytes():
        return "The passphrase does not open the key." if tls.passphrase else "The key needs its passphrase."
    return f"No private key can be read from {tls.key or tls.certificate}."


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "is not in PEM format"
    return "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"


def _unusable(message: str) -> CallboardError:
    return CallboardError("remote-certificate", message)


def failure(error: Exception) -> CallboardError:
    """What a failed exchange means."""
    if isinstance(error, httpx2.TimeoutException | TimeoutError):
        return CallboardError("remote-timeout", "The server did not answer in time.")
    if isinstance(error, httpx2.ProxyError):
        return CallboardError("remote-proxy", f"The proxy cannot be used: {_text(error)}.")
    where = _through_proxy(error)
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLError):
            return CallboardError("remote-tls", _tls_problem(cause))
        if isinstance(cause, socket.gaierror):
            return CallboardError("remote-dns", f"The host's name cannot be found{where}.")
        if isinstance(cause, OSError) and cause.errno == errno.ECONNREFUSED:
            return CallboardError("remote-refused", f"The connection was refused{where}.")
    if isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError | httpx2.WriteError):
        hint = ", as one does that wants another client certificate, or any" if _scheme(error) == "https" else ""
        return CallboardError("remote-unreachable", f"The server closed the connection without an answer{hint}.")
    return CallboardError("remote-unreachable", f"The server cannot be reached{where}: {_text(error)}.")


def refused(status: int, body: bytes = b"", location: str = "") -> CallboardError:
    """What an HTTP status that is no success means; ``data["status"]`` holds it."""
    if status in _REFUSED:
        code, message = _REFUSED[status]
    elif 300 <= status < 400:
        code, message = "remote-status", f"The server points to another address ({location or 'none given'})."
    else:
        code = "remote-not-found" if status in (404, 410) else "remote-failed" if status >= 500 else "remote-status"
        message = f"The server answered HTTP {status}{_excerpt(body)}."
    return CallboardError(code, message, data={"status": status})


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"The server's certificate is not trusted: {error.verify_message.rstrip('.')}."
    reason = (error.reason or _text(error)).replace("_", " ").lower()
    if "alert" in reason or "eof" in reason:
        return f"The server refused the secure connection, perhaps for want of another client certificate: {reason}."
    if "wrong version number" in reason or "http request" in reason:
        return "The server does not speak TLS at this address; perhaps it begins with http:// instead of https://."
    return f"The secure connection failed: {reason}."


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in found:
        found.append(cause)
        cause = cause.__cause__ or cause.__context__
    return found


def _through_proxy(error: Exception) -> str:
    """Which proxy the request went through, as the end of a clause."""
    request = getattr(error, "_request", None)
    parts = urlsplit(str(request.url)) if request is not None else urlsplit("")
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or not host or host in ("127.0.0.1", "localhost", "::1") or proxy_bypass(host):
        return ""
    return f" (through the proxy {urlsplit(proxy).hostname or proxy})"


def _scheme(error: Exception) -> str:
    request = getattr(error, "_request", None)
    return str(request.url.scheme) if request is not None else ""


def _excerpt(body: bytes) -> str:
    text = body[:200].decode("utf-8", "replace").strip()
    return f": {text.splitlines()[0].rstrip('.')}" if text and not text.startswith(("<", "{")) else ""


def _text(error: BaseException) -> str:
    return str(error).rstrip(".") or type(error).__name__

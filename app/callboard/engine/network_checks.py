"""The way to a remote server, looked at step by step: name, connection, secure connection."""

import asyncio
import ipaddress
import os
import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec

from callboard.api.schema import Check
from callboard.core.launch import RemoteLaunch

_LIMIT: Final = 5.0  # seconds for each step
_SOON: Final = 14 * 24 * 3600  # seconds before its end from which on a certificate is worth a remark

Address = tuple[int, str]  # family and address


@dataclass(frozen=True)
class _Target:
    """Where the connection goes first. ``proxy`` if that is not the server itself."""

    host: str
    port: int
    proxy: bool


async def way_checks(launch: RemoteLaunch) -> list[Check]:
    """What is found on the way to the server; ends with the first step that fails."""
    url = urlsplit(launch.url)
    target = _target(url)
    began = time.perf_counter()
    addresses, checks = await _look_up(target)
    checks = [timed(check, began) for check in checks]
    if not addresses:
        return checks
    began = time.perf_counter()
    reached, check = await _connect(addresses, target)
    checks.append(timed(check, began))
    if reached and url.scheme == "https" and not target.proxy:
        began = time.perf_counter()
        checks.append(timed(await _secure(launch, target), began))
    return checks


def timed(check: Check, began: float) -> Check:
    """A step with the time that it took since ``began`` (of ``time.perf_counter``)."""
    return msgspec.structs.replace(check, duration_ms=(time.perf_counter() - began) * 1000)


def _target(url: SplitResult) -> _Target:
    host = url.hostname or ""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if proxy and host not in ("localhost", "127.0.0.1", "::1") and not proxy_bypass(host):
        parts = urlsplit(proxy if "//" in proxy else f"//{proxy}")
        return _Target(parts.hostname or "", parts.port or 80, proxy=True)
    return _Target(host, url.port or (443 if url.scheme == "https" else 80), proxy=False)


async def _look_up(target: _Target) -> tuple[list[Address], list[Check]]:
    what = f"the proxy {target.host}" if target.proxy else target.host
    try:
        ipaddress.ip_address(target.host)
    except ValueError:
        pass
    else:
        return [(_family(target.host), target.host)], []
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    try:
        async with asyncio.timeout(_LIMIT):
            found = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        return [], [Check(name="dns", status="fail", message=f"The name of {what} was not found in time.", code=_DNS)]
    except OSError as error:
        message = f"The name of {what} cannot be found: {error.strerror or error}."
        return [], [Check(name="dns", status="fail", message=message, code=_DNS)]
    addresses = list(dict.fromkeys((int(family), str(address[0])) for family, _, _, _, address in found))
    shown = ", ".join(address for _, address in addresses)
    return addresses, [Check(name="dns", status="ok", message=f"{what} is {shown} ({_since(began)}).")]


def _family(host: str) -> int:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


async def _connect(addresses: Sequence[Address], target: _Target) -> tuple[bool, Check]:
    """A connection to each address: some may answer where others do not ("localhost" is two of them)."""
    results = await asyncio.gather(*(_try(family, address, target.port) for family, address in addresses))
    good = [text for reached, text in results if reached]
    bad = [text for reached, text in results if not reached]
    where = "The proxy" if target.proxy else "The server"
    if not good:
        code = "remote-refused" if all("refused" in text for text in bad) else "remote-unreachable"
        message = f"{where} cannot be reached on port {target.port}: {'; '.join(bad)}."
        return False, Check(name="tcp", status="fail", message=message, code=code)
    message = f"{where} answers on port {target.port}: {'; '.join(good)}."
    if bad:
        message += f" Not so: {'; '.join(bad)}; that address is passed over."
    return True, Check(name="tcp", status="ok", message=message)


async def _try(family: int, address: str, port: int) -> tuple[bool, str]:
    loop = asyncio.get_running_loop()
    began = time.perf_counter()
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            async with asyncio.timeout(_LIMIT):
                await loop.sock_connect(sock, (address, port))
        except TimeoutError:
            return False, f"{address} does not answer"
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            return False, f"{address}: {why.lower()}"
    return True, f"{address} ({_since(began)})"


async def _secure(launch: RemoteLaunch, target: _Target) -> Check:
    from callboard.engine.upstream.http_client import failure, trust_for  # httpx2: only where it is needed

    began = time.perf_counter()
    try:
        context = await trust_for(launch)
        assert isinstance(context, ssl.SSLContext)
        async with asyncio.timeout(_LIMIT):
            _, writer = await asyncio.open_connection(
                target.host, target.port, ssl=context, server_hostname=target.host
            )
    except Exception as error:  # noqa: BLE001  whatever it is, it is what the person wants to know
        found = failure(error) if not hasattr(error, "code") else error
        code = str(getattr(found, "code", "remote-tls"))
        return Check(name="tls", status="fail", message=str(found), code=code)
    tls: ssl.SSLObject = writer.get_extra_info("ssl_object")
    ends = _ends(tls)
    version = tls.version() or "TLS"
    writer.close()
    message = f"The certificate is trusted ({version}, {_since(began)})"
    if ends is None:
        return Check(name="tls", status="ok", message=f"{message}.")
    day = time.strftime("%Y-%m-%d", time.gmtime(ends))
    soon = ends - time.time() < _SOON
    return Check(name="tls", status="warn" if soon else "ok", message=f"{message}; it ends on {day}.")


def _ends(tls: ssl.SSLObject) -> float | None:
    certificate = tls.getpeercert() or {}
    end = certificate.get("notAfter")
    return ssl.cert_time_to_seconds(end) if isinstance(end, str) else None


def _since(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"


_DNS: Final = "remote-dns"

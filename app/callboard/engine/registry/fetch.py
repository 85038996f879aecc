"""Fetching from the network what a person asked for: bounded in bytes and time, and never led astray."""

import asyncio
from collections.abc import Callable
from typing import Final
from urllib.parse import urljoin

import httpx2

from callboard.core.errors import CallboardError
from callboard.core.registry_packages import host_of
from callboard.engine.registry.limits import Limits
from callboard.engine.upstream.http_client import (
    CONNECT_SECONDS,
    failure,
    no_proxy_for_this_computer,
    refused,
    system_trust,
)

MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = (301, 302, 303, 307, 308)
_SILENCE_SECONDS: Final = 30.0


async def fetch(url: str, limits: Limits, take: Callable[[bytes], None]) -> None:
    """Get what is at ``url`` and hand it to ``take`` part by part.

    Follows a redirect only where it is as safe as what it comes from: http or https, and never from https to http. The
    system's proxy settings are honoured. Raises ``remote-…`` codes: what failed, what was refused, what was too large.
    """
    try:
        async with asyncio.timeout(limits.total):
            for _ in range(MOST_REDIRECTS + 1):
                target = await _get(url, limits.size, take)
                if target is None:
                    return
                url = _followed(url, target)
    except CallboardError as error:
        said = f"{host_of(url)}: {error.message}"
        raise CallboardError(error.code, said, fix=error.fix, data=error.data) from error
    except TimeoutError as error:
        lost = failure(error)
        raise CallboardError(lost.code, f"{host_of(url)}: {lost.message}", fix=lost.fix) from None
    except (httpx2.InvalidURL, ValueError):
        raise CallboardError("remote-status", "The address is not a valid one.") from None
    raise CallboardError("remote-status", f"The server redirects more than {MOST_REDIRECTS} times.")


async def fetch_all(url: str, limits: Limits) -> bytes:
    """The whole of what is at ``url``; see :func:`fetch`."""
    body = bytearray()
    await fetch(url, limits, body.extend)
    return bytes(body)


async def _get(url: str, size: int, take: Callable[[bytes], None]) -> str | None:
    """One request: where it is redirected to, or None when ``take`` has had everything."""
    trust = await system_trust() if url.startswith("https:") else False
    limit = httpx2.Timeout(_SILENCE_SECONDS, connect=CONNECT_SECONDS)
    # what is compressed could grow without bounds in one step
    headers = {"accept-encoding": "identity", "accept": "application/json, */*;q=0.5"}
    try:
        async with (
            httpx2.AsyncClient(
                headers=headers,
                verify=trust,
                timeout=limit,
                follow_redirects=False,
                mounts=no_proxy_for_this_computer(),
            ) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code in _REDIRECTS:
                return str(answer.headers.get("location", ""))
            if answer.status_code != 200:
                raise refused(answer.status_code)
            if answer.headers.get("content-encoding", "identity").lower() != "identity":
                raise CallboardError("remote-status", "The server answers in an encoding that it was not asked for.")
            await _read(answer, size, take)
    except httpx2.HTTPError as error:
        raise failure(error) from error
    return None


async def _read(answer: httpx2.Response, size: int, take: Callable[[bytes], None]) -> None:
    left = size
    async for part in answer.aiter_raw():
        left -= len(part)
        if left < 0:
            raise CallboardError("remote-status", f"The server sends more than {size // (1024 * 1024)} MiB.")
        take(part)


def _followed(url: str, target: str) -> str:
    joined = urljoin(url, target)
    is_weaker = url.startswith("https:") and not joined.startswith("https:")
    if not target or not host_of(joined) or is_weaker:
        raise CallboardError(
            "remote-status", f"The server redirects to an address that is not followed: {target[:200]}."
        )
    return joined

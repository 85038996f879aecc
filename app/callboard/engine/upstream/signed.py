"""Signs the requests to a remote server with what its sign-in gave."""

from collections.abc import AsyncGenerator
from typing import Final, Protocol

import httpx2

from callboard.core.challenge import Challenge, challenge_of

MAX_TRIES: Final = 4  # times that one request is sent


class TokenSource(Protocol):
    """Where tokens come from; see :class:`callboard.engine.sign_in.grant.Grant`."""

    async def token(self) -> str:
        """The present token, renewed where it is about to end; empty if there is none."""

    def headers(self, token: str, method: str, url: str) -> dict[str, str]:
        """What a request with this token bears."""

    def heard(self, url: str, nonce: str) -> None:
        """What a server wants in the next proofs that a token is ours; empty for nothing."""

    async def meet(self, challenge: Challenge, refused: str) -> str:
        """Another token than ``refused``, which a server did not take.

        Raises ``remote-sign-in`` and ``remote-scope`` where only a person can help.
        """


class TokenAuth(httpx2.Auth):
    """Puts a token on each request, and repeats one that was refused for want of a better token.

    A refused request was not taken, so that it is safe to repeat. Any number of requests may be on their way at once.
    """

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """See :class:`httpx2.Auth`."""
        token = await self._source.token()
        for attempt in range(MAX_TRIES):
            if token:
                request.headers.update(self._source.headers(token, request.method, str(request.url)))
            response = yield request
            self._source.heard(str(request.url), response.headers.get("dpop-nonce", ""))
            challenge = challenge_of(response.status_code, response.headers.get("www-authenticate", ""))
            if challenge is None or attempt == MAX_TRIES - 1:
                return
            token = await self._source.meet(challenge, token)

"""Requests to a token endpoint, and what they bring (RFC 6749 sections 4.1.3, 4.4.2, 5 and 6; RFC 8707)."""

import base64
import logging
import time
from typing import Any
from urllib.parse import quote

from callboard.core.errors import CallboardError
from callboard.engine.sign_in.proof_key import ProofKey
from callboard.engine.sign_in.records import Account, Client, Tokens, renewal_time, usable
from callboard.engine.sign_in.trace import Trace
from callboard.engine.sign_in.web import Reply, Web

log = logging.getLogger(__name__)

_GONE = frozenset({"invalid_grant", "invalid_client", "unauthorized_client", "invalid_token"})


class RefusedError(Exception):
    """The server does not know the grant or the client (any more). The message is what it said."""

    def __init__(self, message: str, *, client: bool) -> None:
        super().__init__(message)
        self.client = client  # it is the client that it does not know


async def request_tokens(
    web: Web, account: Account, client: Client, grant: dict[str, str], key: ProofKey | None, asked: str
) -> Tokens:
    """Ask for tokens by a grant. ``asked``: the scopes that an answer without scopes means (RFC 6749 section 5.1).

    ``key`` is what they are to be bound to, if to any. Raises RefusedError for a grant or client that is of no use any
    more, and CallboardError for all else.
    """
    form = {**grant, "resource": account.resource}
    headers = prove(client, form)
    url = web.check(account.token_endpoint, "token endpoint")
    reply = await _post(web, url, form, headers, key)
    if key is not None and key.heard(url, reply.headers.get("dpop-nonce", "")) and _error(reply) == "use_dpop_nonce":
        reply = await _post(web, url, form, headers, key)
    if reply.ok and reply.data is not None and "access_token" in reply.data:
        return _tokens(reply.data, asked, account.tokens, key)
    error = _error(reply)
    if reply.status in (400, 401, 403) and error in _GONE:
        raise RefusedError(reply.what, client=error in ("invalid_client", "unauthorized_client"))
    raise _failed(reply)


async def _post(web: Web, url: str, form: dict[str, str], headers: dict[str, str], key: ProofKey | None) -> Reply:
    proof = {"dpop": key.proof("POST", url)} if key is not None else {}
    return await web.post_form(url, form, headers | proof)


async def renew_tokens(account: Account, client: Client, key: ProofKey | None) -> Tokens:
    """New tokens for those of ``account``; raises as :func:`request_tokens` does."""
    before = account.tokens
    assert before is not None
    form = {"grant_type": "refresh_token", "refresh_token": before.refresh}
    async with Web(_trace(), local=True) as web:
        return await request_tokens(web, account, client, form, key, account.asked)


async def revoke_tokens(account: Account, client: Client) -> None:
    """Tell the server that the tokens of ``account`` are wanted no more (RFC 7009); if it cannot be told, so be it."""
    if not account.revocation_endpoint or account.tokens is None:
        return
    form = {"token": account.tokens.refresh or account.tokens.access}
    headers = prove(client, form)
    try:
        async with Web(_trace(), local=True) as web:
            await web.post_form(account.revocation_endpoint, form, headers)
    except CallboardError as error:
        log.info("the sign-in server was not told of a sign-out: %s", error.message)


def _trace() -> Trace:
    trace = Trace()
    trace.enter("token")
    return trace


def prove(client: Client, form: dict[str, str]) -> dict[str, str]:
    """Put into ``form``, or into the headers that are returned, who the client is (RFC 6749 section 2.3.1)."""
    if client.method == "client_secret_basic":
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        return {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
    form["client_id"] = client.id
    if client.method == "client_secret_post":
        form["client_secret"] = client.secret
    return {}


def _error(reply: Reply) -> str:
    return str((reply.data or {}).get("error", ""))


def _tokens(data: dict[str, Any], asked: str, before: Tokens | None, key: ProofKey | None) -> Tokens:
    kind = str(data.get("token_type", "bearer")).lower()
    if kind != "bearer" and (kind != "dpop" or key is None):
        raise CallboardError("sign-in-failed", "The sign-in server sent a token of a kind that is not known here.")
    access, refresh, scope = (data.get(name) or "" for name in ("access_token", "refresh_token", "scope"))
    if not isinstance(access, str) or not isinstance(refresh, str) or not isinstance(scope, str) or not access:
        raise CallboardError("sign-in-failed", "The sign-in server's answer holds no token.")
    now, lifetime = time.time(), _seconds(data.get("expires_in"))
    return Tokens(
        access=usable("a token", access),
        refresh=usable("a token", refresh) if refresh else before.refresh if before else "",
        scope=scope or (before.scope if before and before.scope else asked),
        expires_at=now + lifetime if lifetime else 0.0,
        renew_at=renewal_time(now, lifetime) if lifetime else 0.0,
        bound=kind == "dpop",
    )


def _seconds(value: Any) -> float:
    """A lifetime; some servers write it as text. 0 if there is none."""
    try:
        return max(0.0, min(float(value), 10 * 365 * 86400.0))
    except (TypeError, ValueError):
        return 0.0


def _failed(reply: Reply) -> CallboardError:
    if reply.status >= 500:
        return CallboardError(
            "remote-failed", f"The sign-in server answered {reply.what}.", data={"status": reply.status}
        )
    return CallboardError("sign-in-failed", f"The sign-in server gave no token: {reply.what}.")

"""What the authorisation of a remote server takes: discovery, registration, scopes, addresses and proofs.

The rules are the MCP SDK's where it has them; it is imported with this module, which costs 30 MB, so nothing imports
this module before a sign-in is wanted. Its client class is not used: it answers any refused request by opening a
browser, lets one request at a time through, and after a restart sends refresh tokens to the server instead of to its
authorisation server.
"""

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar
from urllib.parse import urlencode, urljoin, urlsplit

from mcp.client.auth import OAuthRegistrationError, PKCEParameters
from mcp.client.auth.extensions.client_credentials import SignedJWTParameters
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    issuers_match,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyUrl, BaseModel, ValidationError

from callboard.core.challenge import Challenge
from callboard.core.errors import CallboardError
from callboard.engine.sign_in.proof_key import ALGORITHM
from callboard.engine.sign_in.records import Client, canonical, union
from callboard.engine.sign_in.web import Reply, Web

CLIENT_NAME: Final = "Callboard"
_METHODS: Final = ("none", "client_secret_basic", "client_secret_post")
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Authority:
    """An authorisation server and the resource that it lets us use, as their documents say."""

    issuer: str
    resource: str
    authorization_endpoint: str
    token_endpoint: str
    registration_endpoint: str
    revocation_endpoint: str
    scopes: tuple[str, ...]  # that the resource names
    takes_documents: bool  # Client ID Metadata Documents
    names_itself: bool  # in its answers, RFC 9207
    offers_refresh: bool  # knows the scope offline_access
    bound: bool  # the resource takes only tokens that are bound to a key (RFC 9449)
    challenge_methods: tuple[str, ...]
    token_methods: tuple[str, ...]  # empty: not said


# discovery


async def discover(web: Web, url: str, challenge: Challenge | None, issuer: str) -> Authority:
    """Find the authorisation server of the resource at ``url`` (2026-07-28, authorization-server-discovery).

    ``issuer`` is the one to take where several are named, or none is. Raises ``sign-in-failed``,
    ``sign-in-unavailable``, ``remote-failed`` and whatever keeps a server from being reached.
    """
    found = await _resource(web, url, challenge.resource_metadata if challenge else "")
    bound = (challenge is not None and challenge.bound) or (found is not None and found.bound)
    if found is None and not issuer:
        return await _old(web, url, bound)
    listed, resource, scopes = found[:3] if found is not None else ([issuer], canonical(url), ())
    wanted = next((one for one in listed if issuer and issuers_match(one, issuer)), listed[0])
    if issuer and not issuers_match(wanted, issuer):
        raise CallboardError(
            "sign-in-failed",
            f"The server's sign-in server is {wanted}, not {issuer} as the configuration says.",
            fix="Check both addresses, and correct the issuer in the server's configuration.",
        )
    web.check(wanted, "sign-in server")
    return await _authority(web, wanted, resource, scopes, bound)


class _Resource(NamedTuple):
    """What a resource says of itself (RFC 9728)."""

    issuers: list[str]
    name: str
    scopes: tuple[str, ...]
    bound: bool


async def _old(web: Web, url: str, bound: bool) -> Authority:
    """The authorisation server of a resource that names none: its own host, as in revision 2025-03-26."""
    parts = urlsplit(url)
    own = web.check(f"{parts.scheme}://{parts.netloc}", "server")
    try:
        return await _authority(web, own, canonical(url), (), bound)
    except CallboardError as error:
        if error.code != "sign-in-failed":
            raise
        raise CallboardError(
            "sign-in-unavailable",
            "The server wants a sign-in, but names no sign-in server.",
            fix="Enter a token in the server's configuration, if its provider gave you one.",
        ) from error


async def _resource(web: Web, url: str, named: str) -> _Resource | None:
    """The metadata of a resource; None if it has none."""
    broken: Reply | None = None
    for address in build_protected_resource_metadata_discovery_urls(_own(url, named), url):
        reply = await web.get(address)
        metadata = _model(ProtectedResourceMetadata, reply)
        if metadata is None or reply.data is None:
            broken = reply if reply.status >= 500 or reply.status == 429 else broken
            continue
        resource, issuers = str(reply.data["resource"]), [str(one) for one in reply.data["authorization_servers"]]
        if not check_resource_allowed(resource_url_from_server_url(url), resource):
            raise CallboardError(
                "sign-in-failed", f"What the server says of its sign-in is for another one: {resource}."
            )
        bound = metadata.dpop_bound_access_tokens_required is True
        return _Resource(issuers, resource, tuple(metadata.scopes_supported or ()), bound)
    if broken is not None:
        raise CallboardError(
            "remote-failed", f"The server did not tell how to sign in: {broken.what}.", data={"status": broken.status}
        )
    return None


def _own(url: str, named: str) -> str | None:
    """The address of the metadata as the server names it, which may be relative; one of another host is not asked."""
    address = urljoin(url, named) if named else ""
    return address if address and urlsplit(address.lower())[:2] == urlsplit(url.lower())[:2] else None


async def _authority(web: Web, issuer: str, resource: str, scopes: tuple[str, ...], bound: bool) -> Authority:
    """The authorisation server's metadata (RFC 8414, OpenID Connect Discovery), where it is the issuer's own."""
    last: Reply | None = None
    for address in build_oauth_authorization_server_metadata_discovery_urls(issuer, issuer):
        last = await web.get(address)
        metadata = _model(OAuthMetadata, last)
        if metadata is None or last.data is None:
            if last.status >= 500:
                break
            continue
        data = last.data
        own = str(data["issuer"])
        if not issuers_match(own, issuer):
            raise CallboardError("sign-in-failed", f"The sign-in server {issuer} says that it is another one: {own}.")
        endpoints = {name: str(data.get(name) or "") for name in _ENDPOINTS}
        for name, value in endpoints.items():
            if value:
                web.check(value, name.replace("_", " "))
        web.trace.note(own)
        if bound and ALGORITHM not in (data.get("dpop_signing_alg_values_supported") or ()):
            message = f"The server takes only tokens that are bound to a key, and {own} gives none (DPoP, {ALGORITHM})."
            raise CallboardError("sign-in-failed", message)
        return Authority(
            issuer=own,
            resource=resource,
            scopes=scopes,
            takes_documents=metadata.client_id_metadata_document_supported is True,
            names_itself=metadata.authorization_response_iss_parameter_supported is True,
            offers_refresh="offline_access" in (metadata.scopes_supported or ()),
            bound=bound,
            challenge_methods=tuple(metadata.code_challenge_methods_supported or ()),
            token_methods=tuple(metadata.token_endpoint_auth_methods_supported or ()),
            **endpoints,
        )
    code = "remote-failed" if last is not None and last.status >= 500 else "sign-in-failed"
    what = last.what if last is not None else "nothing"
    raise CallboardError(code, f"The sign-in server {issuer} does not describe itself: {what}.")


_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint")


def _model(model: type[M], reply: Reply) -> M | None:
    if not reply.ok:
        return None
    try:
        return model.model_validate(reply.data)
    except ValidationError:
        return None


# who we are


async def register(web: Web, authority: Authority, redirect_uris: Iterable[str], scope: str) -> Client:
    """Register dynamically (RFC 7591), with the first of the addresses that the server takes.

    Raises ``sign-in-client-id`` where nobody may register, and ``sign-in-failed``.
    """
    if not authority.registration_endpoint:
        raise _not_open(authority.issuer, "it offers no registration")
    method = next((one for one in _METHODS if one in (authority.token_methods or _METHODS)), "none")
    reply: Reply | None = None
    for uri in redirect_uris:
        wanted = OAuthClientMetadata(
            client_name=CLIENT_NAME,
            redirect_uris=[AnyUrl(uri)],
            token_endpoint_auth_method=method,  # type: ignore[arg-type]
            scope=scope or None,
        )
        body = wanted.model_dump(mode="json", exclude_none=True) | {"redirect_uris": [uri]}
        reply = await web.post_json(authority.registration_endpoint, body)
        if reply.ok or (reply.data or {}).get("error") != "invalid_redirect_uri":
            break
    assert reply is not None
    information = _model(OAuthClientInformationFull, reply)
    if information is None:
        if reply.status in (401, 403, 404, 405):
            raise _not_open(authority.issuer, reply.what)
        raise CallboardError("sign-in-failed", f"The sign-in server did not register us: {reply.what}.")
    information.token_endpoint_auth_method = information.token_endpoint_auth_method or method
    try:
        check_registration_usable(information)
    except OAuthRegistrationError as error:
        raise CallboardError("sign-in-failed", f"The registration is of no use: {error}.") from None
    return Client(
        id=information.client_id,
        kind="registered",
        secret=information.client_secret or "",
        method=information.token_endpoint_auth_method or "none",
        redirect_uri=uri,
        expires_at=float(information.client_secret_expires_at or 0),
    )


def method_for(secret: str, offered: tuple[str, ...]) -> str:
    """How a client that was registered by hand proves who it is; a secret may be a private key."""
    if not secret:
        return "none"
    if secret.startswith("-----BEGIN "):
        return "private_key_jwt"
    wanted = offered or ("client_secret_basic",)  # what RFC 8414 takes for granted
    return next((one for one in ("client_secret_basic", "client_secret_post") if one in wanted), "client_secret_basic")


async def assertion(client: Client, issuer: str) -> dict[str, str]:
    """The proof of a client that has a private key (RFC 7523 section 2.2); raises ``remote-certificate``."""
    key = _pem(client.secret)
    parameters = SignedJWTParameters(
        issuer=client.id, subject=client.id, signing_key=key, signing_algorithm=_algorithm(key)
    )
    signed = await parameters.create_assertion_provider()(issuer)
    return {"client_assertion_type": _ASSERTION, "client_assertion": signed}


def _pem(text: str) -> str:
    """A key as it was before it went through a field of one line."""
    found = re.fullmatch(r"(-----BEGIN [A-Z ]+-----)\s*([A-Za-z0-9+/=\s]+?)\s*(-----END [A-Z ]+-----)\s*", text)
    return "\n".join([found[1], *found[2].split(), found[3], ""]) if found else text


def _algorithm(key: str) -> str:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        loaded = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError):
        raise CallboardError("remote-certificate", "The client's private key cannot be read.") from None
    if isinstance(loaded, ec.EllipticCurvePrivateKey):
        return {256: "ES256", 384: "ES384", 521: "ES512"}.get(loaded.curve.key_size, "ES256")
    if isinstance(loaded, ed25519.Ed25519PrivateKey):
        return "EdDSA"
    if isinstance(loaded, rsa.RSAPrivateKey):
        return "RS256"
    raise CallboardError("remote-certificate", "The client's private key is of a kind that is not known here.")


# what we ask for


def scopes_to_ask(configured: Iterable[str], challenge: Challenge | None, authority: Authority, before: str) -> str:
    """Which scopes to ask for (2026-07-28, authorization "Scope Selection Strategy" and "Step-Up").

    ``before``: those that were asked for earlier and must not get lost.
    """
    said = challenge.scope if challenge is not None else ""
    chosen = union(before, *configured, said) or " ".join(authority.scopes)
    return union(chosen, "offline_access") if chosen and authority.offers_refresh else chosen


@dataclass(frozen=True)
class Question:
    """What a person is asked in the browser. ``state`` and ``verifier`` are secrets of this one question."""

    url: str
    state: str
    verifier: str


def ask(authority: Authority, client: Client, scope: str) -> Question:
    """The address at which a person agrees; raises ``sign-in-failed`` for a server that does not know PKCE."""
    if not authority.authorization_endpoint:
        raise CallboardError("sign-in-failed", "The sign-in server has no page where a person could agree.")
    if "S256" not in authority.challenge_methods:
        raise CallboardError(
            "sign-in-failed",
            "The sign-in server does not say that it protects codes against theft (PKCE with S256).",
            fix="Ask the server's provider to offer PKCE; a sign-in without it is not safe.",
        )
    proof = PKCEParameters.generate()
    state = secrets.token_urlsafe(32)
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": client.redirect_uri,
        "state": state,
        "code_challenge": proof.code_challenge,
        "code_challenge_method": "S256",
        "resource": authority.resource,
    }
    if scope:
        query["scope"] = scope
    if "offline_access" in scope.split():
        query["prompt"] = "consent"  # OpenID Connect Core section 11
    glue = "&" if urlsplit(authority.authorization_endpoint).query else "?"
    return Question(f"{authority.authorization_endpoint}{glue}{urlencode(query)}", state, proof.code_verifier)


def check_answer(authority: Authority, answer: dict[str, str]) -> str:
    """The code in the answer that the browser brought.

    Raises ``sign-in-failed`` for an answer of another server, of which then nothing is told (RFC 9207 section 2.4), and
    ``sign-in-refused``.
    """
    said = answer.get("iss")
    if (said is None and authority.names_itself) or (said is not None and said != authority.issuer):
        raise CallboardError("sign-in-failed", "The answer did not come from the sign-in server that was asked.")
    if error := answer.get("error"):
        more = answer.get("error_description", "")[:300].rstrip(".")
        raise CallboardError("sign-in-refused", f"The sign-in was refused: {error[:100]}{f', {more}' if more else ''}.")
    if not (code := answer.get("code")):
        raise CallboardError("sign-in-failed", "The answer of the sign-in server holds no code.")
    return code


def _not_open(issuer: str, why: str) -> CallboardError:
    return CallboardError("sign-in-client-id", f"The sign-in server {issuer} wants a client that it knows: {why}.")

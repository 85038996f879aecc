"""A remote MCP server with its authorisation server, strict where the specifications are, on real HTTP."""

import asyncio
import base64
import hashlib
import itertools
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import jwt

from tests.support.site import Said, Seen, Site, data

RESOURCE = "/.well-known/oauth-protected-resource"
OAUTH = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
HTML = Said(200, b"<!doctype html><p>Welcome", {"content-type": "text/html"})


@dataclass
class Grantee:
    """What a token stands for."""

    client: str
    scopes: set[str]
    resource: str
    refresh: str = ""
    alive: bool = True
    key: Any = None  # that it is bound to


class AuthorisedServer(Site):
    """An MCP server at ``/mcp`` that lets in who signed in at its authorisation server, which is on the same site.

    The attributes up to ``calls_need`` decide how it behaves, and may be changed while it runs.
    """

    def __init__(self, **behaviour: Any) -> None:
        super().__init__()
        self.header = "absolute"  # or "relative", "none", "elsewhere": resource_metadata in the refusal
        self.metadata_at = (f"{RESOURCE}/mcp",)
        self.metadata_broken: Said | None = None  # what is said there instead
        self.at = "/mcp"  # where the metadata says that it is
        self.resource: str | None = None  # what the metadata says that it is for, instead of what it is for
        self.issuer_path = ""
        self.issuers: list[str] | None = None  # instead of its own
        self.server_metadata_at: tuple[str, ...] = (OAUTH,)
        self.says_issuer: str | None = None
        self.registration = "open"  # or "none", "closed", "localhost", "full"
        self.clients_end_at = 0  # seconds since the epoch
        self.documents = False
        self.pkce = True
        self.methods: list[str] | None = ["none"]
        self.iss: str | None = None  # what the answer bears: "own", or anything else
        self.says_iss = False
        self.scopes: list[str] | None = None
        self.server_scopes: list[str] | None = None
        self.challenge_scope = ""
        self.lifetime: Any = 3600
        self.padding = ""  # of tokens
        self.bound = False  # tokens are bound to a key (RFC 9449)
        self.nonce = ""  # that proofs must bear
        self.refreshes = True
        self.rotates = True
        self.denies = ""  # an error instead of a code
        self.token_broken: Said | None = None
        self.endpoints: dict[str, str] = {}  # instead of its own
        self.calls_need = ""  # a scope that tools/call needs
        self.__dict__.update(behaviour)
        self.clients: dict[str, dict[str, Any]] = {}  # by id, with what they registered; by hand too
        self.tokens: dict[str, Grantee] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.renewals = 0
        self.proofs: set[str] = set()
        self._numbers = itertools.count(1)
        self._assertions: set[str] = set()

    @property
    def mcp(self) -> str:
        """The server's address."""
        return f"{self.url}/mcp"

    @property
    def sse(self) -> str:
        """The same server for clients of 2024-11-05."""
        return f"{self.url}/sse"

    @property
    def named(self) -> str:
        """The address that the metadata is about."""
        return self.url + self.at

    @property
    def issuer(self) -> str:
        """The authorisation server's name."""
        return self.url + self.issuer_path

    def revoke(self) -> None:
        """No token of before lets anybody in, or is renewed, any more."""
        for grantee in self.tokens.values():
            grantee.alive, grantee.refresh = False, ""

    def expire(self) -> None:
        """No access token of before lets anybody in any more."""
        for grantee in self.tokens.values():
            grantee.alive = False

    async def answer(self, seen: Seen) -> Said:
        """See Site."""
        path = seen.path
        if path in ("/mcp", "/sse"):
            return self._mcp(seen)
        if path.startswith(RESOURCE):
            return self._resource_metadata() if path in self.metadata_at else self.metadata_broken or Said(404)
        if "/.well-known/" in path:
            return self._server_metadata() if path in self.server_metadata_at else HTML
        handlers = {
            "/authorize": self._authorize,
            "/register": self._register,
            "/token": self._token,
            "/revoke": self._revoke,
        }
        return handlers[path](seen) if path in handlers else Said(404)

    # the resource

    def _mcp(self, seen: Seen) -> Said:
        if self.bound and (problem := self._proof_problem(seen)):
            return self._refuse(401, problem, self.challenge_scope)
        grantee = self.tokens.get(seen.bearer)
        if grantee is None or not grantee.alive:
            return self._refuse(401, "invalid_token" if seen.bearer else "", self.challenge_scope)
        if seen.method != "POST":
            return Said(405) if seen.path == "/mcp" else self._stream()
        if seen.path == "/sse":
            answer = self._result(seen, grantee)
            if answer.body:
                self.streams[-1].put_nowait(b"data: " + answer.body + b"\n\n")
            return Said(202)
        return self._result(seen, grantee)

    def _stream(self) -> Said:
        """The stream of the transport of 2024-11-05; its messages are posted to the same address."""
        self.streams.append(asyncio.Queue())
        kind = {"content-type": "text/event-stream"}
        return Said(200, b"event: endpoint\ndata: /sse\n\n", kind, self.streams[-1])

    def _result(self, seen: Seen, grantee: Grantee) -> Said:
        message = seen.json
        if "id" not in message:
            return Said(202)
        method = message["method"]
        if method == "tools/call" and self.calls_need and self.calls_need not in grantee.scopes:
            return self._refuse(403, "insufficient_scope", self.calls_need)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "authorised", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "whoami", "inputSchema": {"type": "object"}}]},
            "tools/call": {
                "content": [{"type": "text", "text": f"{grantee.client} {' '.join(sorted(grantee.scopes))}"}]
            },
            "ping": {},
        }
        if method in results:
            return data({"jsonrpc": "2.0", "id": message["id"], "result": results[method]})
        error = {"code": -32601, "message": f"{method} is not known"}
        return data({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _refuse(self, status: int, error: str, scope: str) -> Said:
        addresses = {
            "absolute": f"{self.url}{self.metadata_at[0] if self.metadata_at else RESOURCE}",
            "relative": self.metadata_at[0] if self.metadata_at else RESOURCE,
            "elsewhere": f"http://localhost:{urlsplit(self.url).port}{RESOURCE}/elsewhere",
        }
        parts = [f'{name}="{value}"' for name, value in (("error", error), ("scope", scope)) if value]
        if self.header in addresses:
            parts.append(f'resource_metadata="{addresses[self.header]}"')
        said = {"www-authenticate": f"{'DPoP' if self.bound else 'Bearer'} {', '.join(parts)}"}
        if self.bound and self.nonce:
            said["dpop-nonce"] = self.nonce
        return Said(status, b"no", said if self.header != "none" else {})

    def _proof_problem(self, seen: Seen) -> str:
        """What is wrong with the proof of a request, as the error of the refusal; empty if nothing is."""
        if "dpop" not in seen.headers:
            return "invalid_token"
        token = seen.headers.get("authorization", "").removeprefix("DPoP ")
        try:
            head = jwt.get_unverified_header(seen.headers["dpop"])
            claims = jwt.decode(seen.headers["dpop"], jwt.PyJWK(head["jwk"], "ES256"), ["ES256"])
        except jwt.InvalidTokenError:
            return "invalid_dpop_proof"
        digest = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).decode().rstrip("=")
        here = {"htm": seen.method, "htu": self.url + seen.path} | ({"ath": digest} if token else {})
        if head["typ"] != "dpop+jwt" or claims.items() & here.items() != here.items() or claims["jti"] in self.proofs:
            return "invalid_dpop_proof"
        if token and token in self.tokens and self.tokens[token].key != head["jwk"]:
            return "invalid_token"
        self.proofs.add(claims["jti"])
        return "use_dpop_nonce" if self.nonce and claims.get("nonce") != self.nonce else ""

    def _resource_metadata(self) -> Said:
        if self.metadata_broken is not None:
            return self.metadata_broken
        said = {"resource": self.resource or self.named, "authorization_servers": self.issuers or [self.issuer]}
        return data(said | ({"scopes_supported": self.scopes} if self.scopes is not None else {}))

    # the authorisation server

    def _server_metadata(self) -> Said:
        own = {name: f"{self.url}/{path}" for name, path in _ENDPOINTS.items()} | self.endpoints
        if self.registration == "none":
            del own["registration_endpoint"]
        said: dict[str, Any] = {
            "issuer": self.says_issuer or self.issuer,
            **own,
            "response_types_supported": ["code"],
            "client_id_metadata_document_supported": self.documents,
            "authorization_response_iss_parameter_supported": self.says_iss,
        }
        if self.bound:
            said["dpop_signing_alg_values_supported"] = ["ES256"]
        if self.pkce:
            said["code_challenge_methods_supported"] = ["S256"]
        if self.methods is not None:
            said["token_endpoint_auth_methods_supported"] = self.methods
        if self.server_scopes is not None:
            said["scopes_supported"] = self.server_scopes
        return data(said)

    def _register(self, seen: Seen) -> Said:
        wanted = seen.json
        if self.registration == "closed":
            return data({"error": "access_denied"}, 403)
        if self.registration == "full":
            return data({"error": "invalid_client_metadata", "error_description": "No more clients."}, 400)
        if self.registration == "localhost" and "localhost" not in wanted["redirect_uris"][0]:
            return data({"error": "invalid_redirect_uri"}, 400)
        number = next(self._numbers)
        client = {**wanted, "client_id": f"client-{number}"}
        if wanted.get("token_endpoint_auth_method", "").startswith("client_secret"):
            client["client_secret"] = f"client-secret-{number}"
            client["client_secret_expires_at"] = self.clients_end_at
        self.clients[client["client_id"]] = client
        return data(client, 201)

    def _authorize(self, seen: Seen) -> Said:
        query = seen.query
        client = self.clients.get(query["client_id"])
        if self.documents and query["client_id"].startswith("https://"):
            client = {"redirect_uris": [query["redirect_uri"]]}
        if client is None or query["redirect_uri"] not in client["redirect_uris"]:
            return Said(400, b"This client is not known.")
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        back: dict[str, str] = {"state": query["state"]}
        if self.denies:
            back |= {"error": self.denies, "error_description": "You said <no>"}
        else:
            back["code"] = f"code-{next(self._numbers)}"
            self.codes[back["code"]] = query
        if self.iss is not None:
            back["iss"] = self.issuer if self.iss == "own" else self.iss
        return Said(302, headers={"location": f"{query['redirect_uri']}?{urlencode(back)}"})

    def _token(self, seen: Seen) -> Said:
        if self.token_broken is not None:
            return self.token_broken
        form = seen.form
        self._key_now: Any = None
        if self.bound and (problem := self._proof_problem(seen)):
            return data({"error": problem}, 400, dpop_nonce=self.nonce)
        if self.bound:
            self._key_now = jwt.get_unverified_header(seen.headers["dpop"])["jwk"]
        client = self._client(seen)
        if client is None:
            return data({"error": "invalid_client"}, 401)
        match form["grant_type"]:
            case "authorization_code":
                return self._by_code(client, form)
            case "refresh_token":
                return self._by_refresh(client, form)
            case "urn:ietf:params:oauth:grant-type:jwt-bearer":
                if form["assertion"] != self.clients[client].get("assertion"):
                    return data({"error": "invalid_grant"}, 400)
                return self._give(client, set(form.get("scope", "").split()), form["resource"])
            case "client_credentials":
                return self._give(client, set(form.get("scope", "").split()), form["resource"])
        return data({"error": "unsupported_grant_type"}, 400)

    def _client(self, seen: Seen) -> str | None:
        form, header = seen.form, seen.headers.get("authorization", "")
        if "client_assertion" in form:
            return self._signed(form)
        if header.startswith("Basic "):
            name, _, secret = base64.b64decode(header.removeprefix("Basic ")).decode().partition(":")
            return name if self.clients.get(name, {}).get("client_secret") == secret else None
        name = form.get("client_id", "")
        if self.documents and name.startswith("https://"):
            return name
        if name not in self.clients or self.clients[name].get("client_secret") != form.get("client_secret"):
            return None
        return name

    def _signed(self, form: dict[str, str]) -> str | None:
        """The client of an assertion (RFC 7523 section 3), which is for us and was not seen before."""
        name = form["client_id"]
        key = self.clients.get(name, {}).get("public_key")
        try:
            claims = jwt.decode(
                form["client_assertion"], key, algorithms=["ES256", "RS256", "EdDSA"], audience=self.issuer
            )
        except jwt.InvalidTokenError:
            return None
        fresh = claims["jti"] not in self._assertions
        self._assertions.add(claims["jti"])
        return name if fresh and claims["iss"] == claims["sub"] == name else None

    def _by_code(self, client: str, form: dict[str, str]) -> Said:
        asked = self.codes.pop(form["code"], None)
        digest = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        same = ("client_id", "redirect_uri", "resource")
        now = {"client_id": client, "redirect_uri": form["redirect_uri"], "resource": form["resource"]}
        if asked is None or asked["code_challenge"] != digest or any(asked[name] != now[name] for name in same):
            return data({"error": "invalid_grant"}, 400)
        return self._give(client, set(asked.get("scope", "").split()), form["resource"])

    def _by_refresh(self, client: str, form: dict[str, str]) -> Said:
        self.renewals += 1
        for grantee in self.tokens.values():
            if grantee.refresh and grantee.refresh == form["refresh_token"] and grantee.client == client:
                if self.rotates:
                    grantee.refresh = ""
                return self._give(client, grantee.scopes, form["resource"])
        return data({"error": "invalid_grant", "error_description": "It was revoked."}, 400)

    def _give(self, client: str, scopes: set[str], resource: str) -> Said:
        number = next(self._numbers)
        refresh = f"refresh-{number}-{'r' * 20}" if self.refreshes else ""
        token = f"access-{number}-{'a' * 20}{self.padding}"
        self.tokens[token] = Grantee(client, scopes, resource, refresh, key=self._key_now)
        said: dict[str, Any] = {"access_token": token, "token_type": "DPoP" if self.bound else "bearer"}
        if self.lifetime is not None:
            said["expires_in"] = self.lifetime
        if refresh:
            said["refresh_token"] = refresh
        return data(said)

    def _revoke(self, seen: Seen) -> Said:
        for grantee in self.tokens.values():
            if seen.form["token"] == grantee.refresh:
                grantee.alive, grantee.refresh = False, ""
        return Said(200)


_ENDPOINTS = {
    "authorization_endpoint": "authorize",
    "token_endpoint": "token",
    "registration_endpoint": "register",
    "revocation_endpoint": "revoke",
}


async def browse(url: str) -> str:
    """What a browser does with an address of :class:`AuthorisedServer`: the address that it is sent on to."""
    async with httpx2.AsyncClient(trust_env=False) as browser:
        answer = await browser.get(url, timeout=10)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]

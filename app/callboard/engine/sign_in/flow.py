"""One sign-in from its beginning to its tokens: discovery, registration, authorisation, token."""

import asyncio
import importlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from callboard.core.challenge import Challenge, challenge_of
from callboard.core.errors import CallboardError
from callboard.core.launch import RemoteLaunch
from callboard.engine.sign_in.proof_key import ProofKey
from callboard.engine.sign_in.records import Account, Client, Record, Tokens
from callboard.engine.sign_in.token_request import RefusedError, request_tokens
from callboard.engine.sign_in.trace import Trace, masked_url
from callboard.engine.sign_in.web import LOOPBACK, Web

if TYPE_CHECKING:
    from callboard.engine.upstream import oauth as rules

PERSON_SECONDS: Final = 600.0  # that a person has in the browser
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_PING: Final = msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "method": "ping"})
_BOTH: Final = "application/json, text/event-stream"
Answer = dict[str, str]


@dataclass
class Flow:
    """See the module. Made for one sign-in; :meth:`run` once. Engine loop only.

    ``redirect_uris`` are our own addresses, best first. ``on_step`` is called after everything that a person could see;
    ``on_question`` hears the address to open and the state that its answer bears, while :attr:`answer` is awaited.
    """

    launch: RemoteLaunch
    record: Record
    challenge: Challenge | None
    redirect_uris: tuple[str, ...]
    on_question: Callable[[str, str], None]
    on_step: Callable[[], None]
    forget_client: bool = False  # the person never came back from the last attempt: the server may not know us
    trace: Trace = field(default_factory=Trace)
    answer: "asyncio.Future[Answer] | None" = None
    partial: Record | None = None  # what is worth keeping even if the rest fails: the registration

    async def run(self) -> Record:
        """The record with new tokens, raises CallboardError; in :attr:`trace` stands which step failed, and how."""
        rules = await asyncio.to_thread(importlib.import_module, "callboard.engine.upstream.oauth")
        local = urlsplit(self.launch.url).hostname in LOOPBACK
        async with Web(self.trace, local=local) as web:
            try:
                return await self._run(web, rules)
            except CallboardError as error:
                self.trace.note(error.message)
                raise
            finally:
                self.trace.finish("failed")

    async def _run(self, web: Web, rules: Any) -> Record:
        oauth = self.launch.oauth
        assert oauth is not None
        self._enter("discovery")
        challenge = self.challenge or await self._provoke(web)
        authority: rules.Authority = await rules.discover(web, self.launch.url, challenge, oauth.issuer)
        account = self.record.accounts.get(authority.issuer) or Account(authority.issuer, "", "")
        scope = rules.scopes_to_ask(oauth.scopes, challenge, authority, account.asked)
        self._enter("registration")
        client = await self._client(web, rules, authority, account, scope)
        account = msgspec.structs.replace(
            account,
            resource=authority.resource,
            token_endpoint=authority.token_endpoint,
            revocation_endpoint=authority.revocation_endpoint,
            client=client,
            tokens=None,
            key=account.key if authority.bound else "",
        )
        self.partial = self.record.put(msgspec.structs.replace(account, client=_worth_keeping(client)))
        self._enter("authorisation")
        grant = await self._grant(rules, authority, client, scope)
        self._enter("token")
        if client.method == "private_key_jwt":
            grant |= await rules.assertion(client, authority.issuer)
        key = None
        if authority.bound:
            key = ProofKey(account.key)
            account = msgspec.structs.replace(account, key=key.pem)
        tokens = await self._tokens(web, account, client, grant, key, scope)
        self.trace.note(f"for {tokens.scope}" if tokens.scope else "")
        self.trace.finish()
        done = msgspec.structs.replace(account, client=_worth_keeping(client), tokens=tokens, asked=scope)
        return self.record.put(done)

    def _enter(self, step: Any) -> None:
        self.trace.enter(step)
        self.on_step()

    async def _provoke(self, web: Web) -> Challenge | None:
        """What the server says to somebody whom it does not know."""
        url, headers = self.launch.url, {**self.launch.headers, "accept": _BOTH}
        if self.launch.transport == "sse":
            reply = await web.look("GET", url, headers, b"")
        else:
            reply = await web.look("POST", url, {**headers, "content-type": "application/json"}, _PING)
        return challenge_of(reply.status, reply.headers.get("www-authenticate", ""))

    async def _client(self, web: Web, rules: Any, authority: "rules.Authority", account: Account, scope: str) -> Client:
        """As whom we sign in, in the order of 2026-07-28, client-registration."""
        oauth = self.launch.oauth
        assert oauth is not None
        if oauth.client_id:
            self._check_issuer(oauth.client_id, authority.issuer)
            self.trace.note(f"the client of the configuration, {oauth.client_id}")
            method = rules.method_for(oauth.proof, authority.token_methods)
            return Client(oauth.client_id, "given", oauth.proof, method, self.redirect_uris[0])
        if oauth.client_metadata and authority.takes_documents:
            self.trace.note(f"by its document, {oauth.client_metadata}")
            return Client(oauth.client_metadata, "document", redirect_uri=self.redirect_uris[0])
        known = account.client
        if known is not None and not self.forget_client and self._is_usable(known):
            self.trace.note(f"known from before as {known.id}")
            return known
        client: Client = await rules.register(web, authority, self.redirect_uris, scope)
        self.trace.note(f"registered as {client.id}")
        return client

    def _check_issuer(self, client_id: str, issuer: str) -> None:
        """A client that was registered by hand belongs to one server; that it is another one now must not go unseen."""
        oauth = self.launch.oauth
        assert oauth is not None
        before = self.record.account
        if oauth.issuer or before is None or before.issuer == issuer or before.tokens is None:
            return
        raise CallboardError(
            "sign-in-failed",
            f"The server's sign-in server is now {issuer}; {client_id} belongs to {before.issuer}.",
            fix="If the change is right, set the issuer in the server's configuration, with a client ID of its own.",
        )

    def _is_usable(self, client: Client) -> bool:
        expired = client.expires_at and client.expires_at <= time.time()
        return client.kind == "registered" and not expired and client.redirect_uri in self.redirect_uris

    async def _grant(self, rules: Any, authority: "rules.Authority", client: Client, scope: str) -> Answer:
        oauth = self.launch.oauth
        assert oauth is not None
        if oauth.as_program:
            self.trace.note("not needed: the program signs in as itself")
            kind = {"grant_type": "client_credentials"}
            if oauth.grant == "jwt-bearer":
                kind = {"grant_type": JWT_BEARER, "assertion": oauth.client_secret}
            return kind | ({"scope": scope} if scope else {})
        question: rules.Question = rules.ask(authority, client, scope)
        self.trace.note(f"waiting for the answer to {masked_url(question.url)}")
        self.answer = asyncio.get_running_loop().create_future()
        self.on_question(question.url, question.state)
        self.on_step()
        try:
            async with asyncio.timeout(PERSON_SECONDS):
                answer = await self.answer
        except TimeoutError:
            minutes = f"{PERSON_SECONDS / 60:g} minutes"
            raise CallboardError("sign-in-cancelled", f"Nobody signed in within {minutes}.") from None
        finally:
            self.answer = None
        code: str = rules.check_answer(authority, answer)
        self.trace.note(f"agreed at {masked_url(question.url)}")
        return {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": client.redirect_uri,
            "code_verifier": question.verifier,
        }

    async def _tokens(
        self, web: Web, account: Account, client: Client, grant: Answer, key: ProofKey | None, scope: str
    ) -> Tokens:
        try:
            return await request_tokens(web, account, client, grant, key, scope)
        except RefusedError as error:
            if error.client:
                self.partial = self.record.put(msgspec.structs.replace(account, client=None))
            raise CallboardError("sign-in-failed", f"The sign-in server gave no token: {error}.") from None


def _worth_keeping(client: Client) -> Client:
    """A client as the record keeps it: the secret of one that the roster gives has a place of its own."""
    return msgspec.structs.replace(client, secret="") if client.kind == "given" else client

"""The sign-in to one resource: its tokens, their renewal, and the one attempt to get new ones."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from callboard.api.sign_in_schema import SignInState, SignInView
from callboard.core.challenge import Challenge
from callboard.core.errors import CallboardError
from callboard.core.launch import OAuthLaunch, RemoteLaunch
from callboard.engine import tasks
from callboard.engine.sign_in.flow import Flow
from callboard.engine.sign_in.keeper import Keeper, Secrets
from callboard.engine.sign_in.proof_key import ProofKey
from callboard.engine.sign_in.records import Account, Client, Record, Tokens, secret_name
from callboard.engine.sign_in.token_request import RefusedError, renew_tokens, revoke_tokens
from callboard.engine.sign_in.trace import Trace
from callboard.engine.tasks import cancel_and_wait

log = logging.getLogger(__name__)

PAUSE: Final = 5.0  # seconds after a renewal or attempt that failed, before the next one


@dataclass(frozen=True)
class Surroundings:
    """What all sign-ins share. The callbacks run on the engine's loop and must not raise.

    ``redirect_uris`` are our own addresses, best first. ``learn`` hears of secrets to mask, under the sign-in's name.
    ``expect`` hears which state an answer will bear, ``on_change`` that the view of a sign-in changed, and
    ``on_signed_in`` that there are new tokens for which a server may be waiting.
    """

    secrets: Secrets
    redirect_uris: Callable[[], tuple[str, ...]]
    learn: Callable[[str, list[str]], None]
    expect: Callable[[str, "Grant"], None]
    on_change: Callable[["Grant"], None]
    on_signed_in: Callable[["Grant"], None]


class Grant:
    """See the module. One for each resource and client, however many servers and calls use it. Engine loop only.

    ``servers`` are the servers that use it; ``needed`` says why a person is wanted, None if nobody is.
    """

    def __init__(self, launch: RemoteLaunch, surroundings: Surroundings) -> None:
        self.launch = launch
        self.servers: set[str] = set()
        self.needed: CallboardError | None = None
        self._around = surroundings
        self._keeper = Keeper(
            secret_name(launch.url, launch.oauth or OAuthLaunch()), surroundings.secrets, surroundings.learn
        )
        self._challenge: Challenge | None = None
        self._pause_until = 0.0  # of the monotonic clock
        self._ended = ""  # why there are no tokens any more
        self._renewal: asyncio.Task[CallboardError | None] | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._flow: Flow | None = None
        self._trace: Trace | None = None
        self._failed: CallboardError | None = None
        self._url = ""
        self._proof_key: tuple[str, ProofKey] | None = None
        self._begun = asyncio.Event()  # the attempt waits for the person, or has ended
        self._doubtful = False

    @property
    def name(self) -> str:
        """Under which the secret store keeps it."""
        return self._keeper.name

    @property
    def oauth(self) -> OAuthLaunch:
        """How we sign in."""
        return self.launch.oauth or OAuthLaunch()

    @property
    def busy(self) -> bool:
        """Whether an attempt is under way."""
        return self._attempt is not None

    @property
    def _account(self) -> Account | None:
        return self._keeper.record.account

    @property
    def _tokens(self) -> Tokens | None:
        return self._account.tokens if self._account is not None else None

    # what requests want

    async def load(self) -> None:
        """Read what is kept; raises what the secret store raises."""
        await self._keeper.load()

    async def token(self) -> str:
        """See TokenSource. Raises what keeps a token that has ended from being renewed."""
        await self.load()
        tokens = self._tokens
        if tokens is None:
            return ""
        now = time.time()
        due = tokens.expires_at if time.monotonic() < self._pause_until else tokens.renew_at
        if due and now >= due and self._can_renew(tokens):
            try:
                await self._renew(tokens.access)
            except CallboardError:
                if now >= tokens.expires_at:
                    raise
                self._pause_until = time.monotonic() + PAUSE
        return self._tokens.access if self._tokens is not None else ""

    def headers(self, token: str, method: str, url: str) -> dict[str, str]:
        """See TokenSource."""
        tokens = self._tokens
        key = self._key()
        if key is None or tokens is None or not tokens.bound:
            return {"authorization": f"Bearer {token}"}
        return {"authorization": f"DPoP {token}", "dpop": key.proof(method, url, token)}

    def heard(self, url: str, nonce: str) -> None:
        """See TokenSource."""
        key = self._key() if nonce else None
        if key is not None:
            key.heard(url, nonce)

    def _key(self) -> ProofKey | None:
        """The key that tokens are bound to; made of its text once."""
        pem = self._account.key if self._account is not None else ""
        if not pem:
            return None
        if self._proof_key is None or self._proof_key[0] != pem:
            self._proof_key = pem, ProofKey(pem)
        return self._proof_key[1]

    async def meet(self, challenge: Challenge, refused: str) -> str:
        """See TokenSource."""
        await self.load()
        if challenge.error == "use_dpop_nonce" and refused:
            return refused  # it is the proof that was refused, not the token
        self._challenge = challenge
        if self._attempt is not None:
            await asyncio.wait([self._attempt])
        tokens = self._tokens
        if tokens is not None and tokens.access != refused:
            return tokens.access
        if challenge.wants_scope:
            return await self._widen(challenge, tokens)
        if tokens is not None and self._can_renew(tokens):
            await self._renew(refused)
        elif self.oauth.as_program:
            await self._sign_in_quietly()
        tokens = self._tokens
        if tokens is None or tokens.access == refused:
            if tokens is not None:
                self._ended = "the server does not take it any more"
            raise self._wanted()
        return tokens.access

    async def _widen(self, challenge: Challenge, tokens: Tokens | None) -> str:
        """More rights are wanted (2026-07-28, authorization "Step-Up Authorization Flow")."""
        asked = set(self._account.asked.split()) if self._account is not None else set()
        if challenge.scope and tokens is not None and set(challenge.scope.split()) <= asked:
            message = f"The server refuses this account the right to {challenge.scope}."
            raise CallboardError("remote-forbidden", message, data={"status": 403})
        if self.oauth.as_program:
            await self._sign_in_quietly()
            if self._tokens is not None and self._tokens != tokens:
                return self._tokens.access
        rights = f": {challenge.scope}" if challenge.scope else ""
        error = CallboardError("remote-scope", f"The server wants more rights for this{rights}.", data={"status": 403})
        self._need(error)
        raise error

    def _wanted(self) -> CallboardError:
        """Only a person can help."""
        said = "Nobody has signed in to this server yet."
        if self._failed is not None:
            said = f"The sign-in failed: {self._failed.message}"
        elif self._ended:
            said = f"The sign-in has ended: {self._ended}."
        error = CallboardError("remote-sign-in", said, fix="Sign in.", data={"status": 401})
        self._need(error)
        return error

    def _need(self, error: CallboardError) -> None:
        self.needed = error
        self._around.on_change(self)

    # renewal

    def _can_renew(self, tokens: Tokens) -> bool:
        client = self._account.client if self._account is not None else None
        return bool(tokens.refresh) and client is not None and client.method != "private_key_jwt"

    async def _renew(self, refused: str) -> None:
        """New tokens for old ones, once, however many want them; none if the server does not renew them any more."""
        if self._renewal is None or self._renewal.done():
            self._renewal = tasks.spawn(self._exchange(refused), name="renew a sign-in")
        if (error := await asyncio.shield(self._renewal)) is not None:
            raise error

    async def _exchange(self, refused: str) -> CallboardError | None:
        account = self._account
        if account is None or account.tokens is None or account.client is None or account.tokens.access != refused:
            return None
        try:
            tokens = await renew_tokens(account, self._complete(account.client), self._key())
        except RefusedError as error:
            log.info("a sign-in was not renewed: %s", error)
            self._ended = str(error)
            client = None if error.client and account.client.kind == "registered" else account.client
            self._put(msgspec.structs.replace(account, tokens=None, client=client))
        except CallboardError as error:
            message = f"The sign-in could not be renewed: {error.message}"
            return CallboardError(error.code, message, fix=error.fix, data=error.data)
        else:
            self._put(msgspec.structs.replace(account, tokens=tokens))
        return None

    def _put(self, account: Account) -> None:
        self._keeper.keep(self._keeper.record.put(account))

    def _complete(self, client: Client) -> Client:
        """The client with the secret that the roster has for it."""
        given = client.kind == "given"
        return msgspec.structs.replace(client, secret=self.oauth.proof) if given else client

    # an attempt

    async def begin(self) -> None:
        """Sign in anew, or go on with the attempt under way; returns when the person is wanted, or when it is over."""
        await self.load()
        if self._attempt is None:
            self._start()
        await self._begun.wait()

    async def _sign_in_quietly(self) -> None:
        """Sign in as a program; an attempt that failed is not repeated for every request."""
        if self._attempt is None and (self._failed is None or time.monotonic() >= self._pause_until):
            self._start()
        if self._attempt is not None:
            await asyncio.wait([self._attempt])
        if self._failed is not None:
            raise self._failed

    def _start(self) -> None:
        self._failed, self._url, self._begun = None, "", asyncio.Event()
        self._flow = Flow(
            self.launch,
            self._keeper.record,
            self._challenge,
            self._around.redirect_uris(),
            on_question=self._ask,
            on_step=lambda: self._around.on_change(self),
            forget_client=self._doubtful,
        )
        self._trace = self._flow.trace
        self._attempt = tasks.spawn(self._try(self._flow), name="sign in to a remote server")

    def _ask(self, url: str, state: str) -> None:
        self._url = url
        self._around.expect(state, self)
        self._begun.set()

    async def _try(self, flow: Flow) -> None:
        try:
            record = await flow.run()
        except CallboardError as error:
            self._give_up(flow, error)
        except asyncio.CancelledError:
            self._give_up(flow, CallboardError("sign-in-cancelled", "The sign-in was cancelled."))
        except Exception:
            log.exception("A sign-in met an error of ours")
            self._give_up(flow, CallboardError("internal", "The engine failed to sign in; see its log."))
        else:
            self.needed, self._ended, self._doubtful = None, "", False
            self._keeper.keep(record)
        finally:
            self._url, self._flow, self._attempt = "", None, None
            self._begun.set()
        self._around.on_change(self)
        if self._failed is None:
            self._around.on_signed_in(self)

    def _give_up(self, flow: Flow, error: CallboardError) -> None:
        self._failed = error
        self._pause_until = time.monotonic() + PAUSE
        # the browser never came back: perhaps the server does not know our client any more
        self._doubtful = bool(self._url) and error.code == "sign-in-cancelled"
        log.info("a sign-in failed at the step %s: %s", flow.trace.current, error.message)
        if flow.partial is not None and self._tokens is None:
            self._keeper.keep(flow.partial)

    def answer(self, answer: dict[str, str]) -> "asyncio.Task[None] | None":
        """The browser came back; returns the attempt that goes on with it, None if nobody waits for an answer."""
        waiting = self._flow.answer if self._flow is not None else None
        if waiting is None or waiting.done():
            return None
        waiting.set_result(answer)
        self._url = ""
        self._around.on_change(self)
        return self._attempt

    async def cancel(self) -> None:
        """Give the attempt up; what was there before stays."""
        if self._attempt is not None:
            await cancel_and_wait(self._attempt)

    async def sign_out(self) -> None:
        """Forget everything, and tell the authorisation server if it wants to know (RFC 7009)."""
        await self.load()
        await self.cancel()
        account = self._account
        self._trace, self._failed, self._challenge, self._ended = None, None, None, ""
        self._keeper.keep(Record())
        self._around.on_change(self)
        if account is not None and account.client is not None:
            await revoke_tokens(account, self._complete(account.client))

    def forgotten(self) -> None:
        """A person took the record out of the secret store."""
        self._keeper.forgotten()
        self._around.on_change(self)

    async def close(self) -> None:
        """End what is under way; what must be written is written first."""
        await cancel_and_wait(*(task for task in (self._attempt, self._renewal) if task is not None))
        await self._keeper.close()

    # showing

    def view(self, server: str) -> SignInView:
        """As the control API shows it."""
        account, tokens = self._account, self._tokens
        error = None if self.busy else self._failed or self.needed
        client = account.client if account is not None else None
        redirect = (
            client.redirect_uri if client is not None and client.redirect_uri else self._around.redirect_uris()[0]
        )
        return SignInView(
            server=server,
            state=self._state(),
            url=self._url,
            redirect_uri=redirect,
            resource=account.resource if account is not None else "",
            issuer=account.issuer if account is not None else "",
            client_id=client.id if client is not None else self.oauth.client_id,
            scopes=tokens.scope.split() if tokens is not None else [],
            expires_at=(tokens.expires_at or None) if tokens is not None else None,
            renewable=tokens is not None and self._can_renew(tokens),
            shared_with=sorted(self.servers - {server}),
            message=error.message if error is not None else "",
            error_code=error.code if error is not None else "",
            fix=error.fix if error is not None else "",
            began=self._trace.began if self._trace is not None else None,
            steps=list(self._trace.steps.values()) if self._trace is not None else [],
        )

    def _state(self) -> SignInState:
        if self.busy:
            return "waiting" if self._url else "running"
        if self._tokens is not None:
            return "signed-in"
        return "failed" if self._failed is not None else "none"

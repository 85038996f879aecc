"""Messages of legacy clients (revisions 2024-11-05 to 2025-11-25): handshake, session, requests, answers."""

import itertools
from typing import TYPE_CHECKING, Any

import msgspec

from callboard.core.protocol import INVALID_PARAMS, LATEST_LEGACY, LEGACY, log_rank
from callboard.engine.policy.callers import Caller
from callboard.engine.relay import hello
from callboard.engine.relay.catalogue import BY_METHOD
from callboard.engine.relay.envelope import Envelope, Raw, answer_of, decode_json, decode_params, result_answer
from callboard.engine.relay.errors import RpcError, invalid, unknown_method
from callboard.engine.relay.exchange import Exchange, progress_token
from callboard.engine.relay.private import PrivateLink
from callboard.engine.relay.router import text_member
from callboard.engine.relay.sessions import Session, initialize_result
from callboard.engine.upstream.base import Answer, Params

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

STATELESS = "no-session"
_EMPTY = result_answer({})


class LegacyEra:
    """Takes what legacy clients send. Owned by the gateway; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self._numbers = itertools.count(1)

    async def initialize(self, scope: str, caller: Caller, params: Params) -> tuple[Session, Answer]:
        """Open a session; raises RpcError, or ``server-unknown``."""
        hello_params: dict[str, Any] = {key: decode_json(value) for key, value in params.items()}
        asked = hello_params.get("protocolVersion")
        if not isinstance(asked, str):
            raise invalid("protocolVersion is missing")
        protocol = asked if asked in LEGACY else LATEST_LEGACY
        await self._relay.greet(scope)
        session = self._relay.sessions.open(scope, caller, protocol, hello_params)
        result = initialize_result(
            protocol,
            hello.capabilities(self._relay, scope, modern=False),
            hello.identity(self._relay, scope),
            hello.instructions(self._relay, scope, caller),
        )
        return session, Answer(result=result)

    def request(self, scope: str, caller: Caller, session: Session | None, envelope: Envelope) -> Exchange:
        """Begin a request; the returned exchange may be done already."""
        request_id = bytes(envelope.id)
        exchange = self._exchange(caller, session, request_id, envelope)
        try:
            self._handle(scope, session, exchange)
        except RpcError as error:
            exchange.complete(error.answer())
        except msgspec.DecodeError as error:
            exchange.complete(RpcError(INVALID_PARAMS, f"Invalid params: {error}").answer())
        return exchange

    def _exchange(self, caller: Caller, session: Session | None, request_id: bytes, envelope: Envelope) -> Exchange:
        params, token = Params(), None
        try:
            params = decode_params(envelope.params)
            if "_meta" in params:
                token = progress_token(decode_params(params["_meta"]))
        except msgspec.DecodeError:
            params = {"": Raw(b"null")}  # refused in _handle
        if session is None:
            return Exchange(
                client=caller.client,
                caller=caller,
                owner=f"{STATELESS} {next(self._numbers)}",
                request_id=request_id,
                method=envelope.method,
                params=params,
                modern=False,
                token=token,
                log_rank=0,
                on_done=self._relay.done,
            )
        exchange = Exchange(
            client=session.client,
            caller=caller,
            owner=session.id,
            request_id=request_id,
            method=envelope.method,
            params=params,
            modern=False,
            token=token,
            log_rank=session.log_rank or 0,
            asker=session,
            on_done=session.on_exchange_done,
        )
        session.exchanges[request_id] = exchange
        return exchange

    def _handle(self, scope: str, session: Session | None, exchange: Exchange) -> None:
        method, params = exchange.method, exchange.params
        if "" in params:
            raise invalid("params must be an object")
        if method in BY_METHOD:
            self._relay.answer_list(scope, exchange, session)
        elif method == "ping":
            exchange.complete(_EMPTY)
        elif method == "logging/setLevel":
            if session is not None:
                session.log_rank = log_rank(text_member(params, "level"))
                self._relay.update_levels(scope)
            exchange.complete(_EMPTY)
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            self._subscribe(scope, session, exchange)
        elif method in ("server/discover", "subscriptions/listen"):
            raise unknown_method(method)
        else:
            self._relay.submit(scope, exchange, session)

    def _subscribe(self, scope: str, session: Session | None, exchange: Exchange) -> None:
        if session is None:
            raise invalid("a subscription needs a session; send initialize first")
        link, own = self._relay.route_subscription(scope, exchange, exchange.params)
        link = self._relay.link_for(link, exchange, session)
        entry = (link, own, text_member(exchange.params, "uri"))
        if exchange.method == "resources/subscribe":
            if entry not in session.subscriptions:
                session.subscriptions.add(entry)
                link.subscribe(own)
                if isinstance(link, PrivateLink):
                    self._relay.private.wake(link)
        elif entry in session.subscriptions:
            session.subscriptions.remove(entry)
            link.unsubscribe(own)
        exchange.complete(_EMPTY)

    def notification(self, session: Session | None, envelope: Envelope) -> None:
        """Take a client's notification; those that mean nothing here are dropped."""
        if session is None:
            return
        if envelope.method == "notifications/roots/list_changed":
            self._relay.private.notify(session, envelope.method, {})
        elif envelope.method == "notifications/cancelled":
            try:
                params = decode_params(envelope.params)
            except msgspec.DecodeError:
                return
            exchange = session.exchanges.get(bytes(params.get("requestId", b"")))
            if exchange is not None:
                exchange.cancel("the client cancelled the request")

    def answer(self, session: Session | None, envelope: Envelope) -> None:
        """Take a client's answer to a server's question."""
        answer = answer_of(envelope)
        if session is not None and answer is not None:
            session.answered(bytes(envelope.id), answer)

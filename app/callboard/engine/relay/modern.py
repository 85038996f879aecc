"""Messages of modern clients (revision 2026-07-28): every request stands by itself."""

import itertools
from typing import TYPE_CHECKING, Any

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.protocol import (
    ASKING,
    INVALID_PARAMS,
    META_CAPABILITIES,
    META_CLIENT,
    META_SERVER,
    META_VERSION,
    MODERN,
    UNSUPPORTED_VERSION,
)
from callboard.engine.policy.callers import Caller
from callboard.engine.relay import hello
from callboard.engine.relay.catalogue import BY_METHOD
from callboard.engine.relay.envelope import Envelope, Raw, decode_json, decode_params, raw_json, result_answer
from callboard.engine.relay.errors import RpcError, foreign_state, invalid, unknown_method
from callboard.engine.relay.exchange import Exchange, progress_token
from callboard.engine.relay.link import ServerLink, wanted_level
from callboard.engine.relay.listeners import FILTER, Subscription
from callboard.engine.relay.private import PrivateLink
from callboard.engine.relay.router import text_member
from callboard.engine.relay.seal import State
from callboard.engine.tasks import spawn
from callboard.engine.upstream.base import Answer, Params

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

# methods of the handshake revisions that this one does not have
_GONE = frozenset(
    {
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/list",
        "tasks/result",
    }
)


class ModernEra:
    """Takes what modern clients send. Owned by the gateway; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self._numbers = itertools.count(1)

    def request(self, scope: str, caller: Caller, envelope: Envelope, params: Params, meta: Params) -> Exchange:
        """Begin a request whose ``params`` and ``_meta`` are decoded; the exchange may be done already."""
        try:
            self._check(envelope.method, meta)
            state = self._state(scope, caller, envelope.method, params)
            if state is not None and state.parked:
                return self._retry(state, caller, envelope, params, meta)
            exchange = self._exchange(caller, envelope, params, meta)
            if state is not None:
                exchange.state, exchange.agreed = state, state.agreed
        except (RpcError, msgspec.DecodeError) as error:
            exchange = self._bare(caller, envelope)
            wrong = error if isinstance(error, RpcError) else invalid(f"Invalid params: {error}")
            exchange.complete(wrong.answer())
            return exchange
        try:
            self._handle(scope, exchange)
        except RpcError as error:
            exchange.complete(error.answer())
        except msgspec.DecodeError as error:
            exchange.complete(RpcError(INVALID_PARAMS, f"Invalid params: {error}").answer())
        return exchange

    def _check(self, method: str, meta: Params) -> None:
        version = text_member(meta, META_VERSION) if META_VERSION in meta else ""
        if not version:
            raise invalid(f"_meta must have {META_VERSION}")
        if version != MODERN:
            raise RpcError(
                UNSUPPORTED_VERSION,
                "Unsupported protocol version",
                {"supported": [MODERN], "requested": version},
            )
        if META_CAPABILITIES not in meta:
            raise invalid(f"_meta must have {META_CAPABILITIES}")
        if method in _GONE:
            raise unknown_method(method)

    def _bare(self, caller: Caller, envelope: Envelope) -> Exchange:
        return Exchange(
            client=caller.client,
            caller=caller,
            owner="",
            request_id=bytes(envelope.id),
            method=envelope.method,
            params={},
            modern=True,
        )

    def _exchange(self, caller: Caller, envelope: Envelope, params: Params, meta: Params) -> Exchange:
        capabilities: Any = decode_json(meta[META_CAPABILITIES])
        if not isinstance(capabilities, dict):
            raise invalid(f"{META_CAPABILITIES} must be an object")
        return Exchange(
            client=_client_name(meta) or caller.client,
            caller=caller,
            owner=f"request {next(self._numbers)}",  # no two requests are known to be one conversation
            request_id=bytes(envelope.id),
            method=envelope.method,
            params=params,
            modern=True,
            token=progress_token(meta),
            log_rank=wanted_level(meta),
            asker=self._relay.parking.asker(caller, capabilities),
            on_done=self._done,
        )

    def _done(self, exchange: Exchange) -> None:
        self._relay.listeners.remove(exchange)
        self._relay.done(exchange)

    def _state(self, scope: str, caller: Caller, method: str, params: Params) -> State | None:
        """What the client brings back from an earlier round, if this is a later one."""
        if "requestState" not in params or method not in ASKING:
            return None
        state = self._relay.seal.open(text_member(params, "requestState"), caller.client, method, params)
        if state is None or scope not in ("", state.server):
            raise foreign_state()
        return state

    def _retry(self, state: State, caller: Caller, envelope: Envelope, params: Params, meta: Params) -> Exchange:
        """The exchange that waits for this request's answers."""
        exchange = self._relay.parking.retry(state.parked, caller, params.get("inputResponses"))
        if exchange is None:
            raise invalid("The call that asked is over; begin it anew")
        exchange.request_id = bytes(envelope.id)
        exchange.token = progress_token(meta)
        return exchange

    def _handle(self, scope: str, exchange: Exchange) -> None:
        method = exchange.method
        if method in BY_METHOD:
            self._relay.answer_list(scope, exchange)
        elif method == "server/discover":
            if scope and self._relay.links[scope].upstream is None:
                spawn(self._discover_later(scope, exchange), name=f"wait for {scope}")
            else:
                exchange.complete(self._discovery(scope, exchange.caller))
        elif method == "subscriptions/listen":
            self._listen(scope, exchange)
        else:
            self._relay.submit(scope, exchange, None)

    async def _discover_later(self, scope: str, exchange: Exchange) -> None:
        try:
            await self._relay.greet(scope)
        except CallboardError as error:
            exchange.fail(error)
        else:
            exchange.complete(self._discovery(scope, exchange.caller))

    def _discovery(self, scope: str, caller: Caller) -> Answer:
        result: dict[str, Any] = {
            "resultType": "complete",
            "supportedVersions": [MODERN],
            "capabilities": hello.capabilities(self._relay, scope, modern=True),
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {META_SERVER: hello.identity(self._relay, scope)},
        }
        if text := hello.instructions(self._relay, scope, caller):
            result["instructions"] = text
        return result_answer(result)

    def _listen(self, scope: str, exchange: Exchange) -> None:
        asked: Any = decode_json(exchange.params.get("notifications", Raw(b"{}")))
        if not isinstance(asked, dict):
            raise invalid("notifications must be an object")
        wanted: dict[str, Any] = {member: True for member in FILTER.values() if asked.get(member) is True}
        uris = asked.get("resourceSubscriptions")
        resources: dict[tuple[ServerLink, str], str] = {}
        for uri in uris if isinstance(uris, list) else []:
            try:
                link, own = self._relay.route_subscription(scope, exchange, {"uri": raw_json(uri)})
            except RpcError:
                continue
            link = self._relay.link_for(link, exchange, None)
            if (link, own) not in resources:
                resources[link, own] = uri
                link.subscribe(own)
                if isinstance(link, PrivateLink):
                    self._relay.private.wake(link)
        if resources:
            wanted["resourceSubscriptions"] = list(resources.values())
        self._relay.listeners.add(Subscription(exchange, scope, wanted, resources, self._unlisten))

    def _unlisten(self, subscription: Subscription) -> None:
        for link, own in subscription.resources:
            link.unsubscribe(own)


def _client_name(meta: Params) -> str:
    if META_CLIENT not in meta:
        return ""
    try:
        info = decode_params(meta[META_CLIENT])
        return text_member(info, "name")
    except (msgspec.DecodeError, RpcError):
        return ""

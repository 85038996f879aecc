"""One request on its way to one server: what is sent in that server's era, and what comes back in the client's."""

from typing import TYPE_CHECKING, Final

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.protocol import ASKING, INTERNAL_ERROR, LOG_LEVELS
from callboard.engine.relay import bridge
from callboard.engine.relay.envelope import Raw, decode_params, error_answer, raw_json
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.link import ServerLink
from callboard.engine.relay.seal import State
from callboard.engine.relay.sessions import Session
from callboard.engine.tasks import spawn
from callboard.engine.upstream.base import Answer, Params, Upstream

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

MAX_ROUNDS: Final = 20


class Delivery:
    """Made by the relay for one exchange; lives until its answer is there."""

    __slots__ = ("_exchange", "_link", "_params", "_relay", "_rounds", "_session", "_upstream")

    def __init__(
        self, relay: "Relay", link: ServerLink, exchange: Exchange, params: Params, session: Session | None
    ) -> None:
        self._relay = relay
        self._link = link
        self._exchange = exchange
        self._params = params
        self._session = session
        self._rounds = 0
        self._upstream: Upstream | None = None

    def send(self) -> None:
        """Send the request; called by the link, now or in its turn."""
        upstream = self._upstream = self._link.upstream
        exchange = self._exchange
        if upstream is None:
            exchange.fail(CallboardError("upstream-gone", f"{self._link.name} ended before the request was sent."))
            return
        if exchange.record is not None and exchange.record.trace is not None:
            self._params = exchange.record.trace.carry(self._params, upstream)
        params = self._params
        if upstream.info.modern:
            if not exchange.modern:
                params = self._for_modern_server(params)
            elif exchange.state is not None:
                params = _with_inner(params, exchange.state)
        elif exchange.modern:
            params = bridge.to_legacy_server(params)
        exchange.convert_with(self.finish)
        if exchange.time_limit and exchange.method == "tools/call":
            exchange.wants_progress = True  # of no use to every client, but it shows that the server is at work
        exchange.sent(upstream.send(exchange.method, params, exchange))

    def finish(self, exchange: Exchange, answer: Answer) -> Answer | None:
        """Turn the server's answer into the client's; None if another round is needed first."""
        upstream = self._upstream
        if upstream is None or not upstream.info.modern:
            if exchange.modern:
                answer = bridge.to_modern_client(exchange.method, answer)
        elif exchange.method in ASKING and (asked := bridge.input_required(answer)) is not None:
            if exchange.modern:
                return self._sealed(answer, asked)
            spawn(self._next_round(asked), name=f"questions of {self._link.name}")
            return None
        if self._link.has_tasks:
            self._relay.tasks.learn(self._link.name, exchange.method, answer, exchange.caller.client)
        if exchange.method == "tasks/list":
            return self._relay.tasks.only_own(self._link.name, answer, exchange.caller.client)
        return answer

    # legacy client, modern server

    def _for_modern_server(self, params: Params) -> Params:
        session = self._session
        if session is None:
            return bridge.to_modern_server(params, {}, {}, None)
        level = LOG_LEVELS[session.log_rank] if session.log_rank is not None else None
        return bridge.to_modern_server(params, session.client_info, session.capabilities, level)

    async def _next_round(self, asked: bridge.InputRequired) -> None:
        """Ask the legacy client each question on its call's stream, then repeat the request with the answers."""
        exchange = self._exchange
        self._rounds += 1
        if self._rounds > MAX_ROUNDS:
            exchange.complete(error_answer(INTERNAL_ERROR, "the server asks without end"))
            return
        responses: Params = {}
        try:
            for name, question in asked.requests.items():
                answer = await exchange.on_request(question.method, decode_params(question.params))
                if answer.result is None:
                    exchange.complete(Answer(error=answer.error))
                    return
                responses[name] = Raw(bytes(answer.result))
        except (CallboardError, msgspec.DecodeError) as error:
            exchange.complete(error_answer(INTERNAL_ERROR, str(error)))
            return
        upstream = self._link.upstream
        if upstream is None or exchange.done:
            exchange.fail(CallboardError("upstream-gone", f"{self._link.name} ended while it was being answered."))
            return
        params = self._for_modern_server(self._params)
        if responses:
            params = params | {"inputResponses": raw_json(responses)}
        if bytes(asked.state) != b"null":
            params = params | {"requestState": Raw(bytes(asked.state))}
        exchange.sent(upstream.send(exchange.method, params, exchange))

    # modern client, modern server

    def _sealed(self, answer: Answer, asked: bridge.InputRequired) -> Answer:
        """The server's state within ours, so that only this client can use it, and only for this request."""
        exchange = self._exchange
        state = self._relay.seal.make(
            exchange.caller.client,
            self._link.name,
            exchange.method,
            exchange.params,
            agreed=exchange.agreed,
            inner=bytes(asked.state),
        )
        result = decode_params(bytes(answer.result or b"{}"))
        return Answer(result=msgspec.json.encode(result | {"requestState": raw_json(state)}))


def _with_inner(params: Params, state: State) -> Params:
    """The server's own state in the place of ours."""
    params = {key: value for key, value in params.items() if key != "requestState"}
    inner = bytes(state.inner)
    return params | {"requestState": Raw(inner)} if inner != b"null" else params

"""Calls of modern clients that wait for an answer from their person.

A legacy server asks in the middle of a call; a modern client is asked by an ``input_required`` result and answers by
repeating its request (2026-07-28, basic/patterns/mrtr). Between the two the call upstream waits here, bounded in time
and number.
"""

import asyncio
import secrets
import time
from typing import Any, Final

from callboard.core.protocol import CLIENT_CAPABILITY, INTERNAL_ERROR, METHOD_NOT_FOUND
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.envelope import Raw, decode_json, decode_params, encode, error_answer
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.seal import Seal
from callboard.engine.upstream.base import Answer, Params

WAIT_SECONDS: Final = 600.0
PATIENCE_SECONDS: Final = 60.0  # while other clients wait for their turn
GATHER_SECONDS: Final = 0.05  # what a server asks within this time is asked in one round
MAX_WAITING: Final = 1000
MAX_PER_CALLER: Final = 100


class Waiting:
    """One call that waits. Its questions are put in as many rounds as it takes."""

    def __init__(self, key: str, caller: Caller, exchange: Exchange) -> None:
        self.key = key
        self.caller = caller
        self.exchange = exchange
        self.questions: dict[str, tuple[str, Params, asyncio.Future[Answer]]] = {}
        self.count = 0
        self.asking: asyncio.Handle | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.since = 0.0  # when the client was asked


class Parking:
    """All waiting calls. It is the Asker of modern clients' exchanges. Engine loop only."""

    def __init__(self, seal: Seal) -> None:
        self._seal = seal
        self._waiting: dict[str, Waiting] = {}
        self._by_exchange: dict[Exchange, Waiting] = {}

    def asker(self, caller: Caller, capabilities: dict[str, Any]) -> "ModernAsker":
        """The Asker for one request of a caller that declared these capabilities."""
        return ModernAsker(self, caller, capabilities)

    async def ask(self, caller: Caller, exchange: Exchange, method: str, params: Params) -> Answer:
        """Put a question into the next ``input_required`` result of an exchange and wait for its answer."""
        waiting = self._by_exchange.get(exchange)
        if waiting is None:
            mine = sum(other.caller is caller for other in self._waiting.values())
            if len(self._waiting) >= MAX_WAITING or mine >= MAX_PER_CALLER:
                return error_answer(INTERNAL_ERROR, "too many calls wait for an answer")
            waiting = Waiting(secrets.token_urlsafe(16), caller, exchange)
            self._waiting[waiting.key] = self._by_exchange[exchange] = waiting
        waiting.count += 1
        name = f"q{waiting.count}"
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        waiting.questions[name] = (method, params, future)
        self._put(waiting)
        try:
            return await future
        finally:
            waiting.questions.pop(name, None)

    def retry(self, key: str, caller: Caller, responses: Raw | None) -> Exchange | None:
        """The client repeats its request with answers: the exchange that goes on, None if nothing waits."""
        waiting = self._waiting.get(key)
        if waiting is None or waiting.caller is not caller or not waiting.exchange.interim:
            return None  # also a state that is used a second time while its call goes on
        answers = decode_params(responses or b"")
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None
        exchange, link = waiting.exchange, waiting.exchange.link
        exchange.rearm()
        if exchange.done or link is None:
            self._drop(waiting)
        else:
            link.resume(exchange, lambda: self._deliver(waiting, answers))
        return exchange

    def _deliver(self, waiting: Waiting, answers: Params) -> None:
        for name, (_, _, future) in list(waiting.questions.items()):
            if name in answers and not future.done():
                future.set_result(Answer(result=bytes(answers[name])))
                del waiting.questions[name]
        if waiting.questions:
            self._put(waiting)

    def forget(self, exchange: Exchange) -> None:
        """The call is over, whatever its questions. A client that is away to ask may still come for the answer."""
        waiting = self._by_exchange.get(exchange)
        if waiting is None:
            return
        for _, _, future in waiting.questions.values():
            if not future.done():
                future.set_result(error_answer(INTERNAL_ERROR, "the client did not answer"))
        waiting.questions.clear()
        if not exchange.interim or exchange.cancelled:
            self._drop(waiting)

    def _drop(self, waiting: Waiting) -> None:
        self._by_exchange.pop(waiting.exchange, None)
        self._waiting.pop(waiting.key, None)
        for handle in (waiting.asking, waiting.timer):
            if handle is not None:
                handle.cancel()

    def _put(self, waiting: Waiting) -> None:
        """Ask soon, with all questions that are open then: servers send several one after the other."""
        if waiting.asking is None and not waiting.exchange.interim:
            waiting.asking = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._interim, waiting)

    def _interim(self, waiting: Waiting) -> None:
        waiting.asking = None
        exchange = waiting.exchange
        questions = waiting.questions.items()
        requests = {name: {"method": method, "params": params} for name, (method, params, _) in questions}
        link = exchange.link
        if not requests or exchange.done or link is None:
            return
        state = self._seal.make(
            waiting.caller.client,
            link.name,
            exchange.method,
            exchange.params,
            agreed=exchange.agreed,
            parked=waiting.key,
        )
        result = {"resultType": "input_required", "inputRequests": requests, "requestState": state}
        waiting.since = time.monotonic()
        self._look_again(waiting)
        exchange.pause(Answer(result=encode(result)))
        link.park(exchange)

    def _look_again(self, waiting: Waiting) -> None:
        left = waiting.since + WAIT_SECONDS - time.monotonic()
        waiting.timer = asyncio.get_running_loop().call_later(min(left, PATIENCE_SECONDS), self._look, waiting)

    def _look(self, waiting: Waiting) -> None:
        """End a call whose client took too long, or keeps others waiting: it may never come back."""
        waiting.timer = None
        link = waiting.exchange.link
        in_the_way = link is not None and link.holds_up_others(waiting.exchange)
        if not in_the_way and time.monotonic() < waiting.since + WAIT_SECONDS:
            self._look_again(waiting)
            return
        waiting.exchange.cancel("the client did not answer")
        self._drop(waiting)


class ModernAsker:
    """Asks a modern client on behalf of one request."""

    def __init__(self, parking: Parking, caller: Caller, capabilities: dict[str, Any]) -> None:
        self._parking = parking
        self._caller = caller
        self.capabilities = capabilities

    async def ask(self, exchange: Exchange, method: str, params: Params, *, guessed: bool = False) -> Answer:
        """See Asker. Each request is asked for itself: no two are known to be of one client."""
        if not can_be_asked(self.capabilities, method, params):
            return error_answer(METHOD_NOT_FOUND, f"the client does not offer {method}")
        return await self._parking.ask(self._caller, exchange, method, params)

    def withdraw(self, exchange: Exchange) -> None:
        """See Asker. Whoever was asked by an answer need not be told: its next request shows."""


def can_be_asked(capabilities: dict[str, Any], method: str, params: Params) -> bool:
    """True if a client with these capabilities takes this question.

    An empty ``elicitation`` means forms alone; tools in sampling need a capability of their own.
    """
    offered = capabilities.get(CLIENT_CAPABILITY.get(method, ""))
    if not isinstance(offered, dict):
        return False
    if method == "elicitation/create":
        mode = decode_json(params["mode"]) if "mode" in params else "form"
        return mode in offered or (mode == "form" and "url" not in offered)
    if method == "sampling/createMessage" and ("tools" in params or "toolChoice" in params):
        return "tools" in offered
    return True

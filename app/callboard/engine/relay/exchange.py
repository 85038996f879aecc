"""A client's request on its way: who made it, what it said meanwhile, and its one answer."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.protocol import METHOD_NOT_FOUND, SERVER_ERROR, log_rank
from callboard.engine.relay.envelope import NULL, Raw, decode_json, error_answer, notification_bytes, raw_json
from callboard.engine.relay.errors import failure
from callboard.engine.upstream.base import Answer, Params, Request

if TYPE_CHECKING:
    from callboard.engine.calls.record import CallRecord
    from callboard.engine.policy.approvals import Item
    from callboard.engine.policy.callers import Caller
    from callboard.engine.relay.link import ServerLink
    from callboard.engine.relay.seal import State

MAX_WAITING_MESSAGES = 1000  # for a client that does not read: older progress is dropped first
LOG_MESSAGE = "notifications/message"
_NOTIFICATION = b'{"jsonrpc":"2.0","method"'


class Asker(Protocol):
    """How a request of the server reaches the person behind an exchange; depends on the client's era."""

    capabilities: dict[str, Any]  # what the client declared that it can be asked

    async def ask(self, exchange: "Exchange", method: str, params: Params, *, guessed: bool = False) -> Answer:
        """Put the question to the client and return its answer.

        ``guessed``: the server did not say of which request the question is; it may be of any other one that the
        same client has in flight there.
        """

    def withdraw(self, exchange: "Exchange") -> None:
        """The exchange is about to get its answer: what is still asked for it has no point any more."""


class Finish(Protocol):
    """What turns a server's answer into the client's, or into another round; returns None for the latter."""

    def __call__(self, exchange: "Exchange", answer: Answer) -> Answer | None: ...


class Exchange:
    """One request of a client while it is in flight.

    It is the :class:`~callboard.engine.upstream.base.Listener` of the request upstream and the source of the client's
    answer. Made by the relay; the gateway reads it (:meth:`wait`, ``messages``, ``answer``). Engine loop only.
    """

    __slots__ = (
        "_finish",
        "_held",
        "_held_since",
        "_late",
        "_on_done",
        "_wake",
        "agreed",
        "agreed_to",
        "answer",
        "asker",
        "caller",
        "client",
        "deadline",
        "expires",
        "http_status",
        "interim",
        "kept",
        "link",
        "log_rank",
        "messages",
        "method",
        "modern",
        "on_wake",
        "owner",
        "params",
        "record",
        "request",
        "request_id",
        "slow",
        "started",
        "state",
        "streaming",
        "time_limit",
        "token",
        "wants_progress",
    )

    def __init__(
        self,
        *,
        client: str,
        caller: "Caller",
        owner: str,
        request_id: bytes,
        method: str,
        params: Params,
        modern: bool,
        token: Raw | None = None,
        log_rank: int | None = None,
        asker: Asker | None = None,
        on_done: Callable[["Exchange"], None] | None = None,
    ) -> None:
        """``client`` names the program for the log, ``caller`` is the owner of its token with what it may use,
        ``owner`` the session (or this one request) that a question of the server may be put to.

        ``token`` is the client's progress token; ``log_rank`` the least severity of log messages it wants, None for
        none.
        """
        self.client = client
        self.caller = caller
        self.owner = owner
        self.request_id = request_id
        self.method = method
        self.params = params
        self.modern = modern
        self.token = token
        self.log_rank = log_rank
        self.asker = asker
        self.wants_progress = token is not None
        self.messages: deque[bytes] = deque()
        self.answer: Answer | None = None
        self.agreed = False  # the person has been asked whether this call may be made, in this round or an earlier one
        self.state: State | None = None  # what the client brought back from an earlier round
        self.agreed_to: tuple[Item, str] | None = None  # and to what, with the mark that it had
        self.interim = False  # the answer asks for more; the request upstream goes on
        self._late: Answer | None = None  # the answer that came while the client was away to ask
        self.http_status = 200
        self.link: ServerLink | None = None
        self.request: Request | None = None
        self.record: CallRecord | None = None
        self.kept: asyncio.Event | None = None  # what the last answer waits for before it may be sent
        self.streaming = False
        self.slow = False  # has lasted longer than a tick: worth watching whether the client is still there
        self.started = time.monotonic()
        self.time_limit = 0.0  # seconds without progress after which the call is given up, 0 for none
        self.deadline = 0.0
        self.expires = 0.0
        self._held = 0
        self._held_since = 0.0
        self._finish: Finish | None = None
        self._on_done = on_done
        self.on_wake: Callable[[], None] | None = None  # called instead of waking who waits
        self._wake: asyncio.Future[None] | None = None

    # what the gateway does

    async def wait(self) -> bool:
        """Return once there is a message, the answer, a call for the answer to be streamed, or the first tick.

        True if all there is is the answer.
        """
        if self.silent:
            wake = self._wake = asyncio.get_running_loop().create_future()
            await wake
        return self.answered

    @property
    def silent(self) -> bool:
        """Whether there is nothing yet to be sent, nor to be done."""
        return self.answer is None and not self.messages and not self.streaming

    @property
    def answered(self) -> bool:
        """Whether all that waits to be sent is the answer."""
        return self.answer is not None and not self.messages

    async def next(self, seconds: float) -> None:
        """For a streaming exchange: like :meth:`wait`, but returns after ``seconds`` in any case."""
        if self.answer is None and not self.messages:
            wake = self._wake = asyncio.get_running_loop().create_future()
            await asyncio.wait([wake], timeout=seconds)

    def wake(self) -> None:
        """Make :meth:`wait` return, or call ``on_wake``."""
        if self.on_wake is not None:
            self.on_wake()
        elif self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    @property
    def done(self) -> bool:
        """True once the last answer is there, even if the client has not come to fetch it."""
        return self._late is not None or (self.answer is not None and not self.interim)

    def stream(self) -> None:
        """From now on the answer is streamed, so that the connection stays alive."""
        self.streaming = True
        self.wake()

    def push(self, message: bytes) -> None:
        """Send a message to the client ahead of the answer."""
        if self.answer is None:
            if len(self.messages) >= MAX_WAITING_MESSAGES:
                self._drop_oldest()
            self.messages.append(message)
            self.wake()

    def _drop_oldest(self) -> None:
        for index, message in enumerate(self.messages):
            if message.startswith(_NOTIFICATION):  # a question must reach the client
                del self.messages[index]
                return

    # time limits

    @property
    def held(self) -> bool:
        """True while the client is being asked: the person's time is not the server's."""
        return self._held > 0

    def hold(self) -> None:
        """The time limits rest until :meth:`release` was called as often."""
        if not self._held:
            self._held_since = time.monotonic()
        self._held += 1

    def release(self) -> None:
        """See :meth:`hold`."""
        self._held -= 1
        if not self._held:
            self.expires += time.monotonic() - self._held_since
            self.extend()

    def extend(self) -> None:
        """The server shows that it is at work: its time begins anew, up to the hard limit."""
        if self.time_limit:
            self.deadline = min(time.monotonic() + self.time_limit, self.expires)

    # how it ends

    def convert_with(self, finish: Finish) -> None:
        """What converts the answer; set before the request is sent."""
        self._finish = finish

    def sent(self, request: Request) -> None:
        """The request went upstream."""
        if not self.done:
            self.request = request

    def complete(self, answer: Answer, *, http_status: int = 200) -> None:
        """Give the client its answer; later ones are dropped."""
        if self.done:
            return
        if self._held and self.asker is not None:
            self.asker.withdraw(self)
        self.http_status = http_status
        self.request = None
        if self.interim:
            self._late = answer
        else:
            self.answer = answer
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(self)
        if not self.interim:
            self.wake()  # last, as the answer may be sent at once
        # what refers back to the exchange goes, so that it is freed at once and not by the garbage collector
        self._finish = self.link = None

    def pause(self, answer: Answer) -> None:
        """Give the client an answer that asks for more; the request upstream goes on (see Parking)."""
        if self.answer is None:
            self.answer = answer
            self.interim = True
            self.hold()
            self.wake()

    def rearm(self) -> None:
        """The client repeats its request: what it gets next, perhaps at once, is the answer to that."""
        self.answer, self._late = self._late, None
        self.interim = False
        self.streaming = False
        self.slow = False
        self.started = time.monotonic()
        self.messages.clear()
        self.release()

    def fail(self, error: CallboardError) -> None:
        """Answer with an error of ours."""
        self.complete(failure(error).answer())

    def cancel(self, reason: str) -> None:
        """The client does not want the answer any more."""
        request, self.request = self.request, None
        if request is not None:
            request.cancel(reason)
        self.complete(CANCELLED)

    def replace_answer(self, answer: Answer) -> None:
        """Give the client another answer than the one that came; only from within ``on_done``."""
        if self._late is not None:
            self._late = answer
        else:
            self.answer = answer

    @property
    def last_answer(self) -> Answer | None:
        """The answer that ended the exchange."""
        return self._late or self.answer

    @property
    def cancelled(self) -> bool:
        """True if the client gave up."""
        return self.answer is CANCELLED or self._late is CANCELLED

    # the listener of the request upstream

    def on_answer(self, answer: Answer) -> None:
        """See Listener."""
        self.request = None
        if self._finish is not None:
            finished = self._finish(self, answer)
            if finished is None:
                return
            answer = finished
        self.complete(answer)

    def on_gone(self, error: CallboardError) -> None:
        """See Listener."""
        self.fail(error)

    def on_progress(self, params: Params) -> None:
        """See Listener. The client gets its own token back (2025-11-25, basic/utilities/progress)."""
        self.extend()
        if self.token is not None:
            params["progressToken"] = self.token
            self.push(notification_bytes("notifications/progress", params))

    def on_notification(self, method: str, params: Params) -> None:
        """See Listener. Log messages come from the level on that the client wants."""
        if method == LOG_MESSAGE and (self.log_rank is None or rank_of(params) < self.log_rank):
            return
        self.push(notification_bytes(method, params))

    async def on_request(self, method: str, params: Params, *, guessed: bool = False) -> Answer:
        """See Listener, and Asker for ``guessed``."""
        if self.asker is None or self.done:
            return error_answer(METHOD_NOT_FOUND, f"the client cannot be asked for {method}")
        return await self.asker.ask(self, method, params, guessed=guessed)


CANCELLED = Answer(error=raw_json({"code": SERVER_ERROR, "message": "cancelled"}))


class Watch:
    """Looks after the exchanges that take long: time limits, and streaming so that connections stay alive.

    One timer for all, armed only while there is an exchange: it costs a quick call next to nothing and an idle
    engine nothing at all.
    """

    TICK = 0.25
    STREAM_AFTER = 5.0

    def __init__(self) -> None:
        self._exchanges: set[Exchange] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, exchange: Exchange) -> None:
        """Look after an exchange until it is done."""
        self._exchanges.add(exchange)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.TICK, self._tick)

    def discard(self, exchange: Exchange) -> None:
        """The exchange is done."""
        self._exchanges.discard(exchange)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        now = time.monotonic()
        for exchange in list(self._exchanges):
            if exchange.interim:
                continue
            if not exchange.slow:
                exchange.slow = True
                exchange.wake()
            if exchange.deadline and now >= exchange.deadline and not exchange.held:
                _give_up(exchange)
            elif not exchange.streaming and now - exchange.started > self.STREAM_AFTER:
                exchange.stream()
        if self._exchanges:
            self._timer = asyncio.get_running_loop().call_later(self.TICK, self._tick)


def _give_up(exchange: Exchange) -> None:
    request, exchange.request = exchange.request, None
    limit = f"{exchange.time_limit:g} s"
    if request is not None:
        request.cancel("timed out")
        reason = f"The server did not answer within {limit} and was told to stop."
    else:
        reason = f"The server was not free for this call within {limit}."
    exchange.fail(CallboardError("call-timeout", reason))


def rank_of(params: Params) -> int:
    """The severity of a log message."""
    try:
        return log_rank(decode_json(params.get("level", NULL), str))
    except msgspec.DecodeError:
        return log_rank("")


def progress_token(meta: Params) -> Raw | None:
    """The client's progress token, if it wants progress; raises msgspec.ValidationError for one of a wrong type."""
    token = meta.get("progressToken")
    if token is None:
        return None
    if not isinstance(decode_json(token), str | int):
        raise msgspec.ValidationError("progressToken must be a string or an integer")
    return Raw(bytes(token))

"""The relay's side of one server: requests in flight, whom its questions reach, what it is subscribed to.

A server's message outside any request never reaches more than one client, except notices that say nothing but "look
again" (list_changed, resources/updated), which go to those who subscribed.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.protocol import (
    CLIENT_CAPABILITY,
    INTERNAL_ERROR,
    LOG_LEVELS,
    META_LOG_LEVEL,
    METHOD_NOT_FOUND,
    log_rank,
)
from callboard.engine.relay.catalogue import BY_NOTIFICATION, KINDS, Kind
from callboard.engine.relay.envelope import Raw, decode_json, error_answer, raw_json
from callboard.engine.relay.exchange import LOG_MESSAGE, Exchange, rank_of
from callboard.engine.tasks import spawn
from callboard.engine.upstream.base import Answer, Params, Upstream

log = logging.getLogger(__name__)

LISTEN_AGAIN = 1.0  # seconds before a stream of changes that ended is opened again, doubling
LONGEST_LISTEN_AGAIN = 60.0

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"


class Hub(Protocol):
    """What a link needs of the relay."""

    def lists_changed(self, link: "ServerLink", kinds: tuple[Kind, ...]) -> None:
        """The server says that lists changed."""

    def resource_updated(self, link: "ServerLink", uri: str, params: Params) -> None:
        """The server says that a resource changed."""

    def log_message(self, link: "ServerLink", level: int, params: Params) -> None:
        """The server logged something outside any request that can be told."""

    def noise(self, link: "ServerLink", line: bytes) -> None:
        """The server printed on stdout what is not protocol."""


class ServerLink:
    """One server as the relay sees it; lives as long as the roster's entry, through restarts. Engine loop only."""

    def __init__(self, name: str, hub: Hub) -> None:
        self.name = name
        self.upstream: Upstream | None = None
        self.in_flight: set[Exchange] = set()
        self._parked: set[Exchange] = set()  # those of them whose client is away to ask its person
        self.noise_lines = 0
        self.has_tasks = False  # the server may answer with tasks, whose ids must be remembered
        self._hub = hub
        self._asks = False  # a legacy server that has once asked is served one client at a time
        self._queue: deque[tuple[Exchange, Callable[[], None]]] = deque()
        self._passing = False
        self._subscribers: dict[str, int] = {}
        self._level: int | None = None
        self._listening: ListenStream | None = None
        self._listen_pause = LISTEN_AGAIN
        self._listen_timer: asyncio.TimerHandle | None = None

    # connection

    def connected(self, upstream: Upstream) -> None:
        """The server is ready."""
        self.upstream = upstream
        self.has_tasks = _offers_tasks(upstream.info.capabilities)
        self._listen_pause = LISTEN_AGAIN
        self._restore(upstream)

    def on_renewed(self) -> None:
        """See Peer."""
        if self.upstream is not None:
            self._restore(self.upstream)
            self._hub.lists_changed(self, KINDS)

    def _restore(self, upstream: Upstream) -> None:
        """Tell a new session what we want to hear of it."""
        if self._level is not None:
            self._send_level()
        self._listen_anew()
        if not upstream.info.modern:
            for uri in self._subscribers:
                spawn(self._subscribe("resources/subscribe", uri), name=f"subscribe to {uri}")

    def disconnected(self) -> None:
        """The connection has ended; the upstream itself failed what was in flight."""
        self.upstream = None
        self._listening = None
        if self._listen_timer is not None:
            self._listen_timer.cancel()
            self._listen_timer = None

    # requests

    def submit(self, exchange: Exchange, send: Callable[[], None]) -> None:
        """Send a client's request now, or in its turn if the server is served one client at a time."""
        if self._must_wait(exchange):
            self._queue.append((exchange, send))
        else:
            self._begin(exchange, send)

    def park(self, exchange: Exchange) -> None:
        """The server waits for an answer that the client may never bring: the client's other requests may go on."""
        self._parked.add(exchange)
        self._next_turn()

    def resume(self, exchange: Exchange, send: Callable[[], None]) -> None:
        """The client of a parked request is back: send its answers now, or when what it began meanwhile is over."""
        if self._must_wait(exchange):
            self._queue.appendleft((exchange, send))  # nobody else is served before
        else:
            self._begin(exchange, send)

    def holds_up_others(self, exchange: Exchange) -> bool:
        """True if other clients' requests wait because of this one."""
        return self._asks and any(not other.done and other.caller != exchange.caller for other, _ in self._queue)

    def finished(self, exchange: Exchange) -> None:
        """A request has its answer: the next client's turn."""
        self.in_flight.discard(exchange)
        self._parked.discard(exchange)
        self._next_turn()

    def _begin(self, exchange: Exchange, send: Callable[[], None]) -> None:
        self._parked.discard(exchange)
        self.in_flight.add(exchange)
        send()

    def _must_wait(self, exchange: Exchange) -> bool:
        return self._asks and any(
            other.owner != exchange.owner and not (other in self._parked and other.caller == exchange.caller)
            for other in self.in_flight
        )

    def _next_turn(self) -> None:
        if self._queue and not self._passing:
            self._passing = True  # one that fails at once must not pass the turn on within its own
            try:
                self._pass_turn()
            finally:
                self._passing = False

    def _pass_turn(self) -> None:
        while self._queue:
            waiting, send = self._queue[0]
            if not waiting.done and self._must_wait(waiting):
                return
            self._queue.popleft()
            if not waiting.done:
                self._begin(waiting, send)

    # the peer of the upstream

    def on_server_notification(self, method: str, params: Params) -> None:
        """See Peer."""
        if kinds := BY_NOTIFICATION.get(method):
            self._hub.lists_changed(self, kinds)
        elif method == "notifications/resources/updated":
            uri = _text(params.get("uri"))
            if uri:
                self._hub.resource_updated(self, uri, params)
        elif (owner := self._only_owner()) is not None:
            owner.on_notification(method, params)
        elif method == LOG_MESSAGE and not self.in_flight:
            self._hub.log_message(self, rank_of(params), params)

    def on_server_request(self, method: str, params: Params) -> Coroutine[Any, Any, Answer]:
        """See Peer. A question without a request goes to the client whose call is the only one in flight."""
        if method not in CLIENT_CAPABILITY:
            return refusal(METHOD_NOT_FOUND, f"{method} is not available")
        self._asks = True
        owner = self._only_owner()
        if owner is None:
            reason = "no client's call is in flight" if not self.in_flight else "calls of several clients are in flight"
            return refusal(INTERNAL_ERROR, f"{method} cannot be assigned to a client: {reason}")
        return owner.on_request(method, params, guessed=True)

    def on_noise(self, line: bytes) -> None:
        """See Peer."""
        self.noise_lines += 1
        self._hub.noise(self, line)

    def _only_owner(self) -> Exchange | None:
        """The exchange that a message without one belongs to: the newest, if all in flight are one client's.

        What is parked is asked nothing more as long as another one is under way.
        """
        newest: Exchange | None = None
        for exchange in (self.in_flight - self._parked) or self.in_flight:
            if newest is not None and exchange.owner != newest.owner:
                return None
            if newest is None or exchange.started > newest.started:
                newest = exchange
        return newest

    # subscriptions to resources, counted

    def subscribe(self, uri: str) -> None:
        """One more client wants to hear of a resource."""
        self._subscribers[uri] = self._subscribers.get(uri, 0) + 1
        if self._subscribers[uri] == 1:
            self._change_subscription("resources/subscribe", uri)

    def unsubscribe(self, uri: str) -> None:
        """One client fewer wants to hear of a resource."""
        count = self._subscribers.get(uri, 0) - 1
        if count > 0:
            self._subscribers[uri] = count
        elif self._subscribers.pop(uri, None) is not None:
            self._change_subscription("resources/unsubscribe", uri)

    def _change_subscription(self, method: str, uri: str) -> None:
        if self.upstream is None:
            return
        if self.upstream.info.modern:
            self._listen_anew()
        else:
            spawn(self._subscribe(method, uri), name=f"{method} {uri}")

    async def _subscribe(self, method: str, uri: str) -> None:
        if self.upstream is not None:
            try:
                await self.upstream.request(method, {"uri": raw_json(uri)})
            except CallboardError as error:
                log.info("%s of %s at %s failed: %s", method, uri, self.name, error.message)

    def _listen_anew(self) -> None:
        """Hold one ``subscriptions/listen`` open at a modern server for all that anybody here wants to hear."""
        upstream = self.upstream
        if upstream is None or not upstream.info.modern:
            return
        previous = self._listening
        capabilities = upstream.info.capabilities
        wanted: dict[str, object] = {}
        for capability, member in (
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ):
            if capability in capabilities:
                wanted[member] = True
        if self._subscribers:
            wanted["resourceSubscriptions"] = list(self._subscribers)
        self._listening = ListenStream(self, upstream, wanted) if wanted else None
        if previous is not None:
            previous.close()

    def listening_ended(self, stream: "ListenStream") -> None:
        """A stream of changes ended though its server is still there: listen anew, after a growing pause."""
        upstream = self.upstream
        if self._listening is not stream or upstream is None or upstream.closed.done():
            return
        self._listening = None
        self._listen_timer = asyncio.get_running_loop().call_later(self._listen_pause, self._listen_anew)
        self._listen_pause = min(2 * self._listen_pause, LONGEST_LISTEN_AGAIN)

    def listening_began(self, stream: "ListenStream") -> None:
        """A stream of changes was acknowledged; what changed before it is found by reading the lists."""
        if self._listening is stream and self._listen_timer is not None:
            self._listen_timer = None
            self._listen_pause = LISTEN_AGAIN
            self._hub.lists_changed(self, KINDS)

    # log level

    def set_level(self, rank: int | None) -> None:
        """The least severe messages that any client wants; None when nobody asked for a level."""
        if rank != self._level:
            self._level = rank
            if rank is not None:
                self._send_level()

    def _send_level(self) -> None:
        upstream = self.upstream
        if upstream is not None and not upstream.info.modern and "logging" in upstream.info.capabilities:
            spawn(self._level_request(upstream), name=f"log level of {self.name}")

    async def _level_request(self, upstream: Upstream) -> None:
        if self._level is not None:
            try:
                await upstream.request("logging/setLevel", {"level": raw_json(LOG_LEVELS[self._level])})
            except CallboardError as error:
                log.info("the log level of %s could not be set: %s", self.name, error.message)


class ListenStream:
    """A ``subscriptions/listen`` request of ours; hands what it hears to the link."""

    wants_progress = False

    def __init__(self, link: ServerLink, upstream: Upstream, wanted: dict[str, object]) -> None:
        self._link = link
        self._request = upstream.send("subscriptions/listen", {"notifications": raw_json(wanted)}, self)

    def close(self) -> None:
        """Stop listening."""
        self._request.cancel("not needed any more")

    def on_answer(self, answer: Answer) -> None:
        """The server ended it. One that does not offer it has its lists read on their own occasions."""
        if answer.result is not None:
            self._link.listening_ended(self)

    def on_gone(self, error: CallboardError) -> None:
        """The stream broke, or the whole connection."""
        if not 400 <= error.data.get("status", 0) < 500:
            self._link.listening_ended(self)

    def on_progress(self, params: Params) -> None:
        """There is none."""

    def on_notification(self, method: str, params: Params) -> None:
        """A change; our own subscription id is of no use to anybody else."""
        if method == "notifications/subscriptions/acknowledged":
            self._link.listening_began(self)
            return
        self._link.on_server_notification(method, without_meta(params))

    async def on_request(self, method: str, params: Params) -> Answer:
        """A modern server makes no requests."""
        return error_answer(METHOD_NOT_FOUND, f"{method} is not available")


async def refusal(code: int, message: str) -> Answer:
    """The answer to a question that reaches nobody."""
    return error_answer(code, message)


def _offers_tasks(capabilities: dict[str, Any]) -> bool:
    extensions = capabilities.get("extensions")
    return "tasks" in capabilities or (isinstance(extensions, dict) and TASKS_EXTENSION in extensions)


def without_meta(params: Params) -> Params:
    """Parameters of a notification without ``_meta``."""
    return {key: value for key, value in params.items() if key != "_meta"}


def wanted_level(meta: Params) -> int | None:
    """The log level that a modern request asks for (2026-07-28, server/utilities/logging), None for none."""
    level = meta.get(META_LOG_LEVEL)
    return log_rank(_text(level)) if level is not None else None


def _text(raw: Raw | None) -> str:
    if raw is None:
        return ""
    try:
        text: str = decode_json(raw, str)
        return text
    except msgspec.DecodeError:
        return ""

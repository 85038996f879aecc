"""Sessions of legacy clients: from ``initialize`` to DELETE or long silence (2025-11-25, basic/transports)."""

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from callboard.core.errors import CallboardError
from callboard.core.protocol import METHOD_NOT_FOUND
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.envelope import encode, error_answer, notification_bytes, raw_json, request_bytes
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.parking import can_be_asked
from callboard.engine.relay.replay import ReplayStreams
from callboard.engine.upstream.base import Answer, Params

if TYPE_CHECKING:
    from callboard.engine.relay.link import ServerLink

IDLE_SECONDS: Final = 24 * 3600.0
MAX_SESSIONS: Final = 10_000
MAX_BACKLOG: Final = 256
ASK_SECONDS: Final = 600.0


class Stream:
    """A GET stream of a session; read by the gateway. Engine loop only."""

    def __init__(self) -> None:
        self.messages: deque[bytes] = deque(maxlen=MAX_BACKLOG)
        self.closed = False
        self._wake: asyncio.Future[None] | None = None

    def push(self, message: bytes) -> None:
        """Send a message; the same one does not wait twice for a client that does not read."""
        if message not in self.messages:
            self.messages.append(message)
            self._signal()

    def close(self) -> None:
        """End the stream from our side."""
        self.closed = True
        self._signal()

    async def next(self, seconds: float) -> None:
        """Return when there is a message, the stream was closed, or after ``seconds``."""
        if not self.messages and not self.closed:
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await asyncio.wait([self._wake], timeout=seconds)
            finally:
                self._wake = None

    def _signal(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Channel(Protocol):
    """Where a question to the client is put: the stream of an exchange, or the session's own."""

    def push(self, message: bytes) -> None:
        """Send a message."""

    def hold(self) -> None:
        """The person's time begins: it is not the server's."""

    def release(self) -> None:
        """The person has answered."""


class _Outside:
    """The session's own stream as a channel."""

    def __init__(self, push: Callable[[bytes], None]) -> None:
        self.push = push

    def hold(self) -> None:
        """There is no call whose time runs."""

    def release(self) -> None:
        """There is no call whose time runs."""


@dataclass
class _Question:
    channel: Channel  # where it was put
    answer: asyncio.Future[Answer]
    guessed: bool  # any call of the session to the same server may have caused it


class Session:
    """One legacy client's connection. It is the Asker of its exchanges. Engine loop only."""

    def __init__(
        self,
        session_id: str,
        scope: str,
        caller: Caller,
        protocol: str,
        hello: dict[str, Any],
        on_done: Callable[[Exchange], None],
    ) -> None:
        """``scope`` is the endpoint, ``caller`` the owner of the token, ``hello`` the parameters of initialize.

        ``on_done`` hears of each exchange that has its last answer.
        """
        self.id = session_id
        self.scope = scope
        self.caller = caller
        self.protocol = protocol
        info = hello.get("clientInfo")
        self.client_info: dict[str, Any] = info if isinstance(info, dict) else {}
        capabilities = hello.get("capabilities")
        self.capabilities: dict[str, Any] = capabilities if isinstance(capabilities, dict) else {}
        self.client = str(self.client_info.get("name") or caller.client)
        self.log_rank: int | None = None
        self.exchanges: dict[bytes, Exchange] = {}
        self.subscriptions: set[tuple[ServerLink, str, str]] = set()  # with the server's own URI and the one shown
        self.served: dict[str, int] = {}  # the hash of each list as the client was served it last
        self.replays = ReplayStreams()
        self.last_used = time.monotonic()
        self.closed = False
        self._on_done = on_done
        self._questions: dict[int, _Question] = {}
        self._next = 0
        self._streams: list[Stream] = []
        self._backlog: deque[bytes] = deque(maxlen=MAX_BACKLOG)

    def on_exchange_done(self, exchange: Exchange) -> None:
        """One of the session's exchanges has its last answer."""
        if self.exchanges.get(exchange.request_id) is exchange:
            del self.exchanges[exchange.request_id]
        self._on_done(exchange)

    # messages outside of any request

    def open_stream(self) -> Stream:
        """A new GET stream; the newest one gets the messages."""
        stream = Stream()
        self._streams.append(stream)
        while self._backlog:
            stream.push(self._backlog.popleft())
        return stream

    def close_stream(self, stream: Stream) -> None:
        """The client closed a GET stream; what it did not read stays for the next one."""
        stream.close()
        with contextlib.suppress(ValueError):
            self._streams.remove(stream)
        while stream.messages:
            self._tell(stream.messages.popleft())

    def tell(self, method: str, params: Params) -> None:
        """A notification outside of any request; the same one is not queued twice."""
        self._tell(notification_bytes(method, params))

    def _tell(self, message: bytes) -> None:
        if self._streams:
            self._streams[-1].push(message)
        elif message not in self._backlog:
            self._backlog.append(message)

    # questions to the client

    async def ask_outside(self, method: str, params: Params) -> Answer:
        """Put a question of a server that belongs to no request on the session's own stream."""
        return await self.ask(_Outside(self._tell), method, params)

    async def ask(self, exchange: Channel, method: str, params: Params, *, guessed: bool = False) -> Answer:
        """Put a server's question on the stream of the request that caused it; see Asker."""
        if self.closed or not can_be_asked(self.capabilities, method, params):
            return error_answer(METHOD_NOT_FOUND, f"the client does not offer {method}")
        self._next += 1
        number = self._next
        question = _Question(exchange, asyncio.get_running_loop().create_future(), guessed)
        self._questions[number] = question
        exchange.push(request_bytes(number, method, params))
        exchange.hold()
        try:
            async with asyncio.timeout(ASK_SECONDS):
                return await question.answer
        except TimeoutError:
            self._withdraw(number)
            raise CallboardError("call-timeout", f"The client did not answer {method}.") from None
        except asyncio.CancelledError:
            self._withdraw(number)
            raise
        finally:
            self._questions.pop(number, None)
            question.channel.release()

    def withdraw(self, exchange: Exchange) -> None:
        """See Asker. A question that another call may have caused goes on with that one."""
        for number, question in list(self._questions.items()):
            if question.channel is not exchange:
                continue
            heir = self._heir(exchange) if question.guessed else None
            if heir is not None:
                question.channel = heir
                exchange.release()
                heir.hold()
                continue
            self._withdraw(number)
            if not question.answer.done():
                question.answer.set_result(error_answer(METHOD_NOT_FOUND, "the call is over"))

    def _heir(self, exchange: Exchange) -> Exchange | None:
        for other in self.exchanges.values():
            if other is not exchange and other.link is exchange.link and not other.done:
                return other
        return None

    def _withdraw(self, number: int) -> None:
        question = self._questions.pop(number, None)
        if question is not None:
            question.channel.push(notification_bytes("notifications/cancelled", {"requestId": raw_json(number)}))

    def answered(self, request_id: bytes, answer: Answer) -> None:
        """The client's answer to a question; late or foreign ones are dropped."""
        try:
            question = self._questions[int(request_id)]
        except (ValueError, KeyError):
            return
        if not question.answer.done():
            question.answer.set_result(answer)

    # the end

    def close(self) -> None:
        """End the session: its requests are cancelled, its streams closed."""
        self.closed = True
        for exchange in list(self.exchanges.values()):
            exchange.cancel("the session ended")
        self.exchanges.clear()
        for stream in list(self._streams):
            stream.close()
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_result(error_answer(METHOD_NOT_FOUND, "the session ended"))


class Sessions:
    """All sessions, by id. Engine loop only."""

    def __init__(self, on_closed: Callable[[Session], None], on_done: Callable[[Exchange], None]) -> None:
        """``on_closed`` hears of each session that ends, ``on_done`` of each exchange."""
        self._sessions: dict[str, Session] = {}
        self._refused: OrderedDict[str, None] = OrderedDict()
        self._on_closed = on_closed
        self._on_done = on_done

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def open(self, scope: str, caller: Caller, protocol: str, hello: dict[str, Any]) -> Session:
        """A new session."""
        self._expire()
        session = Session(secrets.token_urlsafe(24), scope, caller, protocol, hello, self._on_done)
        self._sessions[session.id] = session
        return session

    def find(self, session_id: str, scope: str, caller: Caller) -> Session | None:
        """The session of this id, if it belongs to this caller and endpoint."""
        session = self._sessions.get(session_id)
        if session is None or session.scope != scope or session.caller is not caller:
            return None
        session.last_used = time.monotonic()
        return session

    def refuse(self, session_id: str) -> bool:
        """True the first time that an unknown id is met: its client must be told to initialize anew.

        A client that goes on with the same id all the same has not understood (VS Code); it is served without one.
        """
        if session_id in self._refused:
            self._refused.move_to_end(session_id)
            return False
        self._refused[session_id] = None
        if len(self._refused) > MAX_SESSIONS:
            self._refused.popitem(last=False)
        return True

    def close(self, session: Session) -> None:
        """End one session."""
        if self._sessions.pop(session.id, None) is not None:
            session.close()
            self._on_closed(session)

    def close_all(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self.close(session)

    def _expire(self) -> None:
        now = time.monotonic()
        idle = [s for s in self._sessions.values() if not s.exchanges and now - s.last_used > IDLE_SECONDS]
        if len(self._sessions) >= MAX_SESSIONS:
            idle += sorted(self._sessions.values(), key=lambda session: session.last_used)[:1]
        for session in idle:
            self.close(session)


def initialize_result(
    protocol: str, capabilities: dict[str, Any], identity: dict[str, Any], instructions: str
) -> bytes:
    """The result of ``initialize``."""
    result: dict[str, Any] = {"protocolVersion": protocol, "capabilities": capabilities, "serverInfo": identity}
    if instructions:
        result["instructions"] = instructions
    return encode(result)

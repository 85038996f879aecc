"""Streams of requests that a legacy client may take up again after its connection broke (2025-11-25, basic/transports).

Events carry ids; a client that lost the connection names the last one it saw, and hears the rest on a new one. No event
without data is sent first, as it may: clients in use today take it for a message and fail to parse it.
"""

from collections import OrderedDict
from typing import Final

from callboard.engine.relay.envelope import answer_bytes, sse_event
from callboard.engine.relay.exchange import Exchange

MAX_EVENTS: Final = 1000  # kept of one stream; older ones cannot be heard again
MAX_STREAMS: Final = 32  # kept of one session
RETRY: Final = b"retry: 1000\n"


class ReplayStream:
    """The events of one exchange, numbered from 1, for whichever connection is the newest. Engine loop only."""

    def __init__(self, key: str, exchange: Exchange) -> None:
        self.exchange = exchange
        self.complete = False  # the last event is there
        self.reader = 0  # number of the connection that is being served
        self._key = key.encode()
        self._events: list[bytes] = []
        self._dropped = 0

    def take_over(self) -> int:
        """A new connection: the former one, if it still is there, gets no more. Returns its number."""
        self.reader += 1
        self.exchange.wake()
        return self.reader

    def after(self, number: int) -> list[bytes]:
        """The events with greater numbers."""
        self._collect()
        return self._events[max(0, number - self._dropped) :]

    @property
    def last(self) -> int:
        """Number of the newest event."""
        return self._dropped + len(self._events)

    def _collect(self) -> None:
        exchange = self.exchange
        while exchange.messages:
            self._add(exchange.messages.popleft())
        if exchange.answer is not None and not self.complete:
            self.complete = True
            if not exchange.cancelled:
                self._add(answer_bytes(exchange.request_id, exchange.answer))

    def _add(self, message: bytes) -> None:
        retry = b"" if self.last else RETRY
        self._events.append(b"id: %b/%d\n%b%b" % (self._key, self.last + 1, retry, sse_event(message)))
        if len(self._events) > MAX_EVENTS:
            del self._events[0]
            self._dropped += 1


class ReplayStreams:
    """The streams of one session. Engine loop only."""

    def __init__(self) -> None:
        self._streams: OrderedDict[str, ReplayStream] = OrderedDict()
        self._next = 0

    def open(self, exchange: Exchange) -> ReplayStream:
        """A stream for an exchange."""
        self._next += 1
        key = str(self._next)
        stream = self._streams[key] = ReplayStream(key, exchange)
        finished = [name for name, other in self._streams.items() if other.exchange.done]
        for name in finished[: max(0, len(self._streams) - MAX_STREAMS)]:
            del self._streams[name]
        return stream

    def find(self, event_id: str) -> tuple[ReplayStream, int] | None:
        """The stream that an event's id belongs to, and the event's number."""
        key, _, number = event_id.partition("/")
        stream = self._streams.get(key)
        return (stream, int(number)) if stream is not None and number.isdecimal() else None

"""What the rest of the engine knows of a connection to a server, whatever its transport and era."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch

Params = dict[str, msgspec.Raw]
"""The members of a message's ``params``, each still raw JSON."""


@dataclass(frozen=True)
class ServerInfo:
    """What a server said of itself in the handshake (or in ``server/discover``)."""

    protocol: str  # negotiated revision, e.g. "2025-11-25"
    modern: bool  # True from revision 2026-07-28 on: no handshake, no session
    name: str = ""
    version: str = ""
    instructions: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)  # the whole serverInfo


@dataclass(frozen=True)
class Closed:
    """Why a connection ended. For child processes exactly one of ``code`` and ``signal`` is set."""

    reason: str  # one sentence
    code: int | None = None
    signal: str | None = None
    error: str = ""  # the code of what ended it, where something other than its end is known


class Answer(msgspec.Struct):
    """A JSON-RPC answer: exactly one of ``result`` and ``error`` is set, both raw JSON."""

    result: bytes | msgspec.Raw | None = None
    error: bytes | msgspec.Raw | None = None


class Listener(Protocol):
    """Who made a request upstream and hears what the server says on the way to its answer.

    Called on the engine's loop, synchronously; must not raise. Exactly one of :meth:`on_answer` and :meth:`on_gone`
    is called, once, unless the request was cancelled first.
    """

    wants_progress: bool  # the request is sent with a progress token of ours

    def on_answer(self, answer: Answer) -> None:
        """The answer to the request."""

    def on_gone(self, error: CallboardError) -> None:
        """The connection ended, or the request could not be delivered."""

    def on_progress(self, params: Params) -> None:
        """A progress notification for this request; ``progressToken`` in it is ours."""

    def on_notification(self, method: str, params: Params) -> None:
        """Any other notification that the server sent as part of this request (a log message)."""

    async def on_request(self, method: str, params: Params) -> Answer:
        """A request of the server that belongs to this one (sampling, elicitation, roots)."""


class Peer(Protocol):
    """Who hears what a server says outside any request. Called on the engine's loop, must not raise."""

    def on_server_notification(self, method: str, params: Params) -> None:
        """A notification that belongs to no request in flight (list_changed, resources/updated, a log message)."""

    def on_server_request(self, method: str, params: Params) -> Coroutine[Any, Any, Answer]:
        """A request that belongs to no request of ours. Called when it comes; what it returns is awaited later."""

    def on_renewed(self) -> None:
        """A session that had expired was begun anew: what the old one had been told and asked is forgotten."""

    def on_noise(self, line: bytes) -> None:
        """Output on stdout that is not protocol."""


class Request(Protocol):
    """A request in flight upstream."""

    def cancel(self, reason: str) -> None:
        """Tell the server (notifications/cancelled, or a closed stream) and forget it; a late answer is dropped."""


class Upstream(Protocol):
    """A connection to one server. Made unconnected; owned by the supervisor, used by the relay.

    All methods run on the engine's loop.
    """

    info: ServerInfo  # valid once open() has returned
    pid: int | None
    closed: "asyncio.Future[Closed]"  # resolved when the connection has ended, whoever ended it; never an exception

    last_heard: float  # when the server last said anything, of the monotonic clock
    given_up: float | None  # when a call was cancelled or timed out since the server's last answer; None if none was

    @property
    def pending(self) -> Mapping[int, object]:
        """Requests in flight."""

    @property
    def busy(self) -> bool:
        """Whether requests are in flight, streams of notifications aside."""

    async def ping(self, *, seconds: float = 10.0) -> None:
        """Ask for a sign of life; any answer is one, an error too.

        Raises ``call-timeout``, ``upstream-gone`` or, for a remote server, ``remote-…``.
        """

    async def open(self, launch: Launch) -> None:
        """Connect and shake hands.

        Raises CallboardError: ``command-not-found``, ``exited-early``, ``handshake-failed``, ``remote-…``. After
        a failure or a cancellation (the start's time limit) nothing is left behind once :meth:`close` was called.
        """

    def send(self, method: str, params: Params, listener: Listener) -> Request:
        """Send a request; what becomes of it is told to ``listener``. There is no time limit here."""

    async def request(self, method: str, params: Params | None = None, *, seconds: float = 30.0) -> Answer:
        """Send a request of our own and wait for its answer; raises ``call-timeout`` or ``upstream-gone``."""

    def notify(self, method: str, params: Params) -> None:
        """Send a notification; silently dropped when the connection has ended."""

    async def close(self) -> None:
        """End the connection and the process behind it, within stated times. Safe to call twice."""

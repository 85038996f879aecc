"""What the rest of the engine knows of a connection to a server, whatever its transport and era."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from callboard.core.launch import Launch


@dataclass(frozen=True)
class ServerInfo:
    """What a server said of itself in the handshake (or in ``server/discover``)."""

    protocol: str  # negotiated revision, e.g. "2025-11-25"
    modern: bool  # True from revision 2026-07-28 on: no handshake, no session
    name: str = ""
    version: str = ""
    instructions: str = ""
    capabilities: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Closed:
    """Why a connection ended. For child processes exactly one of ``code`` and ``signal`` is set."""

    reason: str  # one sentence
    code: int | None = None
    signal: str | None = None


class Listener(Protocol):
    """Who made a request upstream and hears what the server says on the way to its answer.

    Called on the engine's loop, synchronously, and must not raise.
    """

    def on_progress(self, params: dict[str, msgspec.Raw]) -> None:
        """A progress notification for this request, with the upstream's token still in it."""

    def on_notification(self, method: str, params: bytes) -> None:
        """Any other notification that the server sent as part of this request (a log message)."""

    async def on_request(self, method: str, params: bytes) -> "Answer":
        """A request of the server that belongs to this one (sampling, elicitation, roots)."""


@dataclass(slots=True)
class Answer:
    """A JSON-RPC answer: exactly one of ``result`` and ``error`` is set, both raw JSON."""

    result: bytes | memoryview | msgspec.Raw | None = None
    error: bytes | memoryview | msgspec.Raw | None = None


class Peer(Protocol):
    """Who hears what a server says outside any request. Called on the engine's loop, must not raise."""

    def on_server_notification(self, method: str, params: bytes) -> None:
        """A notification that belongs to no request in flight (list_changed, resources/updated)."""

    async def on_server_request(self, method: str, params: bytes) -> Answer:
        """A request that belongs to no request of ours."""

    def on_noise(self, line: bytes) -> None:
        """Output on stdout that is not protocol."""


class Upstream(Protocol):
    """A connection to one server. Made stopped; owned by the supervisor, used by the relay.

    All methods run on the engine's loop.
    """

    info: ServerInfo  # valid once open() has returned
    pid: int | None
    closed: asyncio.Future[Closed]  # resolved when the connection has ended, whoever ended it; never an exception

    async def open(self, launch: Launch) -> None:
        """Connect and shake hands.

        Raises CallboardError: ``command-not-found``, ``exited-early``, ``handshake-failed``, ``remote-…``. Cancelling
        it (the start's time limit) leaves nothing behind once :meth:`close` was called.
        """

    async def request(self, method: str, params: bytes | msgspec.Raw, listener: Listener | None = None) -> Answer:
        """Send a request and wait for its answer, without a time limit.

        Cancelling tells the server (notifications/cancelled) and drops a late answer. Raises ``upstream-gone`` when
        the connection ends first.
        """

    def notify(self, method: str, params: bytes | msgspec.Raw) -> None:
        """Send a notification; silently dropped when the connection has ended."""

    async def close(self) -> None:
        """End the connection and the process behind it, within stated times. Safe to call twice."""

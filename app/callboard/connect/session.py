"""A legacy client's session with the gateway: kept, listened to, and opened anew without the client noticing."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Protocol

import msgspec

from callboard.connect.message import Message, answered
from callboard.core.errors import CallboardError

_FIRST_PAUSE: Final = 0.25  # seconds between two attempts to listen; doubled up to the last one
_LAST_PAUSE: Final = 10.0


class Carrier(Protocol):
    """What the session needs of the bridge."""

    def exchange(self, message: Message, *, renewing: bool = False) -> AsyncIterator[bytes]:
        """Send a message, perhaps as part of the session's renewal; the messages that come of it."""

    def listen(self, last_event: str) -> AsyncIterator[tuple[bytes, str]]:
        """The server's own messages, with their events' ids."""

    async def tell_client(self, message: bytes) -> None:
        """Hand a message to the client."""

    async def end_session(self) -> None:
        """Tell the gateway that the session is over."""


class _Result(msgspec.Struct):
    protocolVersion: str = ""


class _Initialized(msgspec.Struct):
    result: _Result = msgspec.field(default_factory=_Result)


class Session:
    """The session of the one legacy client; without effect while the client speaks the modern era."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self.token = ""  # Mcp-Session-Id
        self._version = ""
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._kept: dict[str, Message] = {}  # what the client has set in the session: log level, subscriptions
        self._renewal = asyncio.Lock()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Headers of a message inside the session."""
        headers = {"mcp-session-id": self.token} if self.token else {}
        return headers | ({"mcp-protocol-version": self._version} if self._version else {})

    async def settled(self) -> str:
        """The session's id, once it is not just being opened anew."""
        async with self._renewal:
            return self.token

    def note(self, message: Message, headers: Mapping[str, str]) -> None:
        """The gateway has taken ``message``; its answer begins with ``headers``."""
        if message.method == "initialize":
            if message is not self._initialize:
                self._kept.clear()
            self._initialize = message
            self.token = headers.get("mcp-session-id", "")
        elif message.method == "logging/setLevel":
            self._kept["level"] = message
        elif message.method == "resources/subscribe":
            self._kept[f"uri {message.uri}"] = message
        elif message.method == "resources/unsubscribe":
            self._kept.pop(f"uri {message.uri}", None)

    def learn(self, message: Message, body: bytes) -> None:
        """Take the negotiated version out of initialize's answer."""
        if message.method == "initialize" and answered(body):
            with contextlib.suppress(msgspec.DecodeError):
                self._version = msgspec.json.decode(body, type=_Initialized).result.protocolVersion

    def begin(self, initialized: Message) -> None:
        """The handshake is complete: from now on the server's own messages are listened to."""
        if self.token:
            self._initialized = initialized
            self._listen()

    async def renew(self, lost: str) -> None:
        """Open a session anew after the gateway has forgotten the one called ``lost``; raises CallboardError."""
        async with self._renewal:
            if self.token != lost or self._initialize is None:
                return
            try:
                for message in (self._initialize, self._initialized, *list(self._kept.values())):
                    if message is not None:
                        await self._repeat(message)
            except BaseException:
                self.token = lost  # so that the next message tries again
                raise
            if self._initialized is not None:
                self._listen()

    async def close(self) -> None:
        """Stop listening and end the session."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        if self.token:
            await self._carrier.end_session()

    async def _repeat(self, message: Message) -> None:
        """Send once more what the client has sent; the client has had its answer."""
        async for _ in self._carrier.exchange(message, renewing=True):
            pass

    def _listen(self) -> None:
        self._changed.set()
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._hear(), name="listen to the server")

    async def _hear(self) -> None:
        pause = _FIRST_PAUSE
        last_event = ""
        while True:
            token = await self.settled()
            self._changed.clear()
            try:
                async for message, event_id in self._carrier.listen(last_event):
                    pause, last_event = _FIRST_PAUSE, event_id
                    if message:
                        await self._carrier.tell_client(message)
            except CallboardError as error:
                status: Any = error.data.get("status")
                if status == 405:
                    return  # this server has nothing to say of its own accord
                if status == 404:
                    last_event = ""
                    with contextlib.suppress(CallboardError):
                        await self.renew(token)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._changed.wait()
            pause = min(pause * 2, _LAST_PAUSE)

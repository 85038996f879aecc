"""Servers that give each client, or each session, a process of its own (roster: ``sharing``).

Such a process is initialised with what its one client can do, roots included. It starts with the first request and
ends with the session, or after ten minutes without use; the shared process beside it only tells what there is.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from callboard.core.errors import CallboardError
from callboard.core.protocol import CLIENT_CAPABILITY, INTERNAL_ERROR, METHOD_NOT_FOUND
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.link import Hub, ServerLink, refusal
from callboard.engine.relay.sessions import Session
from callboard.engine.tasks import cancel_and_wait, spawn
from callboard.engine.upstream.base import Answer, Params, Upstream

log = logging.getLogger(__name__)

IDLE_SECONDS: Final = 600.0
SWEEP_SECONDS: Final = 30.0


class PrivateServers(Protocol):
    """What is needed of whoever runs the servers."""

    async def open_private(self, name: str, key: str) -> Upstream:
        """The connection of a server under a key, made if there is none; raises CallboardError."""

    async def close_private(self, name: str, key: str) -> None:
        """End it."""


class PrivateLink(ServerLink):
    """A server's link for one client alone. Engine loop only; owned by :class:`PrivateLinks`."""

    def __init__(self, name: str, hub: Hub, key: str, session: Session | None, capabilities: dict[str, Any]) -> None:
        """``session`` is the one that it ends with, None if it belongs to a client without one."""
        super().__init__(name, hub)
        self.key = key
        self.session = session
        self.capabilities = capabilities
        self.last_used = time.monotonic()

    def on_server_request(self, method: str, params: Params) -> Coroutine[Any, Any, Answer]:
        """See Peer. There is only one client: it can be asked at any time, if it has a stream for that."""
        if method not in CLIENT_CAPABILITY:
            return refusal(METHOD_NOT_FOUND, f"{method} is not available")
        newest = max(self.in_flight, key=lambda exchange: exchange.started, default=None)
        if newest is not None:
            return newest.on_request(method, params, guessed=True)
        if self.session is not None:
            return self.session.ask_outside(method, params)
        return refusal(INTERNAL_ERROR, f"{method} cannot be answered: no call is in flight")


def _client_key(exchange: Exchange) -> str:
    return f"client {exchange.caller.client} {exchange.client}"


class PrivateLinks:
    """All private links. Owned by the relay; engine loop only."""

    def __init__(self, hub: Hub, servers: PrivateServers) -> None:
        self._hub = hub
        self._servers = servers
        self._links: dict[tuple[str, str], PrivateLink] = {}
        self._opening: dict[PrivateLink, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def find(self, server: str, key: str) -> PrivateLink | None:
        """The link under a key."""
        return self._links.get((server, key))

    def of(self, server: str) -> list[PrivateLink]:
        """All of a server's."""
        return [link for (name, _), link in self._links.items() if name == server]

    def link(self, server: str, sharing: str, exchange: Exchange, session: Session | None) -> PrivateLink:
        """The link for a request's client, made if there is none."""
        if sharing == "per-session" and session is not None:
            key, owner = f"session {session.id}", session
        else:
            key, owner = _client_key(exchange), None
        link = self._links.get((server, key))
        if link is None:
            offered = exchange.asker.capabilities if exchange.asker is not None else {}
            known = {name: value for name, value in offered.items() if name in CLIENT_CAPABILITY.values()}
            link = self._links[server, key] = PrivateLink(server, self._hub, key, owner, known)
            self._arm()
        link.last_used = time.monotonic()
        return link

    def wake(self, link: PrivateLink) -> None:
        """Connect a link because something is to be heard from it, not asked."""
        if link.upstream is None:
            spawn(self._wake(link), name=f"wake a private {link.name}")

    async def _wake(self, link: PrivateLink) -> None:
        try:
            await self._connect(link)
        except CallboardError as error:
            log.info("a private %s did not start: %s", link.name, error.message)

    def submit(self, link: PrivateLink, exchange: Exchange, send: Callable[[], None]) -> None:
        """Send a request once the link is connected."""
        if link.upstream is not None:
            link.submit(exchange, send)
        else:
            spawn(self._submit_later(link, exchange, send), name=f"wait for {link.name}")

    async def _submit_later(self, link: PrivateLink, exchange: Exchange, send: Callable[[], None]) -> None:
        try:
            await self._connect(link)
        except CallboardError as error:
            exchange.fail(error)
            return
        if not exchange.done:
            link.submit(exchange, send)

    async def _connect(self, link: PrivateLink) -> None:
        task = self._opening.get(link)
        if task is None:
            task = self._opening[link] = asyncio.get_running_loop().create_task(self._open(link))
            task.add_done_callback(lambda _: self._opening.pop(link, None))
        await asyncio.wait([task])
        if task.cancelled():
            raise CallboardError("server-not-ready", f"{link.name} was stopped while it started.")
        if error := task.exception():
            raise error

    async def _open(self, link: PrivateLink) -> None:
        upstream = await self._servers.open_private(link.name, link.key)
        link.connected(upstream)
        upstream.closed.add_done_callback(lambda _: link.disconnected())

    def notify(self, session: Session, method: str, params: Params) -> None:
        """Hand a notification of a client to the processes that are its own."""
        for link in self._links.values():
            if link.session is session and link.upstream is not None:
                link.upstream.notify(method, params)

    def session_closed(self, session: Session) -> None:
        """What belonged to a session ends with it."""
        for link in [link for link in self._links.values() if link.session is session]:
            self._drop(link)

    def forget(self, servers: set[str]) -> None:
        """These servers are gone, or share their processes now."""
        for link in [link for link in self._links.values() if link.name in servers]:
            self._drop(link)

    async def close(self) -> None:
        """Stop opening; the processes themselves end with the supervisor."""
        if self._timer is not None:
            self._timer.cancel()
        await cancel_and_wait(*self._opening.values())

    def _drop(self, link: PrivateLink) -> None:
        del self._links[link.name, link.key]
        spawn(self._servers.close_private(link.name, link.key), name=f"end a private {link.name}")

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        limit = time.monotonic() - IDLE_SECONDS
        for link in list(self._links.values()):
            if link.session is None and not link.in_flight and link.last_used < limit:
                self._drop(link)
        if self._links:
            self._arm()

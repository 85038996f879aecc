"""Tells clients that lists have changed: those that may see what changed, once for many changes."""

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import BY_NOTIFICATION, RESOURCES, TEMPLATES, Kind
from callboard.engine.relay.sessions import Session

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

NOTICE_DELAY = 0.05  # changes within this many seconds become one notification


class Notices:
    """Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay
        self._waiting: dict[tuple[str, str], None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, server: str, kind: Kind) -> None:
        """A list of a server changed; "" stands for the roster itself. Clients are told soon."""
        kind = RESOURCES if kind is TEMPLATES else kind
        self._waiting[server, kind.changed] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(NOTICE_DELAY, self.send)

    def send(self) -> None:
        """Tell now what waits to be told."""
        self.close()
        waiting, self._waiting = self._waiting, {}
        for method in dict.fromkeys(method for _, method in waiting):
            servers = {server for server, changed in waiting if changed == method}
            for session in self._relay.sessions:
                concerned = session.scope in servers if session.scope else concerns(servers, session.caller)
                if concerned and self._is_news(session, method):
                    session.tell(method, {})
            self._relay.listeners.list_changed(method, servers)

    def policy_changed(self, callers: Collection[Caller]) -> None:
        """These callers may use other things now: tell each whose lists are others by that."""
        for session in self._relay.sessions:
            if session.caller in callers:
                for method in BY_NOTIFICATION:
                    if self._is_news(session, method):
                        session.tell(method, {})
        self._relay.listeners.policy_changed(callers)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_news(self, session: Session, method: str) -> bool:
        """False for a client that was served the lists as they are now, after they had changed."""
        view = self._relay.lists(session.scope, session.caller)
        return any(session.served.get(kind.name) != hash(view.list_bytes(kind)) for kind in BY_NOTIFICATION[method])


def concerns(servers: Collection[str], caller: Caller) -> bool:
    """Whether a caller may use one of these servers; "" is the roster itself, which concerns everybody."""
    return any(not server or caller.may_use(server) for server in servers)

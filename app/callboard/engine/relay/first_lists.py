"""Waits for the lists of servers of which nothing is known yet, so that no client is told that there is nothing."""

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from callboard.core.errors import CallboardError

if TYPE_CHECKING:
    from callboard.engine.relay.relay import Relay

READ_SECONDS: Final = 3.0  # for which a request waits for lists that are being read for the first time


class FirstLists:
    """Owned by the relay; engine loop only."""

    def __init__(self, relay: "Relay") -> None:
        self._relay = relay

    def missing(self, scope: str) -> list[str]:
        """The servers of a scope of which nothing is known yet, though it is on its way.

        On the aggregate only those that are connected and being read, so that one that is slow to start delays nobody.
        """
        links, catalogue = self._relay.links, self._relay.catalogue
        if scope:
            return [] if catalogue.known(scope) or scope not in links else [scope]
        return [name for name in links if catalogue.is_reading(name) and not catalogue.known(name)]

    async def read(self, scope: str) -> None:
        """Return once nothing of a scope is missing, or after some seconds. Starts the server of an endpoint."""
        with contextlib.suppress(TimeoutError, CallboardError):
            async with asyncio.timeout(READ_SECONDS):
                if scope:
                    await self._relay.servers.upstream(scope)
                for name in self.missing(scope):
                    await self._relay.catalogue.settled(name)

    async def settled(self, server: str, seconds: float | None = None) -> None:
        """Return once a first reading of its lists, if one runs, has ended, or after some seconds. Starts nothing."""
        catalogue = self._relay.catalogue
        if catalogue.is_reading(server) and not catalogue.known(server):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(READ_SECONDS if seconds is None else seconds):
                    await catalogue.settled(server)

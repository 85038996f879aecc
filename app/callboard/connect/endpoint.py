"""Where the gateway is. Starts the engine if none runs, and looks again when it has gone."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import quote

from callboard.api.client import EngineClient
from callboard.core.errors import CallboardError
from callboard.system.engine_child import EngineChild, describe_exit
from callboard.system.engine_file import EngineAddress, read_engine_file
from callboard.system.paths import Paths

START_SECONDS: Final = 30.0
_POLL: Final = 0.1
_STARTS: Final = 3  # an engine that ends at once may have given way to one that was started at the same moment
_GONE: Final = {"engine-unreachable", "engine-not-running", "unauthorized"}


@dataclass(frozen=True)
class Place:
    """An MCP endpoint and the token that opens it."""

    url: str
    token: str = field(repr=False)


class Endpoint(Protocol):
    """Knows the endpoint of the moment. Used on one loop."""

    encrypted: bool  # whether certificates must be checked

    async def ready(self) -> Place:
        """The endpoint, started if need be; raises CallboardError when that fails."""

    async def look(self) -> Place | None:
        """The endpoint if it is there now; starts nothing."""

    def lost(self, place: Place) -> None:
        """``place`` does not answer, or not to its token: look for it anew."""


class FixedEndpoint:
    """An endpoint given by its address."""

    def __init__(self, url: str, token: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise CallboardError("bad-request", f"{url} is not an address of HTTP.", fix="Give --url http://…")
        self._place = Place(url, token)
        self.encrypted = url.startswith("https://")

    async def ready(self) -> Place:
        """The address as given."""
        return self._place

    async def look(self) -> Place | None:
        """The address as given."""
        return self._place

    def lost(self, place: Place) -> None:
        """Nothing can be looked for."""


class LocalEndpoint:
    """The gateway of this person's own engine."""

    encrypted = False

    def __init__(self, paths: Paths, client: str, server: str) -> None:
        """``client`` is whose token is used; ``server`` the one server that is wanted, or empty."""
        self._paths = paths
        self._client = client
        self._path = f"/servers/{quote(server, safe='')}/mcp" if server else "/mcp"
        self._place: Place | None = None
        self._lock = asyncio.Lock()
        self._child = EngineChild(paths)

    async def ready(self) -> Place:
        """The endpoint; starts the engine, and waits at most :data:`START_SECONDS`."""
        async with self._lock:
            if self._place is None:
                self._place = await self._find_or_start()
            return self._place

    async def look(self) -> Place | None:
        """The endpoint if an engine runs."""
        async with self._lock:
            if self._place is None:
                address = read_engine_file(self._paths.engine_file)
                self._place = await self._ask(address) if address is not None else None
            return self._place

    def lost(self, place: Place) -> None:
        """Look for the engine anew, unless that has been done since."""
        if self._place is place:
            self._place = None

    async def _find_or_start(self) -> Place:
        deadline = time.monotonic() + START_SECONDS
        starts = 0
        while True:
            address = read_engine_file(self._paths.engine_file)
            place = await self._ask(address) if address is not None else None
            if place is not None:
                return place
            code = self._child.take_exit()
            if code is not None and starts == _STARTS:
                raise self._start_failed(code)
            if not await asyncio.to_thread(self._child.is_alive):
                await asyncio.to_thread(self._start)
                starts += 1
            if time.monotonic() > deadline:
                message = f"The engine was not ready within {START_SECONDS:g} seconds."
                raise CallboardError("engine-unreachable", message)
            await asyncio.sleep(_POLL if starts <= 1 else 1.0)

    def _start(self) -> None:
        try:
            self._child.start()
        except OSError as error:
            raise CallboardError("engine-not-running", f"The engine could not be started: {error}.") from error

    def _start_failed(self, code: int) -> CallboardError:
        words = self._child.last_words().rstrip(".")
        message = f"The engine ended with {describe_exit(code)}" + (f": {words}." if words else ".")
        return CallboardError("engine-not-running", message)

    async def _ask(self, address: EngineAddress) -> Place | None:
        """The endpoint of an engine, None if that engine does not answer any more."""
        try:
            async with EngineClient(address, timeout=5.0) as engine:
                return Place(address.url + self._path, await engine.token(self._client))
        except CallboardError as error:
            if error.code in _GONE:
                return None
            raise

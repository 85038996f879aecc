"""A database of its own for each test, behind a wire that the test can cut, and call logs in it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callboard.api.schema import CallView
from callboard.engine.calls.log import CallLog
from callboard.engine.calls.record import Limits
from callboard.engine.storage.shared import SharedStorage
from tests.support.balancer import Balancer
from tests.support.postgresql import OWNER, PostgresServer


@pytest.fixture
def database(postgresql: PostgresServer) -> str:
    """The name of an empty database."""
    return postgresql.make_database()


@pytest.fixture
async def wire(postgresql: PostgresServer) -> AsyncIterator[Balancer]:
    """The way to the database's server."""
    async with Balancer(postgresql.socket) as balancer:
        yield balancer


@pytest.fixture
def address(wire: Balancer, database: str) -> str:
    """The database's address."""
    return f"postgresql://{OWNER}:hunter2@127.0.0.1:{wire.port}/{database}"


class SharingEngine:
    """What one engine has of the shared storage: a call log, and values."""

    def __init__(self, folder: Path, address: str, name: str, limits: Limits) -> None:
        self.views: list[CallView] = []
        self.others: list[CallView] = []  # what it heard of other engines
        self.is_read = False
        self.limits = limits
        self.log = CallLog(folder / "unused", lambda data: data, limits, self.views.extend)
        self.storage = SharedStorage(address, name, self.log.notices_changed)
        self.storage.follow_calls(self.others.extend, lambda: self.is_read)

    async def start(self) -> None:
        """As the engine does."""
        await self.storage.start()
        await self.log.open(self.storage.call_place)

    async def close(self) -> None:
        """As the engine does."""
        await self.log.close()
        await self.storage.close()

    def call(self, tool: str = "echo", result: bytes | None = b"{}", **fields: str) -> int:
        """A call that begins and, unless ``result`` is None, ends; its number here."""
        record = self.log.begin(fields.get("client", "vscode"), "files", "tools/call", tool, b'{"a": 1}')
        if result is not None:
            self.log.end(record, "completed", result)
        return record.id


MakeEngine = Callable[..., Awaitable[SharingEngine]]


@pytest.fixture
async def engine(tmp_path: Path, address: str) -> AsyncIterator[MakeEngine]:
    """Starts engines by name on the same database; ended with the test."""
    made: list[SharingEngine] = []

    async def make(name: str = "one", **limits: Any) -> SharingEngine:
        found = SharingEngine(tmp_path, address, name, replace(Limits(interval=0.01), **limits))
        made.append(found)
        await found.start()
        return found

    yield make
    for each in made:
        await each.close()

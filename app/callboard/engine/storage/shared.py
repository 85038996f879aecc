"""What an engine shares with others, as its loop sees it: the call log's place, and values that all agree on."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from callboard.api.schema import CallView, Check
from callboard.core.errors import CallboardError
from callboard.engine import tasks
from callboard.engine.calls.record import Limits
from callboard.engine.storage.agreement import Edit, Hear
from callboard.engine.storage.calls import DatabaseCalls
from callboard.engine.storage.database import Database, DatabaseAwayError, DatabaseSlowError
from callboard.engine.storage.others import OtherCalls
from callboard.engine.storage.questions import DatabaseReader
from callboard.engine.storage.values import DatabaseValues, Value
from callboard.engine.worker import Worker

log = logging.getLogger(__name__)

SYNC_SECONDS: Final = 2.0  # after which a change made by one engine is in force at the others
CLOSE_SECONDS: Final = 2.0  # to wait for what is being asked of the database


class SharedStorage:
    """See Agreement. Belongs to the engine's loop; the database is used in threads alone.

    A value that was :meth:`follow`-ed is told whenever it changed, by whichever engine, within :data:`SYNC_SECONDS`
    where the database can be reached. What was told last stays in force while it is away.
    """

    def __init__(self, address: str, name: str, on_change: Callable[[], None]) -> None:
        """``on_change`` hears, in any thread, when the database is away and when it is back. Raises
        ``storage-invalid``.
        """
        self.address = address
        self.database = Database(address, name, on_change)
        self.call_place = (DatabaseCalls(self.database, Limits()), DatabaseReader(self.database))
        self._values = DatabaseValues(self.database)
        self._known: dict[str, Value] = {}
        self._first: dict[str, bytes] = {}
        self._hear: dict[str, Hear] = {}
        self._others = OtherCalls(self.database)
        self._on_others: Callable[[list[CallView]], None] = lambda calls: None
        self._is_wanted: Callable[[], bool] = lambda: False
        self._worker = Worker("callboard-storage")
        self._syncing: asyncio.Task[None] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the database was reached since the engine started."""
        return bool(self._known) or not self._hear

    def follow(self, name: str, first: bytes, hear: Hear) -> None:
        """See Agreement; before :meth:`start`."""
        self._first[name] = first
        self._hear[name] = hear

    def follow_calls(self, hear: Callable[[list[CallView]], None], is_wanted: Callable[[], bool]) -> None:
        """Tell ``hear`` the calls of other engines every other second, while ``is_wanted``."""
        self._on_others = hear
        self._is_wanted = is_wanted

    async def start(self) -> None:
        """Ask for the values once, which takes some seconds at most, and from then on every other second."""
        await self._sync()
        self._syncing = tasks.spawn(self._keep_in_step(), name="keep in step with other engines")

    async def change(self, name: str, edit: Edit) -> None:
        """See Agreement."""
        try:
            value = await self._worker.run(lambda: self._values.change(name, edit))
        except (DatabaseAwayError, DatabaseSlowError) as error:
            message = f"The database {self.database.shown} cannot be reached ({error})."
            raise CallboardError("storage-away", message) from error
        if value is not None:
            self._take(name, value)

    async def checks(self) -> list[Check]:
        """What doctor says of it while all is well; what is not is a notice of the call log."""
        try:
            engines = await self._worker.run(self._values.engines)
        except (DatabaseAwayError, DatabaseSlowError):
            return []
        database = self.database
        message = f"The database {database.shown} is shared by {', '.join(engines)}; this engine is {database.name}."
        return [Check(name="storage", status="ok", message=message)]

    async def close(self) -> None:
        """End the keeping in step. The call log has been closed before."""
        if self._syncing is not None:
            await tasks.cancel_and_wait(self._syncing)
        await asyncio.to_thread(self._worker.close, CLOSE_SECONDS)
        self.database.close()

    async def _keep_in_step(self) -> None:
        while True:
            await asyncio.sleep(max(SYNC_SECONDS, self.database.retry_in()))
            try:
                await self._sync()
            except Exception:
                log.exception("not in step with other engines")

    async def _sync(self) -> None:
        wanted = self._is_wanted()
        try:
            values = await self._worker.run(self._read)
            calls = await self._worker.run(self._others.read) if wanted else []
        except (DatabaseAwayError, DatabaseSlowError) as error:
            log.debug("not in step with other engines: %s", error)
            return
        for name, value in values.items():
            self._take(name, value)
        if not wanted:
            self._others.forget()
        elif calls:
            self._on_others(calls)

    def _read(self) -> dict[str, Value]:
        values = self._values.read()
        for name, first in self._first.items():
            if name not in values:
                made = self._values.change(name, partial(_if_none, first))
                if made is not None:
                    values[name] = made
        return values

    def _take(self, name: str, value: Value) -> None:
        if self._known.get(name) != value:
            self._known[name] = value
            if name in self._hear:
                self._hear[name](value.data)


def _if_none(first: bytes, before: bytes | None) -> bytes | None:
    return first if before is None else None

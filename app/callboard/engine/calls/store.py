"""Where calls are kept: a file if it can be had, else the last ones in memory until it can."""

import logging
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from callboard.api.schema import Notice
from callboard.core.errors import FIXES
from callboard.engine.calls import table
from callboard.engine.calls.record import MIB, Limits, Row

log = logging.getLogger(__name__)

_BROKEN: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_CHUNK: Final = 5000  # calls deleted in one transaction, so that new ones never wait long
_VACUUM: Final = 4 * MIB  # given back together, so that new calls never wait long
_ROW_BYTES: Final = 150  # of a call without its payloads
_AGE_INTERVAL: Final = 600.0


@dataclass(frozen=True, eq=False)
class Place:
    """Where a reader finds the calls: the file, or the connection in memory with the lock that guards it."""

    path: Path | None
    memory: sqlite3.Connection | None
    lock: threading.Lock


class Store:
    """The kept calls. Opened, written and closed by one thread; ``place`` and ``notices`` may be read by others.

    Nothing here raises for a disk that is full, locked or damaged: the calls go to memory, one warning is logged,
    ``notices`` says so, and the file is tried again every ``limits.retry`` seconds.
    """

    def __init__(self, path: Path, limits: Limits, on_notices: Callable[[], None]) -> None:
        self.place = Place(None, None, threading.Lock())
        self.last_id = 0
        self.notices: dict[str, Notice] = {}
        self._path = path
        self.limits = limits
        self._on_notices = on_notices
        self._connection: sqlite3.Connection | None = None
        self._retry_at = 0.0
        self._next_age_check = 0.0
        self._unseen = math.inf  # bytes, about, that were written since the file's size was looked at
        self._seen_with = limits  # that were in force then
        self._trimming = False
        self._trimmed_to = 0
        self._logged: set[str] = set()

    def open(self) -> None:
        """Open the file, put a damaged one aside, mark calls of an earlier engine as ended."""
        try:
            self._use_file(self._open_file())
        except (sqlite3.Error, OSError) as error:
            self._use_memory(error)

    @property
    def engine(self) -> str:
        """No other engine's calls are here."""
        return ""

    @property
    def is_awaited(self) -> bool:
        """No call waits for the disk."""
        return False

    def write(self, rows: list[Row]) -> list[Row]:
        """Keep calls, or the outcome of calls that are kept already."""
        if self._trimmed_to:
            rows = [row for row in rows if row.id >= self._trimmed_to]
        self._unseen += table.payload_bytes(rows) + sum([_ROW_BYTES + len(row.tool) + len(row.error) for row in rows])
        if self._in_memory and time.monotonic() >= self._retry_at:
            self._return_to_file()
        try:
            self._upsert(rows)
        except sqlite3.Error as error:
            self._recover(error)
            self._upsert(rows)
        return rows

    def idle(self) -> float | None:
        """Nothing is to be done while no calls come."""
        return None

    def trim(self) -> bool:
        """Delete a few of the calls that are too many or too old; true if there is more to do at once."""
        connection = self._connected
        if self._in_memory:
            with self.place.lock:
                connection.execute(
                    "DELETE FROM calls WHERE id <= (SELECT max(id) FROM calls) - ?", (self.limits.memory_calls,)
                )
            return False
        try:
            return self._trim_size(connection) or self._trim_age(connection)
        except sqlite3.Error as error:
            self._recover(error)
            return False

    def close(self) -> None:
        """Mark calls still running as ended, and close."""
        if self._connection is None:
            return
        if self._in_memory:
            self._return_to_file()
        try:
            with self.place.lock:
                table.end_running(self._connection)
        except sqlite3.Error as error:
            log.debug("Calls still running could not be marked: %s", error)
        with self.place.lock:
            self._connection.close()
        self._connection = None

    @property
    def _in_memory(self) -> bool:
        return self.place.memory is not None

    @property
    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            raise RuntimeError("the call log is not open")
        return self._connection

    def _upsert(self, rows: list[Row]) -> None:
        if self._in_memory:
            with self.place.lock:
                table.upsert(self._connected, rows)
        else:
            table.upsert(self._connected, rows)

    # from file to memory and back

    def _open_file(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except sqlite3.DatabaseError as error:
            if not _is_broken(error):
                raise
            self._put_aside(error)
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        connection = table.connect_file(self._path, self.limits.busy)
        try:
            # these read the ends of table and index: most damage shows here and not in the middle of a call
            table.bounds(connection)
            if self.last_id == 0:
                table.end_running(connection)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _use_file(self, connection: sqlite3.Connection) -> None:
        self.last_id = max(self.last_id, table.bounds(connection)[1])
        self._connection = connection
        self._trimmed_to = 0
        self._next_age_check = 0.0
        self.place = Place(self._path, None, threading.Lock())

    def _use_memory(self, error: Exception) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = table.connect_memory()
        self._trimmed_to = 0
        self.place = Place(None, self._connection, threading.Lock())
        self._retry_at = time.monotonic() + self.limits.retry
        self._tell(
            "call-log-unwritable", f"The call log cannot be written ({error}); the last calls are only in memory."
        )

    def _recover(self, error: sqlite3.Error) -> None:
        """After a failed write: a new file in place of a damaged one, else memory."""
        if _is_broken(error) and not self._in_memory:
            self._connected.close()
            self._connection = None
            try:
                self._put_aside(error)
                self._use_file(self._connect())
                return
            except (sqlite3.Error, OSError) as second:
                self._use_memory(second)
        else:
            self._use_memory(error)

    def _return_to_file(self) -> None:
        memory, lock = self._connected, self.place.lock
        try:
            connection = self._open_file()
        except (sqlite3.Error, OSError) as error:
            log.debug("The call log still cannot be written: %s", error)
            self._retry_at = time.monotonic() + self.limits.retry
            return
        try:
            with lock:
                table.copy_into(memory, connection)
        except sqlite3.Error as error:
            log.debug("The call log still cannot be written: %s", error)
            connection.close()
            self._retry_at = time.monotonic() + self.limits.retry
            return
        self._use_file(connection)
        with lock:
            memory.close()
        if self.notices.pop("call-log-unwritable", None):
            log.info("The call log can be written again")
            self._on_notices()

    def _put_aside(self, error: sqlite3.Error) -> None:
        aside = self._path.with_name(self._path.name + ".broken")
        self._path.replace(aside)
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._tell("call-log-broken", f"The call log could not be read ({error}); it was put aside as {aside.name}.")

    def _tell(self, code: str, message: str) -> None:
        if code not in self._logged:
            self._logged.add(code)
            log.warning("%s", message)
        self.notices = {**self.notices, code: Notice(code=code, message=message, fix=FIXES[code])}
        self._on_notices()

    # retention

    def _trim_size(self, connection: sqlite3.Connection) -> bool:
        if self._unseen < self.limits.size / 100 and self._seen_with is self.limits:
            return False
        self._seen_with = self.limits
        used, free = table.used_bytes(connection)
        bound = self.limits.size * (0.95 if self._trimming else 1.0)
        self._trimming = used > bound
        if self._trimming:
            low, high = table.bounds(connection)
            share = (used - self.limits.size * 0.95) / used
            count = min(math.ceil((high - low + 1) * share), _CHUNK)
            self._delete_before(connection, min(low + count, high))
            return high - low > 1
        if free > max(16 * MIB, used // 4):
            connection.execute(f"PRAGMA incremental_vacuum({_VACUUM // table.page_bytes(connection)})").fetchall()
            return True
        self._unseen = 0
        return False

    def _trim_age(self, connection: sqlite3.Connection) -> bool:
        if time.monotonic() < self._next_age_check:
            return False
        low, _ = table.bounds(connection)
        cut = table.first_since(connection, time.time() - self.limits.age)
        if cut > low:
            self._delete_before(connection, min(cut, low + _CHUNK))
            return True
        self._next_age_check = time.monotonic() + _AGE_INTERVAL
        return False

    def _delete_before(self, connection: sqlite3.Connection, call_id: int) -> None:
        connection.execute("DELETE FROM calls WHERE id < ?", (call_id,))
        self._unseen = math.inf  # there is room now that may be given back
        self._trimmed_to = max(self._trimmed_to, call_id)


def _is_broken(error: sqlite3.Error) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, table.NewerVersionError) or (code is not None and code & 0xFF in _BROKEN)

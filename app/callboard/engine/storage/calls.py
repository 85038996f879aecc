"""The call log's place in the shared database: rows wait in memory, bounded, until the database takes them."""

import logging
import time
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from callboard.api.schema import Notice
from callboard.core.errors import FIXES
from callboard.engine.calls.record import Limits, Row
from callboard.engine.calls.table import ENGINE_ENDED
from callboard.engine.storage.database import Database, DatabaseAwayError, DatabaseSlowError
from callboard.engine.storage.tables import CALLS, DEAD_SINCE, ENGINES, SPAN

log = logging.getLogger(__name__)

CHORE_SECONDS: Final = 10.0  # between two looks for calls of dead engines
TRIM_SECONDS: Final = 600.0
_CHUNK: Final = 1000  # calls written in one transaction
_TRIM_CHUNK: Final = 5000
_TRIM_LOCK: Final = 0x43414C4D  # of the engine that deletes old calls: one at a time


class DatabaseCalls:
    """See CallStore. Runs in the call log's thread.

    While the database is away at most ``limits.backlog_calls`` calls wait, with ``limits.backlog`` bytes of payload;
    what is more is dropped and counted. Each call stands in one row: what is written twice, because nobody knows
    whether the first time succeeded, does no harm.
    """

    def __init__(self, database: Database, limits: Limits) -> None:
        self.limits = limits
        self.last_id = 0
        self._database = database
        self._waiting: dict[int, Row] = {}  # by this engine's own ids, oldest first
        self._payload = 0  # bytes of those that wait
        self._dropped = 0
        self._next_chore = 0.0
        self._next_trim = 0.0
        self._too_many_before: float | None = None  # calls begun before this moment do not fit into the bound

    @property
    def engine(self) -> str:
        """This engine's name."""
        return self._database.name

    @property
    def is_awaited(self) -> bool:
        """An engine that is killed loses no call whose answer somebody got; a database that is away delays none."""
        return not self._database.reason

    @property
    def notices(self) -> Mapping[str, Notice]:
        """That the database is away, how many calls wait for it and how many were lost."""
        database, found = self._database, {}
        if database.reason:
            message = f"The database {database.shown} cannot be reached ({database.reason})"
            waiting = f"{message}; {len(self._waiting)} calls wait to be logged."
            found["storage-away"] = Notice(code="storage-away", message=waiting, fix=FIXES["storage-away"])
        if self._dropped:
            lost = f"{self._dropped} calls were not logged: too many waited for the database."
            found["call-log-behind"] = Notice(code="call-log-behind", message=lost, fix=FIXES["storage-away"])
        return found

    def open(self) -> None:
        """Nothing is opened before it is used."""

    def write(self, rows: list[Row]) -> list[Row]:
        """Queue calls, and write what is queued unless the database is away."""
        for row in rows:
            self._queue(row)
        self._flush()
        base = self._base
        return [] if base is None else [row._replace(id=base + row.id) for row in rows]

    def trim(self) -> bool:
        """Write what waits; mark calls of dead engines as ended; delete a few that are too many or too old."""
        try:
            return self._flush() and self._do_chores()
        except DatabaseAwayError:
            return False
        except DatabaseSlowError:
            log.info("Old calls could not be looked for: the database is slow")
            return False

    def idle(self) -> float | None:
        """Until the database is tried again, or the next chore is due."""
        retry = self._database.retry_in()
        if self._waiting or retry:
            return retry + 0.01
        return max(0.01, min(self._next_chore, self._next_trim) - time.monotonic())

    def close(self) -> None:
        """Write what is left, and mark this engine's calls that still run as ended."""
        base = self._base
        if self._flush() and base is not None:
            mine = CALLS.c.id.between(base, base + SPAN - 1)
            try:
                with self._database.begin() as connection:
                    connection.execute(_ended().where(mine))
            except (DatabaseAwayError, DatabaseSlowError) as error:
                log.debug("Calls still running could not be marked: %s", error)
        if self._waiting:
            log.warning("%d calls were not logged: the database is away", len(self._waiting))

    @property
    def _base(self) -> int | None:
        return None if self._database.number is None else self._database.number * SPAN

    # waiting and writing

    def _queue(self, row: Row) -> None:
        before = self._waiting.get(row.id)
        if before is None:
            if len(self._waiting) >= self.limits.backlog_calls:
                self._dropped += 1
                if self._dropped == 1:
                    log.warning("Too many calls wait for the database: further ones are not logged")
                return
        elif row.arguments is None:
            row = row._replace(arguments=before.arguments, arguments_cut=before.arguments_cut)
        if self._payload > self.limits.backlog:
            row = row._replace(
                arguments=row.arguments and b"",
                result=row.result and b"",
                arguments_cut=row.arguments_cut or bool(row.arguments),
                result_cut=row.result_cut or bool(row.result),
            )
        self._payload += _payload(row) - (0 if before is None else _payload(before))
        self._waiting[row.id] = row

    def _flush(self) -> bool:
        """Write what waits, oldest first; true if nothing waits any more."""
        while self._waiting:
            rows = list(islice(self._waiting.values(), _CHUNK))
            try:
                self._insert(rows)
            except sql.exc.DataError as error:
                self._insert_singly(rows, error)
            except (DatabaseAwayError, DatabaseSlowError):
                return False
        return True

    def _insert(self, rows: list[Row]) -> None:
        with self._database.begin() as connection:
            base = self._base
            assert base is not None  # it was reached
            values = [_values(row, base, self._database.name) for row in rows]
            connection.execute(_UPSERT, values)
        for row in rows:
            self._payload -= _payload(self._waiting.pop(row.id))

    def _insert_singly(self, rows: list[Row], error: Exception) -> None:
        """One of the rows is not taken: leave out that one alone."""
        log.warning("A call was not logged, because the database does not take it: %s", type(error.__cause__).__name__)
        for row in rows:
            try:
                self._insert([row])
            except sql.exc.DataError:
                self._payload -= _payload(self._waiting.pop(row.id))
                self._dropped += 1

    # chores

    def _do_chores(self) -> bool:
        now = time.monotonic()
        if now >= self._next_chore:
            self._end_calls_of_the_dead()
            self._next_chore = now + CHORE_SECONDS
        return now >= self._next_trim and self._trim(now)

    def _end_calls_of_the_dead(self) -> None:
        alive = sql.select(ENGINES.c.number).where(ENGINES.c.seen > DEAD_SINCE)
        with self._database.begin() as connection:
            number = CALLS.c.id // SPAN
            connection.execute(_ended().where(number.not_in(alive), number != self._database.number))

    def _trim(self, now: float) -> bool:
        with self._database.begin(60.0) as connection:
            mine: bool = connection.execute(sql.select(sql.func.pg_try_advisory_xact_lock(_TRIM_LOCK))).scalar_one()
            if mine:
                cut = time.time() - self.limits.age
                if self._too_many_before is None:
                    self._too_many_before = connection.execute(_newest_too_many(self.limits.size)).scalar_one() or 0.0
                old = sql.select(CALLS.c.id).where(CALLS.c.started < max(cut, self._too_many_before))
                old = old.order_by(CALLS.c.started).limit(_TRIM_CHUNK)
                if connection.execute(sql.delete(CALLS).where(CALLS.c.id.in_(old))).rowcount == _TRIM_CHUNK:
                    return True
                connection.execute(_forget_engines())
        self._too_many_before = None
        self._next_trim = now + TRIM_SECONDS
        return False


def _newest_too_many(size: int) -> sql.Select[float | None]:
    """When the newest of the calls began that do not fit into ``size`` bytes."""
    newest_first = [CALLS.c.started.desc(), CALLS.c.id.desc()]
    kept = sql.func.sum(CALLS.c.kept).over(order_by=newest_first).label("kept")
    sums = sql.select(CALLS.c.started, kept).subquery()
    return sql.select(sql.func.max(sums.c.started)).where(sums.c.kept > size)


def _forget_engines() -> sql.Delete:
    """Engines that ended days ago and have no call in the log."""
    first = ENGINES.c.number * SPAN
    calls = sql.exists().where(CALLS.c.id.between(first, first + SPAN - 1))
    long_ago = sql.func.now() - sql.cast("2 days", sql.Interval)
    return sql.delete(ENGINES).where(ENGINES.c.seen < long_ago, ~calls)


def _ended() -> sql.Update:
    running = sql.update(CALLS).where(CALLS.c.status == "running")
    return running.values(status="failed", error=ENGINE_ENDED, changed=sql.func.now())


def _upsert() -> postgresql.Insert:
    columns = [column.name for column in CALLS.columns if column.name not in ("changed", "kept")]
    insert = postgresql.insert(CALLS).values({name: sql.bindparam(name) for name in columns})
    outcome = ("status", "duration_ms", "response_bytes", "error", "result", "result_cut")
    changes: dict[str, Any] = {name: insert.excluded[name] for name in outcome}
    return insert.on_conflict_do_update(index_elements=["id"], set_={**changes, "changed": sql.func.now()})


_UPSERT: Final = _upsert()


def _values(row: Row, base: int, engine: str) -> dict[str, Any]:
    values = {name: _storable(value) for name, value in row._asdict().items()}
    return {**values, "id": base + row.id, "engine": engine}


def _storable(value: object) -> object:
    """A text as PostgreSQL takes it: without lone surrogates and NUL; payloads come as bytes."""
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    return value.decode("utf-8", "replace").replace("\0", "\ufffd") if isinstance(value, bytes) else value


def _payload(row: Row) -> int:
    return len(row.arguments or b"") + len(row.result or b"")

"""Questions to the call log in the shared database: the calls of all engines, by the time at which they began."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, Final

import psycopg
import sqlalchemy as sql

from callboard.api.schema import CallDetail, CallPage, CallView
from callboard.core.errors import CallboardError
from callboard.engine.calls.backing import Filter, QuestionInterruptedError
from callboard.engine.calls.reader import MAX_LIMIT, patterns
from callboard.engine.storage.database import Database, DatabaseAwayError, DatabaseSlowError
from callboard.engine.storage.tables import CALLS, VIEW_COLUMNS

READ_SECONDS: Final = 30.0
_ORDER: Final = (CALLS.c.started, CALLS.c.id)


class DatabaseReader:
    """See CallReader. Answers with ``storage-away`` while the database cannot be reached."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asking: psycopg.Connection[Any] | None = None
        self._interrupted = False
        self._counted = 0

    def page(self, wanted: Filter, offset: int, limit: int) -> CallPage:
        """Calls from ``offset`` on, oldest first; a negative offset means the last ``limit`` ones."""
        limit = min(max(limit, 0), MAX_LIMIT)
        matching = _conditions(wanted)
        with self._question() as connection:
            total = connection.execute(sql.select(sql.func.count()).select_from(CALLS).where(*matching)).scalar_one()
            start = max(0, total - limit) if offset < 0 else min(offset, total)
            rows = connection.execute(_page(matching, start, min(limit, total - start), total)).all()
        calls = sorted((CallView(**row._mapping) for row in rows), key=lambda call: (call.started, call.id))
        return CallPage(calls=calls, offset=start, total=total)

    def detail(self, call_id: int) -> CallDetail:
        """One call with its payloads; raises ``not-found``."""
        columns = (*VIEW_COLUMNS, CALLS.c.arguments, CALLS.c.result, CALLS.c.arguments_cut, CALLS.c.result_cut)
        with self._question() as connection:
            row = connection.execute(sql.select(*columns).where(CALLS.c.id == call_id)).one_or_none()
        if row is None:
            raise CallboardError("not-found", f"No call {call_id} is in the log.", fix="See `callboard calls`.")
        values = row._mapping
        return CallDetail(**{**values, "arguments": values["arguments"] or "", "result": values["result"] or ""})

    def count_since(self, moment: float) -> int:
        """How many calls began at ``moment`` (seconds since the epoch) or later; while the database is away, the number
        that was told last.
        """
        with contextlib.suppress(CallboardError), self._question() as connection:
            counted = sql.select(sql.func.count()).select_from(CALLS).where(CALLS.c.started >= moment)
            self._counted = connection.execute(counted).scalar_one()
        return self._counted

    def interrupt(self) -> None:
        """Stop the question that runs. The way to the database is another thread's."""
        asking = self._asking
        if asking is not None:
            self._interrupted = True
            threading.Thread(target=_cancel, args=(asking,), name="callboard-calls-cancel", daemon=True).start()

    def close(self) -> None:
        """The connections are the database's."""

    @contextlib.contextmanager
    def _question(self) -> Iterator[sql.Connection]:
        self._interrupted = False
        try:
            with self._database.begin(READ_SECONDS) as connection:
                self._asking = connection.connection.driver_connection
                try:
                    yield connection
                finally:
                    self._asking = None
        except DatabaseAwayError as error:
            raise CallboardError("storage-away", f"The call log cannot be read: {error}.") from error
        except DatabaseSlowError as error:
            if self._interrupted:
                raise QuestionInterruptedError from error
            message = f"The call log took longer than {READ_SECONDS:g} seconds to answer."
            raise CallboardError("internal", message, fix="Narrow what is looked for.") from error


def _cancel(connection: "psycopg.Connection[Any]") -> None:
    with contextlib.suppress(psycopg.Error):  # it is over, or the database is away
        connection.cancel_safe(timeout=2.0)


def _conditions(wanted: Filter) -> list[sql.ColumnElement[bool]]:
    found: list[sql.ColumnElement[bool]] = [
        CALLS.c[name] == value
        for name in ("server", "tool", "client", "status", "engine")
        if (value := getattr(wanted, name))
    ]
    if wanted.text:
        texts = (CALLS.c.tool, CALLS.c.error, CALLS.c.arguments, CALLS.c.result)
        likes = [column.ilike(pattern, escape="\\") for pattern in patterns(wanted.text) for column in texts]
        found.append(sql.or_(*likes))
    return found


def _page(matching: list[sql.ColumnElement[bool]], start: int, count: int, total: int) -> sql.Select[Any]:
    """The rows from ``start`` on, found from the nearer end: what lies before is passed over by its keys alone."""
    if start <= total // 2:
        keys = sql.select(CALLS.c.id).where(*matching).order_by(*_ORDER).offset(start)
    else:
        newest_first = [column.desc() for column in _ORDER]
        keys = sql.select(CALLS.c.id).where(*matching).order_by(*newest_first).offset(total - start - count)
    return sql.select(*VIEW_COLUMNS).where(CALLS.c.id.in_(keys.limit(count)))

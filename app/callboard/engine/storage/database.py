"""The database itself: connections, its version, and what is known of whether it can be reached."""

import contextlib
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import psycopg
import sqlalchemy as sql

from callboard.core.backoff import delay_before
from callboard.core.errors import CallboardError
from callboard.engine.storage import migrations
from callboard.engine.storage.tables import ENGINES

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5
WRITE_SECONDS: Final = 10.0
FIRST_PAUSE: Final = 0.5  # after the first failure; doubled by each further one
_SILENCE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}


class DatabaseAwayError(Exception):
    """The database cannot be used now; the message says why."""


class DatabaseSlowError(Exception):
    """A statement was stopped: it took too long, or whoever asked has gone."""


class Database:
    """One PostgreSQL database, shared with other engines. Any thread.

    Every use is a transaction that :meth:`begin` gives out. After a failure nobody tries again before a pause, which
    grows from half a second to half a minute: a database that is away costs its users no time. ``on_change`` hears,
    in any thread, when it is away and when it is back.
    """

    def __init__(self, address: str, name: str, on_change: Callable[[], None]) -> None:
        """``address`` is a ``postgresql://`` URL, ``name`` what this engine is called. Raises ``storage-invalid``."""
        try:
            url = sql.make_url(address).set(drivername="postgresql+psycopg")
        except (sql.exc.ArgumentError, ValueError) as error:
            raise CallboardError("storage-invalid", "The setting storage is not the address of a database.") from error
        self.name = name
        self.number: int | None = None  # of this engine's start; known once the database was reached
        self.reason = ""  # why the database is away; empty while it is not
        host = url.query.get("host", "") if url.host is None else url.host
        self.shown = f"{host}{f':{url.port}' if url.port else ''}/{url.database or ''}"
        given: dict[str, Any] = {"connect_timeout": CONNECT_SECONDS, "application_name": "callboard", **_SILENCE}
        self._engine = sql.create_engine(
            url,
            pool_size=3,
            # no prepared statements: between us and the database there may be a pool that mixes connections
            connect_args={key: value for key, value in given.items() if key not in url.query}
            | {"prepare_threshold": None},
        )
        self._on_change = on_change
        self._preparing = threading.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._closed = False

    @contextlib.contextmanager
    def begin(self, seconds: float = WRITE_SECONDS) -> Iterator[sql.Connection]:
        """A transaction, committed at the end of the block; each statement in it may take ``seconds``.

        Raises :class:`DatabaseAwayError`, :class:`DatabaseSlowError`, and ``sqlalchemy.exc.DataError`` for values that
        the database does not take.
        """
        if self.retry_in() > 0:
            raise DatabaseAwayError(self.reason)
        try:
            if self.number is None:
                self._prepare()
            with self._engine.begin() as connection:
                _limit(connection, seconds)
                yield connection
        except sql.exc.DataError:
            raise
        except sql.exc.SQLAlchemyError as error:
            raise self._failed(error) from error
        finally:
            if self._closed:
                self._engine.pool.dispose()
        self._reached()

    def retry_in(self) -> float:
        """Seconds until it is tried again; 0 if it may be used."""
        return max(0.0, self._retry_at - time.monotonic())

    def close(self) -> None:
        """Close the connections; one that is in use is closed by the thread that uses it."""
        self._closed = True
        self._engine.pool.dispose()

    def _prepare(self) -> None:
        """The first time: bring the tables to this version, and get a number."""
        with self._preparing:
            if self.number is not None:
                return
            try:
                with self._engine.begin() as connection:
                    _limit(connection, 600.0)
                    migrations.upgrade(connection)
                    made = sql.insert(ENGINES).values(name=self.name).returning(ENGINES.c.number)
                    number = connection.execute(made).scalar_one()
            except CallboardError as error:
                raise self._away(error.message) from error
            self.number = number
            log.info("this engine is number %s of the database %s", number, self.shown)

    def _failed(self, error: sql.exc.SQLAlchemyError) -> Exception:
        cause = getattr(error, "orig", None)
        if isinstance(cause, psycopg.errors.QueryCanceled):
            return DatabaseSlowError()
        if isinstance(cause, psycopg.errors.UndefinedTable):
            self.number = None  # somebody made the database anew
        return self._away(" ".join(str(cause or error).split())[:300].rstrip("."))

    def _away(self, reason: str) -> DatabaseAwayError:
        was, self.reason = self.reason, reason
        self._failures += 1
        self._retry_at = time.monotonic() + delay_before(self._failures, first=FIRST_PAUSE, chance=random.random())
        if not was:
            log.warning("The database %s is away: %s", self.shown, reason)
            self._on_change()
        return DatabaseAwayError(reason)

    def _reached(self) -> None:
        if self._failures:
            self._failures, self._retry_at, self.reason = 0, 0.0, ""
            log.info("The database %s is back", self.shown)
            self._on_change()


def _limit(connection: sql.Connection, seconds: float) -> None:
    connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")

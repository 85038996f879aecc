"""The way to the database: a connection for each question, in a transaction that cannot write, limited in time."""

from __future__ import annotations

import contextlib
import logging
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import psutil
import psycopg
from psycopg import conninfo, errors

ADDRESS: Final = "DATABASE_URL"
_LIBPQ: Final = ("PGHOST", "PGHOSTADDR", "PGSERVICE", "PGDATABASE")
_DRIVER: Final = re.compile(r"^postgres(?:ql)?\+\w+:", re.IGNORECASE)  # as SQLAlchemy writes it

_AT_ONCE: Final = 4  # connections
_CONNECT_SECONDS: Final = 10
_LOCK_SECONDS: Final = 2.0
_GRACE: Final = 3.0  # seconds beyond the time limit after which a database that does not answer is given up

_LOOK: Final = 0.1  # seconds between two looks at a query's time and memory
_MEMORY: Final = 256 * 1024 * 1024  # bytes by which this process may grow during a query

_LIMITS: Final = """
SELECT set_config('statement_timeout', %s, true),
       set_config('lock_timeout', %s, true),
       set_config('idle_in_transaction_session_timeout', %s, true)
"""
_RIGHTS: Final = """
SELECT current_user,
       current_setting('is_superuser') = 'on',
       ARRAY(SELECT rolname FROM pg_catalog.pg_roles
              WHERE rolname IN ('pg_write_all_data', 'pg_read_server_files', 'pg_write_server_files',
                                'pg_execute_server_program')
                AND pg_has_role(oid, 'MEMBER')
              ORDER BY rolname)::text[],
       (SELECT format('%I.%I', n.nspname, c.relname)
          FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
         WHERE c.relkind IN ('r', 'p', 'v', 'f') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
           AND has_schema_privilege(n.oid, 'USAGE')
           AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
         LIMIT 1)
"""

log = logging.getLogger(__name__)


class Refused(Exception):
    """What cannot be answered; the message is a sentence for the caller."""


class Database:
    """One database. Its methods may be called in several threads at once."""

    def __init__(self, address: str, *, seconds: float = 15.0) -> None:
        """``seconds`` is the time limit of one statement. Raises Refused for an address that is none."""
        text = _DRIVER.sub("postgresql:", address.strip())
        try:
            self._parameters = conninfo.conninfo_to_dict(text)
        except psycopg.Error:
            # the error repeats parts of the address, and with them perhaps the password
            raise Refused(
                f"{ADDRESS} is not the address of a PostgreSQL database, such as postgresql://user@host/database."
            ) from None
        self.seconds = seconds
        self._slots = threading.BoundedSemaphore(_AT_ONCE)
        self._rights: list[str] | None = None
        self._rights_lock = threading.Lock()

    @contextmanager
    def reading(self, context: Any = None) -> Iterator[psycopg.Connection[Any]]:
        """A new connection in a transaction that only reads and is rolled back; given up when it takes too long.

        ``context`` says how values are read. Raises Refused for whatever the database says against it.
        """
        if not self._slots.acquire(timeout=self.seconds):
            raise Refused(f"{_AT_ONCE} other queries are running; try again when they have ended.")
        try:
            with self._telling(), contextlib.closing(self._connect(context)) as connection, self._watched(connection):
                self.limit(connection)
                yield connection
                if not connection.closed:
                    connection.rollback()
        finally:
            self._slots.release()

    def limit(self, connection: psycopg.Connection[Any]) -> None:
        """Begin the transaction with its limits. They are a query of their own: after the first one, the database
        lets nobody make the transaction one that writes.
        """
        milliseconds = [f"{seconds * 1000:.0f}" for seconds in (self.seconds, _LOCK_SECONDS, self.seconds + _GRACE)]
        connection.execute(_LIMITS, milliseconds)

    def warnings(self) -> list[str]:
        """What the person should know of the database's user: that it may do more than read. Asked once."""
        with self._rights_lock:
            if self._rights is None:
                with self.reading() as connection:
                    row = connection.execute(_RIGHTS).fetchone()
                assert row is not None
                self._rights = _warnings(*row)
            return self._rights

    def _connect(self, context: Any) -> psycopg.Connection[Any]:
        parameters: dict[str, Any] = {
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "callboard",
            **self._parameters,
            "client_encoding": "utf8",
        }
        connection = psycopg.connect(**parameters, context=context, autocommit=False)
        connection.read_only = True
        connection.prepare_threshold = None  # what is prepared on a connection that serves once is prepared in vain
        return connection

    @contextmanager
    def _watched(self, connection: psycopg.Connection[Any]) -> Iterator[None]:
        """Break the connection when its database does not keep the time limit, or sends what fits in no memory."""
        watch = _Watch(connection, self.seconds + _GRACE)
        watch.start()
        try:
            yield
        except psycopg.Error:
            watch.stop()
            if watch.verdict:
                raise Refused(watch.verdict) from None
            raise
        finally:
            watch.stop()

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn the database's errors into sentences."""
        try:
            yield
        except errors.QueryCanceled:
            raise Refused(f"The query took longer than {self.seconds:g} s and was cancelled.") from None
        except errors.LockNotAvailable:
            raise Refused("The query waits for a lock that somebody else holds; try again later.") from None
        except errors.ReadOnlySqlTransaction as error:
            raise Refused(f"This server only reads: {self._said(error)}.") from None
        except errors.SyntaxError as error:
            if "multiple commands" in str(error):
                raise Refused("Only one statement can be sent at once.") from None
            raise Refused(f"{self._said(error)}.") from None
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError) and not error.sqlstate:
                raise Refused(f"The database cannot be reached, or has ended: {self._said(error)}.") from None
            raise Refused(f"{self._said(error)}.") from None

    def _said(self, error: psycopg.Error) -> str:
        """The database's own words on one line, without the password."""
        diagnosis = error.diag
        text = diagnosis.message_primary or next(iter(str(error).splitlines()), "no reason is given")
        if diagnosis.message_hint:
            text += f" ({diagnosis.message_hint.rstrip('.')})"
        if diagnosis.statement_position and diagnosis.message_primary:
            text += f" (at character {diagnosis.statement_position})"
        password = self._parameters.get("password")
        if isinstance(password, str) and password:
            text = text.replace(password, "***")
        return text.rstrip(".")


def address_of(environment: Mapping[str, str]) -> str | None:
    """The database's address: DATABASE_URL, or what libpq's own variables say (as ""); None if neither is set."""
    if address := environment.get(ADDRESS, "").strip():
        return address
    return "" if any(environment.get(name) for name in _LIBPQ) else None


def _warnings(user: str, is_superuser: bool, roles: list[str], table: str | None) -> list[str]:
    advice = "use one that may only read"
    if is_superuser:
        return [
            f"the database's user {user} is a superuser, who can read the server's files and end other people's "
            f"queries even where nothing is written; {advice}"
        ]
    found = []
    if roles:
        found.append(f"the database's user {user} belongs to {' and '.join(roles)}; {advice}")
    if table:
        found.append(f"the database's user {user} may write, to {table} among others; {advice}")
    return found


class _Watch(threading.Thread):
    """Looks after one connection until :meth:`stop`; ``verdict`` says why it was broken, if it was.

    A whole row comes into memory before anything can be said of its size, and a row may have a gigabyte.
    """

    def __init__(self, connection: psycopg.Connection[Any], seconds: float) -> None:
        super().__init__(name="watch a query", daemon=True)
        self.verdict = ""
        self._connection = connection
        self._seconds = seconds
        self._process = psutil.Process()
        self._ended = threading.Event()

    def run(self) -> None:
        """The thread."""
        before = self._memory()
        end = time.monotonic() + self._seconds
        while not self._ended.wait(_LOOK):
            if time.monotonic() > end:
                self.verdict = f"The database did not answer within {self._seconds:g} s."
            elif self._memory() - before > _MEMORY:
                self.verdict = f"The answer takes more than {_MEMORY >> 20} MB of memory; ask for less of it."
            if self.verdict:
                self._break()
                return

    def stop(self) -> None:
        """End the watch."""
        self._ended.set()
        self.join()

    def _memory(self) -> int:
        return int(self._process.memory_info().rss)

    def _break(self) -> None:
        """Let whoever waits for the database find the connection ended."""
        try:
            with socket.fromfd(self._connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
                same.shutdown(socket.SHUT_RDWR)
        except (OSError, psycopg.Error) as error:
            log.debug("the connection has ended by itself: %s", error)

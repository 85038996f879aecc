"""Conversations in a database of one's own, by SQLAlchemy, where several engines share them.

SQLAlchemy and the database's driver are the person's to install: they are asked for only by an agent that is set so.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final

from callboard.agents.stores import ChangedError, Record, StoreError, record_of, row_of

# so that the locks of an engine that vanished with its computer are let go within half a minute
_VANISHED: Final = ("tcp_keepalives_idle = 10", "tcp_keepalives_interval = 5", "tcp_keepalives_count = 3")


class SqlStore:
    """A table ``callboard_conversations`` in a database that SQLAlchemy knows, such as PostgreSQL."""

    def __init__(self, address: str) -> None:
        """Connect and make the table if there is none. Raises :class:`StoreError`."""
        try:
            import sqlalchemy as sql
        except ImportError as error:
            raise StoreError("a store in a database needs SQLAlchemy: pip install 'callboard[postgres]'") from error
        self._sql = sql
        if address.startswith(("postgresql://", "postgres://")):
            address = "postgresql+psycopg://" + address.partition("://")[2]
        try:
            self._engine = sql.create_engine(address, pool_pre_ping=True)
            table = sql.Table(
                "callboard_conversations",
                sql.MetaData(),
                sql.Column("id", sql.Text, primary_key=True),
                sql.Column("agent", sql.Text, nullable=False),
                sql.Column("client", sql.Text, nullable=False),
                sql.Column("key", sql.Text, nullable=False),
                sql.Column("turns", sql.Integer, nullable=False),
                sql.Column("size", sql.BigInteger, nullable=False),
                sql.Column("used", sql.Double, nullable=False, index=True),
                sql.Column("version", sql.Integer, nullable=False),
                sql.Column("state", sql.Text, nullable=False),
            )
            table.create(self._engine, checkfirst=True)
        except ImportError as error:
            raise StoreError(f"the store's driver is not installed: {error.name or error}") from error
        except sql.exc.SQLAlchemyError as error:
            raise StoreError(f"the store cannot be used: {_reason(error)}") from error
        self._table = table
        self._locking = threading.Lock()
        self._locks: Any = None  # the connection that has the locks

    def load(self, id_: str) -> Record | None:
        """The conversation of this id."""
        return self._one(self._table.select().where(self._table.c.id == id_))

    def default(self, agent: str, client: str, key: str) -> Record | None:
        """The newest conversation that is the default under ``key``."""
        c = self._table.c
        found = self._table.select().where(c.agent == agent, c.client == client, c.key == key)
        return self._one(found.order_by(c.used.desc()).limit(1))

    def save(self, record: Record) -> None:
        """Store a turn: the first as a new row, later ones only over the turn before."""
        row = dict(zip((column.name for column in self._table.columns), row_of(record), strict=True))
        c = self._table.c
        with self._using(self._engine.begin) as connection:
            if record.version == 1:
                try:
                    connection.execute(self._table.insert().values(**row))
                except self._sql.exc.IntegrityError as error:
                    raise ChangedError from error
                return
            over = self._table.update().where(c.id == record.id, c.version == record.version - 1)
            if connection.execute(over.values(**row)).rowcount != 1:
                raise ChangedError

    def delete(self, id_: str) -> None:
        """Forget a conversation."""
        with self._using(self._engine.begin) as connection:
            connection.execute(self._table.delete().where(self._table.c.id == id_))

    def sweep(self, agent: str, unused_since: float, keep: int) -> None:
        """Forget those unused since then, and all but the newest."""
        c = self._table.c
        with self._using(self._engine.begin) as connection:
            connection.execute(self._table.delete().where(c.agent == agent, c.used < unused_since))
            if keep:
                newest = self._sql.select(c.id).where(c.agent == agent).order_by(c.used.desc()).limit(keep)
                kept = self._sql.select(newest.subquery().c.id)
                connection.execute(self._table.delete().where(c.agent == agent, c.id.not_in(kept)))

    def count(self, agent: str) -> int:
        """How many there are."""
        counted = self._sql.select(self._sql.func.count()).where(self._table.c.agent == agent)
        with self._using(self._engine.connect) as connection:
            return int(connection.execute(counted).scalar_one())

    def take_turn(self, id_: str) -> bool:
        """Ask PostgreSQL for the conversation's advisory lock; other databases have none."""
        return self._lock("SELECT pg_try_advisory_lock(:key)", id_)

    def give_turn(self, id_: str) -> None:
        """Give the lock back. A lock that was lost with its connection is nobody's any more."""
        if self._locks is not None:
            self._lock("SELECT pg_advisory_unlock(:key)", id_)

    def close(self) -> None:
        """Close the connections, and give all turns back."""
        with self._locking:
            if self._locks is not None:
                with suppress(StoreError), self._using(self._lock_connection) as connection:
                    connection.execute(self._sql.text("SELECT pg_advisory_unlock_all()"))
                    connection.close()
                self._locks = None
        self._engine.dispose()

    def _lock(self, statement: str, id_: str) -> bool:
        """All locks are one connection's, so that the database lets go of them when this process ends."""
        if self._engine.dialect.name != "postgresql":
            return True
        key = int.from_bytes(hashlib.blake2b(id_.encode(), digest_size=8).digest(), signed=True)
        with self._locking, self._using(self._lock_connection) as connection:
            return bool(connection.execute(self._sql.text(statement), {"key": key}).scalar_one())

    @contextmanager
    def _lock_connection(self) -> Iterator[Any]:
        if self._locks is None:
            # each statement by itself: a transaction left open would keep the database from cleaning up
            self._locks = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            for setting in _VANISHED:
                self._locks.execute(self._sql.text(f"SET {setting}"))
        try:
            yield self._locks
        except self._sql.exc.SQLAlchemyError:
            locks, self._locks = self._locks, None
            locks.invalidate()
            locks.close()
            raise

    def _one(self, query: Any) -> Record | None:
        with self._using(self._engine.connect) as connection:
            row = connection.execute(query).first()
        return None if row is None else record_of(row)

    @contextmanager
    def _using(self, connect: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
        try:
            with connect() as connection:
                yield connection
        except self._sql.exc.SQLAlchemyError as error:
            raise StoreError(f"the store cannot be used: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())[:200]

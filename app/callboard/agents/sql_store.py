"""Conversations in a database of one's own, by SQLAlchemy, where several engines share them.

SQLAlchemy and the database's driver are the person's to install: they are asked for only by an agent that is set so.
"""

from typing import Any

from callboard.agents.stores import ChangedError, Record, StoreError, record_of, row_of


class SqlStore:
    """A table ``callboard_conversations`` in a database that SQLAlchemy knows, such as PostgreSQL."""

    def __init__(self, address: str) -> None:
        """Connect and make the table if there is none. Raises :class:`StoreError`."""
        try:
            import sqlalchemy as sql
        except ImportError as error:
            raise StoreError("a store in a database needs SQLAlchemy: pip install sqlalchemy psycopg") from error
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
        with self._engine.begin() as connection:
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
        with self._engine.begin() as connection:
            connection.execute(self._table.delete().where(self._table.c.id == id_))

    def sweep(self, agent: str, unused_since: float, keep: int) -> None:
        """Forget those unused since then, and all but the newest."""
        c = self._table.c
        with self._engine.begin() as connection:
            connection.execute(self._table.delete().where(c.agent == agent, c.used < unused_since))
            if keep:
                newest = self._sql.select(c.id).where(c.agent == agent).order_by(c.used.desc()).limit(keep)
                kept = self._sql.select(newest.subquery().c.id)
                connection.execute(self._table.delete().where(c.agent == agent, c.id.not_in(kept)))

    def count(self, agent: str) -> int:
        """How many there are."""
        counted = self._sql.select(self._sql.func.count()).where(self._table.c.agent == agent)
        with self._engine.connect() as connection:
            return int(connection.execute(counted).scalar_one())

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def _one(self, query: Any) -> Record | None:
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        return None if row is None else record_of(row)


def _reason(error: Exception) -> str:
    return " ".join(str(getattr(error, "orig", None) or error).split())[:200]

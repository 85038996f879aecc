"""Values that all engines agree on: small documents by name, changed by one engine at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sql
from sqlalchemy.dialects import postgresql

from callboard.engine.storage.database import Database, DatabaseAwayError
from callboard.engine.storage.tables import DEAD_SINCE, ENGINES, VALUES

_TRIES: Final = 20


@dataclass(frozen=True)
class Value:
    """A value and how often it was changed."""

    data: bytes
    version: int


class DatabaseValues:
    """The values in the database. Blocking; one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self) -> dict[str, Value]:
        """All values by name, which is also this engine's sign of life. Raises DatabaseAwayError."""
        with self._database.begin() as connection:
            alive = postgresql.insert(ENGINES).values(number=self._database.number, name=self._database.name)
            connection.execute(alive.on_conflict_do_update(index_elements=["number"], set_={"seen": sql.func.now()}))
            return {row.name: Value(row.value, row.version) for row in connection.execute(sql.select(VALUES))}

    def engines(self) -> list[str]:
        """The names of the engines that showed a sign of life lately, this one included. Raises DatabaseAwayError."""
        alive = sql.select(ENGINES.c.name).where(ENGINES.c.seen > DEAD_SINCE).order_by(ENGINES.c.number)
        with self._database.begin() as connection:
            return list(connection.execute(alive).scalars())

    def change(self, name: str, edit: Callable[[bytes | None], bytes | None]) -> Value | None:
        """Replace a value by what ``edit`` makes of it (None where there is none), and return it; None leaves it.

        ``edit`` is called again where another engine was faster. Raises DatabaseAwayError.
        """
        for _ in range(_TRIES):
            with self._database.begin() as connection:
                row = connection.execute(sql.select(VALUES).where(VALUES.c.name == name)).one_or_none()
                before = None if row is None else Value(row.value, row.version)
                data = edit(None if before is None else before.data)
                if data is None or (before is not None and data == before.data):
                    return before
                if before is None:
                    made = postgresql.insert(VALUES).values(name=name, version=1, value=data)
                    statement: sql.Executable = made.on_conflict_do_nothing().returning(VALUES.c.version)
                else:
                    same = sql.update(VALUES).where(VALUES.c.name == name, VALUES.c.version == before.version)
                    statement = same.values(version=before.version + 1, value=data).returning(VALUES.c.version)
                version = connection.execute(statement).scalar_one_or_none()
                if version is not None:
                    return Value(data, version)
        raise DatabaseAwayError(f"other engines change {name} all the time")

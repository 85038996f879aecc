"""The calls of other engines as they begin and end, for whoever follows the calls at this one."""

from datetime import datetime, timedelta
from typing import Final

import sqlalchemy as sql

from callboard.api.schema import CallView
from callboard.engine.storage.database import Database
from callboard.engine.storage.tables import CALLS, SPAN, VIEW_COLUMNS

_AT_ONCE: Final = 500
_LATE: Final = timedelta(seconds=10)  # a transaction's changes show at its end, and bear the time of its beginning


class OtherCalls:
    """Blocking; one thread at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._since: datetime | None = None  # by the database's clock
        self._told: dict[tuple[int, str], datetime] = {}

    def read(self) -> list[CallView]:
        """What changed since the last time, each state of a call once, at most 500 calls.

        The first time it is what changed in the last seconds: whoever listens has read the log a moment ago.

        Raises DatabaseAwayError and DatabaseSlowError.
        """
        with self._database.begin() as connection:
            if self._since is None:
                self._since = connection.execute(sql.select(sql.func.now())).scalar_one()
            own = (self._database.number or 0) * SPAN
            others = sql.not_(CALLS.c.id.between(own, own + SPAN - 1))
            changed = sql.select(*VIEW_COLUMNS, CALLS.c.changed).where(CALLS.c.changed > self._since - _LATE, others)
            newest = changed.order_by(CALLS.c.changed.desc()).limit(_AT_ONCE)
            rows = connection.execute(newest).all()
        found = []
        for *values, at in reversed(rows):
            view = CallView(**{column.name: value for column, value in zip(VIEW_COLUMNS, values, strict=True)})
            if (view.id, view.status) not in self._told:
                self._told[view.id, view.status] = at
                found.append(view)
        self._since = max([self._since, *(at for *_, at in rows)])
        self._told = {key: at for key, at in self._told.items() if at > self._since - _LATE}
        return found

    def forget(self) -> None:
        """Nobody listens any more."""
        self._since = None
        self._told.clear()

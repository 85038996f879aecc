"""Questions to the call log. Runs in one thread of its own, on a connection of its own."""

import contextlib
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

import msgspec

from callboard.api.schema import CallDetail, CallPage, CallView
from callboard.core.errors import CallboardError
from callboard.engine.calls import table
from callboard.engine.calls.backing import Filter, QuestionInterruptedError
from callboard.engine.calls.store import Place, Store

T = TypeVar("T")
_REMEMBERED: Final = 3  # filters whose matches are kept
MAX_LIMIT: Final = 1000
_VIEW_FIELDS: Final = table.VIEW_COLUMNS.split(", ")
_MAX_TEXT: Final = 1000  # characters; SQLite refuses very long patterns


@dataclass
class _Matches:
    """Ids that match a filter, as far as this can change no more; calls from ``floor`` on are looked at each time."""

    ids: "array[int]" = field(default_factory=lambda: array("q"))
    floor: int = 0


class Reader:
    """Answers questions about the store's calls, in the reader's thread; :meth:`interrupt` comes from elsewhere."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._place: Place | None = None
        self._connection: sqlite3.Connection | None = None
        self._matches: dict[Filter, _Matches] = {}

    def page(self, wanted: Filter, offset: int, limit: int) -> CallPage:
        """Calls from ``offset`` on, oldest first; a negative offset means the last ``limit`` ones."""
        limit = min(max(limit, 0), MAX_LIMIT)
        return self._ask(lambda connection: self._page(connection, wanted, offset, limit))

    def detail(self, call_id: int) -> CallDetail:
        """One call with its payloads; raises ``not-found``."""
        row = self._ask(
            lambda connection: connection.execute(
                f"SELECT {table.ROW_COLUMNS} FROM calls WHERE id = ?", (call_id,)
            ).fetchone()
        )
        if row is None:
            raise CallboardError("not-found", f"No call {call_id} is in the log.", fix="See `callboard calls`.")
        *_, arguments, result, arguments_cut, result_cut = row
        return CallDetail(
            **msgspec.structs.asdict(_view(row)),
            arguments=(arguments or b"").decode("utf-8", "replace"),
            result=(result or b"").decode("utf-8", "replace"),
            arguments_cut=bool(arguments_cut),
            result_cut=bool(result_cut),
        )

    def count_since(self, moment: float) -> int:
        """How many calls began at ``moment`` (seconds since the epoch) or later."""

        def ask(connection: sqlite3.Connection) -> int:
            first = table.first_since(connection, moment)
            if not table.has_gap(connection):
                return table.bounds(connection)[1] - first + 1
            count: int = connection.execute("SELECT count(*) FROM calls WHERE id >= ?", (first,)).fetchone()[0]
            return count

        return self._ask(ask)

    def interrupt(self) -> None:
        """Stop the question that runs, from another thread."""
        place, connection = self._place, self._connection
        if connection is not None and place is not None and place.memory is None:
            with contextlib.suppress(sqlite3.ProgrammingError):  # closed meanwhile
                connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None and self._place is not None and self._place.memory is None:
            self._connection.close()
        self._connection = None
        self._place = None

    def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a question from one state of the log."""
        place = self._store.place
        if place is not self._place:
            self.close()
            self._matches.clear()
            self._connection = place.memory or (table.connect_reader(place.path) if place.path else None)
            self._place = place
        connection = self._connection
        if connection is None:
            raise CallboardError("internal", "The call log is closed.")
        if place.memory is not None:
            with place.lock:
                return question(connection)
        try:
            connection.execute("BEGIN")
            try:
                return question(connection)
            finally:
                connection.execute("ROLLBACK")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise QuestionInterruptedError from error
            raise CallboardError("internal", f"The call log cannot be read: {error}.") from error

    def _page(self, connection: sqlite3.Connection, wanted: Filter, offset: int, limit: int) -> CallPage:
        low, high = table.bounds(connection)
        if wanted == Filter() and not table.has_gap(connection):
            total = high - low + 1
            start = max(0, total - limit) if offset < 0 else min(offset, total)
            rows = connection.execute(
                f"SELECT {table.VIEW_COLUMNS} FROM calls WHERE id >= ? ORDER BY id LIMIT ?", (low + start, limit)
            )
        else:
            settled, live = self._find(connection, wanted, low, high)
            total = len(settled) + len(live)
            start = max(0, total - limit) if offset < 0 else min(offset, total)
            ids = [*settled[start : start + limit], *live[max(0, start - len(settled)) :]][:limit]
            rows = connection.execute(
                f"SELECT {table.VIEW_COLUMNS} FROM calls WHERE id IN ({','.join('?' * len(ids))}) ORDER BY id", ids
            )
        return CallPage(calls=[_view(row) for row in rows], offset=start, total=total)

    def _find(
        self, connection: sqlite3.Connection, wanted: Filter, low: int, high: int
    ) -> "tuple[array[int], list[int]]":
        """Ids that match: those known for good, and those that a running call may still change."""
        matches = self._matches.pop(wanted, None) or _Matches()
        self._matches[wanted] = matches
        if len(self._matches) > _REMEMBERED:
            del self._matches[next(iter(self._matches))]
        del matches.ids[: bisect_left(matches.ids, low)]
        running = None
        if wanted.status or wanted.text:  # whether a call matches may still change
            running = connection.execute("SELECT min(id) FROM calls WHERE status = 'running'").fetchone()[0]
        settled_to = max(high + 1 if running is None else running, matches.floor)
        condition, values = _condition(wanted)
        rows = connection.execute(
            f"SELECT id FROM calls WHERE id >= ? AND {condition} ORDER BY id", [matches.floor, *values]
        )
        live: list[int] = []
        for (call_id,) in rows:
            if call_id < settled_to:
                matches.ids.append(call_id)
            else:
                live.append(call_id)
        matches.floor = settled_to
        return matches.ids, live


def _condition(wanted: Filter) -> tuple[str, list[str]]:
    """SQL and its parameters."""
    terms = ["0" if wanted.engine else "1"]  # calls of a file bear no engine's name
    values: list[str] = []
    for column in ("server", "tool", "client", "status"):
        if value := getattr(wanted, column):
            terms.append(f"{column} = ?")
            values.append(value)
    if wanted.text:
        likes = []
        for pattern in patterns(wanted.text):
            for column in ("tool", "error", "arguments", "result"):
                likes.append(f"{column} LIKE ? ESCAPE '\\'")
                values.append(pattern)
        terms.append("(" + " OR ".join(likes) + ")")
    return " AND ".join(terms), values


def _view(row: tuple[object, ...]) -> CallView:
    return msgspec.convert(dict(zip(_VIEW_FIELDS, row, strict=False)), CallView)


def patterns(text: str) -> list[str]:
    """LIKE patterns for a text as it may stand in JSON: plain, or with the escapes of one or the other encoder."""
    text = text[:_MAX_TEXT]
    escaped = msgspec.json.encode(text).decode()[1:-1]
    ascii_only = "".join(char if char < "\x80" else _escape(char) for char in escaped)
    found = dict.fromkeys((text, escaped, ascii_only))
    return ["%" + "".join("\\" + char if char in "\\%_" else char for char in each) + "%" for each in found]


def _escape(char: str) -> str:
    """JSON's escape of a character, a pair of them beyond the basic plane."""
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))

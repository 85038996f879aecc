"""The one table of the call log, in SQL. Functions here work on any connection and know no policy."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from callboard.engine.calls.record import Row

VERSION: Final = 1
ENGINE_ENDED: Final = "The engine ended during the call."

COLUMNS: Final = (
    "id, started, client, server, method, tool, status, duration_ms, request_bytes, response_bytes, error,"
    " arguments, result, arguments_cut, result_cut"
)
VIEW_COLUMNS: Final = COLUMNS.partition(", arguments,")[0]
# Payloads go in and come out as bytes: to make text of them, and bytes again for SQLite, would cost more than to write.
ROW_COLUMNS: Final = f"{VIEW_COLUMNS}, CAST(arguments AS BLOB), CAST(result AS BLOB), arguments_cut, result_cut"

# The payloads stand last: what does not fit a page goes to overflow pages, which a scan of the rest never reads.
# `gap` holds one row once ids are missing inside the log; without one, positions are computed from ids.
_SCHEMA: Final = f"""
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, started REAL NOT NULL, client TEXT NOT NULL, server TEXT NOT NULL, method TEXT NOT NULL,
    tool TEXT NOT NULL, status TEXT NOT NULL, duration_ms REAL, request_bytes INTEGER NOT NULL,
    response_bytes INTEGER NOT NULL, error TEXT NOT NULL, arguments TEXT, result TEXT,
    arguments_cut INTEGER NOT NULL, result_cut INTEGER NOT NULL);
CREATE INDEX running ON calls (id) WHERE status = 'running';
CREATE TABLE gap (id INTEGER PRIMARY KEY);
PRAGMA user_version = {VERSION};
"""

_PAYLOADS: Final = ("arguments", "result")
_VALUES: Final = ", ".join("CAST(? AS TEXT)" if name in _PAYLOADS else "?" for name in Row._fields)


def _upsert_of(count: int) -> str:
    return f"""
INSERT INTO calls ({COLUMNS}) VALUES {", ".join([f"({_VALUES})"] * count)}
ON CONFLICT (id) DO UPDATE SET status = excluded.status, duration_ms = excluded.duration_ms,
    response_bytes = excluded.response_bytes, error = excluded.error,
    result = excluded.result, result_cut = excluded.result_cut
"""


# At each statement the thread must win Python's lock again and again, against the loop that serves calls, which is
# disturbed each time: many calls in one statement, the largest first.
_UPSERTS: Final = tuple((count, _upsert_of(count)) for count in (256, 64, 16, 4, 1))
_TOGETHER: Final = 256 * 1024  # bytes of payload that one statement is given at most, as it holds a copy of them
_PAGE: Final = 16 * 1024  # bytes; each page is written twice, so that large payloads want few of them
_CHECKPOINT: Final = 4 * 1024 * 1024  # bytes of the journal after which it is worked into the file


def connect_file(path: Path, busy: float) -> sqlite3.Connection:
    """Open the log's file for writing, 0600, and make its table if it is new. Raises ``sqlite3.Error``, ``OSError``.

    ``busy`` is for how many seconds a write waits while another program has the file locked.
    """
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)
    try:
        # only an empty file takes these two
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT // page_bytes(connection)}")
        prepare(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_memory() -> sqlite3.Connection:
    """An empty log in memory; used by two threads, one at a time."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    prepare(connection)
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A second, read-only connection to the log's file."""
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0, isolation_level=None, check_same_thread=False
    )


def prepare(connection: sqlite3.Connection) -> None:
    """Make the table, or see that it is ours: ``sqlite3.DatabaseError`` if a newer version made it."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > VERSION:
        raise NewerVersionError(f"version {version}")
    if version < VERSION:
        connection.executescript(f"BEGIN; {_SCHEMA} COMMIT;")


class NewerVersionError(sqlite3.DatabaseError):
    """The file was made by a newer Callboard."""


def upsert(connection: sqlite3.Connection, rows: Sequence[Row]) -> None:
    """Write calls in one transaction; a call that stands there already gets its outcome."""
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(Row._fields)
    parts = list(_statements(rows, most))
    if len(parts) == 1:
        connection.execute(*parts[0])
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement, values in parts:
            connection.execute(statement, values)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(rows: Sequence[Row], most: int) -> Iterator[tuple[str, list[Any]]]:
    payload = payload_bytes(rows)
    done = 0
    for count, statement in _UPSERTS:
        if count > most or (count > 1 and payload * count > _TOGETHER * len(rows)):
            continue
        while done + count <= len(rows):
            yield statement, [*chain.from_iterable(rows[done : done + count])]
            done += count


def payload_bytes(rows: Sequence[Row]) -> int:
    """What is kept of arguments and results, together."""
    return sum([len(row.arguments or b"") + len(row.result or b"") for row in rows])


def end_running(connection: sqlite3.Connection) -> None:
    """Mark calls that nobody will finish any more."""
    connection.execute("UPDATE calls SET status = 'failed', error = ? WHERE status = 'running'", (ENGINE_ENDED,))


def bounds(connection: sqlite3.Connection) -> tuple[int, int]:
    """Lowest and highest id, (1, 0) when the log is empty."""
    low, high = connection.execute("SELECT (SELECT min(id) FROM calls), (SELECT max(id) FROM calls)").fetchone()
    return (1, 0) if low is None else (low, high)


def has_gap(connection: sqlite3.Connection) -> bool:
    """Whether ids are missing between the lowest and the highest."""
    return connection.execute("SELECT 1 FROM gap").fetchone() is not None


def first_since(connection: sqlite3.Connection, moment: float) -> int:
    """The lowest id of a call begun at ``moment`` or later; one more than the highest if there is none.

    Ids grow with time, so that this needs no index; a clock that was set back makes it a little inexact.
    """
    low, high = bounds(connection)
    high += 1
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(
            "SELECT id, started FROM calls WHERE id >= ? ORDER BY id LIMIT 1", (middle,)
        ).fetchone()
        if row is None or row[1] >= moment:
            high = middle
        else:
            low = row[0] + 1
    return low


def page_bytes(connection: sqlite3.Connection) -> int:
    """The size of the file's pages, which is that with which it was made."""
    size: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return size


def used_bytes(connection: sqlite3.Connection) -> tuple[int, int]:
    """Bytes in use and bytes free inside the file."""
    size = page_bytes(connection)
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    return (pages - free) * size, free * size


def copy_into(source: sqlite3.Connection, target: sqlite3.Connection) -> None:
    """Write all calls of one log into another one, and note the gap that may lie before them."""
    rows = source.execute(f"SELECT {ROW_COLUMNS} FROM calls ORDER BY id")
    newest = bounds(target)[1]
    upsert(target, [Row(*row) for row in rows])
    if newest and not target.execute("SELECT 1 FROM calls WHERE id = ?", (newest + 1,)).fetchone():
        target.execute("INSERT OR IGNORE INTO gap VALUES (1)")

"""Where conversations are kept beyond the life of a server: a SQLite file, or a database that several engines share."""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol


@dataclass
class Record:
    """One conversation as it is stored. ``used`` is in seconds since 1970; ``size`` in bytes.

    ``key`` says whose default conversation it is ("" for none). ``version`` counts its calls, by which two engines that
    share a store notice each other.
    """

    id: str
    agent: str
    client: str
    key: str = ""
    turns: int = 0
    size: int = 0
    used: float = field(default_factory=time.time)
    version: int = 0
    state: dict[str, Any] = field(default_factory=dict)


class StoreError(Exception):
    """A store that cannot be used; the message says why in one sentence."""


class ChangedError(Exception):
    """Another engine had a turn in this conversation meanwhile."""


class Store(Protocol):
    """Blocking; each method is for any thread, and raises :class:`StoreError` where the store does not answer."""

    def load(self, id_: str) -> Record | None:
        """The conversation of this id."""

    def default(self, agent: str, client: str, key: str) -> Record | None:
        """The newest conversation that is the default under ``key``."""

    def save(self, record: Record) -> None:
        """Store a turn; raises :class:`ChangedError` if it is not the next one after the version stored."""

    def delete(self, id_: str) -> None:
        """Forget a conversation."""

    def sweep(self, agent: str, unused_since: float, keep: int) -> None:
        """Forget those unused since then, and all but the ``keep`` newest (0: no bound)."""

    def count(self, agent: str) -> int:
        """How many there are."""

    def take_turn(self, id_: str) -> bool:
        """Have a conversation for this engine alone, until its turn is given back or the process ends.

        False while another engine has it.
        """

    def give_turn(self, id_: str) -> None:
        """Give a turn back."""

    def close(self) -> None:
        """Let go of the database."""


_TABLE = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, agent TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, turns INTEGER NOT NULL,
    size INTEGER NOT NULL, used DOUBLE PRECISION NOT NULL, version INTEGER NOT NULL, state TEXT NOT NULL
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS conversations_by_use ON conversations (agent, used)"
_COLUMNS = "id, agent, client, key, turns, size, used, version, state"


class SqliteStore:
    """A SQLite file of this server's own. One connection, guarded by a lock."""

    def __init__(self, path: Path) -> None:
        """Raises :class:`StoreError`."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=10)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute(_TABLE)
            self._database.execute(_INDEX)
            path.chmod(0o600)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"conversations cannot be stored in {path}: {error}") from error
        self._lock = threading.Lock()

    def load(self, id_: str) -> Record | None:
        """The conversation of this id."""
        return self._one(f"SELECT {_COLUMNS} FROM conversations WHERE id = ?", (id_,))

    def default(self, agent: str, client: str, key: str) -> Record | None:
        """The newest conversation that is the default under ``key``."""
        return self._one(
            f"SELECT {_COLUMNS} FROM conversations WHERE agent = ? AND client = ? AND key = ?"
            " ORDER BY used DESC LIMIT 1",
            (agent, client, key),
        )

    def save(self, record: Record) -> None:
        """Store a turn."""
        values = row_of(record)
        with self._using() as database:
            changed = database.execute(
                "INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET"
                " turns = excluded.turns, size = excluded.size, used = excluded.used, version = excluded.version,"
                " state = excluded.state WHERE conversations.version = excluded.version - 1",
                values,
            )
            if changed.rowcount != 1:
                raise ChangedError

    def delete(self, id_: str) -> None:
        """Forget a conversation."""
        with self._using() as database:
            database.execute("DELETE FROM conversations WHERE id = ?", (id_,))

    def sweep(self, agent: str, unused_since: float, keep: int) -> None:
        """Forget those unused since then, and all but the newest."""
        with self._using() as database:
            database.execute("DELETE FROM conversations WHERE agent = ? AND used < ?", (agent, unused_since))
            if keep:
                database.execute(
                    "DELETE FROM conversations WHERE agent = ? AND id NOT IN"
                    " (SELECT id FROM conversations WHERE agent = ? ORDER BY used DESC LIMIT ?)",
                    (agent, agent, keep),
                )

    def count(self, agent: str) -> int:
        """How many there are."""
        with self._using() as database:
            row = database.execute("SELECT count(*) FROM conversations WHERE agent = ?", (agent,)).fetchone()
        return int(row[0])

    def take_turn(self, id_: str) -> bool:
        """Nobody else uses the file; should it be so all the same, :meth:`save` notices."""
        return True

    def give_turn(self, id_: str) -> None:
        """See :meth:`take_turn`."""

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._database.close()

    def _one(self, query: str, values: tuple[str, ...]) -> Record | None:
        with self._using() as database:
            row = database.execute(query, values).fetchone()
        return None if row is None else record_of(row)

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as error:
                raise StoreError(f"conversations cannot be stored: {error}") from error


def row_of(record: Record) -> tuple[Any, ...]:
    """A record as a row of the table."""
    state = json.dumps(record.state, ensure_ascii=False, separators=(",", ":"))
    head = (record.id, record.agent, record.client, record.key, record.turns, record.size, record.used, record.version)
    return (*head, state)


def record_of(row: Any) -> Record:
    """The reverse of :func:`row_of`."""
    id_, agent, client, key, turns, size, used, version, state = row
    return Record(id_, agent, client, key, turns, size, used, version, json.loads(state))


def open_store(address: str, file: Path) -> Store:
    """The store at ``address``, a database's URL; empty for ``file``. Raises :class:`StoreError`."""
    if not address:
        return SqliteStore(file)
    if address.startswith("sqlite:///"):
        return SqliteStore(Path(address.removeprefix("sqlite:///")))
    from callboard.agents.sql_store import SqlStore

    return SqlStore(address)

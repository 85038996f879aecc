"""The tables that engines share. Their versions are :mod:`callboard.engine.storage.migrations`."""

from typing import Final

import sqlalchemy as sql

SPAN: Final = 10**10
"""An engine's calls have the ids from its number times this on, so that no two engines make the same one."""

METADATA: Final = sql.MetaData()

ENGINES: Final = sql.Table(
    "callboard_engines",
    METADATA,
    sql.Column("number", sql.BigInteger, sql.Identity(), primary_key=True),  # a new one for each start
    sql.Column("name", sql.Text, nullable=False),
    sql.Column("started", sql.DateTime(timezone=True), server_default=sql.func.now(), nullable=False),
    sql.Column("seen", sql.DateTime(timezone=True), server_default=sql.func.now(), nullable=False),
)

CALLS: Final = sql.Table(
    "callboard_calls",
    METADATA,
    sql.Column("id", sql.BigInteger, primary_key=True, autoincrement=False),
    sql.Column("started", sql.Double, nullable=False),
    sql.Column("client", sql.Text, nullable=False),
    sql.Column("server", sql.Text, nullable=False),
    sql.Column("method", sql.Text, nullable=False),
    sql.Column("tool", sql.Text, nullable=False),
    sql.Column("status", sql.Text, nullable=False),
    sql.Column("duration_ms", sql.Double),
    sql.Column("request_bytes", sql.BigInteger, nullable=False),
    sql.Column("response_bytes", sql.BigInteger, nullable=False),
    sql.Column("error", sql.Text, nullable=False),
    sql.Column("engine", sql.Text, nullable=False),
    sql.Column("arguments", sql.Text),
    sql.Column("result", sql.Text),
    sql.Column("arguments_cut", sql.Boolean, nullable=False),
    sql.Column("result_cut", sql.Boolean, nullable=False),
    sql.Column("changed", sql.DateTime(timezone=True), server_default=sql.func.now(), nullable=False),
    sql.Column("kept", sql.BigInteger, sql.FetchedValue(), nullable=False),  # bytes, computed by the database
)

VALUES: Final = sql.Table(
    "callboard_values",
    METADATA,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("version", sql.BigInteger, nullable=False),
    sql.Column("value", sql.LargeBinary, nullable=False),
)

DEAD_SINCE: Final = sql.func.now() - sql.cast("30 s", sql.Interval)
"""An engine that was not seen since then is taken for dead."""

VIEW_COLUMNS: Final = tuple(
    CALLS.c[name]
    for name in (
        *("id", "started", "client", "server", "method", "tool", "status", "duration_ms"),
        *("request_bytes", "response_bytes", "error", "engine"),
    )
)

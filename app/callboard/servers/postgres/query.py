"""The answer to a query: its rows as JSON has them, as many as fit."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace
from typing import Any, Final, cast

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader

from callboard.servers.postgres.answers import Column, Rows
from callboard.servers.postgres.database import Database, Refused
from callboard.servers.postgres.statement import objection

_LONGEST_SQL: Final = 100_000  # characters
_LONGEST_CELL: Final = 20_000  # characters
_LARGEST_ANSWER: Final = 1_000_000  # characters of JSON
_LARGEST_INTEGER: Final = 2**53 - 1  # that every JSON reader can hold


def execute(database: Database, sql: str, limit: int) -> Rows:
    """The first ``limit`` rows of a query. Raises Refused."""
    if len(sql) > _LONGEST_SQL:
        raise Refused(f"A query may have {_LONGEST_SQL} characters at most.")
    if problem := objection(sql):
        raise Refused(problem)
    with database.reading(_AS_JSON) as connection, connection.cursor() as cursor:
        rows: list[list[Any]] = []
        remarks: list[str] = []
        room, truncated = _LARGEST_ANSWER, False
        # row by row, and so in a message that the server takes a single statement from
        answers = cast(Generator[tuple[Any, ...]], cursor.stream(sql.encode()))
        for row in answers:
            if len(rows) == limit:
                truncated = True
                remarks.append(f"there are more than the {limit} rows that were asked for")
                break
            room -= len(json.dumps(row, ensure_ascii=False))
            if room < 0:
                truncated = True
                remarks.append(f"there are more rows than the {_LARGEST_ANSWER} characters that an answer may have")
                break
            rows.append(list(row))
        answers.close()
        columns = _named(_columns(cursor), database, connection)
    return Rows(columns, rows, len(rows), truncated, remarks)


def _columns(cursor: psycopg.Cursor[Any]) -> list[Column]:
    """The columns of what was asked; a type that psycopg does not know stands there as its number."""
    if cursor.description is not None:
        return [Column(column.name, column.type_display) for column in cursor.description]
    # Not one row came, and with it no description; the server still knows the statement without a name.
    described = cursor.connection.pgconn.describe_prepared(b"")
    columns = []
    for number in range(described.nfields):
        oid = described.ftype(number)
        known = cursor.connection.adapters.types.get(oid)
        name = (described.fname(number) or b"").decode("utf-8", "replace")
        columns.append(Column(name, known.get_type_display(oid, described.fmod(number)) if known else str(oid)))
    return columns


def _named(columns: list[Column], database: Database, connection: psycopg.Connection[Any]) -> list[Column]:
    """The columns with the names of types that only the database itself knows."""
    numbers = [int(column.type) for column in columns if column.type.isdecimal()]
    if not numbers:
        return columns
    connection.rollback()  # the transaction has failed if the query was cut off
    database.limit(connection)
    rows = connection.execute("SELECT oid::text, format_type(oid, NULL) FROM pg_type WHERE oid = ANY(%s)", [numbers])
    names = dict(rows.fetchall())
    return [replace(column, type=names.get(column.type, column.type)) for column in columns]


class _Text(Loader):
    """Any value as PostgreSQL writes it, cut if it is very long."""

    def load(self, data: Buffer) -> Any:
        text = bytes(data[: _LONGEST_CELL * 4]).decode("utf-8", "replace")
        if len(data) <= _LONGEST_CELL:
            return text
        whole = len(bytes(data).decode("utf-8", "replace"))
        return (
            text
            if whole <= _LONGEST_CELL
            else f"{text[:_LONGEST_CELL]}... [{whole - _LONGEST_CELL} characters truncated]"
        )


class _Integer(Loader):
    def load(self, data: Buffer) -> int | str:
        value = int(bytes(data))
        return value if abs(value) <= _LARGEST_INTEGER else str(value)


class _Float(Loader):
    def load(self, data: Buffer) -> float | str:
        text = bytes(data).decode()
        return text if text in ("NaN", "Infinity", "-Infinity") else float(text)


class _Boolean(Loader):
    def load(self, data: Buffer) -> bool:
        return bytes(data) == b"t"


class _Json(_Text):
    def load(self, data: Buffer) -> Any:
        if len(data) <= _LONGEST_CELL:
            try:
                return json.loads(bytes(data))
            except (ValueError, RecursionError):
                pass
        return super().load(data)


def _as_json() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    for known in psycopg.adapters.types:
        adapters.register_loader(known.oid, _Text)
        if known.array_oid:
            adapters.register_loader(known.array_oid, _Text)
    adapters.register_loader(0, _Text)  # what is not known
    for loader, names in (
        (_Integer, ("int2", "int4", "int8", "oid")),
        (_Float, ("float4", "float8")),
        (_Boolean, ("bool",)),
        (_Json, ("json", "jsonb")),
    ):
        for name in names:
            adapters.register_loader(name, loader)
    return adapters


class _Context:
    """What psycopg takes adapters from."""

    def __init__(self) -> None:
        self.adapters = _as_json()
        self.connection = None


_AS_JSON: Final = _Context()

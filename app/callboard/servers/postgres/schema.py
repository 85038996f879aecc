"""What is in the database, as SQLAlchemy finds it. Imported with the first question of that kind."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import Connection, Inspector
from sqlalchemy.engine.interfaces import ReflectedColumn
from sqlalchemy.engine.reflection import ObjectKind
from sqlalchemy.exc import DBAPIError, NoSuchTableError
from sqlalchemy.pool import NullPool

from callboard.servers.postgres.answers import (
    Check,
    ColumnFacts,
    ForeignKey,
    Index,
    Kind,
    Schemas,
    Table,
    TableFacts,
    Tables,
)
from callboard.servers.postgres.database import Database, Refused

_MOST_TABLES: Final = 5_000
_TYPES: Final = """
SELECT a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type
  FROM pg_catalog.pg_attribute a
  JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
"""


def schemas(database: Database) -> Schemas:
    """The schemas that people made; those of the system itself are left out."""
    with _inspecting(database) as (inspector, _):
        names = [name for name in inspector.get_schema_names() if name != "information_schema"]
        return Schemas(sorted(names), inspector.default_schema_name or "")


def tables(database: Database, schema: str) -> Tables:
    """The tables and views of a schema. Raises Refused for a schema that is not there."""
    with _inspecting(database) as (inspector, _):
        _must_have(schema, inspector.get_schema_names(), "schema")
        found = _kinds(inspector, schema)
        found_comments = inspector.get_multi_table_comment(schema, kind=ObjectKind.ANY)
        comments = {name: comment["text"] or "" for (_, name), comment in found_comments.items()}
        listed = sorted(found)[:_MOST_TABLES]
        remarks = [f"only {_MOST_TABLES} of the {len(found)} tables are here"] if len(found) > _MOST_TABLES else []
        return Tables(schema, [Table(name, found[name], comments.get(name, "")) for name in listed], remarks)


def table(database: Database, schema: str, name: str) -> TableFacts:
    """All that is known of a table or view. Raises Refused for one that is not there."""
    with _inspecting(database) as (inspector, connection):
        _must_have(schema, inspector.get_schema_names(), "schema")
        kinds = _kinds(inspector, schema)
        _must_have(name, kinds, f"table or view in the schema {schema}, called")
        types = {row.name: row.type for row in connection.exec_driver_sql(_TYPES, (schema, name))}
        return TableFacts(
            schema=schema,
            table=name,
            kind=kinds[name],
            comment=inspector.get_table_comment(name, schema)["text"] or "",
            columns=[_column(column, types) for column in inspector.get_columns(name, schema)],
            primaryKey=inspector.get_pk_constraint(name, schema)["constrained_columns"],
            unique=[constraint["column_names"] for constraint in inspector.get_unique_constraints(name, schema)],
            indexes=[
                Index(
                    index["name"] or "",
                    list(index.get("expressions") or [column or "" for column in index["column_names"]]),
                    bool(index["unique"]),
                )
                for index in inspector.get_indexes(name, schema)
            ],
            checks=[
                Check(check["name"] or "", check["sqltext"]) for check in inspector.get_check_constraints(name, schema)
            ],
            foreignKeys=_foreign_keys(inspector, connection, schema, name),
        )


def _foreign_keys(inspector: Inspector, connection: Connection, schema: str, name: str) -> list[ForeignKey]:
    """Called last: with nothing on the search path, the database names the schema of each table that is referred to."""
    connection.exec_driver_sql("SELECT set_config('search_path', '', true)")
    return [
        ForeignKey(
            key["constrained_columns"],
            key["referred_schema"] or schema,
            key["referred_table"],
            key["referred_columns"],
        )
        for key in inspector.get_foreign_keys(name, schema)
    ]


def _column(column: ReflectedColumn, types: dict[str, str]) -> ColumnFacts:
    computed = column.get("computed")
    generated = "identity" if column.get("identity") else "computed" if computed else ""
    return ColumnFacts(
        name=column["name"],
        type=types.get(column["name"], ""),  # as the database writes it; SQLAlchemy does not know those of extensions
        nullable=column["nullable"],
        default=(computed["sqltext"] if computed else column.get("default")) or "",
        generated=generated,
        comment=column.get("comment") or "",
    )


def _kinds(inspector: Inspector, schema: str) -> dict[str, Kind]:
    found: dict[str, Kind] = dict.fromkeys(inspector.get_table_names(schema), "table")
    found |= dict.fromkeys(inspector.get_view_names(schema), "view")
    return found | dict.fromkeys(inspector.get_materialized_view_names(schema), "materialized view")


def _must_have(name: str, known: Iterable[str], what: str) -> None:
    names = sorted(known)
    if name in names:
        return
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Refused(f"There is no {what} {name}.{hint}")


@contextmanager
def _inspecting(database: Database) -> Iterator[tuple[Inspector, Connection]]:
    """SQLAlchemy's inspector on a connection of the database's, with its limits."""
    with database.reading() as raw:
        engine = create_engine("postgresql+psycopg://", creator=lambda: raw, poolclass=NullPool)
        try:
            with engine.connect() as connection:
                database.limit(raw)  # getting to know the database, SQLAlchemy has ended the transaction
                yield inspect(connection), connection
        except DBAPIError as error:
            if error.orig is not None:
                raise error.orig from None
            raise
        except NoSuchTableError as error:
            raise Refused(f"There is no table {error} any more.") from None

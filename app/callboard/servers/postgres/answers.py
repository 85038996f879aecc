"""What the tools answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

Kind = Literal["table", "view", "materialized view"]


@dataclass(frozen=True)
class Schemas:
    """The answer of list_schemas."""

    schemas: list[str]
    default: Annotated[str, Field(description="The schema that a name without one is looked for in")]


@dataclass(frozen=True)
class Table:
    """A table or view in a list."""

    name: str
    kind: Kind
    comment: str


@dataclass(frozen=True)
class Tables:
    """The answer of list_tables."""

    schema: str
    tables: list[Table]
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ColumnFacts:
    """A column of a table. ``default`` is an expression of SQL; "" where there is none."""

    name: str
    type: str
    nullable: bool
    default: str
    generated: Annotated[str, Field(description="identity, computed, or empty")]
    comment: str


@dataclass(frozen=True)
class ForeignKey:
    """Columns whose values stand in another table."""

    columns: list[str]
    schema: str
    table: str
    references: list[str]


@dataclass(frozen=True)
class Index:
    """An index. Expressions stand in ``columns`` as SQL."""

    name: str
    columns: list[str]
    unique: bool


@dataclass(frozen=True)
class Check:
    """A condition that every row meets."""

    name: str
    condition: str


@dataclass(frozen=True)
class TableFacts:
    """The answer of describe_table."""

    schema: str
    table: str
    kind: Kind
    comment: str
    columns: list[ColumnFacts]
    primaryKey: list[str]
    foreignKeys: list[ForeignKey]
    unique: list[list[str]]
    indexes: list[Index]
    checks: list[Check]


@dataclass(frozen=True)
class Column:
    """A column of a query's answer."""

    name: str
    type: str


@dataclass(frozen=True)
class Rows:
    """The answer of execute_query."""

    columns: list[Column]
    rows: Annotated[
        list[list[Any]],
        Field(description="A list of values for each row; what JSON has no form for is text as PostgreSQL writes it"),
    ]
    rowCount: Annotated[int, Field(description="How many rows are here")]
    truncated: Annotated[bool, Field(description="Whether the query has more rows than are here")]
    remarks: list[str] = field(default_factory=list)

"""The tools of the server that reads a PostgreSQL database. Each is called in a thread of its own."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter

from callboard.servers import importing_fastmcp
from callboard.servers.kit import add_tool, new_server, note_block, refused, tell_person, text_block
from callboard.servers.postgres.answers import Rows, Schemas, TableFacts, Tables
from callboard.servers.postgres.database import Database, Refused
from callboard.servers.postgres.query import execute

with importing_fastmcp():
    from fastmcp import FastMCP
    from fastmcp.tools import ToolResult

NAME: Final = "postgres"
_ROWS: Final = 200
_MOST_ROWS: Final = 5_000
_INSTRUCTIONS: Final = (
    "Reads a PostgreSQL database and changes nothing in it. Look at list_schemas, list_tables and describe_table "
    "before you write a query for execute_query."
)

Schema = Annotated[str, Field(description="The schema; list_schemas names them")]


class Questions:
    """The tools, for one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_schemas(self) -> Schemas:
        """Lists the database's schemas, without those of PostgreSQL itself."""
        from callboard.servers.postgres import schema

        return schema.schemas(self._database)

    def list_tables(self, schema: Schema = "public") -> Tables:
        """Lists the tables and views of a schema with their comments."""
        from callboard.servers.postgres import schema as inspection

        return inspection.tables(self._database, schema)

    def describe_table(
        self,
        table: Annotated[str, Field(description="The table or view, without its schema")],
        schema: Schema = "public",
    ) -> TableFacts:
        """Describes a table or view: columns and their types, keys, indexes, conditions and comments."""
        from callboard.servers.postgres import schema as inspection

        return inspection.table(self._database, schema, table)

    def execute_query(
        self,
        sql: Annotated[str, Field(description="One statement: SELECT, WITH, VALUES, TABLE, EXPLAIN or SHOW")],
        limit: Annotated[int, Field(ge=1, le=_MOST_ROWS, description="How many rows to answer at most")] = _ROWS,
    ) -> Rows:
        """Executes one statement that only reads, and answers with its rows.

        It runs in a read-only transaction of its own that is rolled back, and is cancelled when it takes long. Very
        long values are cut. Ask for what is needed: name columns, aggregate, and filter with WHERE.
        """
        return execute(self._database, sql, limit)

    def warnings(self) -> list[str]:
        """What the person should know of the database's user; [] while the database cannot be asked."""
        try:
            return self._database.warnings()
        except Refused:
            return []


def make_server(database: Database) -> FastMCP[Any]:
    """The MCP server for a database."""
    questions = Questions(database)
    server = new_server(NAME, _INSTRUCTIONS)
    for title, method, answer in (
        ("List schemas", questions.list_schemas, Schemas),
        ("List tables", questions.list_tables, Tables),
        ("Describe table", questions.describe_table, TableFacts),
        ("Execute query", questions.execute_query, Rows),
    ):
        warnings = questions.warnings if method == questions.list_schemas else list
        add_tool(server, _answering(method, warnings), title, TypeAdapter(answer).json_schema())
    return server


def tell_of_user(database: Database) -> None:
    """Say on stderr what the person should know of the database, or why it cannot be reached."""
    try:
        for warning in database.warnings():
            tell_person(NAME, f"warning: {warning}.")
    except Refused as error:
        tell_person(NAME, str(error))


def _answering(method: Callable[..., Any], warnings: Callable[[], list[str]]) -> Callable[..., ToolResult]:
    """A tool's method with its answer as MCP has it, and its refusals as errors that a caller sees."""

    @functools.wraps(method)
    def tool(*args: Any, **kwargs: Any) -> ToolResult:
        try:
            answer = asdict(method(*args, **kwargs))
        except Refused as error:
            raise refused(str(error)) from None
        blocks: list[Any] = [
            text_block(json.dumps(answer, indent=1 if "rows" not in answer else None, ensure_ascii=False))
        ]
        blocks += [note_block(warning, for_person=True) for warning in warnings()]
        return ToolResult(blocks, answer)

    return tool

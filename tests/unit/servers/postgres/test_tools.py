"""The tools of the server postgres, in memory against a real database."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import psycopg
import pytest
from fastmcp import Client
from fastmcp.exceptions import ToolError

from callboard.servers.postgres.database import Database, Refused, address_of
from callboard.servers.postgres.tools import make_server
from tests.support.postgresql import OWNER, READER, WRITER, PostgresServer

Ask = Callable[..., Coroutine[Any, Any, dict[str, Any]]]

# what a guard that only looks at the first word lets through
MULTI_STATEMENTS = [
    "SELECT 1; COMMIT; INSERT INTO customers (name) VALUES ('pwned'); COMMIT",
    "SELECT 1; COMMIT; BEGIN READ WRITE; CREATE TABLE zz AS SELECT 1; COMMIT",
    "SELECT 1; SELECT 2",
    "SELECT 1;;SELECT 2",
    "WITH x AS (SELECT 1) SELECT * FROM x; ROLLBACK; DROP TABLE sales.orders",
    "SELECT $$;$$; /* ; */ SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "SHOW server_version; TRUNCATE customers CASCADE",
    "EXPLAIN SELECT 1; CALL buy()",
]
WRITES = [
    "WITH x AS (INSERT INTO customers (name) VALUES ('pwned') RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM sales.orders RETURNING *) SELECT * FROM x",
    "SELECT * INTO zz FROM customers",
    "SELECT * FROM customers FOR UPDATE",
    "SELECT nextval('numbers')",
    "SELECT setval('numbers', 7)",
    "EXPLAIN ANALYZE DELETE FROM sales.orders",
    "EXPLAIN ANALYZE INSERT INTO customers (name) VALUES ('pwned')",
]
UNDONE = [  # carried out by some versions, but in a transaction that is rolled back
    "EXPLAIN ANALYZE CREATE TABLE zz AS SELECT 1",
    "SELECT lo_create(4711)",
]
TURNS = [  # attempts to make the transaction one that writes
    "SELECT set_config('transaction_read_only', 'off', false)",
    "SELECT set_config('transaction_read_only', 'off', true)",
    "WITH x AS (SELECT set_config('transaction_read_only', 'off', true)), "
    "y AS (INSERT INTO customers (name) VALUES ('pwned') RETURNING 1) SELECT * FROM x, y",
]
COMMANDS = [
    "INSERT INTO customers (name) VALUES ('pwned')",
    "SET TRANSACTION READ WRITE",
    "SET default_transaction_read_only = off",
    "COMMIT",
    "CALL buy()",
    "DO $$ BEGIN COMMIT; INSERT INTO customers (name) VALUES ('pwned'); END $$",
    "COPY customers TO PROGRAM 'cat > /tmp/pwned'",
    "COPY customers TO '/tmp/pwned'",
    "LISTEN x",
    "LOCK TABLE customers",
    "PREPARE p AS SELECT 1",
    "VACUUM",
]


@pytest.fixture
def database(postgresql: PostgresServer) -> Database:
    return Database(postgresql.address(), seconds=10)


@pytest.fixture
async def client(database: Database) -> AsyncIterator[Client[Any]]:
    async with Client(make_server(database)) as client:
        yield client


def asking(client: Client[Any]) -> Ask:
    async def ask(sql: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool("execute_query", {"sql": sql, **arguments})
        answer: dict[str, Any] = result.structured_content
        assert json.loads(result.content[0].text) == answer
        return answer

    return ask


@pytest.fixture
def ask(client: Client[Any]) -> Ask:
    return asking(client)


async def refusal(ask: Ask, sql: str, **arguments: Any) -> str:
    with pytest.raises(ToolError) as refused:
        await ask(sql, **arguments)
    return str(refused.value)


def everything(server: PostgresServer) -> list[tuple[Any, ...]]:
    """What an attack could have changed."""
    return [
        *server.ask("SELECT name FROM customers ORDER BY id"),
        *server.ask("SELECT id FROM sales.orders"),
        *server.ask("SELECT relname FROM pg_class WHERE relnamespace >= 16384 OR relnamespace = 2200 ORDER BY relname"),
        *server.ask("SELECT last_value, is_called FROM numbers"),
        *server.ask("SELECT count(*) FROM pg_largeobject_metadata"),
        *server.ask("SELECT setconfig FROM pg_db_role_setting"),
        *server.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"),
    ]


# what is offered


async def test_assertion_33_the_four_tools_of_postgres_only_read(client: Client[Any]) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}

    assert list(tools) == ["list_schemas", "list_tables", "describe_table", "execute_query"]
    for tool in tools.values():
        assert tool.description
        assert tool.output_schema
        assert tool.annotations
        assert tool.annotations.read_only_hint is True
        for argument in tool.input_schema["properties"].values():
            assert argument["description"]


async def test_schemas_tables_and_columns_are_told(client: Client[Any]) -> None:
    async def ask(tool: str, **arguments: Any) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.call_tool(tool, arguments)).structured_content
        return answer

    assert await ask("list_schemas") == {"schemas": ["public", "sales"], "default": "public"}
    assert (await ask("list_tables"))["tables"] == [
        {"name": "customers", "kind": "table", "comment": "Whoever bought something"}
    ]
    assert [(table["name"], table["kind"]) for table in (await ask("list_tables", schema="sales"))["tables"]] == [
        ("kept", "materialized view"),
        ("orders", "table"),
        ("totals", "view"),
    ]
    customers = await ask("describe_table", table="customers")
    assert [(column["name"], column["type"], column["nullable"]) for column in customers["columns"]] == [
        ("id", "bigint", False),
        ("name", "character varying(80)", False),
        ("email", "text", True),
        ("mood", "mood", True),
    ]
    assert customers["columns"][0]["generated"] == "identity"
    assert customers["columns"][2]["comment"] == "for bills"
    assert (customers["primaryKey"], customers["unique"]) == (["id"], [["email"]])
    assert [check["name"] for check in customers["checks"]] == ["named"]
    orders = await ask("describe_table", table="orders", schema="sales")
    assert orders["foreignKeys"] == [
        {"columns": ["customer"], "schema": "public", "table": "customers", "references": ["id"]}
    ]
    assert [(index["name"], index["unique"]) for index in orders["indexes"]] == [("by_customer", False)]
    assert (await ask("describe_table", table="totals", schema="sales"))["kind"] == "view"


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("list_tables", {"schema": "sale"}, "There is no schema sale. Did you mean sales?"),
        ("list_tables", {"schema": "x'; DROP TABLE customers; --"}, "There is no schema x'"),
        ("describe_table", {"table": "customer"}, "Did you mean customers?"),
        ("describe_table", {"table": "orders"}, "There is no table or view in the schema public, called orders."),
        ("describe_table", {}, "Wrong arguments: table is missing."),
        (
            "execute_query",
            {"sql": "SELECT 1", "limit": 0},
            "Wrong arguments: limit must be greater than or equal to 1.",
        ),
        ("execute_query", {"sql": "SELECT " + "1 + " * 30_000 + "1"}, "A query may have 100000 characters at most."),
    ],
)
async def test_what_is_not_there_is_said_in_a_sentence(
    client: Client[Any], tool: str, arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(ToolError) as refused:
        await client.call_tool(tool, arguments)
    assert said in str(refused.value)


# answers


async def test_values_come_as_json_has_them_or_else_as_text(ask: Ask) -> None:
    expected = {
        "1": 1,
        "'é'::text": "é",
        "true": True,
        "null": None,
        "2.5::float8": 2.5,
        "'NaN'::float8": "NaN",
        "1.50::numeric": "1.50",
        "9007199254740993": "9007199254740993",
        """'{"k": [1, null]}'::jsonb""": {"k": [1, None]},
        "ARRAY[1, 2]": "{1,2}",
        "'\\x00ff'::bytea": "\\x00ff",
        "'infinity'::date": "infinity",
        "'bad'::mood": "bad",
        "'2026-01-02 03:04:05.678+00'::timestamptz AT TIME ZONE 'UTC'": "2026-01-02 03:04:05.678",
    }
    names = "abcdefghijklmn"
    columns = [f"{value} AS {name}" for value, name in zip(expected, names, strict=True)]

    answer = await ask(f"SELECT {', '.join(columns)}, 'again' AS a")

    assert answer["rows"] == [[*expected.values(), "again"]]
    assert [column["name"] for column in answer["columns"]] == [*names, "a"]
    types = {column["name"]: column["type"] for column in answer["columns"]}
    assert (types["b"], types["j"], types["m"], types["n"]) == ("text", "int4[]", "mood", "timestamp")


async def test_an_answer_without_rows_still_has_its_columns(ask: Ask) -> None:
    answer = await ask("SELECT id, name, mood FROM customers WHERE false")

    assert (answer["rows"], answer["rowCount"], answer["truncated"]) == ([], 0, False)
    assert answer["columns"] == [
        {"name": "id", "type": "int8"},
        {"name": "name", "type": "varchar(80)"},
        {"name": "mood", "type": "mood"},
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "-- a comment\nSELECT 1",
        "/* one /* inner */ outer */ SELECT 1",
        "(SELECT 1)",
        "VALUES (1)",
        "TABLE sales.kept",
        "SELECT 1;",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "SELECT count(*) FROM customers WHERE name LIKE '%n%'",
    ],
)
async def test_assertion_33_every_statement_that_asks_is_answered(ask: Ask, sql: str) -> None:
    assert (await ask(sql))["rows"] == [[1]]


async def test_assertion_33_signs_that_some_drivers_replace_are_taken_as_they_are(ask: Ask) -> None:
    assert (await ask("SELECT ':x', '%s', '%(y)s', '100%', '$1', '{z}'"))["rows"] == [
        [":x", "%s", "%(y)s", "100%", "$1", "{z}"]
    ]


async def test_rows_are_bounded_by_number_and_by_size(ask: Ask) -> None:
    answer = await ask("SELECT * FROM generate_series(1, 1000)", limit=3)
    assert (answer["rows"], answer["truncated"]) == ([[1], [2], [3]], True)
    assert answer["remarks"] == ["there are more than the 3 rows that were asked for"]

    assert (await ask("SELECT * FROM generate_series(1, 3)", limit=3))["truncated"] is False
    assert len((await ask("SELECT * FROM generate_series(1, 1000)"))["rows"]) == 200

    answer = await ask("SELECT repeat('x', 9000) FROM generate_series(1, 1000)", limit=1000)
    assert answer["truncated"] is True
    assert 900_000 < len(json.dumps(answer)) < 1_100_000


async def test_a_long_value_is_cut_at_a_border_of_characters(ask: Ask) -> None:
    (row,) = (await ask("SELECT repeat('é', 20000), repeat('é', 30000), to_json(repeat('é', 30000))"))["rows"]

    assert row[0] == "é" * 20_000
    assert row[1] == "é" * 20_000 + "... [10000 characters truncated]"
    assert row[2].endswith("characters truncated]")


async def test_a_value_that_fits_in_no_memory_is_not_waited_for(ask: Ask) -> None:
    said = await refusal(ask, "SELECT repeat('x', 500000000)")

    assert said == "The answer takes more than 256 MB of memory; ask for less of it."
    assert (await ask("SELECT 1"))["rows"] == [[1]]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM nothing", 'relation "nothing" does not exist (at character 15).'),
        ("SELECT nam FROM customers", 'column "nam" does not exist'),
        ("SELECT 1/0", "division by zero."),
        ("SELECT chr(0)", "null character not permitted."),
        ("SELECT FROM WHERE", 'syntax error at or near "WHERE" (at character 13).'),
        ("SELECT rolpassword FROM pg_authid", "permission denied for table pg_authid."),
    ],
)
async def test_what_the_database_says_against_a_query_is_told(ask: Ask, sql: str, said: str) -> None:
    assert said in await refusal(ask, sql)


# the guard


@pytest.mark.parametrize("user", [OWNER, WRITER])
async def test_assertion_33_several_statements_at_once_change_nothing(postgresql: PostgresServer, user: str) -> None:
    before = everything(postgresql)
    async with Client(make_server(Database(postgresql.address(user)))) as client:
        for sql in MULTI_STATEMENTS:
            assert await refusal(asking(client), sql) == "Only one statement can be sent at once."

    assert everything(postgresql) == before


@pytest.mark.parametrize("user", [OWNER, WRITER])
async def test_assertion_33_one_statement_that_writes_changes_nothing(postgresql: PostgresServer, user: str) -> None:
    before = everything(postgresql)
    async with Client(make_server(Database(postgresql.address(user)))) as client:
        ask = asking(client)
        for sql in WRITES:
            said = await refusal(ask, sql)
            assert said.startswith(("This server only reads: cannot execute ", "permission denied", "must be owner"))
        for sql in TURNS:
            assert re.search("must be set before any query|This server only reads", await refusal(ask, sql))
        for sql in COMMANDS:
            assert said_for(sql) in await refusal(ask, sql)
        for sql in UNDONE:
            with contextlib.suppress(ToolError):
                await ask(sql)

    assert everything(postgresql) == before


def said_for(command: str) -> str:
    return f"it does not execute {command.split()[0]}."


async def test_nothing_of_one_query_is_there_in_the_next(postgresql: PostgresServer) -> None:
    async with Client(make_server(Database(postgresql.address(OWNER)))) as client:
        ask = asking(client)
        await ask("SELECT pg_advisory_lock(7), set_config('search_path', 'sales', false)")
        assert (await ask("SHOW search_path"))["rows"] == [['"$user", public']]
    assert postgresql.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


async def test_a_query_is_limited_in_time_even_where_it_lifts_the_limit(postgresql: PostgresServer) -> None:
    async with Client(make_server(Database(postgresql.address(), seconds=0.3))) as client:
        for sql in ("SELECT pg_sleep(60)", "SELECT set_config('statement_timeout', '0', false), pg_sleep(60)"):
            assert await refusal(asking(client), sql) == "The query took longer than 0.3 s and was cancelled."


async def test_a_lock_of_somebody_else_is_not_waited_for(postgresql: PostgresServer, ask: Ask) -> None:
    with psycopg.connect(postgresql.address(OWNER)) as other:
        other.execute("LOCK TABLE customers IN ACCESS EXCLUSIVE MODE")
        assert "waits for a lock that somebody else holds" in await refusal(ask, "SELECT * FROM customers")


async def test_a_database_that_has_stopped_answering_is_given_up(postgresql: PostgresServer) -> None:
    database = Database(postgresql.address(OWNER), seconds=0.5)
    async with Client(make_server(database)) as client:
        asked = asyncio.ensure_future(refusal(asking(client), "SELECT pg_sleep(60)"))
        pid = await _pid_of(postgresql, "SELECT pg_sleep(60)")
        os.kill(pid, signal.SIGSTOP)
        try:
            assert await asked == "The database did not answer within 3.5 s."
        finally:
            os.kill(pid, signal.SIGCONT)


async def _pid_of(server: PostgresServer, sql: str) -> int:
    async with asyncio.timeout(60):
        while True:
            rows = server.ask("SELECT pid FROM pg_stat_activity WHERE query = %s AND state = 'active'", sql)
            if rows:
                return int(rows[0][0])
            await asyncio.sleep(0.01)


# who is asked


async def test_a_user_who_may_do_more_than_read_is_warned_of(postgresql: PostgresServer) -> None:
    found = {}
    for user in (OWNER, WRITER, READER):
        async with Client(make_server(Database(postgresql.address(user)))) as client:
            _, *notes = (await client.call_tool("list_schemas")).content
            assert all(note.annotations.audience == ["user"] for note in notes)
            found[user] = [note.text for note in notes]

    assert "user owner is a superuser" in found[OWNER][0]
    assert "user writer may write, to public.customers among others" in found[WRITER][0]
    assert found[READER] == []


def test_a_role_of_the_system_s_own_is_warned_of(postgresql: PostgresServer) -> None:
    postgresql.ask("CREATE ROLE spy LOGIN IN ROLE pg_read_server_files")

    assert "belongs to pg_read_server_files" in Database(postgresql.address("spy")).warnings()[0]


@pytest.mark.parametrize(
    "address",
    [
        "mysql://me:hunter2@host/db",
        "postgresql://me:hunter2@host/db?ssl=hunter2",
        "me:hunter2",
        "host=x password=hunter2 oops",
    ],
)
def test_an_address_that_is_none_is_refused_without_a_word_of_it(address: str) -> None:
    with pytest.raises(Refused) as refused:
        Database(address)
    assert str(refused.value).startswith("DATABASE_URL is not the address of a PostgreSQL database")
    assert "hunter2" not in str(refused.value)


async def test_a_database_that_cannot_be_reached_is_said_so_without_the_password(postgresql: PostgresServer) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        addresses = {
            f"postgresql://me:hunter2@127.0.0.1:{nobody.getsockname()[1]}/db": "Connection refused",
            postgresql.address(database="hunter2"): 'database "***" does not exist',
            postgresql.address("nobody"): 'role "nobody" does not exist',
        }
        for address, said in addresses.items():
            async with Client(make_server(Database(address))) as client:
                for tool, arguments in (("execute_query", {"sql": "SELECT 1"}), ("list_schemas", {})):
                    with pytest.raises(ToolError) as refused:
                        await client.call_tool(tool, arguments)
                    assert str(refused.value).startswith("The database cannot be reached, or has ended: ")
                    assert said in str(refused.value)
                    assert "hunter2" not in str(refused.value)


async def test_assertion_33_an_address_may_name_a_driver(postgresql: PostgresServer) -> None:
    for scheme in ("postgresql+psycopg:", "postgres:", "postgres+asyncpg:"):
        address = postgresql.address().replace("postgresql:", scheme)
        async with Client(make_server(Database(address))) as client:
            assert (await asking(client)("SELECT current_user"))["rows"] == [[READER]]


def test_the_address_stands_in_the_environment() -> None:
    assert address_of({"DATABASE_URL": " postgresql://x/y "}) == "postgresql://x/y"
    assert address_of({"DATABASE_URL": " ", "PGHOST": "x"}) == ""
    assert address_of({"PATH": "/bin"}) is None


async def test_many_queries_at_once_take_turns(postgresql: PostgresServer) -> None:
    async with Client(make_server(Database(postgresql.address()))) as client:
        ask = asking(client)
        answers = await asyncio.gather(*(ask(f"SELECT {number}, pg_sleep(0.02)") for number in range(20)))

    assert [answer["rows"][0][0] for answer in answers] == list(range(20))

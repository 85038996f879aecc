"""The server postgres as the process that the engine starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from callboard import __version__
from tests.support.postgresql import OWNER, PostgresServer
from tests.support.processes import until

MODULE = ["-m", "callboard.servers.postgres"]


def server(address: str, log: Path, *options: str) -> StdioTransport:
    return StdioTransport(
        sys.executable, [*MODULE, *options], env={"DATABASE_URL": address}, keep_alive=False, log_file=log
    )


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_answers_and_tells_the_person_of_the_user_alone(
    postgresql: PostgresServer, tmp_path: Path, mode: str
) -> None:
    log = tmp_path / "stderr"
    client: Client[Any]
    async with Client(server(postgresql.address(OWNER), log, "--timeout", "5"), mode=mode) as client:
        assert (client.server_info.name, client.server_info.version) == ("postgres", __version__)
        answer = await client.call_tool("execute_query", {"sql": "SELECT name FROM customers ORDER BY id"})
        assert answer.structured_content["rows"] == [["Ann"], ["Bob"]]
        with pytest.raises(ToolError, match="Only one statement"):
            await client.call_tool("execute_query", {"sql": "SELECT 1; DROP TABLE customers"})
        await until(lambda: log.read_text())

    (line,) = log.read_text().splitlines()
    assert line.startswith("postgres: warning: the database's user owner is a superuser")


async def test_types_that_sqlalchemy_does_not_know_are_told_and_make_no_noise(
    postgresql: PostgresServer, tmp_path: Path
) -> None:
    postgresql.ask("CREATE TYPE pair AS (a int, b int)")
    postgresql.ask("CREATE TABLE IF NOT EXISTS sales.pairs (both_ pair)")
    log = tmp_path / "stderr"
    client: Client[Any]
    async with Client(server(postgresql.address(), log)) as client:
        facts = await client.call_tool("describe_table", {"table": "pairs", "schema": "sales"})
    postgresql.ask("DROP TABLE sales.pairs")

    assert facts.structured_content["columns"][0]["type"] == "pair"
    assert log.read_text() == ""


async def test_a_database_that_cannot_be_reached_stands_in_the_log(postgresql: PostgresServer, tmp_path: Path) -> None:
    log = tmp_path / "stderr"
    client: Client[Any]
    async with Client(server(postgresql.address("nobody"), log)) as client:
        assert len(await client.list_tools()) == 4
        await until(lambda: log.read_text())

    assert 'role "nobody" does not exist' in log.read_text()
    assert "hunter2" not in log.read_text()


@pytest.mark.parametrize(
    ("environment", "options", "said"),
    [
        ({}, [], "DATABASE_URL is not set; it must say where the database is: postgresql://user@host/database."),
        ({"DATABASE_URL": "hunter2"}, [], "DATABASE_URL is not the address of a PostgreSQL database, such as"),
        ({"DATABASE_URL": "postgresql://x"}, ["--timeout", "0"], "--timeout must be between 0.1 and 3600 seconds."),
    ],
)
def test_it_says_why_it_cannot_start(environment: dict[str, str], options: list[str], said: str) -> None:
    done = run(environment, *options)

    assert done.returncode == 2
    assert done.stderr.startswith(f"postgres: {said}")
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr


def test_it_says_which_packages_are_missing(tmp_path: Path) -> None:
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "hidden = ('psycopg', 'sqlalchemy')\n"
        "importlib.util.find_spec = lambda name, *more: None if name in hidden else find(name, *more)\n"
    )

    done = run({"DATABASE_URL": "postgresql://x", "PYTHONPATH": str(tmp_path)})

    assert done.returncode == 2
    assert done.stderr == (
        "postgres: psycopg[binary] and SQLAlchemy must be installed beside Callboard: "
        "pip install 'callboard[postgres]'.\n"
    )


def run(environment: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *MODULE, *options],
        env={"PATH": os.defpath, "HOME": os.environ["HOME"], **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

"""A real PostgreSQL for tests: in a folder of its own, reached through its own socket only, ended with the tests."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pwd

READY_SECONDS = 30.0
OWNER = "owner"  # a superuser
READER = "reader"  # may only read
WRITER = "writer"  # may write to one table
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}


class PostgresServer:
    """A running server with one database, "shop"."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = itertools.count(1)

    def address(self, user: str = READER, database: str = "shop") -> str:
        """The database's address for a user; the password is not asked for."""
        return f"postgresql://{user}:hunter2@/{database}?host={self.folder}"

    @property
    def socket(self) -> Path:
        """The server's socket."""
        return self.folder / ".s.PGSQL.5432"

    def make_database(self) -> str:
        """A new empty database, which belongs to the owner; its name."""
        name = f"made_{next(self._numbers)}"
        self.ask(f"CREATE DATABASE {name}", database="postgres")
        return name

    def ask(self, sql: str, *parameters: object, database: str = "shop") -> list[tuple[Any, ...]]:
        """Execute a statement as the owner, and commit; the rows if it has any."""
        import psycopg

        with psycopg.connect(self.address(OWNER, database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """A server with the roles owner, reader and writer and some tables in the database "shop"."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not here (Debian package postgresql)")
    # not below pytest's folder: no other user may go there, and a socket's path must be short
    folder = Path(tempfile.mkdtemp(prefix="callboard-postgres-"))
    user = _user()
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        _run(user, programs / "initdb", "-D", folder / "data", "-U", OWNER, "-A", "trust", "-E", "UTF8", "--no-sync")
        server = PostgresServer(folder)
        process = _start(user, programs / "postgres", folder)
        try:
            _wait_until_ready(server, process)
            _fill(server)
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # a fast shutdown
            process.wait()
    finally:
        shutil.rmtree(folder)


def _programs() -> Path | None:
    """Where initdb and postgres are; Debian keeps them off the PATH, one folder for each version."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name.zfill(4), reverse=True
    )
    if on_path := shutil.which("postgres"):
        folders.append(Path(on_path).resolve().parent)
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _user() -> pwd.struct_passwd | None:
    """Who runs the server: it refuses to run as root."""
    import pwd

    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("there is no user but root to run PostgreSQL")


def _as(user: pwd.struct_passwd | None) -> dict[str, Any]:
    return {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _run(user: pwd.struct_passwd | None, *command: str | Path) -> None:
    done = subprocess.run(command, env=_ENVIRONMENT, cwd="/", capture_output=True, text=True, check=False, **_as(user))
    assert done.returncode == 0, done.stderr


def _start(user: pwd.struct_passwd | None, program: Path, folder: Path) -> subprocess.Popen[bytes]:
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(folder),
        "fsync": "off",
        "shared_buffers": "16MB",
        "max_connections": "40",
        "autovacuum": "off",
    }
    options = [text for name, value in settings.items() for text in ("-c", f"{name}={value}")]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [program, "-D", folder / "data", *options],
            env=_ENVIRONMENT,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            **_as(user),
        )


def _wait_until_ready(server: PostgresServer, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            psycopg.connect(server.address(OWNER, "postgres")).close()
        except psycopg.OperationalError as error:
            log = (server.folder / "log").read_text(errors="replace")
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"PostgreSQL did not start: {error}\n{log}") from error
            time.sleep(0.05)
        else:
            return


def _fill(server: PostgresServer) -> None:
    import psycopg

    with psycopg.connect(server.address(OWNER, "postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE shop")
        connection.execute("CREATE DATABASE agents")
    for statement in _TABLES.split(";\n"):
        server.ask(statement)


_TABLES = """
CREATE SCHEMA sales;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name varchar(80) NOT NULL,
    email text UNIQUE,
    mood mood DEFAULT 'good',
    CONSTRAINT named CHECK (name <> '')
);
COMMENT ON TABLE customers IS 'Whoever bought something';
COMMENT ON COLUMN customers.email IS 'for bills';
CREATE TABLE sales.orders (
    id serial PRIMARY KEY,
    customer bigint NOT NULL REFERENCES customers (id),
    price numeric(10, 2) NOT NULL,
    tax numeric(10, 2) GENERATED ALWAYS AS (price * 0.19) STORED,
    placed timestamptz,
    details jsonb
);
CREATE INDEX by_customer ON sales.orders (customer, lower(details ->> 'note'));
CREATE VIEW sales.totals AS SELECT customer, sum(price) AS total FROM sales.orders GROUP BY customer;
CREATE MATERIALIZED VIEW sales.kept AS SELECT 1 AS one;
CREATE SEQUENCE numbers;
CREATE PROCEDURE buy() LANGUAGE sql AS $$ INSERT INTO public.customers (name) VALUES ('bought') $$;
INSERT INTO customers (name, email) VALUES ('Ann', 'ann@example.com'), ('Bob', NULL);
INSERT INTO sales.orders (customer, price, placed, details)
    VALUES (1, 12.50, '2026-01-02 03:04:05+00', '{"note": "Hi"}');
CREATE ROLE reader LOGIN PASSWORD 'hunter2';
CREATE ROLE writer LOGIN PASSWORD 'hunter2';
GRANT USAGE ON SCHEMA sales TO reader, writer;
GRANT SELECT ON ALL TABLES IN SCHEMA public, sales TO reader, writer;
GRANT INSERT ON customers TO writer;
REVOKE CREATE ON SCHEMA public FROM PUBLIC
"""

"""The shared database: its tables' versions, and who brings it there."""

import asyncio
import time

import pytest
import sqlalchemy as sql
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from callboard.agents.sql_store import SqlStore
from callboard.core.errors import CallboardError
from callboard.engine.storage.database import Database, DatabaseAwayError
from callboard.engine.storage.migrations import VERSION_TABLE
from callboard.engine.storage.tables import METADATA
from tests.support.postgresql import OWNER, PostgresServer

pytestmark = pytest.mark.timeout(180)  # real databases, and waits for what they tell


@pytest.fixture
def direct(postgresql: PostgresServer, database: str) -> str:
    """The database's address, without a wire that could be cut."""
    return postgresql.address(OWNER, database)


def test_the_steps_lead_to_the_tables_in_use(direct: str) -> None:
    database = Database(direct, "one", lambda: None)
    with database.begin() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        differences = compare_metadata(context, METADATA)
    database.close()
    # indexes stand in the steps alone, and the agents' table is theirs
    found = [difference for difference in differences if difference[0] != "remove_index"]
    assert [(what, table.name) for what, table in found] == [("remove_table", "callboard_conversations")]


def test_an_agent_finds_its_table(direct: str, postgresql: PostgresServer, database: str) -> None:
    """Whoever makes it first, the other one finds what it needs."""

    def columns() -> list[tuple[object, ...]]:
        asked = "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = %s"
        return sorted(postgresql.ask(asked, "callboard_conversations", database=database))

    SqlStore(direct).close()
    agents_own = columns()
    postgresql.ask("DROP TABLE callboard_conversations", database=database)
    engine = Database(direct, "one", lambda: None)
    with engine.begin():
        pass
    engine.close()
    assert columns() == agents_own
    SqlStore(direct).close()


async def test_engines_that_start_together_make_the_tables_once(direct: str) -> None:
    databases = [Database(direct, f"engine{number}", lambda: None) for number in range(6)]

    def reach(database: Database) -> int | None:
        with database.begin():
            return database.number

    numbers = await asyncio.gather(*(asyncio.to_thread(reach, database) for database in databases))
    for database in databases:
        database.close()
    assert len(set(numbers)) == 6


def test_a_database_of_a_newer_version_is_left_alone(
    direct: str, postgresql: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = Database(direct, "one", lambda: None)
    with first.begin():
        pass
    first.close()
    postgresql.ask(f"UPDATE {VERSION_TABLE} SET version_num = '9999'", database=database)
    second = Database(direct, "two", lambda: None)
    with pytest.raises(DatabaseAwayError, match="made by a newer Callboard"), second.begin():
        pass
    second.close()
    assert "newer" in caplog.text
    assert postgresql.ask("SELECT count(*) FROM callboard_engines", database=database) == [(1,)]


def test_a_database_that_was_made_anew_gets_its_tables_again(
    direct: str, postgresql: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    used = Database(direct, "one", lambda: None)
    with used.begin():
        pass
    postgresql.ask("DROP SCHEMA public CASCADE", database=database)
    postgresql.ask("CREATE SCHEMA public", database=database)
    with pytest.raises(DatabaseAwayError), used.begin() as connection:
        connection.execute(sql.select(METADATA.tables["callboard_calls"]))
    while used.retry_in():  # a quarter to half a second
        time.sleep(0.02)
    with used.begin() as connection:
        assert connection.execute(sql.select(METADATA.tables["callboard_calls"])).all() == []
    used.close()
    assert "is away" in caplog.text


@pytest.mark.parametrize("address", ["postgresql://host:port/x", "postgresql://u@h:1:2/d"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(CallboardError) as failed:
        Database(address, "one", lambda: None)
    assert failed.value.code == "storage-invalid"

"""Brings a database to the tables of this version, by Alembic; each step is a module in ``versions``."""

from pathlib import Path
from typing import Final

import sqlalchemy as sql
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError

from callboard.core.errors import CallboardError

VERSION_TABLE: Final = "callboard_schema"
_LOCK: Final = 0x43414C4C  # of those who bring the database to a version: one at a time


def upgrade(connection: sql.Connection) -> None:
    """Take the steps that are missing, in the connection's transaction; other engines wait meanwhile.

    Raises ``storage-newer`` where a newer Callboard has been, and ``sqlalchemy.exc.SQLAlchemyError``.
    """
    connection.execute(sql.select(sql.func.pg_advisory_xact_lock(_LOCK)))
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    steps = ScriptDirectory.from_config(config)
    try:
        with EnvironmentContext(config, steps, fn=lambda at, _: steps._upgrade_revs("head", at)) as environment:
            environment.configure(connection=connection, version_table=VERSION_TABLE)
            environment.run_migrations()
    except CommandError as error:
        raise CallboardError("storage-newer", "The database was made by a newer Callboard.") from error

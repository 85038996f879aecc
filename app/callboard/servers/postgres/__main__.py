"""`python -m callboard.servers.postgres`: serves on standard input and output."""

from __future__ import annotations

import argparse
import importlib.util
import os
import threading
import warnings
from typing import Final

from callboard.servers.kit import give_up

NAME: Final = "postgres"
_NEEDED: Final = {"psycopg": "psycopg[binary]", "sqlalchemy": "SQLAlchemy"}


def main() -> None:
    """Serve until the client closes the input. The address of the database stands in DATABASE_URL."""
    parser = argparse.ArgumentParser(prog="callboard.servers.postgres", description="Reads a PostgreSQL database.")
    parser.add_argument(
        "--timeout", type=float, default=15.0, metavar="SECONDS", help="time limit of a statement (default: 15)"
    )
    options = parser.parse_args()
    if not 0.1 <= options.timeout <= 3600:
        give_up(NAME, "--timeout must be between 0.1 and 3600 seconds.")
    if missing := [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]:
        give_up(NAME, f"{' and '.join(missing)} must be installed beside Callboard: pip install 'callboard[postgres]'.")
    serve(options.timeout)


def serve(seconds: float) -> None:
    """Serve the database that the environment names."""
    from callboard.servers.postgres.database import ADDRESS, Database, Refused, address_of
    from callboard.servers.postgres.tools import make_server, tell_of_user

    address = address_of(os.environ)
    if address is None:
        give_up(NAME, f"{ADDRESS} is not set; it must say where the database is: postgresql://user@host/database.")
    try:
        database = Database(address, seconds=seconds)
    except Refused as error:
        give_up(NAME, str(error))
    # Types of extensions are asked for in another way.
    warnings.filterwarnings("ignore", message="Did not recognize type")
    threading.Thread(target=tell_of_user, args=(database,), daemon=True, name="look at the database").start()
    make_server(database).run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main()

"""`python -m callboard.servers.filesystem FOLDER...`: serves on standard input and output."""

from __future__ import annotations

import argparse
import os

from callboard.servers.filesystem.places import Roots
from callboard.servers.filesystem.tools import NAME, Files, make_server
from callboard.servers.kit import give_up, tell_person


def main() -> None:
    """Serve until the client closes the input. Folders that are not there are passed over as long as one is."""
    parser = argparse.ArgumentParser(prog="callboard.servers.filesystem", description="Reads files, and changes none.")
    parser.add_argument(
        "folders", nargs="*", metavar="FOLDER", help="may be read with all below it (default: WORKSPACE_ROOT)"
    )
    parser.add_argument(
        "--hard-links",
        choices=("warn", "refuse"),
        default="warn",
        help="what to do with files that may have a name outside of the folders as well (default: warn)",
    )
    parser.add_argument(
        "--max-file-mb", type=float, default=4.0, metavar="MB", help="how much of a file is read at once (default: 4)"
    )
    options = parser.parse_args()
    folders = options.folders or [os.environ[name] for name in ("WORKSPACE_ROOT",) if os.environ.get(name)]
    if not folders:
        give_up(NAME, "name the folders that may be read as arguments.")
    if not 0 < options.max_file_mb <= 32:
        give_up(NAME, "--max-file-mb must be between 0 and 32.")
    roots, problems = Roots.of(folders)
    for problem in problems:
        tell_person(NAME, problem)
    if roots is None:
        give_up(NAME, "none of the folders that may be read is there.")
    limit = int(options.max_file_mb * 1024 * 1024)
    make_server(Files(roots, limit=limit, hard_links=options.hard_links)).run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main()

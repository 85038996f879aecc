"""The way to a file: from its root, one folder after the other, each opened in the one before it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from callboard.servers.filesystem.folder import Folder
from callboard.servers.filesystem.places import Place

if sys.platform == "win32":
    from callboard.servers.filesystem.windows import WindowsFolder as SystemFolder
else:
    from callboard.servers.filesystem.posix import PosixFolder as SystemFolder


def open_folder(place: Place) -> Folder:
    """Open the folder that a place is; raises Refused."""
    folder: Folder = SystemFolder.root(place.root)
    for part in place.parts:
        with folder:
            folder = folder.folder(part)
    folder.path = place.path
    return folder


@contextmanager
def parent_of(place: Place) -> Iterator[tuple[Folder, str]]:
    """The open folder that a place is in, and its name there; for a root itself the root, and "". Raises Refused."""
    path = os.path.dirname(place.path) if place.parts else place.path  # noqa: PTH120
    with open_folder(Place(place.root, place.parts[:-1], path)) as folder:
        yield folder, place.parts[-1] if place.parts else ""

"""Folders on Linux and macOS: everything is opened in the folder that it is in, by its descriptor.

A link that stands where a folder or file should be is refused by the system in the very moment of opening
(O_NOFOLLOW), so there is no time between a check and its use in which somebody could put one there. What was opened
stays what it was, whatever happens to its name meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from callboard.servers.filesystem.folder import Item, item_of, link_refused, must_be_regular, said_of, within
from callboard.servers.filesystem.places import Refused, Root, shown

# O_PATH passes through folders that may not be listed, as a path would; without it they must be readable.
_PASS: Final[int] = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER: Final[int] = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
# A pipe that nobody writes to must not hold us up, and a terminal must not become ours.
_FILE: Final[int] = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)
_NOFOLLOW_ANY: Final[int] = getattr(os, "O_NOFOLLOW_ANY", 0)  # macOS: no link anywhere in a path
_OBSTACLES: Final = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK)


class PosixFolder:
    """See Folder."""

    def __init__(self, descriptor: int, path: str) -> None:
        """The descriptor becomes this object's own."""
        self._descriptor = descriptor
        self.path = path

    @classmethod
    def root(cls, root: Root) -> PosixFolder:
        """Open a root. Its own path, too, is free of links, or else somebody has put one there since the start."""
        if _NOFOLLOW_ANY:
            with _telling(root.named):
                return cls(os.open(root.real, os.O_RDONLY | _NOFOLLOW_ANY), root.named)
        folder = cls(os.open("/", _PASS | _FOLDER), "/")
        for part in filter(None, root.real.split("/")):
            with folder:
                folder = folder.folder(part)
        folder.path = root.named
        return folder

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """See Folder."""
        os.close(self._descriptor)

    def folder(self, name: str) -> PosixFolder:
        """See Folder."""
        path = within(self.path, name)
        with _telling(path, lambda: self._obstacle(name, path, "a folder")):
            return PosixFolder(os.open(name, _PASS | _FOLDER, dir_fd=self._descriptor), path)

    def file(self, name: str) -> tuple[int, os.stat_result]:
        """See Folder."""
        path = within(self.path, name)
        with _telling(path, lambda: self._obstacle(name, path, "a file")):
            # to open a device can have effects, so it is not tried with what is one already
            must_be_regular(os.stat(name, dir_fd=self._descriptor, follow_symlinks=False), path)
            descriptor = os.open(name, _FILE, dir_fd=self._descriptor)
            try:
                status = os.fstat(descriptor)
                must_be_regular(status, path)
            except BaseException:
                os.close(descriptor)
                raise
            return descriptor, status

    def look(self, name: str) -> os.stat_result:
        """See Folder."""
        with _telling(within(self.path, name)):
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False) if name else os.fstat(self._descriptor)

    def items(self, limit: int) -> list[Item]:
        """See Folder."""
        with _telling(self.path):
            listing = os.open(".", os.O_RDONLY | _FOLDER, dir_fd=self._descriptor)
            try:
                with os.scandir(listing) as entries:
                    return [item_of(entry) for entry in itertools.islice(entries, limit)]
            finally:
                os.close(listing)

    def _obstacle(self, name: str, path: str, wanted: str) -> str:
        """What stands in the way, for the message alone: the system has refused it already."""
        with contextlib.suppress(OSError):
            return link_refused(path, os.readlink(name, dir_fd=self._descriptor))
        return f"{shown(path)} is not {wanted}."


@contextmanager
def _telling(path: str, obstacle: Callable[[], str] | None = None) -> Iterator[None]:
    """Turn the system's errors into sentences; ``obstacle`` says what is no folder, or a link."""
    try:
        yield
    except OSError as error:
        if obstacle is not None and error.errno in _OBSTACLES:
            raise Refused(obstacle()) from None
        raise Refused(said_of(error, path)) from None

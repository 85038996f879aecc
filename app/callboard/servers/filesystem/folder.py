"""An open folder: what can be done in one on any system, and how it is said when something cannot."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from typing import Final, Literal, Protocol, Self

from callboard.servers.filesystem.places import Refused, shown

Kind = Literal["file", "folder", "link", "other"]

_OTHER_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


@dataclass(frozen=True)
class Item:
    """Something in a folder, by its own nature: a link is a link, whatever it leads to."""

    name: str
    kind: Kind


class Folder(Protocol):
    """An open folder. Whoever gets one closes it. Raises Refused for what is not given.

    ``path`` is its path as the caller sees it.
    """

    path: str

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None:
        """Let go of it."""

    def folder(self, name: str) -> Folder:
        """Open a folder in this one."""

    def file(self, name: str) -> tuple[int, os.stat_result]:
        """Open a regular file in this folder; the descriptor is the caller's to close."""

    def look(self, name: str) -> os.stat_result:
        """What something in this folder is, without following a link or opening it; "" for the folder itself."""

    def items(self, limit: int) -> list[Item]:
        """At most ``limit`` of what is in it, in no order."""


def within(path: str, name: str) -> str:
    """The path of something in the folder ``path``."""
    return os.path.join(path, name)  # noqa: PTH118  names need not be valid Unicode, and nothing is resolved


def item_of(entry: os.DirEntry[str]) -> Item:
    """An entry of a folder, without a look at what a link leads to."""
    if entry.is_symlink() or entry.is_junction() if hasattr(entry, "is_junction") else entry.is_symlink():
        return Item(entry.name, "link")
    if entry.is_dir(follow_symlinks=False):
        return Item(entry.name, "folder")
    return Item(entry.name, "file" if entry.is_file(follow_symlinks=False) else "other")


def kind_of(status: os.stat_result) -> Kind:
    """What a status says that was taken without following links."""
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "file" if stat.S_ISREG(status.st_mode) else "other"


def must_be_regular(status: os.stat_result, path: str) -> None:
    """Raise Refused for what is neither a regular file nor a link."""
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISLNK(status.st_mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise Refused(f"{shown(path)} is {kind}, not a file.")


def said_of(error: OSError, path: str) -> str:
    """A system's error as a sentence about a path."""
    match error.errno:
        case errno.ENOENT:
            return f"There is no file or folder {shown(path)}."
        case errno.EACCES | errno.EPERM:
            return f"Permission denied: the user who runs this server may not read {shown(path)}."
        case errno.ENAMETOOLONG:
            return "The path is too long."
        case errno.ENXIO:
            return f"{shown(path)} is a socket, not a file."
        case errno.EINVAL | errno.EILSEQ:
            return f"{shown(path)} is not a path that this system can have."
    return f"{shown(path)} could not be read: {(error.strerror or 'unknown error').lower()}."


def link_refused(path: str, target: str = "") -> str:
    """Why a link is not followed, as a sentence."""
    leads = f"{shown(path)} leads to {shown(target)}" if target else f"{shown(path)} is one"
    return f"Access denied - symbolic links are not followed: {leads}."

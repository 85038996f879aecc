"""The folders that may be read, and where in them a caller's path lies. No file is touched here but at the start."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_WINDOWS: Final = sys.platform == "win32"


class Refused(Exception):
    """What was asked for is not given; the message is a sentence for the caller."""


@dataclass(frozen=True)
class Root:
    """A folder that may be read. ``named`` is its path as the person wrote it, ``real`` the same without links."""

    named: str
    real: str


@dataclass(frozen=True)
class Place:
    """Where a path leads: through ``parts`` from a root. ``path`` is the whole path as the caller sees it."""

    root: Root
    parts: tuple[str, ...]
    path: str

    def within(self, name: str) -> str:
        """The path of something in this place."""
        return os.path.join(self.path, name)  # noqa: PTH118  names need not be valid Unicode, and nothing is resolved


class Roots:
    """All folders that may be read, at least one."""

    def __init__(self, roots: Sequence[Root]) -> None:
        self._roots = list(roots)

    @classmethod
    def of(cls, folders: Iterable[str]) -> tuple[Roots | None, list[str]]:
        """The folders that are there (None if none is), and a sentence about each that is not."""
        roots: list[Root] = []
        problems = []
        for folder in folders:
            named = os.path.abspath(os.path.expanduser(folder))  # noqa: PTH100, PTH111  see Place.within
            real = os.path.realpath(named)
            if not os.path.isdir(real):  # noqa: PTH112
                problems.append(f"{folder} is not a folder.")
            elif all(real != known.real for known in roots):
                roots.append(Root(named, real))
        return (cls(roots) if roots else None), problems

    @property
    def paths(self) -> list[str]:
        """The folders as the person named them."""
        return [root.named for root in self._roots]

    def find(self, path: str) -> Place:
        """Where ``path`` lies; a relative one is below the first root. Raises Refused for a path outside of all.

        ``..`` is taken away as text. That is right here, because no link is ever followed.
        """
        if "\0" in path:
            raise Refused("A path cannot contain a NUL character.")
        if path == "~" or path.startswith(("~/", "~\\")):
            path = os.path.expanduser(path)  # noqa: PTH111
        whole = os.path.normpath(os.path.join(self._roots[0].named, path))  # noqa: PTH118
        if whole.startswith("//"):  # POSIX leaves two slashes at the start alone
            whole = whole[1:]
        found = [
            (len(base), root, whole[len(base) :])
            for root in self._roots
            for base in {root.named, root.real}
            if _is_below(whole, base)
        ]
        if not found:
            raise Refused(
                f"Access denied - path outside allowed directories: {shown(whole)} not in {', '.join(self.paths)}"
            )
        _, root, rest = max(found, key=lambda item: item[0])
        parts = tuple(part for part in rest.split(os.sep) if part)  # noqa: PTH206
        if _WINDOWS and any(":" in part for part in parts):
            raise Refused(f"Access denied - {shown(whole)} does not name a file.")
        return Place(root, parts, whole)


def shown(name: str) -> str:
    """A name or path on one line of valid Unicode: a name that was chosen with malice must not look like two."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _is_below(path: str, base: str) -> bool:
    path, base = os.path.normcase(path), os.path.normcase(base)
    return path == base or path.startswith(base if base.endswith(os.sep) else base + os.sep)

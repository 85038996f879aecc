"""Looking through a folder and all below it: search and tree, with bounds on time, depth and number."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Final

from callboard.servers.filesystem.folder import Folder, Item, within
from callboard.servers.filesystem.globs import Glob, Globs, States
from callboard.servers.filesystem.places import Refused, shown

_TREE_KINDS: Final = {"file": "file", "folder": "directory", "link": "symlink", "other": "other"}


@dataclass
class Bounds:
    """What one look through folders may cost. ``remarks`` tell what was left out because of it."""

    seconds: float = 20.0
    entries: int = 200_000  # looked at
    found: int = 5_000  # in the answer
    depth: int = 64
    remarks: dict[str, None] = field(default_factory=dict)
    _deadline: float = 0.0

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.seconds

    def items(self, folder: Folder) -> list[Item]:
        """What is in a folder, by name; a folder that cannot be listed is remarked upon."""
        try:
            items = folder.items(self.entries + 1)
        except Refused as error:
            self.skip(error)
            return []
        if len(items) > self.entries:
            items = items[: self.entries]
            self.remarks["there are more files and folders than are looked at"] = None
        self.entries -= len(items)
        return by_name(items)

    def skip(self, error: Refused) -> None:
        """Remark on what cannot be opened, for the first few."""
        if len(self.remarks) < 10:
            self.remarks[str(error).rstrip(".")] = None

    def take(self) -> bool:
        """Whether one more may be put into the answer."""
        if self.found <= 0:
            self.remarks["there is more than this answer has"] = None
            return False
        self.found -= 1
        return True

    def is_over(self) -> bool:
        """Whether to stop."""
        if time.monotonic() > self._deadline:
            self.remarks[f"the time of {self.seconds:g} s was over before all was looked at"] = None
            return True
        return False


def by_name(items: list[Item]) -> list[Item]:
    """In the order in which people look for names."""
    return sorted(items, key=lambda item: (item.name.casefold(), item.name))


def search(folder: Folder, pattern: Glob, without: Globs, bounds: Bounds) -> list[str]:
    """The paths of all that matches below an open folder."""
    found: list[str] = []
    _search(folder, (pattern, pattern.start), (without, without.start), bounds, found, 1)
    return found


def _search(
    folder: Folder,
    wanted: tuple[Glob, States],
    unwanted: tuple[Globs, tuple[States, ...]],
    bounds: Bounds,
    found: list[str],
    depth: int,
) -> None:
    pattern, without = wanted[0], unwanted[0]
    for item in bounds.items(folder):
        if bounds.is_over():
            return
        out = without.step(unwanted[1], item.name)
        states = pattern.step(wanted[1], item.name)
        if not states or without.is_match(out):
            continue
        if pattern.is_match(states):
            if not bounds.take():
                return
            found.append(shown(within(folder.path, item.name)))
        if item.kind != "folder" or not pattern.goes_on(states):
            continue
        if depth >= bounds.depth:
            bounds.remarks[f"nothing below {bounds.depth} folders was looked at"] = None
            continue
        try:
            inner = folder.folder(item.name)
        except Refused as error:
            bounds.skip(error)
            continue
        with inner:
            _search(inner, (pattern, states), (without, out), bounds, found, depth + 1)


def tree(folder: Folder, without: Globs, bounds: Bounds) -> list[dict[str, Any]]:
    """What is below an open folder, as nested objects."""
    return _tree(folder, without, without.start, bounds, 1)


def _tree(
    folder: Folder, without: Globs, states: tuple[States, ...], bounds: Bounds, depth: int
) -> list[dict[str, Any]]:
    nodes: list[dict[str, Any]] = []
    for item in bounds.items(folder):
        if bounds.is_over():
            break
        out = without.step(states, item.name)
        if without.is_match(out):
            continue
        if not bounds.take():
            break
        node: dict[str, Any] = {"name": shown(item.name), "type": _TREE_KINDS[item.kind]}
        nodes.append(node)
        if item.kind == "folder":
            node["children"] = _children(folder, item.name, without, out, bounds, depth)
    return nodes


def _children(
    folder: Folder, name: str, without: Globs, states: tuple[States, ...], bounds: Bounds, depth: int
) -> list[dict[str, Any]]:
    if depth >= bounds.depth:
        bounds.remarks[f"nothing below {bounds.depth} folders was looked at"] = None
        return []
    try:
        inner = folder.folder(name)
    except Refused as error:
        bounds.skip(error)
        return []
    with inner:
        return _tree(inner, without, states, bounds, depth + 1)

"""Patterns for paths: `*`, `?`, `[…]` within a name, `**` for any folders, `{a,b}` for one or the other.

A pattern is followed name by name on the way down, so that a folder in which nothing can match is not entered.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Iterable
from typing import Final

from callboard.servers.filesystem.places import Refused

_ANY: Final = "**"
_MOST_ALTERNATIVES: Final = 256
_LONGEST: Final = 2000  # characters
_FLAGS: Final = re.IGNORECASE if sys.platform == "win32" else 0
_BRACES: Final = re.compile(r"\{([^{}]*)\}")

States = frozenset[tuple[int, int]]  # (alternative, how many of its segments are matched)


class Glob:
    """One pattern, relative to the folder that is searched."""

    def __init__(self, pattern: str) -> None:
        """Raises Refused for a pattern that is too long."""
        if len(pattern) > _LONGEST:
            raise Refused(f"A pattern may have {_LONGEST} characters at most.")
        self._alternatives = [_segments(each) for each in _expand(pattern.replace("\\", "/"))]
        self.start: States = self._reached((number, 0) for number in range(len(self._alternatives)))

    def step(self, states: States, name: str) -> States:
        """Where the pattern stands after one more name of a path; empty if it cannot match any more."""
        reached = set()
        for number, at in states:
            segments = self._alternatives[number]
            if at == len(segments):
                continue
            segment = segments[at]
            if segment is None:
                reached.add((number, at))
            elif segment.match(name):
                reached.add((number, at + 1))
        return self._reached(reached)

    def is_match(self, states: States) -> bool:
        """Whether the path so far matches as a whole."""
        return any(at == len(self._alternatives[number]) for number, at in states)

    def goes_on(self, states: States) -> bool:
        """Whether a longer path may match."""
        return any(at < len(self._alternatives[number]) for number, at in states)

    def _reached(self, states: Iterable[tuple[int, int]]) -> States:
        """With what is reached without a name: `**` stands for no folder, too."""
        todo, found = list(states), set[tuple[int, int]]()
        while todo:
            state = number, at = todo.pop()
            if state in found:
                continue
            found.add(state)
            segments = self._alternatives[number]
            if at < len(segments) and segments[at] is None:
                todo.append((number, at + 1))
        return frozenset(found)


class Globs:
    """Several patterns, any of which may match; one without a slash matches a name in any folder."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._globs = [Glob(each if "/" in each.strip("/") else f"**/{each.strip('/')}") for each in patterns if each]
        self.start: tuple[States, ...] = tuple(glob.start for glob in self._globs)

    def step(self, states: tuple[States, ...], name: str) -> tuple[States, ...]:
        """See Glob."""
        return tuple(glob.step(state, name) for glob, state in zip(self._globs, states, strict=True))

    def is_match(self, states: tuple[States, ...]) -> bool:
        """See Glob."""
        return any(glob.is_match(state) for glob, state in zip(self._globs, states, strict=True))


def _segments(pattern: str) -> list[re.Pattern[str] | None]:
    names = [name for name in pattern.split("/") if name not in ("", ".")]
    if names and names[-1] == _ANY:
        names.append("*")  # what is in a folder, not the folder itself
    return [None if name == _ANY else re.compile(fnmatch.translate(_negated(name)), _FLAGS) for name in names]


def _negated(name: str) -> str:
    """`[^…]` is another way to write `[!…]`."""
    return name.replace("[^", "[!")


def _expand(pattern: str) -> list[str]:
    """A pattern with braces as several without."""
    done, todo = [], [pattern]
    while todo:
        text = todo.pop()
        found = _BRACES.search(text)
        if found is None:
            done.append(text)
        else:
            todo += [text[: found.start()] + each + text[found.end() :] for each in found.group(1).split(",")]
        if len(done) + len(todo) > _MOST_ALTERNATIVES:
            raise Refused(f"A pattern may stand for {_MOST_ALTERNATIVES} others at most.")
    return done

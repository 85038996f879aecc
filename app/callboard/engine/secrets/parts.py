"""Long values in a keyring whose entries are short: Windows holds 2,560 bytes of UTF-16 in each.

A long value is written as numbered parts first and then a head that names them, so that a write which breaks off leaves
the old value, and a head whose parts are not all there reads as absent. New parts never overwrite those that the
present head names.
"""

import hashlib
import re
from collections.abc import Callable

LIMIT = 1200  # UTF-16 units in one entry
_MARK = "callboard-parts"
_HEAD = re.compile(rf"{_MARK}:(?P<side>[ab]):(?P<count>\d{{1,4}}):(?P<digest>[0-9a-f]{{32}})")

Get = Callable[[str], str | None]
Set = Callable[[str, str], None]
Delete = Callable[[str], None]


def read_parts(name: str, get: Get) -> str | None:
    """The value of ``name``, put together; None if it, or any part of it, is not there."""
    stored = get(name)
    head = _HEAD.fullmatch(stored) if stored is not None else None
    if head is None:
        return stored
    parts = [get(part) for part in _part_names(name, head)]
    value = "".join(part for part in parts if part is not None)
    return value if None not in parts and _digest(value) == head["digest"] else None


def write_parts(name: str, value: str, get: Get, put: Set, delete: Delete) -> None:
    """Store ``value`` under ``name``, in parts where it is too long for one entry."""
    old = _HEAD.fullmatch(get(name) or "")
    if len(value.encode("utf-16-le")) <= 2 * LIMIT and not value.startswith(_MARK):
        put(name, value)
    else:
        pieces = _split(value)
        side = "b" if old is not None and old["side"] == "a" else "a"
        for index, piece in enumerate(pieces):
            put(_part_name(name, side, index), piece)
        put(name, f"{_MARK}:{side}:{len(pieces)}:{_digest(value)}")
    for part in _part_names(name, old):
        delete(part)


def delete_parts(name: str, get: Get, delete: Delete) -> None:
    """Forget ``name`` and its parts, the head first."""
    old = _HEAD.fullmatch(get(name) or "")
    delete(name)
    for part in _part_names(name, old):
        delete(part)


def _part_names(name: str, head: re.Match[str] | None) -> list[str]:
    return [] if head is None else [_part_name(name, head["side"], index) for index in range(int(head["count"]))]


def _part_name(name: str, side: str, index: int) -> str:
    return f"{name}#{side}{index}"  # a secret's own name holds no #


def _split(value: str) -> list[str]:
    size = LIMIT if max(value, default="") <= "\uffff" else LIMIT // 2
    return [value[start : start + size] for start in range(0, len(value), size)]


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:32]

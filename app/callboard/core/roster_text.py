"""Changes of the roster's text that leave everything else in it byte for byte as it is.

Each function takes the whole text and returns the new one. The result is read again before it is handed out: text that
would not say exactly what was asked for is refused with ``roster-uneditable``, and the person edits by hand.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from yaml.nodes import MappingNode, Node, ScalarNode

from callboard.core.errors import CallboardError
from callboard.core.roster_render import (
    STEP,
    plain_entry,
    render_block,
    render_inline,
    render_key,
    render_pair,
    without_empty,
)
from callboard.core.roster_splice import (
    MAX_WIDTH,
    CannotSpliceError,
    Pair,
    Source,
    Splice,
    apply,
    flow_cut,
    is_block,
    splice_flow,
    splice_mapping,
)
from callboard.core.roster_yaml import RosterError, compose, read_yaml

SERVERS: Final = "servers"


def set_entry(text: str, name: str, entry: dict[str, Any], section: str = SERVERS) -> str:
    """Give ``name`` the value ``entry`` (plain values): in its place, or at the end of its section if it is new.

    ``section`` "" is the file itself: ``name`` is a mapping of its own, like "policy".
    """
    text = text.removeprefix("\ufeff")
    entries = _entries(text, section)
    new = plain_entry(entry) if section == SERVERS else without_empty(entry)
    if name in entries and isinstance(entries[name], dict) and _same(entries[name], new):
        return text
    expected = {**entries, name: new}
    ways = [lambda: _insert(text, name, new, section)]
    if name in entries:
        ways = [
            lambda: _change(text, name, entries[name], new, section),
            lambda: _rewrite(text, name, new, section),
        ]
    return _first_good(text, name, expected, ways, section)


def remove_entry(text: str, name: str, section: str = SERVERS) -> str:
    """Take the entry ``name`` out, with the comment lines directly above it."""
    text = text.removeprefix("\ufeff")
    expected = {key: value for key, value in _entries(text, section).items() if key != name}
    return _first_good(text, name, expected, [lambda: _remove(text, name, section)], section)


def rename_entry(text: str, name: str, new_name: str, section: str = SERVERS) -> str:
    """Give the entry ``name`` another name; it stays where it is."""
    text = text.removeprefix("\ufeff")
    expected = {new_name if key == name else key: value for key, value in _entries(text, section).items()}

    def rename() -> str:
        key = _find(Source(text), name, section)[1].key
        return text[: key.start_mark.index] + render_key(new_name) + text[key.end_mark.index :]

    return _first_good(text, name, expected, [rename], section)


def _entries(text: str, section: str) -> dict[str, Any]:
    value = read_yaml(text).value
    found = value.get(section) if section and isinstance(value, dict) else value
    return found if isinstance(found, dict) else {}


def _first_good(text: str, name: str, expected: dict[str, Any], ways: list[Callable[[], str]], section: str) -> str:
    """The first result that says ``expected`` and, beside the section, what ``text`` said."""
    others = _others(text, section)
    for way in ways:
        try:
            result = way()
            if _same(_entries(result, section), expected) and _same(_others(result, section), others):
                return result
        except (CannotSpliceError, RosterError):
            continue
    raise CallboardError(
        "roster-uneditable",
        f"The entry {name} cannot be changed from here without touching other parts of the file.",
    )


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Equal in values, types and the order of names."""
    return list(one) == list(other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _others(text: str, section: str) -> dict[str, Any]:
    value = read_yaml(text).value
    if not section or not isinstance(value, dict):
        return {}
    # a section that is new, or that nothing is left of, stands nowhere else
    return {key: item for key, item in value.items() if key != section}


def _root(source: Source) -> MappingNode | None:
    root = compose(source.text)
    if root is not None and not isinstance(root, MappingNode):
        raise CannotSpliceError
    return root


def _section_pair(source: Source, section: str) -> Pair | None:
    root = _root(source)
    return next((pair for pair in source.pairs(root) if pair.name == section), None) if root is not None else None


def _find(source: Source, name: str, section: str) -> tuple[list[Pair], Pair, bool]:
    """All entries of a section, the one called ``name``, and whether they stand on lines of their own."""
    node: Node | None = _root(source)
    if section:
        holder = _section_pair(source, section)
        node = holder.value if holder is not None and not holder.alias else None
    if not isinstance(node, MappingNode):
        raise CannotSpliceError
    pairs = source.pairs(node)
    for pair in pairs:
        if pair.name == name:
            return pairs, pair, is_block(node)
    raise CannotSpliceError


def _change(text: str, name: str, old: dict[str, Any], new: dict[str, Any], section: str) -> str:
    """Touch only the fields that differ."""
    source = Source(text)
    _, pair, block = _find(source, name, section)
    if pair.alias or not isinstance(pair.value, MappingNode):
        raise CannotSpliceError
    if not is_block(pair.value):
        if block and len(render_inline(new)) + pair.column + len(name) > MAX_WIDTH:
            raise CannotSpliceError
        return apply(text, splice_flow(source, pair.value, old, new))
    return apply(text, splice_mapping(source, pair.value, old, new))


def _rewrite(text: str, name: str, new: dict[str, Any], section: str) -> str:
    """Write the whole entry anew."""
    source = Source(text)
    _, pair, block = _find(source, name, section)
    if not block:
        return apply(text, [Splice(pair.start, pair.end, render_inline(new))])
    colon = text.index(":", pair.key.end_mark.index) + 1
    rows = render_block(new, pair.column + STEP)
    return apply(text, [Splice(colon, pair.end, ""), source.after_line(pair.end, rows)])


def _insert(text: str, name: str, new: dict[str, Any], section: str) -> str:
    source = Source(text)
    holder = _section_pair(source, section) if section else None
    if holder is None:
        gap = [""] if text.strip() else []
        rows = [f"{section}:", *render_pair(name, new, STEP)] if section else render_pair(name, new, 0)
        return apply(text, [source.after_line(len(text), [*gap, *rows])])
    node = holder.value
    if isinstance(node, MappingNode) and node.value and not holder.alias:
        pairs = source.pairs(node)
        if not is_block(node):
            return apply(text, [Splice(pairs[-1].end, pairs[-1].end, f", {render_inline({name: new})[1:-1]}")])
        column = pairs[0].column
        at = _entry_end(source, pairs[-1])
        gap = [""] if len(pairs) == 1 or _has_gap(source, pairs[-1]) else []
        return apply(text, [source.after_line(max(at - 1, 0), [*gap, *render_pair(name, new, column)])])
    if isinstance(node, ScalarNode | MappingNode) and not holder.alias:  # nothing there: null, ~ or {}
        if text.lstrip().startswith("{"):
            return apply(text, [Splice(holder.start, holder.end, render_inline({name: new}))])
        rows = render_pair(name, new, holder.column + STEP)
        colon = text.index(":", holder.key.end_mark.index) + 1
        return apply(text, [Splice(colon, max(colon, holder.end), ""), source.after_line(holder.end, rows)])
    raise CannotSpliceError


def _remove(text: str, name: str, section: str) -> str:
    source = Source(text)
    pairs, pair, block = _find(source, name, section)
    if not block:
        return apply(text, [flow_cut(pairs, pair)])
    start = source.line_start(pair.key.start_mark.index)
    while start > 0 and _is_comment(above := _line(source, start - 1), up_to=pair.column):
        start -= len(above)
    end = _entry_end(source, pair)
    if not _line(source, start - 1).strip() or pair is pairs[0]:
        while end < len(text) and not _line(source, end).strip():
            end = source.line_end(end)
    return apply(text, [Splice(start, end, "")])


def _entry_end(source: Source, pair: Pair) -> int:
    """Where the line after the entry begins; comments that are indented below it belong to it."""
    end = at = source.line_end(max(pair.end - 1, 0))
    while at < len(source.text):
        line = _line(source, at)
        if line.strip() and not _is_comment(line, above=pair.column):
            break
        at = source.line_end(at)
        if line.strip():
            end = at
    return end


def _has_gap(source: Source, pair: Pair) -> bool:
    """Whether a blank line stands above the entry and its comments."""
    at = source.line_start(pair.key.start_mark.index)
    while at > 0 and _is_comment(line := _line(source, at - 1), up_to=pair.column):
        at -= len(line)
    return at > 0 and not _line(source, at - 1).strip()


def _line(source: Source, index: int) -> str:
    index = max(index, 0)
    return source.text[source.line_start(index) : source.line_end(index)]


def _is_comment(line: str, *, up_to: int = 10_000, above: int = -1) -> bool:
    column = len(line) - len(line.lstrip(" "))
    return line[column : column + 1] == "#" and above < column <= up_to

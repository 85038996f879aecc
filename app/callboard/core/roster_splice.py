"""Where to cut and what to put in: the smallest changes of YAML text that give a mapping new values.

Works on the marks of PyYAML's nodes. Every place that is not cut keeps its bytes: comments, quotes, order, indentation.
What comes out is not trusted: :mod:`callboard.core.roster_text` reads it again.
"""

import difflib
import itertools
import json
import re
from dataclasses import dataclass
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from callboard.core.roster_render import (
    STEP,
    render_block,
    render_inline,
    render_item,
    render_pair,
    render_value,
)

MAX_WIDTH = 120  # of a line that grows in flow style

_ALIAS = re.compile(r"\s*:\s*(\*[^\s,\[\]{}]+)")
_MERGE = "tag:yaml.org,2002:merge"


class CannotSpliceError(Exception):
    """The text is written in a way that a small change cannot express."""


@dataclass(frozen=True)
class Splice:
    """Put ``text`` in place of the characters from ``start`` to ``end``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Pair:
    """One key of a mapping with the span of its value; ``alias`` if the value is written as ``*name``."""

    key: ScalarNode
    value: Node
    start: int  # of the value; where it is empty, right after the colon
    end: int
    alias: bool

    @property
    def name(self) -> str:
        """The key."""
        return str(self.key.value)

    @property
    def empty(self) -> bool:
        """Nothing at all stands after the colon."""
        return self.start == self.end

    @property
    def column(self) -> int:
        """Of the key, from 0."""
        return int(self.key.start_mark.column)

    @property
    def flow(self) -> bool:
        """The value is written on its key's line and in flow style (or is a scalar)."""
        return self.alias or not is_block(self.value)


class Source:
    """Text with the questions that an edit asks of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = re.search(r"\r\n|\n", text)
        self.newline = found.group() if found else "\n"

    def line_start(self, index: int) -> int:
        """Where the line of ``index`` begins."""
        return self.text.rfind("\n", 0, index) + 1

    def line_end(self, index: int) -> int:
        """Where the line after that of ``index`` begins, or the end of the text."""
        found = self.text.find("\n", index)
        return len(self.text) if found < 0 else found + 1

    def pairs(self, node: MappingNode) -> list[Pair]:
        """The mapping's own pairs in file order, ``<<`` included."""
        return [self._pair(key, value) for key, value in node.value]

    def end(self, node: Node) -> int:
        """Where the last character of ``node`` is followed by something else."""
        if isinstance(node, ScalarNode):
            return self._scalar_end(node)
        if not is_block(node):
            return int(node.end_mark.index)
        if isinstance(node, MappingNode):
            return self._pair(*node.value[-1]).end
        last = node.value[-1]
        if last.start_mark.index < node.start_mark.index:
            raise CannotSpliceError  # an alias as a list's last item
        return self.end(last)

    def lines(self, rows: list[str]) -> str:
        """``rows`` with the text's own line ends."""
        return "".join(row + self.newline for row in rows)

    def after_line(self, index: int, rows: list[str]) -> Splice:
        """Put ``rows`` below the line of ``index``, which may be the last one and lack its line end."""
        at = self.line_end(index)
        if at == len(self.text) and self.text and not self.text.endswith("\n"):
            return Splice(at, at, self.newline + self.lines(rows).removesuffix(self.newline))
        return Splice(at, at, self.lines(rows))

    def _scalar_end(self, node: ScalarNode) -> int:
        start, end = node.start_mark.index, int(node.end_mark.index)
        if node.style not in ("|", ">") or "+" in self.text[start : self.line_end(start)].partition("#")[0]:
            return end
        return start + len(self.text[start:end].rstrip())

    def _pair(self, key: Node, value: Node) -> Pair:
        if not isinstance(key, ScalarNode):
            raise CannotSpliceError
        if value.start_mark.index < key.start_mark.index:
            found = _ALIAS.match(self.text, key.end_mark.index)
            if found is None:
                raise CannotSpliceError
            return Pair(key, value, found.start(1), found.end(1), alias=True)
        start, end = int(value.start_mark.index), self.end(value)
        return Pair(key, value, start, max(start, end), alias=False)


def is_block(node: Node) -> bool:
    """Whether ``node`` is a collection written on lines of its own."""
    return isinstance(node, MappingNode | SequenceNode) and not node.flow_style


def apply(text: str, splices: list[Splice]) -> str:
    """``text`` with all ``splices`` made; they must not overlap."""
    ordered = sorted(splices, key=lambda item: (item.start, item.end))
    for first, second in itertools.pairwise(ordered):
        if first.end > second.start:
            raise CannotSpliceError
    for splice in reversed(ordered):
        text = text[: splice.start] + splice.text + text[splice.end :]
    return text


def splice_mapping(source: Source, node: MappingNode, old: dict[str, Any], new: dict[str, Any]) -> list[Splice]:
    """Change the block mapping ``node``, whose value is ``old``, into ``new``."""
    pairs = source.pairs(node)
    own = {pair.name for pair in pairs if pair.key.tag != _MERGE}
    inherited = {key: value for key, value in old.items() if key not in own}
    if any(key not in new for key in inherited):
        raise CannotSpliceError
    splices: list[Splice] = []
    for pair in pairs:
        if pair.name not in own:
            continue
        if pair.name not in new:
            splices.append(Splice(source.line_start(pair.key.start_mark.index), source.line_end(pair.end), ""))
        elif _differ(new[pair.name], old[pair.name]):
            splices += splice_value(source, pair, old[pair.name], new[pair.name])
    added = {
        key: value
        for key, value in new.items()
        if key not in own and (key not in inherited or _differ(value, inherited[key]))
    }
    if added:
        rows = [row for key, value in added.items() for row in render_pair(key, value, pairs[0].column)]
        splices.append(source.after_line(pairs[-1].end, rows))
    return splices


def splice_flow(source: Source, node: MappingNode, old: dict[str, Any], new: dict[str, Any]) -> list[Splice]:
    """Change the flow mapping ``node``, whose value is ``old``, into ``new``, or write it anew on one line."""
    pairs = source.pairs(node)
    own = {pair.name for pair in pairs}
    added = {key: value for key, value in new.items() if key not in own}
    if own != set(old) or not own & set(new):
        return [Splice(int(node.start_mark.index), int(node.end_mark.index), render_inline(new))]
    splices = [flow_cut(pairs, pair) for pair in pairs if pair.name not in new]
    for pair in pairs:
        if pair.name in new and _differ(new[pair.name], old[pair.name]):
            gap = " " if pair.empty else ""
            splices.append(Splice(pair.start, pair.end, gap + render_inline(new[pair.name])))
    if added:
        splices.append(Splice(pairs[-1].end, pairs[-1].end, f", {render_inline(added)[1:-1]}"))
    return splices


def flow_cut(pairs: list[Pair], pair: Pair) -> Splice:
    """Take ``pair`` and one comma out of a flow mapping."""
    index = pairs.index(pair)
    if index + 1 < len(pairs):
        return Splice(pair.key.start_mark.index, pairs[index + 1].key.start_mark.index, "")
    return Splice(pairs[index - 1].end if index else pair.key.start_mark.index, pair.end, "")


def splice_value(source: Source, pair: Pair, old: Any, new: Any) -> list[Splice]:
    """Change the value of ``pair`` in a block mapping."""
    node = pair.value
    if not pair.alias and is_block(node):
        if isinstance(node, MappingNode) and isinstance(new, dict) and new:
            return splice_mapping(source, node, old, new)
        if isinstance(node, SequenceNode) and isinstance(new, list) and new:
            return _splice_sequence(source, node, old, new)
    column = pair.column + len(pair.name) + 2
    inline = render_value(new, column)
    fits = isinstance(new, dict) and new and len(render_inline(new)) + column <= MAX_WIDTH
    if fits and isinstance(node, MappingNode) and pair.flow and not pair.alias:
        return splice_flow(source, node, old, new)
    colon = source.text.index(":", pair.key.end_mark.index) + 1
    if inline is not None:
        in_place = pair.flow and not pair.empty
        return [Splice(pair.start if in_place else colon, pair.end, inline if in_place else " " + inline)]
    rows = render_block(new, pair.column + STEP)
    return [Splice(colon, pair.end, ""), source.after_line(pair.end, rows)]


def _splice_sequence(source: Source, node: SequenceNode, old: list[Any], new: list[Any]) -> list[Splice]:
    items: list[Node] = node.value
    if any(item.start_mark.index < node.start_mark.index or is_block(item) for item in items):
        raise CannotSpliceError
    column = int(node.start_mark.column)
    splices: list[Splice] = []
    matcher = difflib.SequenceMatcher(None, list(map(_comparable, old)), list(map(_comparable, new)), autojunk=False)
    for tag, first, last, start, stop in matcher.get_opcodes():
        if tag == "equal":
            continue
        common = min(last - first, stop - start)
        for item, value in zip(items[first : first + common], new[start : start + common], strict=True):
            text = render_item(value, 0)[0].removeprefix("- ")
            splices.append(Splice(item.start_mark.index, source.end(item), text))
        for item in items[first + common : last]:
            splices.append(Splice(source.line_start(item.start_mark.index), source.line_end(source.end(item)), ""))
        rows = [row for value in new[start + common : stop] for row in render_item(value, column)]
        if rows and first + common > 0:
            splices.append(source.after_line(source.end(items[first + common - 1]), rows))
        elif rows:
            at = source.line_start(items[0].start_mark.index)
            splices.append(Splice(at, at, source.lines(rows)))
    return splices


def _differ(one: Any, other: Any) -> bool:
    return _comparable(one) != _comparable(other)


def _comparable(value: Any) -> str:
    """Tells 1 from True and 1.0, which ``==`` does not."""
    return json.dumps(value, sort_keys=True)

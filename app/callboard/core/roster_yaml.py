"""YAML text as plain values, with the place of each: the roster's syntax, apart from its meaning.

Plain scalars keep the spelling that the person chose wherever a field is text (``VERSION: 1.10`` is "1.10", not 1.1),
keys are always text, a key that stands twice is refused, and input that would grow beyond bounds when its aliases are
followed is refused as well.
"""

import contextlib
import re
from dataclasses import dataclass
from typing import Any, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from callboard.core.errors import CallboardError

MAX_CHARS = 1024 * 1024
MAX_VALUES = 100_000
MAX_DEPTH = 100
# of an entry; everything else there is text
TYPED_FIELDS = frozenset(
    {"enabled", "timeouts", "restart", "params"}
    | {"typed", "stateless", "reload", "persist", "attachments", "thoughts", "heartbeat", "limits"}
)
PATH_FIELDS = frozenset({"command", "cwd", "python"})  # where a plain ~ is the home folder, not YAML's null

Path = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_INT = re.compile(r"[-+]?(0|[1-9][0-9_]*)|0x[0-9a-fA-F]+|0o[0-7]+|0b[01]+")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?")
_TRUE = frozenset({"true", "yes", "on"})
_BOM = "\ufeff"


class RosterError(CallboardError):
    """A roster that cannot be used. ``data`` holds "line" and "column" (1-based, 0: unknown) and, where there is one,
    "field" (a dotted path). Codes: ``roster-unreadable`` (not YAML), ``roster-invalid`` (YAML that means nothing).
    """

    def __init__(self, code: str, message: str, line: int = 0, column: int = 0, field: str = "") -> None:
        super().__init__(code, message, data={"line": line, "column": column, "field": field})
        self.line = line
        self.column = column
        self.field = field


@dataclass(frozen=True)
class Document:
    """Parsed text: its plain value, and the nodes that tell where each part stands."""

    value: Any
    root: Node | None

    def place(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """1-based line and column of the value at ``path`` (or of its key), or of its nearest ancestor."""
        node, mark = self.root, self.root.start_mark if self.root is not None else None
        for step in path:
            pair = _child(node, step)
            if pair is None:
                break
            key_node, node = pair
            at_key = key_node is not None and (key or node.start_mark.line != key_node.start_mark.line)
            mark = key_node.start_mark if key_node is not None and at_key else node.start_mark
        return (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)


def read_yaml(text: str) -> Document:
    """Parse one YAML document; a byte order mark is accepted. Raises :class:`RosterError`."""
    root = compose(text)
    return Document(None if root is None else _Reader().read(root, (), 0), root)


def compose(text: str) -> Node | None:
    """The node tree of ``text`` without its byte order mark; marks count characters from there."""
    if len(text) > MAX_CHARS:
        raise RosterError("roster-unreadable", f"The roster is larger than {MAX_CHARS // 1024} KiB.")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = text.removeprefix(_BOM)
    try:
        return yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        what = error.problem or error.context or "it is not valid YAML"
        raise RosterError(
            "roster-unreadable", f"Line {line}, column {column}: {_hint(text, line, what)}.", line, column
        ) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise RosterError(
            "roster-unreadable", f"Line {line}: a control character stands here.", line, column
        ) from error
    except RecursionError as error:
        raise RosterError("roster-unreadable", "The roster is nested too deeply.") from error


def _hint(text: str, line: int, what: str) -> str:
    rows = text.splitlines()
    row = rows[line - 1] if 0 < line <= len(rows) else ""
    if row.lstrip(" ").startswith("\t") or "\\t" in what:
        return "a tab stands here where YAML wants spaces"
    if re.search(r"[\[{][^\]}]*\$\{", row):
        return f"{what} (inside [ ] and {{ }} a reference needs quotes: '${{python}}')"
    return what


class _Reader:
    """Turns nodes into values, counting what comes out."""

    def __init__(self) -> None:
        self._count = 0
        self._open: set[int] = set()

    def read(self, node: Node, path: Path, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise _error(node, "The roster grows too large or too deep here", path)
        if id(node) in self._open:
            raise _error(node, "This anchor contains itself", path)
        if isinstance(node, ScalarNode):
            return _scalar(node, path)
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode) and node.tag == _TAG + "seq":
                return [self.read(item, (*path, i), depth + 1) for i, item in enumerate(node.value)]
            if isinstance(node, MappingNode) and node.tag == _TAG + "map":
                return self._mapping(node, path, depth)
        finally:
            self._open.discard(id(node))
        raise _error(node, f"The tag {node.tag} is not known here", path)

    def _mapping(self, node: MappingNode, path: Path, depth: int) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for source in value_node.value if isinstance(value_node, SequenceNode) else [value_node]:
                    if not isinstance(source, MappingNode):
                        raise _error(value_node, "Only mappings can be merged with <<", path)
                    merged = self.read(source, path, depth + 1) | merged
                continue
            if not isinstance(key_node, ScalarNode):
                raise _error(key_node, "A name must be text", path)
            key = key_node.value
            if key in own:
                raise _error(key_node, f'The name "{key}" stands twice', (*path, key))
            own[key] = self.read(value_node, (*path, key), depth + 1)
        return {**{k: v for k, v in merged.items() if k not in own}, **own} if merged else own


def _scalar(node: ScalarNode, path: Path) -> Any:
    text, tag = cast(str, node.value), node.tag.removeprefix(_TAG)
    if tag == "str":
        return text
    if tag == "null":
        return text if text == "~" and len(path) == 3 and path[2] in PATH_FIELDS else None
    if tag not in ("bool", "int", "float", "timestamp", "value"):
        raise _error(node, f"The tag {node.tag} is not known here", path)
    if _is_text(path):
        return text
    if tag == "bool":
        return text.lower() in _TRUE
    with contextlib.suppress(ValueError):
        if tag == "int" and _INT.fullmatch(text):
            return int(text, 0)
        if tag == "float" and _FLOAT.fullmatch(text):
            return float(text)
    return text  # 007, 12:30 and dates: YAML 1.1 calls them numbers, people do not


def _is_text(path: Path) -> bool:
    if path[:1] == ("servers",):
        return len(path) >= 3 and path[2] not in TYPED_FIELDS
    return path[:2] == ("gateway", "hosts")


def _child(node: Node | None, step: str | int) -> tuple[Node | None, Node] | None:
    if isinstance(node, MappingNode):
        for key_node, value_node in node.value:
            if key_node.value == step:
                return key_node, value_node
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                for source in value_node.value if isinstance(value_node, SequenceNode) else [value_node]:
                    if (found := _child(source, step)) is not None:
                        return found
    if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
        return None, node.value[step]
    return None


def _error(node: Node, message: str, path: Path) -> RosterError:
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    field = ".".join(map(str, path))
    return RosterError("roster-invalid", f"Line {line}, column {column}: {message}.", line, column, field)

"""Plain values as YAML text, the way a person would write an entry."""

from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode, SequenceNode

from callboard.core.roster_yaml import TYPED_FIELDS

FLOW_WIDTH = 100  # characters up to which a list stays on one line
STEP = 2

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def plain_entry(entry: dict[str, Any]) -> dict[str, Any]:
    """``entry`` as it reads back from the file: no empty fields, and text wherever a field is text."""
    return {key: value if key in TYPED_FIELDS else _as_text(value) for key, value in entry.items() if value is not None}


def without_empty(entry: dict[str, Any]) -> dict[str, Any]:
    """What is no server, as it reads back from the file: fields keep their types, those without a value go."""
    return {
        key: without_empty(value) if isinstance(value, dict) else value
        for key, value in entry.items()
        if value is not None
    }


def render_key(key: str) -> str:
    """A mapping's key."""
    return key if _is_plain(f"{key}: 1", key) else _quoted(key)


def render_inline(value: Any) -> str:
    """``value`` on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_inline_key(key)}: {render_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(render_inline, value)) + "]"
    return _scalar(value, flow=True)


def render_pair(key: str, value: Any, column: int) -> list[str]:
    """``key: value`` as lines indented by ``column``, without line ends."""
    first = " " * column + render_key(key) + ":"
    inline = render_value(value, column + len(key) + 2)
    return [f"{first} {inline}"] if inline is not None else [first, *render_block(value, column + STEP)]


def render_value(value: Any, column: int) -> str | None:
    """``value`` for the rest of a line that begins at ``column``; None if it needs lines of its own."""
    if isinstance(value, dict) and value:
        return None
    if isinstance(value, list) and value:
        text = render_inline(value)
        return text if len(text) + column <= FLOW_WIDTH else None
    return render_inline(value) if isinstance(value, dict | list) else _scalar(value, flow=False)


def render_block(value: Any, column: int) -> list[str]:
    """A mapping or list that is not empty as lines indented by ``column``."""
    if isinstance(value, dict):
        return [line for key, item in value.items() for line in render_pair(key, item, column)]
    return [line for item in value for line in render_item(item, column)]


def render_item(item: Any, column: int) -> list[str]:
    """One item of a block list; what is not a scalar stays on its line."""
    text = render_inline(item) if isinstance(item, dict | list) else _scalar(item, flow=False)
    return [f"{' ' * column}- {text}"]


def _as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _as_text(item) for key, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list) else value


def _scalar(value: Any, *, flow: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int):
        return repr(value)
    sample = f"k: [{value}]" if flow else f"k: {value}"
    return value if _is_plain(sample, value) else _quoted(value)


def _number(value: float) -> str:
    """YAML 1.1 takes a number with an exponent for one only if it has a point."""
    mantissa, exponent, power = repr(value).partition("e")
    return mantissa + (".0" if exponent and "." not in mantissa else "") + exponent + power


def _inline_key(key: str) -> str:
    return key if _is_plain(f"{{{key}: 1}}", key) else _quoted(key)


def _is_plain(sample: str, text: str) -> bool:
    """Whether any YAML reader takes ``text`` as itself, standing in ``sample`` without quotes."""
    if not text or not text.isprintable() or text != text.strip():
        return False
    try:
        root = yaml.compose(sample, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError):
        return False
    if not isinstance(root, MappingNode) or len(root.value) != 1:
        return False
    key, value = root.value[0]
    node = value if sample.startswith("k: ") else key
    if isinstance(node, SequenceNode):
        node = node.value[0] if len(node.value) == 1 else None
    return (
        isinstance(node, ScalarNode) and node.value == text and node.tag == "tag:yaml.org,2002:str" and not node.style
    )


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter == " " or (letter.isprintable() and letter != "\ufeff"):
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

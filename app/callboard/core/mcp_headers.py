"""The HTTP headers that mirror a modern request's body (2026-07-28, transports/streamable-http "Request Metadata")."""

import base64
import binascii
import re
from decimal import Decimal
from typing import Any, Final

NAMED: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",  # extension io.modelcontextprotocol/tasks
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""What ``Mcp-Name`` repeats of the parameters, by method."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NUMBER: Final = re.compile(r"-?[0-9]{1,100}(\.[0-9]{1,100})?")
MAX_DEPTH: Final = 20


def encode_value(value: str) -> str:
    """A text as a header value; in the base64 form where plain ASCII would not do."""
    if _PLAIN.fullmatch(value) and not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)):
        return value
    return f"{_PREFIX}{base64.b64encode(value.encode()).decode()}{_SUFFIX}"


def decode_value(value: str) -> str | None:
    """The text of a header value, None if it is malformed."""
    if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX) and len(value) >= len(_PREFIX) + len(_SUFFIX)):
        return value if all(character == "\t" or " " <= character <= "~" for character in value) else None
    try:
        return base64.b64decode(value[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def text_of(value: Any) -> str | None:
    """An argument's value as the text that its header carries, None if it has none (null, or not a plain value)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    return value if isinstance(value, str) else None


def same_value(header: str, value: Any) -> bool:
    """True if a decoded header and an argument mean the same; integers compare as numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBER.fullmatch(header) is not None and Decimal(header) == value
    return header == text_of(value)


def annotated(schema: Any) -> dict[str, tuple[str, ...]]:
    """Header names of a tool's ``x-mcp-header`` annotations with the path of their property.

    Raises ValueError for a schema whose annotations break the rules; such a tool must be left out.
    """
    found: dict[str, tuple[str, ...]] = {}
    _collect(schema, (), found)
    if _count(schema, 0) != len(found):
        raise ValueError("x-mcp-header stands where it must not")
    return found


def _collect(schema: Any, path: tuple[str, ...], found: dict[str, tuple[str, ...]]) -> None:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict) or len(path) > MAX_DEPTH:
        return
    for name, prop in properties.items():
        if not isinstance(prop, dict):
            continue
        if "x-mcp-header" in prop:
            header = prop["x-mcp-header"]
            if not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise ValueError("x-mcp-header is no valid header name")
            if prop.get("type") not in ("string", "integer", "boolean"):
                raise ValueError("x-mcp-header is only for strings, integers and booleans")
            if header.lower() in found:
                raise ValueError(f"x-mcp-header {header} stands twice")
            found[header.lower()] = (*path, name)
        _collect(prop, (*path, name), found)


def _count(schema: Any, depth: int) -> int:
    """How many annotations there are anywhere in a schema, properties called x-mcp-header not counted."""
    if depth > 4 * MAX_DEPTH:
        return 0
    if isinstance(schema, list):
        return sum(_count(entry, depth + 1) for entry in schema)
    if not isinstance(schema, dict):
        return 0
    count = 1 if "x-mcp-header" in schema else 0
    for key, value in schema.items():
        if key in ("properties", "$defs", "definitions", "patternProperties") and isinstance(value, dict):
            count += sum(_count(entry, depth + 1) for entry in value.values())
        elif key not in ("enum", "const", "default", "examples", "x-mcp-header"):
            count += _count(value, depth + 1)
    return count


def value_at(arguments: Any, path: tuple[str, ...]) -> Any:
    """The argument at a path, None if there is none."""
    for name in path:
        if not isinstance(arguments, dict) or name not in arguments:
            return None
        arguments = arguments[name]
    return arguments

"""From words on the command line to a tool's arguments."""

import json
import sys
from pathlib import Path
from typing import Any, Final

from callboard.core.errors import CallboardError

_ANY: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


class UsageError(Exception):
    """The command line is wrong; the message says how."""


def tool_arguments(pairs: list[str], whole: str | None, schema: Any) -> dict[str, Any]:
    """The arguments of a call.

    ``whole`` is a JSON object, ``@FILE`` or ``-`` for standard input; ``pairs`` ("name=value") stand over it. A
    value is JSON where the tool's schema wants something other than text, else it is taken as it is written.
    Raises :class:`UsageError`, and CallboardError ``bad-request`` for a file that cannot be read.
    """
    arguments = _whole(whole) if whole is not None else {}
    for name, text in text_arguments(pairs).items():
        arguments[name] = value(text, types_of(_property(schema, name), schema))
    return arguments


def text_arguments(pairs: list[str]) -> dict[str, str]:
    """Arguments that are text, from "name=value"; raises :class:`UsageError`."""
    arguments = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"--arg wants NAME=VALUE, not {pair!r}.")
        arguments[name] = text
    return arguments


def value(text: str, types: frozenset[str]) -> Any:
    """A value as the schema's types want it: JSON if that gives one of them, else the text itself."""
    if types == {"string"}:
        return text
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(parsed, str) and "string" in types and types != _ANY else _fitting(parsed, text, types)


def types_of(schema: Any, root: Any, depth: int = 8) -> frozenset[str]:
    """The JSON types that a schema lets through; all of them where it does not say."""
    if not isinstance(schema, dict) or depth == 0:
        return _ANY
    if isinstance(reference := schema.get("$ref"), str):
        return types_of(_resolve(root, reference), root, depth - 1)
    named = schema.get("type")
    if isinstance(named, str):
        return frozenset({named})
    if isinstance(named, list):
        return frozenset(each for each in named if isinstance(each, str))
    for key in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(key), list) and choices:
            return frozenset().union(*(types_of(choice, root, depth - 1) for choice in choices))
    if isinstance(values := schema.get("enum"), list) and values and all(isinstance(each, str) for each in values):
        return frozenset({"string"})
    if isinstance(schema.get("const"), str):
        return frozenset({"string"})
    return _ANY


def _fitting(parsed: Any, text: str, types: frozenset[str]) -> Any:
    match parsed:
        case bool():
            fits = "boolean" in types
        case int():
            fits = "integer" in types or "number" in types
        case float():
            fits = "number" in types or ("integer" in types and parsed.is_integer())
        case list():
            fits = "array" in types
        case dict():
            fits = "object" in types
        case None:
            fits = "null" in types
        case _:
            fits = "string" in types
    return parsed if fits else text


def _whole(text: str) -> dict[str, Any]:
    if text == "-":
        text, source = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        source = text[1:]
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CallboardError(
                "bad-request", f"{source} cannot be read: {error}.", fix="Name a file of JSON."
            ) from error
    else:
        source = "--args"
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{source} is not JSON: {error}.") from error
    if not isinstance(parsed, dict):
        raise UsageError(f"{source} must be a JSON object of arguments.")
    return parsed


def _property(schema: Any, name: str) -> Any:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.get(name) if isinstance(properties, dict) else None


def _resolve(root: Any, reference: str) -> Any:
    """A reference inside the same schema ("#/$defs/Colour"); None for any other."""
    if not reference.startswith("#/"):
        return None
    found = root
    for part in reference[2:].split("/"):
        if not isinstance(found, dict):
            return None
        found = found.get(part.replace("~1", "/").replace("~0", "~"))
    return found

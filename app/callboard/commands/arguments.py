"""From words on the command line to a tool's arguments."""

import json
import sys
from pathlib import Path
from typing import Any

from callboard.core.call_arguments import property_schema, types_of, value
from callboard.core.errors import CallboardError


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
        arguments[name] = value(text, types_of(property_schema(schema, name), schema))
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

"""What an object is, told by the names of its classes: no framework is imported to find out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from callboard.agents.contract import Blob, Context, Link


def is_kind(value: Any, package: str, *names: str) -> bool:
    """True if ``value``, or its class, is or inherits a class of one of these names that ``package`` defines."""
    bases = value.__mro__ if isinstance(value, type) else type(value).__mro__
    return any(
        base.__name__ in names and (base.__module__ == package or base.__module__.startswith(f"{package}."))
        for base in bases
    )


def take_params(params: Mapping[str, Any], known: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split ``params`` into those that an adapter itself knows and the rest, for the agent."""
    known = set(known)
    ours = {name: value for name, value in params.items() if name in known}
    rest = {name: value for name, value in params.items() if name not in known}
    return ours, rest


def attachments_of(context: Context) -> list[Blob | Link]:
    """What came with a request."""
    return [attached for attached in context.attachments if isinstance(attached, (Blob, Link))]


def family(media_type: str) -> str:
    """``image``, ``audio``, ``video``, or ``document`` for everything else."""
    main = media_type.partition("/")[0]
    return main if main in ("image", "audio", "video") else "document"


def parsed(arguments: Any) -> Any:
    """A tool's arguments as values, where they are JSON in a string."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


def of_objects(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema if it is one of objects, as MCP wants it of structured content; None for any other."""
    return schema if schema.get("type") == "object" else None

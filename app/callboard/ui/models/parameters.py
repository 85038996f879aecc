"""A tool's JSON Schema as rows that a person can read."""

import json
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QCoreApplication

_DEPTH = 4  # how far nested objects are unfolded; deeper ones are named "object"
_ROWS = 500

translate = QCoreApplication.translate


@dataclass(frozen=True)
class Parameter:
    """One parameter. ``name`` is a path for nested ones: ``options.limit``, ``items[].id``."""

    name: str
    type: str
    required: bool
    default: str
    description: str
    limits: str


def parameters(schema: Any) -> list[Parameter]:
    """The parameters of an input schema in their own order, nested objects unfolded; at most 500."""
    rows: list[Parameter] = []
    if isinstance(schema, dict):
        _object(schema, schema, "", 0, rows)
    return rows


def _object(root: dict[str, Any], schema: dict[str, Any], prefix: str, depth: int, rows: list[Parameter]) -> None:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    for name, raw in properties.items():
        if len(rows) >= _ROWS:
            return
        part = _resolve(root, raw)
        rows.append(_parameter(root, prefix + str(name), part, name in needed))
        if depth < _DEPTH:
            _nested(root, part, prefix + str(name), depth + 1, rows)


def _nested(root: dict[str, Any], part: dict[str, Any], name: str, depth: int, rows: list[Parameter]) -> None:
    for kind in _alternatives(root, part):
        if "properties" in kind:
            _object(root, kind, name + ".", depth, rows)
        items = kind.get("items")
        if isinstance(items, dict) and "properties" in (item := _resolve(root, items)):
            _object(root, item, name + "[].", depth, rows)


def _parameter(root: dict[str, Any], name: str, part: dict[str, Any], required: bool) -> Parameter:
    return Parameter(
        name=name,
        type=_type(root, part),
        required=required,
        default=_json(part["default"]) if "default" in part else "",
        description=str(part.get("description") or part.get("title") or ""),
        limits=_limits(root, part),
    )


def _resolve(root: dict[str, Any], part: Any) -> dict[str, Any]:
    """Follow local references; what stands beside one (a description, a default) wins."""
    seen: set[str] = set()
    beside: dict[str, Any] = {}
    while isinstance(part, dict) and isinstance(reference := part.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        beside = {**{key: value for key, value in part.items() if key != "$ref"}, **beside}
        part = _look_up(root, reference)
    return {**part, **beside} if isinstance(part, dict) else beside


def _look_up(root: dict[str, Any], reference: str) -> Any:
    if not reference.startswith("#"):
        return {}
    part: Any = root
    for step in reference.lstrip("#").strip("/").split("/"):
        if step:
            part = part.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
    return part


def _alternatives(root: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    for key in ("anyOf", "oneOf"):
        if isinstance(kinds := part.get(key), list):
            return [_resolve(root, kind) for kind in kinds]
    return [part]


def _type(root: dict[str, Any], part: dict[str, Any], depth: int = 0) -> str:
    if depth > _DEPTH:  # a schema may refer to itself
        return "any"
    kinds = _alternatives(root, part)
    if kinds != [part]:
        return " | ".join(dict.fromkeys(_type(root, kind, depth + 1) for kind in kinds[:8]))
    match part.get("type"):
        case list() as several:
            return " | ".join(str(one) for one in several)
        case "array":
            items = _resolve(root, part.get("items"))
            inner = _type(root, items, depth + 1) if items else ""
            return f"({inner})[]" if " | " in inner else f"{inner}[]" if inner else "array"
        case str() as one:
            return one
    if "properties" in part:
        return "object"
    if isinstance(part.get("enum"), list) or "const" in part:
        return "enum"
    return "any"


def _limits(root: dict[str, Any], part: dict[str, Any]) -> str:
    found: list[str] = []
    for kind in _alternatives(root, part):
        if isinstance(values := kind.get("enum"), list):
            shown = ", ".join(_json(value) for value in values[:12])
            found.append(translate("Parameters", "one of %s") % (shown + (", …" if len(values) > 12 else "")))
        if "const" in kind:
            found.append(translate("Parameters", "always %s") % _json(kind["const"]))
        found += _range(kind)
        if isinstance(pattern := kind.get("pattern"), str):
            found.append(translate("Parameters", "matches %s") % pattern)
        if isinstance(form := kind.get("format"), str):
            found.append(translate("Parameters", "format: %s") % form)
    return "; ".join(found)


def _range(kind: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for low, high, what in (
        ("minimum", "maximum", "%s"),
        ("minLength", "maxLength", translate("Parameters", "%s characters")),
        ("minItems", "maxItems", translate("Parameters", "%s items")),
    ):
        least, most = kind.get(low), kind.get(high)
        if least is not None and most is not None:
            found.append(what % f"{least}\N{EN DASH}{most}")
        elif least is not None:
            found.append(what % f"≥ {least}")
        elif most is not None:
            found.append(what % f"≤ {most}")
    for key, sign in (("exclusiveMinimum", ">"), ("exclusiveMaximum", "<")):
        if isinstance(kind.get(key), int | float) and not isinstance(kind[key], bool):
            found.append(f"{sign} {kind[key]}")
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)

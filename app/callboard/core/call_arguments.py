"""From what a person writes to the values of a call's arguments, as the tool's JSON Schema wants them."""

import json
from typing import Any, Final

ANY: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})


def value(text: str, types: frozenset[str]) -> Any:
    """A value as the schema's types want it: JSON if that gives one of them, else the text itself."""
    if types == {"string"}:
        return text
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return text if isinstance(parsed, str) and "string" in types and types != ANY else _fitting(parsed, text, types)


def types_of(schema: Any, root: Any, depth: int = 8) -> frozenset[str]:
    """The JSON types that a schema lets through; all of them where it does not say."""
    if not isinstance(schema, dict) or depth == 0:
        return ANY
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
    return ANY


def property_schema(schema: Any, name: str) -> Any:
    """The schema of one argument; None where there is none."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties.get(name) if isinstance(properties, dict) else None


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

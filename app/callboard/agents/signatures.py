"""A function's signature as the tool that it is: JSON Schema from annotations, descriptions from the docstring."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any

from callboard.agents.contract import Context, ToolSpec

WRAPS = "x-fastmcp-wrap-result"  # as FastMCP marks such a schema, so that its clients unwrap the value
REQUEST_NAMES = ("request", "prompt")
_CONTEXT_NAMES = ("context", "ctx")
_SIMPLE: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    dict: {"type": "object"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    set: {"type": "array", "uniqueItems": True},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
}
_LISTS = (list, set, frozenset, typing.get_origin(typing.Sequence[int]), typing.get_origin(typing.Iterable[int]))
# of fields of a TypedDict; there are none in Python 3.10
_MARKS = tuple(getattr(typing, name) for name in ("Required", "NotRequired") if hasattr(typing, name))
_PARAMETER_LINE = re.compile(r"^\s*:?(?:param\s+)?\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s+(.+)$")


def tool_of(function: Callable[..., Any], name: str = "", description: str = "") -> ToolSpec:
    """The tool that calling ``function`` is; raises TypeError for parameters that cannot be named in JSON."""
    text, remarks = _docstring(function)
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for parameter in parameters_of(function):
        schema = schema_of(hints.get(parameter.name, Any))
        if parameter.name in remarks and "description" not in schema:
            schema["description"] = remarks[parameter.name]
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    whole: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        whole["required"] = required
    result = hints.get("return", Any)
    return ToolSpec(
        name=name or getattr(function, "__name__", type(function).__name__),
        description=description or text,
        input_schema=whole,
        output_schema=_output_schema(result),
    )


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that a caller gives: all but the context."""
    context = context_parameter(function)
    found = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == context:
            continue
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(f"{_name(function)} takes {parameter.name} only by position, so it cannot be a tool")
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY):
            found.append(parameter)
    return found


def context_parameter(function: Callable[..., Any]) -> str:
    """The parameter that gets the call's context: annotated with Context, or named so; empty if there is none."""
    hints = _hints(function)
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is Context or (hint in (None, Any) and parameter.name in _CONTEXT_NAMES):
            return parameter.name
    return ""


def answers_requests(function: Callable[..., Any]) -> bool:
    """True for a function of one text, named request or prompt: an agent in itself rather than a tool."""
    try:
        parameters = [each for each in parameters_of(function) if each.default is inspect.Parameter.empty]
    except (TypeError, ValueError):
        return False
    if len(parameters) != 1:
        return False
    if _hints(function).get(parameters[0].name, str) is not str:
        return False
    generates = inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function)
    return generates or parameters[0].name in REQUEST_NAMES


def schema_of(hint: Any) -> dict[str, Any]:
    """JSON Schema for an annotation; everything is let through where it says nothing that JSON could check."""
    if hint in (Any, inspect.Parameter.empty):
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return dict(_SIMPLE[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        schema = schema_of(arguments[0])
        for note in arguments[1:]:
            text = note if isinstance(note, str) else getattr(note, "description", None)
            if isinstance(text, str):
                schema["description"] = text
        return schema
    if origin is not None and origin in _MARKS:
        return schema_of(arguments[0])
    if origin is typing.Literal:
        return {"enum": [item.value if isinstance(item, enum.Enum) else item for item in arguments]}
    if origin in (typing.Union, types.UnionType):
        return _union([schema_of(item) for item in arguments])
    if origin is tuple and not (len(arguments) == 2 and arguments[1] is ...):
        items = [schema_of(item) for item in arguments]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (*_LISTS, tuple):
        schema = {"type": "array", "items": schema_of(arguments[0])} if arguments else {"type": "array"}
        return schema | ({"uniqueItems": True} if origin in (set, frozenset) else {})
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(arguments[1]) if len(arguments) == 2 else True}
    return _class_schema(hint)


def _class_schema(hint: Any) -> dict[str, Any]:
    if not isinstance(hint, type):
        return {}
    if callable(model := getattr(hint, "model_json_schema", None)):
        return dict(model())
    if issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if dataclasses.is_dataclass(hint):
        needed = [
            each.name
            for each in dataclasses.fields(hint)
            if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
        ]
        return _fields_schema(_hints(hint), needed)
    if typing.is_typeddict(hint):
        return _fields_schema(_hints(hint), sorted(getattr(hint, "__required_keys__", ())))
    if issubclass(hint, Mapping):
        return {"type": "object"}
    return {}


def _fields_schema(hints: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    properties = {name: schema_of(hint) for name, hint in hints.items()}
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _union(members: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = [member.get("type") for member in members]
    if all(isinstance(kind, str) and len(member) == 1 for kind, member in zip(kinds, members, strict=True)):
        return {"type": list(dict.fromkeys(kinds))}
    return {"anyOf": members} if all(members) else {}


def _output_schema(hint: Any) -> dict[str, Any] | None:
    """The output schema of a return type; what is no object stands under "result", marked so that clients unwrap it."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    schema = schema_of(hint)
    if not schema or schema == {"type": "null"} or _is_content(hint):
        return None
    if schema.get("type") == "object":
        return schema
    return {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        WRAPS: True,
    }


def _is_content(hint: Any) -> bool:
    """True for what becomes content of its own kind: files, generators of anything."""
    return hint is bytes or any(item is bytes for item in typing.get_args(hint))


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of each of its parameters (Google or reST style)."""
    text = inspect.getdoc(function) or ""
    head, remarks, in_arguments = [], {}, False
    for line in text.splitlines():
        if line.strip().rstrip(":").lower() in ("args", "arguments", "parameters"):
            in_arguments = True
            continue
        if in_arguments and line.strip() and not line.startswith((" ", "\t")):
            in_arguments = False
        found = _PARAMETER_LINE.match(line) if in_arguments or line.lstrip().startswith(":param") else None
        if found:
            remarks[found[1]] = found[2].strip()
        elif not in_arguments and not line.lstrip().startswith(":return"):
            head.append(line)
    return "\n".join(head).strip(), remarks


def _hints(value: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(value, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a name that exists for type checkers only
        return dict.fromkeys(getattr(value, "__annotations__", {}), Any)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))

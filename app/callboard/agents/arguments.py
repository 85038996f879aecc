"""A tool's arguments as clients really send them: plain, in an envelope, under other names, as texts of JSON."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from jsonschema import SchemaError
from jsonschema.exceptions import best_match
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

log = logging.getLogger(__name__)

ENVELOPE: Final = "kwargs"
MAX_TEXT: Final = 300  # characters of what is said about a wrong argument


class ArgumentsError(ValueError):
    """Arguments that the tool must not be called with; the message is one line for whoever sent them."""


class Arguments:
    """Knows one tool's schema and its arguments' other names. Immutable; a schema that is none is not enforced."""

    def __init__(self, tool: str, schema: Mapping[str, Any], aliases: Mapping[str, str] | None = None) -> None:
        self._properties: Mapping[str, Any] = _mapping(schema.get("properties"))
        self._required = frozenset(schema.get("required") or ())
        self._aliases = {sent: known for sent, known in (aliases or {}).items() if sent not in self._properties}
        self._validator = validator_of(tool, schema)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to call the tool with. Raises :class:`ArgumentsError`."""
        arguments = self._renamed(self._unwrapped(given))
        for name, value in list(arguments.items()):
            schema = self._properties.get(name)
            if isinstance(value, str):
                arguments[name] = _parsed(value, schema)
            elif value is None and name not in self._required and not _allows_null(schema):
                del arguments[name]
        if self._validator is not None:
            wrong = best_match(self._validator.iter_errors(arguments))
            if wrong is not None:
                place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in wrong.absolute_path)
                said = " ".join(wrong.message.split())
                text = f"{place.lstrip('.')}: {said}" if place else said
                raise ArgumentsError(text if len(text) <= MAX_TEXT else text[:MAX_TEXT] + "…")
        return arguments

    def _unwrapped(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is in the envelope, where there is one; a tool's own argument of that name is none."""
        if ENVELOPE in self._properties or given.keys() != {ENVELOPE}:
            return dict(given)
        content = given[ENVELOPE]
        if isinstance(content, str):
            try:
                content = json.loads(content)
            except ValueError as error:
                where = (
                    f"line {error.lineno} column {error.colno}" if isinstance(error, json.JSONDecodeError) else error
                )
                raise ArgumentsError(f"kwargs is not valid JSON: {where}") from error
        if not isinstance(content, dict):
            raise ArgumentsError(f"kwargs must be a JSON object, not {_kind(content)}")
        return content

    def _renamed(self, given: dict[str, Any]) -> dict[str, Any]:
        arguments = {name: value for name, value in given.items() if name not in self._aliases}
        used: dict[str, str] = {name: name for name in arguments}
        for sent in given.keys() & self._aliases.keys():
            known = self._aliases[sent]
            if known in used:
                first, second = sorted((sent, used[known]))
                raise ArgumentsError(f"{first} and {second} are the same argument; give only one of them")
            used[known] = sent
            arguments[known] = given[sent]
        return arguments


def validator_of(tool: str, schema: Mapping[str, Any]) -> Validator | None:
    """What checks values by a schema; None, told to the log, for a schema that is not valid itself."""
    kind = validator_for(schema)
    try:
        kind.check_schema(dict(schema))
    except SchemaError as error:
        log.warning(
            "The schema of %s is not valid (%s): it is published, but nothing is checked by it.", tool, error.message
        )
        return None
    checker: Validator = kind(schema)
    return checker


def _parsed(text: str, schema: Any) -> Any:
    """A list or an object that came as text, where the schema wants one and no text."""
    if text[:1] not in ("[", "{") or not isinstance(schema, Mapping):
        return text
    types = schema.get("type")
    wanted = {types} if isinstance(types, str) else set(types or ())
    if not wanted & {"array", "object"} or "string" in wanted:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _allows_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return True
    types = schema.get("type")
    if types is None:
        return True
    return types == "null" or (isinstance(types, list) and "null" in types)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "an array"
    return "null" if value is None else f"a {'boolean' if isinstance(value, bool) else type(value).__name__}"

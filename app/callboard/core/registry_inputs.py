"""The inputs of one way, collected from where the document writes them, with the templates that refer to them."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from callboard.core.credentials import is_secret_name
from callboard.core.references import escape_references
from callboard.core.registry import Argument, Input, InputKind
from callboard.core.registry_fields import Fields

literal = escape_references

_BRACES = re.compile(r"\{([^{}]{1,200})\}")
_KINDS: Final[dict[str, InputKind]] = {"number": "number", "boolean": "boolean", "filepath": "file"}


def reference(key: str) -> str:
    """What stands in a template for an input's value."""
    return f"${{input:{key}}}"


class Inputs:
    """Gives each input a key of its own. A variable that several texts name is one input."""

    def __init__(self) -> None:
        self._inputs: dict[str, Input] = {}
        self._names: dict[str, str] = {}  # of variables, to their keys
        self._arguments: dict[str, str] = {}  # names that an address may use for arguments and environment variables

    @property
    def all(self) -> list[Input]:
        """In the order in which they were found; what is required comes first."""
        return sorted(self._inputs.values(), key=lambda each: not each.required)

    def is_secret(self, key: str) -> bool:
        """Whether the input's value is one for the secret store."""
        return key in self._inputs and self._inputs[key].secret

    def by_name(self) -> dict[str, Any]:
        """What an address may name in braces: variables, arguments and environment variables that are known."""
        return {name: {} for name in [*self._names, *self._arguments]}

    def pair(self, fields: Fields, more: Mapping[str, Any] | None = None) -> tuple[str, str]:
        """Name and template of an environment variable or header; ``more`` are variables from around it."""
        name = fields.line("name")
        if not name:
            return "", ""
        return name, self._value(fields, name, more or {}, title=name)

    def argument(self, fields: Fields, *, is_runtime: bool = False) -> Argument:
        """A command line argument. Without a value, the person is asked for it; a runner's own may be a mere switch."""
        name = fields.line("name")
        if fields.line("type") != "named" or not name:
            hint = fields.line("valueHint") or "argument"
            return Argument([self._value(fields, hint, {}, title=hint, multiple=fields.flag("isRepeated"))])
        if fields.line("format") == "boolean" and not fields.has_text("value"):
            return Argument([literal(name)], when=self._add(name.lstrip("-"), self._input(fields, name)))
        asks = any(fields.has_text(each) for each in ("value", "default", "valueHint", "format")) or fields.texts(
            "choices"
        )
        if is_runtime and not asks and not fields.flag("isSecret"):
            return Argument([literal(name)])
        text = self._value(fields, name.lstrip("-"), {}, title=name, multiple=fields.flag("isRepeated"))
        if not text:
            return Argument([literal(name)])
        short = name.startswith("-") and not name.startswith("--")
        return Argument([literal(name), text] if short else [f"{literal(name)}={text}"])

    def template(self, text: str, variables: Mapping[str, Any], *, required: bool = False, secret: bool = False) -> str:
        """A text with its ``{variables}`` as references; what is in braces and is no variable stays as it is."""
        parts, end = [], 0
        for match in _BRACES.finditer(text):
            name = match.group(1)
            if name not in variables:
                continue
            parts += [literal(text[end : match.start()]), self._variable(name, variables[name], required, secret)]
            end = match.end()
        return "".join([*parts, literal(text[end:])])

    def add(self, wanted: str, new: Input) -> str:
        """Take an input in; returns its key, which is like ``wanted``."""
        return self._add(wanted, new)

    def _value(
        self, fields: Fields, wanted: str, more: Mapping[str, Any], *, title: str, multiple: bool = False
    ) -> str:
        if fields.has_text("value"):
            variables = {**more, **dict(fields.members("variables"))}
            secret = fields.flag("isSecret")
            return self.template(fields.text("value"), variables, required=fields.flag("isRequired"), secret=secret)
        new = self._input(fields, title)
        key = self._add(wanted, replace(new, multiple=multiple and not new.secret))
        self._arguments[wanted] = key
        self._arguments[title] = key
        return reference(key)

    def _variable(self, name: str, value: Any, required: bool, secret: bool) -> str:
        known = self._names.get(name) or self._arguments.get(name)
        if known is not None:
            return reference(known)
        fields = Fields(value)
        if fields.has_text("value"):
            return literal(fields.text("value"))
        new = self._input(fields, name)
        new = replace(new, required=new.required or (required and not new.default), secret=new.secret or secret)
        self._names[name] = key = self._add(name, new)
        return reference(key)

    def _input(self, fields: Fields, title: str) -> Input:
        choices = fields.texts("choices")
        default = fields.text("default")
        looks_secret = is_secret_name(title) and not choices and not default and fields.line("format") in ("", "string")
        return Input(
            key="",
            title=title[:200],
            description=fields.line("description")[:1000],
            kind=_KINDS.get(fields.line("format"), "text"),
            required=fields.flag("isRequired"),
            secret=fields.flag("isSecret") or looks_secret,
            default=[default] if default else [],
            choices=choices,
            placeholder=fields.line("placeholder")[:200],
        )

    def _add(self, wanted: str, new: Input) -> str:
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "_", wanted)[:100] or "value"
        key, number = slug, 2
        while key in self._inputs:
            key, number = f"{slug}-{number}", number + 1
        self._inputs[key] = replace(new, key=key)
        return key

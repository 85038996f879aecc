"""From a way and a person's answers to an entry of the roster, its secrets, and what is still needed."""

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from callboard.core.credentials import suggest_secret
from callboard.core.references import escape_references
from callboard.core.registry import INPUT, Argument, Input, Way

Answers = Mapping[str, list[str]]  # by the key of the input; without empty texts


@dataclass(frozen=True)
class OpenNeed:
    """Something that the entry cannot do without and that nobody has given.

    ``field`` is the dotted path of its place. ``marker`` is the text that stands there instead, "" where the place is
    empty; for a secret it is the reference to the one that has no value.
    """

    field: str
    marker: str
    input: Input

    @property
    def message(self) -> str:
        """A sentence that stands at the place."""
        said = f"{self.input.title}: {self.input.description}" if self.input.description else self.input.title
        return f"Needed: {said.rstrip('.')}."


@dataclass(frozen=True)
class Filling:
    """``secrets`` maps names to the values that were given; ``wrong`` the keys of inputs to what is wrong there."""

    entry: dict[str, Any]
    secrets: dict[str, str] = field(default_factory=dict, repr=False)
    open: list[OpenNeed] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)


def fill(
    way: Way,
    server: str,
    answers: Answers,
    taken: Collection[str] = (),
    stored: Mapping[str, str] | None = None,
) -> Filling:
    """The entry for a server of the name ``server``. ``taken`` are names that a new secret must not get.

    ``stored`` maps inputs to secrets that have their value already. An optional input without a value takes with it
    the variable, header or arguments that it stands in.
    """
    return _Filler(way, server, answers, taken, stored or {}).run()


def wrong_answers(way: Way, answers: Answers) -> dict[str, str]:
    """What is wrong with answers, by the key of the input."""
    found = {each.key: _problem(each, answers.get(each.key, [])) for each in way.inputs}
    return {key: text for key, text in found.items() if text}


def command_line(entry: Mapping[str, Any]) -> str:
    """What an entry runs or reaches, on one line for people."""
    if entry.get("url"):
        return str(entry["url"])
    return shlex.join([str(entry.get("command", "")), *map(str, entry.get("args", []))])


class _Filler:
    """Works through one way."""

    def __init__(
        self, way: Way, server: str, answers: Answers, taken: Collection[str], stored: Mapping[str, str]
    ) -> None:
        self._way = way
        self._stored = stored
        self._inputs = {each.key: each for each in way.inputs}
        self._values = {each.key: _given(each, answers) for each in way.inputs}
        self._secrets: dict[str, str] = {}  # names by key
        used = set(taken)
        for each in way.inputs:
            if each.secret:
                name = stored.get(each.key) or suggest_secret(server, each.key, used)
                self._secrets[each.key] = name
                used.add(name)
        self._open: list[OpenNeed] = []
        self._used: set[str] = set()

    def run(self) -> Filling:
        way = self._way
        entry: dict[str, Any] = dict(way.fields)
        if way.kind == "remote":
            entry["url"] = self._expand(way.url, "url")
            self._put_all(entry, "headers", way.headers)
            if way.bearer and self._is_there(way.bearer):
                entry["auth"] = {"type": "bearer", "secret": self._secrets[way.bearer]}
                self._reference(way.bearer, "auth.secret")
        else:
            entry["command"] = self._expand(way.command, "command")
            if args := [text for argument in way.arguments for text in self._arguments(argument)]:
                entry["args"] = args
            self._put_all(entry, "env", way.env)
        values = {
            self._secrets[key]: self._values[key][0] for key in self._secrets if key in self._used and self._values[key]
        }
        answered = {key: value for key, value in self._values.items() if value}
        return Filling(entry, values, self._open, wrong_answers(way, answered))

    def _put_all(self, entry: dict[str, Any], name: str, texts: Mapping[str, str]) -> None:
        found = {
            key: self._expand(text, f"{name}.{key}")
            for key, text in texts.items()
            if all(map(self._is_there, _keys(text)))
        }
        if found:
            entry[name] = found

    def _arguments(self, argument: Argument) -> list[str]:
        keys = [key for text in argument.texts for key in _keys(text)]
        if argument.when and self._values.get(argument.when) != ["true"]:
            return []
        if not all(map(self._is_there, keys)):
            return []
        many = next((key for key in keys if key in self._inputs and self._inputs[key].multiple), "")
        times = len(self._values[many]) if many else 1
        return [self._expand(text, "args", turn) for turn in range(max(times, 1)) for text in argument.texts]

    def _is_there(self, key: str) -> bool:
        """Whether what this input stands in is to be there: it has a value, or must get one."""
        asked = self._inputs.get(key)
        return asked is not None and (bool(self._values[key]) or key in self._stored or asked.required)

    def _expand(self, text: str, field: str, turn: int = 0) -> str:
        parts, end = [], 0
        for match in INPUT.finditer(text):
            key = match.group(1)
            if key is None:
                continue
            parts += [text[end : match.start()], self._replacement(key, field, match.group() == text, turn)]
            end = match.end()
        return "".join([*parts, text[end:]])

    def _replacement(self, key: str, field: str, whole: bool, turn: int) -> str:
        asked = self._inputs.get(key)
        if asked is None:
            return ""
        if asked.secret:
            return self._reference(key, field)
        values = self._values[key]
        if values:
            return escape_references(values[min(turn, len(values) - 1)])
        marker = "" if whole and field != "args" else f"<{key}>"
        if asked.required or field in ("url", "command"):
            self._open.append(OpenNeed(field, marker, asked))
        return marker

    def _reference(self, key: str, field: str) -> str:
        self._used.add(key)
        text = f"${{secret:{self._secrets[key]}}}"
        if not self._values[key] and key not in self._stored:
            self._open.append(OpenNeed(field, text, self._inputs[key]))
        return text


def _keys(text: str) -> list[str]:
    return [match.group(1) for match in INPUT.finditer(text) if match.group(1) is not None]


def _given(asked: Input, answers: Answers) -> list[str]:
    values = [text for text in answers.get(asked.key, asked.default) if text.strip()]
    return values if asked.multiple else values[:1]


def _problem(asked: Input, values: list[str]) -> str:
    for text in values:
        if asked.choices and text not in asked.choices:
            return f"It must be one of: {', '.join(asked.choices)}."
        if asked.kind == "boolean" and text not in ("true", "false"):
            return "It must be true or false."
        if asked.kind == "number" and (wrong := _wrong_number(asked, text)):
            return wrong
        if "\n" in text or "\r" in text:
            return "It must be one line."
    return ""


def _wrong_number(asked: Input, text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return "It must be a number."
    if asked.minimum is not None and number < asked.minimum:
        return f"It must be at least {asked.minimum:g}."
    if asked.maximum is not None and number > asked.maximum:
        return f"It must be at most {asked.maximum:g}."
    return "" if number == number and abs(number) != float("inf") else "It must be a number."

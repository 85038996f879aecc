"""Rules of an entry under edit that need no screen: kinds, paths, names, command lines, secret references.

The engine judges an entry (``EngineClient.validate``); what is here lets the form answer at once, or prepares what
it shows. No Qt, no I/O.
"""

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from callboard.api.schema import EntryKind, FieldProblem
from callboard.core.references import SECRET_NAME

Entry = dict[str, Any]
Path = tuple[str, ...]

KIND_FIELD: dict[EntryKind, str] = {"local": "command", "remote": "url", "agent": "agent"}
SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_WHOLE_REFERENCE = re.compile(r"\$\{secret:([^}]*)\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_WINDOWS_PATH = re.compile(r'"?(?:[A-Za-z]:\\|\\\\)')
_SHELL_WORDS = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "<<", "2>", "2>&1", "&>"})


def kind_of(entry: Mapping[str, Any]) -> EntryKind:
    """What sort of server an entry describes; "local" for one that says nothing yet."""
    for kind, name in KIND_FIELD.items():
        if entry.get(name) is not None:
            return kind
    return "local"


# paths into an entry


def get_at(entry: Mapping[str, Any], path: Path) -> Any:
    """The value at ``path``, None where there is none."""
    value: Any = entry
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def set_at(entry: Entry, path: Path, value: Any) -> None:
    """Put ``value`` at ``path``; None takes the name out, and the groups that this leaves empty with it."""
    step, rest = path[0], path[1:]
    if not rest:
        if value is None:
            entry.pop(step, None)
        else:
            entry[step] = value
        return
    group = entry.get(step)
    if not isinstance(group, dict):
        if value is None:
            return
        group = entry[step] = {}
    set_at(group, rest, value)
    if not group:
        del entry[step]


def with_changes(entry: Mapping[str, Any], changes: Mapping[Path, Any]) -> Entry:
    """A copy of ``entry`` with ``changes`` made; everything else, unknown fields included, stays as it stands."""
    changed: Entry = deepcopy(dict(entry))
    for path, value in changes.items():
        set_at(changed, path, deepcopy(value))
    return changed


def conflicts(mine: Mapping[Path, Any], base: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[Path]:
    """Which of my changes to ``base`` touch what ``theirs`` changed too, and not to the same."""
    return [
        path
        for path, value in mine.items()
        if get_at(theirs, path) != get_at(base, path) and get_at(theirs, path) != value
    ]


# names


def name_problem(name: str, taken: Iterable[str]) -> str:
    """Which rule ``name`` breaks: "missing", "pattern", "taken", "case", or "" for a good one."""
    if not name:
        return "missing"
    if not SERVER_NAME.fullmatch(name):
        return "pattern"
    for other in taken:
        if other.casefold() == name.casefold():
            return "taken" if other == name else "case"
    return ""


def free_name(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or it with the first number that makes it free; never longer than a name may be."""
    used = {name.casefold() for name in taken}
    name, number = wanted[:64], 2
    while name.casefold() in used:
        ending = f"-{number}"
        name, number = wanted[: 64 - len(ending)] + ending, number + 1
    return name


def copy_name(name: str, taken: Collection[str]) -> str:
    """A free name for a copy of the server ``name``."""
    return free_name(f"{name[:59]}-copy", taken)


# secrets


def reference(secret: str) -> str:
    """The text that stands in the roster for a secret's value."""
    return f"${{secret:{secret}}}"


def referred_secret(value: Any) -> str:
    """The secret's name if ``value`` is a reference and nothing else, otherwise ""."""
    match = _WHOLE_REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return match.group(1) if match and SECRET_NAME.fullmatch(match.group(1)) else ""


def has_reference(text: str) -> bool:
    """Whether something in ``text`` would be replaced when the server starts."""
    return "${" in text.replace("$${", "")


def secrets_in(value: Any) -> set[str]:
    """Names of all secrets that an entry, or a part of one, refers to."""
    if isinstance(value, str):
        return set(_WHOLE_REFERENCE.findall(value))
    if isinstance(value, Mapping):
        named = value.get("secret")
        own = {named} if isinstance(named, str) and named and "type" in value else set()
        return own.union(*map(secrets_in, value.values()))
    return set().union(*map(secrets_in, value)) if isinstance(value, list) else set()


# command lines


@dataclass(frozen=True)
class CommandLine:
    """A shell's command line taken apart. ``shell_word`` is the first word only a shell understands, or ""."""

    command: str
    args: list[str]
    env: dict[str, str] = field(default_factory=dict)
    shell_word: str = ""


def split_command_line(text: str) -> CommandLine | None:
    """``text`` as command and arguments; None if it is one word, or its quotes do not match."""
    text = text.strip().removeprefix("$ ").replace("\\\r\n", " ").replace("\\\n", " ")
    words = _words(text)
    if words is None:
        return None
    env: dict[str, str] = {}
    while words and (match := _ASSIGNMENT.fullmatch(words[0])):
        env[match.group(1)] = match.group(2)
        del words[0]
    if len(words) < 2 and not (words and env):
        return None
    return CommandLine(words[0], words[1:], env, _shell_word(text))


def _words(text: str) -> list[str] | None:
    try:
        if _WINDOWS_PATH.match(text):  # where a backslash is part of a path and quotes nothing
            return [word[1:-1] if word[:1] == word[-1:] == '"' else word for word in shlex.split(text, posix=False)]
        return shlex.split(text)
    except ValueError:
        return None


def _shell_word(text: str) -> str:
    try:
        words = shlex.split(text, posix=False)  # keeps the quotes, so that a quoted "|" is none
    except ValueError:
        return ""
    return next((word for word in words if word in _SHELL_WORDS), "")


def pairs_from(text: str, separators: str) -> dict[str, str]:
    """Names and values in pasted lines (``NAME=value``, ``Name: value``); empty if a line is something else."""
    pairs: dict[str, str] = {}
    for line in text.splitlines():
        line = line.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(rf"([^\s{re.escape(separators)}]+)\s*[{re.escape(separators)}]\s*(.*)", line)
        if match is None:
            return {}
        name, value = match.groups()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        pairs[name] = value[1:-1] if quoted else value
    return pairs


# values as text


def as_text(value: Any) -> str:
    """A plain value of an entry as a person would write it in the roster."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def is_plain(value: Any) -> bool:
    """Whether ``value`` fits into one line of text."""
    return isinstance(value, str | int | float)


def number_from(text: str) -> int | float | None:
    """The number in ``text``, None if it is not one that the roster could hold."""
    try:
        number = float(text.strip().replace(",", "."))
    except ValueError:
        return None
    if number != number or number in (float("inf"), float("-inf")):
        return None
    return int(number) if number.is_integer() else number


@dataclass(frozen=True)
class JsonProblem:
    """Why a text is not a JSON object. ``line`` is 0 where the text is JSON, but something else than an object."""

    line: int = 0
    column: int = 0
    message: str = ""


def object_from(text: str) -> dict[str, Any] | JsonProblem:
    """The JSON object in ``text``."""
    try:
        value = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            return JsonProblem(error.lineno, error.colno, error.msg)
        return JsonProblem(message=str(error))
    except RecursionError:
        return JsonProblem(message="nested too deeply")
    return value if isinstance(value, dict) else JsonProblem()


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not a number in JSON")


# problems


def place_problems(
    problems: Iterable[FieldProblem], paths: Collection[Path]
) -> tuple[dict[Path, dict[str, str]], list[FieldProblem]]:
    """Problems by the field that they belong to, each with the rest of its path; and those that belong to none."""
    placed: dict[Path, dict[str, str]] = {}
    homeless: list[FieldProblem] = []
    for problem in problems:
        owner, rest = owner_of(problem.field, paths)
        if owner is None:
            homeless.append(problem)
        else:
            placed.setdefault(owner, {})[rest] = problem.message
    return placed, homeless


def owner_of(dotted: str, paths: Collection[Path]) -> tuple[Path | None, str]:
    """The longest of ``paths`` that ``dotted`` begins with, and what is left of it."""
    steps = tuple(dotted.split(".")) if dotted else ()
    for size in range(len(steps), 0, -1):
        if steps[:size] in paths:
            return steps[:size], ".".join(steps[size:])
    return None, dotted

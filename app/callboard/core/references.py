"""References in an entry's text: ``${env:NAME}``, ``${secret:NAME}`` and ``${python}``.

``$${`` stands for a plain ``${``; any other ``$`` is itself. Everything else in ``${…}`` is an error, so that a
variable meant for another program never reaches a server unresolved, or empty.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from callboard.core.errors import CallboardError

if TYPE_CHECKING:
    from callboard.core.roster import AnyEntry

SECRET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
SECRET_NAME_RULE = "a secret's name is up to 128 letters (a-z), digits, -, _ and dots, beginning with a letter or digit"

_TOKEN = re.compile(r"\$\$\{|\$\{([^}]*)(\}?)")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_()]*")
_KNOWN = "${env:NAME}, ${secret:NAME} and ${python}"

Kind = Literal["env", "secret", "python"]
Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Reference:
    """One reference; ``name`` is empty for ``${python}``."""

    kind: Kind
    name: str = ""

    def __str__(self) -> str:
        return f"${{{self.kind}:{self.name}}}" if self.name else f"${{{self.kind}}}"


@dataclass(frozen=True)
class Names:
    """The names that an entry refers to."""

    env: frozenset[str]
    secrets: frozenset[str]


def split_references(text: str) -> list[str | Reference]:
    """``text`` as literal pieces and references, in order. Raises ``entry-invalid`` for what is neither."""
    parts: list[str | Reference] = []
    literal, position = "", 0
    for match in _TOKEN.finditer(text):
        literal += text[position : match.start()]
        position = match.end()
        if match.group() == "$${":
            literal += "${"
            continue
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(_reference(match.group(1), closed=bool(match.group(2))))
    literal += text[position:]
    return [*parts, literal] if literal else parts


def replace_references(text: str, value_of: Callable[[Reference], str]) -> str:
    """``text`` with each reference replaced by ``value_of(reference)``. Values are not looked into again."""
    if "${" not in text:
        return text
    return "".join(part if isinstance(part, str) else value_of(part) for part in split_references(text))


def escape_references(text: str) -> str:
    """``text`` such that it is taken literally."""
    return text.replace("${", "$${")


def texts_of(entry: "AnyEntry") -> Iterator[tuple[Path, str]]:
    """Every text of ``entry`` in which references are looked for, with its path."""
    for name in ("command", "url", "python", "cwd", "store"):
        if value := getattr(entry, name, ""):
            yield (name,), value
    for index, argument in enumerate(getattr(entry, "args", [])):
        yield ("args", index), argument
    for group in ("env", "headers"):
        for key, value in getattr(entry, group, {}).items():
            yield (group, key), value
    for name in ("agent", "params"):
        yield from _nested(getattr(entry, name, None), (name,))
    if (auth := getattr(entry, "auth", None)) is not None:
        for name in ("client_id", "issuer", "certificate", "key", "ca"):
            if value := getattr(auth, name, ""):
                yield ("auth", name), value


def names_in(entry: "AnyEntry") -> Names:
    """Environment variables and secrets that ``entry`` needs, those of its ``auth`` included."""
    env: set[str] = set()
    secrets: set[str] = set()
    for _, text in texts_of(entry):
        for part in split_references(text):
            if isinstance(part, Reference) and part.kind != "python":
                (env if part.kind == "env" else secrets).add(part.name)
    if secret := getattr(getattr(entry, "auth", None), "secret", None):
        secrets.add(secret)
    return Names(frozenset(env), frozenset(secrets))


def check_references(entry: "AnyEntry") -> list[tuple[Path, str]]:
    """Paths and clauses for every malformed or unknown reference of ``entry``."""
    problems: list[tuple[Path, str]] = []
    for path, text in texts_of(entry):
        try:
            split_references(text)
        except CallboardError as error:
            problems.append((path, error.message))
    return problems


def _nested(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _nested(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _nested(item, (*path, index))


def _reference(inside: str, *, closed: bool) -> Reference:
    if not closed:
        raise CallboardError("entry-invalid", f"${{{inside} has no closing brace; a plain ${{ is written $${{")
    kind, colon, name = inside.partition(":")
    if inside == "python":
        return Reference("python")
    if kind == "env" and _ENV_NAME.fullmatch(name):
        return Reference("env", name)
    if kind == "secret" and SECRET_NAME.fullmatch(name):
        return Reference("secret", name)
    if kind == "env" and colon:
        raise CallboardError("entry-invalid", f"${{{inside}}} does not name an environment variable")
    if kind == "secret" and colon:
        raise CallboardError("entry-invalid", f"${{{inside}}} does not name a secret: {SECRET_NAME_RULE}")
    hint = f", perhaps ${{env:{inside}}}" if _ENV_NAME.fullmatch(inside) else ""
    raise CallboardError(
        "entry-invalid", f"${{{inside}}} is not known here{hint}; there are {_KNOWN}, and a plain ${{ is written $${{"
    )

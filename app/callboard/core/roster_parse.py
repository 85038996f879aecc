"""From text or plain values to the roster's shapes, with errors that a person can act on."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from callboard.core.policy import unknown_profile
from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Profile, Rules
from callboard.core.references import check_references
from callboard.core.roster import (
    ENTRY_KINDS,
    SERVER_NAME,
    SERVER_NAME_RULE,
    AgentEntry,
    AnyEntry,
    LocalEntry,
    RemoteEntry,
    Roster,
    Settings,
)
from callboard.core.roster_yaml import Path, RosterError, read_yaml
from callboard.core.shape import Model

M = TypeVar("M", bound=Model)

NAMED_SECTIONS = ("clients", "profiles")
_AUTH_TYPES = ("none", "bearer", "api_key", "custom_header", "oauth", "mtls")
_AUTH_FIELDS = (
    *("type", "secret", "header", "client_id", "issuer", "client_metadata", "grant", "scopes"),
    *("certificate", "key", "ca"),
)
_OWNERS: dict[type[Model], str] = {
    LocalEntry: "of a server with a command",
    RemoteEntry: "of a server with a url",
    AgentEntry: "of an agent",
    ClientEntry: "of a client",
    Profile: "of a profile",
    Rules: "of a policy",
    DefaultPolicy: "of a policy",
}
# What other programs call the same thing.
_OTHER_WORDS = {
    "environment": "env",
    "envs": "env",
    "arguments": "args",
    "cmd": "command",
    "disabled": "enabled",
    "active": "enabled",
    "isActive": "enabled",
    "working_directory": "cwd",
    "workingDirectory": "cwd",
    "httpUrl": "url",
    "serverUrl": "url",
    "baseUrl": "url",
    "http_headers": "headers",
    "name": "display_name",
    "timeout": "timeouts",
    "autostart": "start",
    "autoStart": "start",
    "mcpServers": "servers",
    "mcp_servers": "servers",
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with one field. ``path`` leads to it from the entry (or the file)."""

    path: Path
    message: str  # a clause: "must be a list"
    at_key: bool = False  # the name itself is wrong, not its value

    @property
    def field(self) -> str:
        """Dotted path: "env.TOKEN", "args.2"; empty for the whole entry."""
        return ".".join(map(str, self.path))

    @property
    def text(self) -> str:
        """The message as a sentence that stands under the field."""
        return self.message[:1].upper() + self.message[1:] + "."


def parse_roster(text: str) -> Roster:
    """Read a whole roster. An empty text is a roster without servers.

    One wrong entry refuses the file, so that what runs is always what one file says. Raises :class:`RosterError` with
    the place of the first problem in file order.
    """
    document = read_yaml(text)
    value = {} if document.value is None else document.value
    problems: list[Problem] = []
    if not isinstance(value, dict):
        raise RosterError("roster-invalid", 'The roster must begin with names, like "servers:".', *document.place(()))
    # names that begin with x- are the person's own: a place for anchors
    rest = {key: item for key, item in value.items() if key != "servers" and not key.startswith("x-")}
    settings = _validate(Settings, rest, problems, extra_names=("servers",))
    if settings is not None:
        problems += _bindings(settings)
    written = value.get("servers")
    written = {} if written is None else written
    servers: dict[str, AnyEntry] = {}
    if not isinstance(written, dict):
        problems.append(Problem(("servers",), "must be a mapping of names to servers"))
        written = {}
    seen: dict[str, str] = {}
    for name, raw in written.items():
        if (why := name_problem(name, seen.values())) is not None:
            problems.append(Problem(("servers", name), why, at_key=True))
        seen[name.casefold()] = name
        entry, wrong = check_entry(raw)
        problems += [Problem(("servers", name, *item.path), item.message, item.at_key) for item in wrong]
        if entry is not None:
            servers[name] = entry
    if problems:
        raise _first(problems, document.place)
    assert settings is not None  # else there would be a problem
    sections = {name: {key: item or {} for key, item in (value.get(name) or {}).items()} for name in NAMED_SECTIONS}
    sections[""] = {"policy": value["policy"]} if value.get("policy") else {}
    return Roster(servers, settings, written, sections)


def check_entry(raw: Any) -> tuple[AnyEntry | None, list[Problem]]:
    """The entry that ``raw`` (plain values, from YAML or JSON) describes, or what is wrong with it."""
    if not isinstance(raw, dict):
        return None, [Problem((), "must be a mapping with a command, a url or an agent")]
    given = [key for key in ENTRY_KINDS if raw.get(key) is not None]
    if len(given) > 1:
        return None, [Problem((given[1],), f"stands beside {given[0]}; an entry has only one of them", at_key=True)]
    if not given:
        known = {name for model in ENTRY_KINDS.values() for name in model.model_fields}
        typos = [_unknown((key,), known) for key in raw if key not in known]
        return None, typos or [Problem((), "needs one of command, url and agent")]
    problems: list[Problem] = []
    entry = _validate(ENTRY_KINDS[given[0]], raw, problems)
    if entry is not None:
        problems += [Problem(path, message) for path, message in check_references(entry)]
    return (None, problems) if problems else (entry, [])


def check_shape(model: type[Model], raw: Any) -> list[Problem]:
    """What is wrong with plain values that shall be a client, a profile or the policy."""
    problems: list[Problem] = []
    if not isinstance(raw, dict):
        return [Problem((), "must be a mapping (name: value)")]
    _validate(model, raw, problems)
    return problems


def _bindings(settings: Settings) -> list[Problem]:
    """Clients whose profile does not exist: what they were bound to, they must not leave by a slip of the pen."""
    return [
        Problem(("clients", name, "profile"), unknown_profile(client.profile, list(settings.profiles)))
        for name, client in settings.clients.items()
        if client.profile and client.profile not in settings.profiles
    ]


def name_problem(name: str, taken: Iterable[str] = ()) -> str | None:
    """Why ``name`` cannot be a server's name beside those ``taken``, or None."""
    if not SERVER_NAME.fullmatch(name):
        return SERVER_NAME_RULE
    for other in taken:
        if other.casefold() == name.casefold():
            return "is taken" if other == name else f'differs from "{other}" only by upper and lower case'
    return None


def _validate(
    model: type[M], raw: Mapping[str, Any], problems: list[Problem], extra_names: tuple[str, ...] = ()
) -> M | None:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems += [_problem(model, raw, item, extra_names) for item in error.errors(include_url=False)]
        return None


def _problem(model: type[Model], raw: Mapping[str, Any], item: ErrorDetails, extra_names: tuple[str, ...]) -> Problem:
    path = _path(item["loc"])
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        return _unknown(path, _names_at(model, path, extra_names), _owner(model, path))
    if item["loc"][-1:] == ("[key]",):
        return Problem(path, str(context.get("message", "is not a name that can stand here")), at_key=True)
    if kind in ("literal_error", "union_tag_invalid"):
        given = _value(raw, path if kind == "literal_error" else (*path, "type"))
        choices = _AUTH_TYPES if kind == "union_tag_invalid" else _choices(str(context["expected"]))
        return Problem(path if kind == "literal_error" else (*path, "type"), _one_of(given, choices))
    if kind == "union_tag_not_found":
        return Problem((*path, "type"), "is missing; it is one of " + _list(_AUTH_TYPES))
    if kind == "callboard":
        return Problem(path, str(context["message"]))
    return Problem(path, _plain(kind, context, _value(raw, path)))


def _path(loc: tuple[int | str, ...]) -> Path:
    steps = [step for step in loc if step != "[key]"]
    if steps[:1] == ["auth"] and len(steps) > 1 and steps[1] in _AUTH_TYPES:
        del steps[1]  # pydantic names the member of the union
    return tuple(steps)


def _plain(kind: str, context: Mapping[str, Any], given: Any) -> str:
    match kind:
        case "missing":
            return "is missing"
        case "string_type":
            return "must be text"
        case "bool_type":
            return "must be true or false"
        case "int_type" | "int_from_float":
            return "must be a whole number"
        case "float_type":
            return "must be a number"
        case "list_type":
            return "must be a list" + (f", like [{given}]" if isinstance(given, str) and "," not in given else "")
        case "dict_type" | "model_type" | "model_attributes_type":
            return "must be a mapping (name: value)"
        case "greater_than":
            return f"must be more than {_number(context['gt'])}"
        case "greater_than_equal":
            return f"must be at least {_number(context['ge'])}"
        case "less_than_equal":
            return f"must be at most {_number(context['le'])}"
        case _:
            return "is not valid here"


def _unknown(path: Path, known: Iterable[str], owner: str = "") -> Problem:
    name, names = str(path[-1]), sorted(known)
    guess = _OTHER_WORDS.get(name, "")
    if guess not in names:
        close = difflib.get_close_matches(name.casefold().replace("-", "_"), names, n=1, cutoff=0.6)
        guess = close[0] if close else ""
    if guess:
        return Problem(path, f"is not a field here; did you mean {guess}", at_key=True)
    return Problem(path, f"is not a field {owner or 'here'}; there are {_list(names)}", at_key=True)


def _names_at(model: type[Model], path: Path, extra_names: tuple[str, ...]) -> tuple[str, ...]:
    if len(path) == 1:
        return (*model.model_fields, *extra_names)
    if path[0] == "auth":
        return _AUTH_FIELDS
    return tuple(_model_at(model, path).model_fields)


def _owner(model: type[Model], path: Path) -> str:
    if len(path) > 1:
        return _OWNERS.get(_model_at(model, path) if path[0] != "auth" else Model, f"of {path[-2]}")
    return _OWNERS.get(model, "")


def _model_at(model: type[Model], path: Path) -> type[Model]:
    """The shape that holds the last step of ``path``."""
    kind: Any = model
    for step in path[:-1]:
        kind = _inner(kind.model_fields[step].annotation if _is_shape(kind) else get_args(kind)[-1])
    found: type[Model] = kind
    return found


def _is_shape(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Model)


def _inner(kind: Any) -> Any:
    """A type without its annotations and without None."""
    while get_origin(kind) in (Annotated, Union, UnionType):
        kind = next(each for each in get_args(kind) if each is not type(None))
    return kind


def _value(raw: Any, path: Path) -> Any:
    for step in path:
        try:
            raw = raw[step]
        except (KeyError, IndexError, TypeError):
            return None
    return raw


def _one_of(given: Any, choices: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(given), choices, n=1, cutoff=0.6)
    if len(choices) == 1:
        return f"must be {choices[0]}"
    return f"must be one of {_list(choices)}" + (f"; did you mean {close[0]}" if close else "")


def _choices(expected: str) -> list[str]:
    return [part.strip("' ") for part in expected.replace(" or ", ", ").split(",")]


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _number(value: Any) -> str:
    return f"{value:g}"


def _first(problems: list[Problem], place: Callable[..., tuple[int, int]]) -> RosterError:
    located = sorted(((place(item.path, key=item.at_key), item) for item in problems), key=lambda pair: pair[0])
    (line, column), first = located[0]
    rest = len(problems) - 1
    more = f" (and {rest} more {'mistakes' if rest > 1 else 'mistake'})" if rest else ""
    where = first.field or "The roster"
    error = RosterError(
        "roster-invalid", f"Line {line}, column {column}: {where} {first.message}{more}.", line, column, first.field
    )
    error.data["mistakes"] = [
        f"Line {at[0]}, column {at[1]}: {each.field or 'The roster'} {each.message}." for at, each in located
    ]
    return error

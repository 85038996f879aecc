"""The shipped servers: entries that are ready for the roster, what each needs, and what of that is missing here.

The catalogue is resources/shipped.yaml. Whoever has looked what is on this machine (:class:`Here`) learns from
:func:`findings` what a server can do without, what it lacks, and how to get it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter

from callboard.core.roster import AnyEntry, LocalEntry, SecretName
from callboard.core.roster_parse import check_entry, name_problem
from callboard.core.shape import Filled, Model, Text

GetAdvice = dict[Literal["linux", "darwin", "win32", "any"], Filled]

_VERSION = re.compile(r"\d+(\.\d+)*")


class _Need(Model):
    """What all needs say: ``get`` is how to get it, in a sentence, for this system or "any"; ``link`` where."""

    get: GetAdvice
    link: Text = ""

    def advice(self, system: str) -> str:
        """How to get it on a system."""
        return next((text for name, text in self.get.items() if name == system), self.get.get("any", ""))


class ProgramNeed(_Need):
    """A program on the PATH. ``version_of`` is the program that tells the version, ``at_least`` the first good one."""

    kind: Literal["program"]
    program: Filled
    of: Filled  # what it comes with
    version_of: Text = ""
    at_least: Text = ""


class PackageNeed(_Need):
    """Python packages beside our own, by the modules that they bring."""

    kind: Literal["packages"]
    modules: list[Filled]
    names: list[Filled]


class BrowserNeed(_Need):
    """A browser that can run: its program, and the libraries that it links to."""

    kind: Literal["browser"]
    browser: Literal["chrome"]
    title: Filled
    get_libraries: Text = ""


class DisplayNeed(_Need):
    """A screen to draw on, unless one of ``unless`` stands among the arguments."""

    kind: Literal["display"]
    unless: list[Filled] = Field(default_factory=list)


class SecretNeed(_Need):
    """A token or key. Where it is ``optional``, ``fields`` are what the entry has in addition with it."""

    kind: Literal["secret"]
    secret: SecretName
    title: Filled
    optional: bool = False
    fields: dict[str, Any] = Field(default_factory=dict)


class FoldersNeed(_Need):
    """Folders that the person names; they become the last arguments."""

    kind: Literal["folders"]
    title: Filled


Need = Annotated[
    ProgramNeed | PackageNeed | BrowserNeed | DisplayNeed | SecretNeed | FoldersNeed, Field(discriminator="kind")
]


class Shipped(Model):
    """One server of the catalogue. ``known_by`` is a text in the address or arguments of every entry of its kind."""

    entry: dict[str, Any]
    known_by: Filled
    needs: list[Need] = Field(default_factory=list)

    @property
    def title(self) -> str:
        """Its name for people."""
        return str(self.entry.get("display_name", ""))

    @property
    def description(self) -> str:
        """What it does."""
        return str(self.entry.get("description", ""))

    def is_like(self, written: Mapping[str, Any]) -> bool:
        """Whether an entry of a roster is one of this server's."""
        return any(self.known_by in str(text) for text in (written.get("url", ""), *(written.get("args") or [])))

    def with_answers(self, *, folders: list[str], secrets: frozenset[str]) -> dict[str, Any]:
        """The entry with the folders that a person named, and with what the ``secrets`` that have a value add."""
        entry = dict(self.entry)
        for need in self.needs:
            if isinstance(need, FoldersNeed):
                entry["args"] = [*entry.get("args", []), *folders]
            elif isinstance(need, SecretNeed) and need.optional and need.secret in secrets:
                entry |= need.fields
        return entry


@dataclass(frozen=True)
class Program:
    """A program that was found. ``version`` is "" where it was not asked or did not say."""

    path: str
    version: str = ""


@dataclass(frozen=True)
class Browser:
    """A browser that was found, and the libraries that it links to and that are not here."""

    path: str
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Here:
    """What is on this machine, as far as somebody has looked. ``secrets`` are the names that have a value."""

    system: str
    programs: Mapping[str, Program] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()
    browsers: Mapping[str, Browser] = field(default_factory=dict)
    has_display: bool = True
    secrets: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Finding:
    """What became of one need. ``state``: "met"; "missing": the machine lacks it; "asked": the person gives it;
    "optional": the person may. ``message`` is a sentence, ``fix`` how to get what is not there.
    """

    need: Need
    state: Literal["met", "missing", "asked", "optional"]
    message: str
    fix: str = ""


def is_first_party(entry: AnyEntry) -> bool:
    """Whether an entry runs one of our own servers, under our own interpreter."""
    if not isinstance(entry, LocalEntry) or entry.command != "${python}" or len(entry.args) < 2:
        return False
    return entry.args[0] == "-m" and entry.args[1].startswith("callboard.servers.")


def load_catalogue(text: str) -> dict[str, Shipped]:
    """The servers of a catalogue by name, in its order. Raises ValueError for one that is wrong: it is our own."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    catalogue = TypeAdapter(dict[str, Shipped]).validate_python(yaml.load(text, Loader=loader))
    for name, shipped in catalogue.items():
        if problem := name_problem(name, []):
            raise ValueError(f"{name}: {problem}")
        optional = frozenset(need.secret for need in shipped.needs if isinstance(need, SecretNeed))
        for secrets in (frozenset[str](), optional):
            _, problems = check_entry(shipped.with_answers(folders=["/x"], secrets=secrets))
            if problems:
                raise ValueError(f"{name}: {problems[0].field} {problems[0].message}")
    return catalogue


def findings(shipped: Shipped, here: Here, args: list[str] | None = None) -> list[Finding]:
    """What a server needs, and whether it is here. ``args`` are the arguments of its entry (default: the shipped)."""
    return findings_of(shipped.needs, here, args if args is not None else list(shipped.entry.get("args", [])))


def findings_of(needs: Sequence[Need], here: Here, args: Sequence[str] = ()) -> list[Finding]:
    """Whether what a server with the arguments ``args`` needs is here."""
    return [_finding(need, here, args) for need in needs]


def _finding(need: Need, here: Here, args: Sequence[str]) -> Finding:
    fix = need.advice(here.system)
    match need:
        case ProgramNeed():
            return _program(need, here, fix)
        case PackageNeed():
            names = " and ".join(need.names)
            if here.modules.issuperset(need.modules):
                return Finding(need, "met", f"The Python packages {names} are here.")
            return Finding(need, "missing", f"The Python packages {names} are not here.", fix)
        case BrowserNeed():
            return _browser(need, here, fix)
        case DisplayNeed():
            if here.has_display or any(text in args for text in need.unless):
                return Finding(need, "met", "There is a screen, or none is needed.")
            return Finding(need, "missing", "There is no screen for its windows here.", fix)
        case SecretNeed():
            if need.secret in here.secrets:
                return Finding(need, "met", f'The secret "{need.secret}" ({need.title}) has a value.')
            if need.optional:
                return Finding(need, "optional", f"It works without {need.title}, too.", fix)
            return Finding(need, "asked", f"It needs {need.title}.", fix)
        case FoldersNeed():
            return Finding(need, "asked", f"It needs {need.title}.", fix)


def _program(need: ProgramNeed, here: Here, fix: str) -> Finding:
    found = here.programs.get(need.program)
    if found is None:
        return Finding(need, "missing", f"{need.of} is not here: the program {need.program} was not found.", fix)
    match = _VERSION.search(here.programs.get(need.version_of, found).version)
    version = match.group() if match else ""
    if version and _numbers(version) < _numbers(need.at_least):
        message = f"{need.of} {version} is too old: it must be {need.at_least} or later."
        return Finding(need, "missing", message, fix)
    return Finding(need, "met", f"{need.of} {version} is here.".replace("  ", " "))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def _browser(need: BrowserNeed, here: Here, fix: str) -> Finding:
    found = here.browsers.get(need.browser)
    if found is None:
        return Finding(need, "missing", f"{need.title} is not here.", fix)
    if found.missing:
        libraries = ", ".join(found.missing)
        message = f"{need.title} is here, but cannot run: the libraries {libraries} are missing."
        return Finding(need, "missing", message, need.get_libraries or fix)
    return Finding(need, "met", f"{need.title} is here.")

"""Servers as a registry offers them: the ways to set one up, and what each way asks the person for.

Only data, plain enough to travel over the control API. :mod:`callboard.core.registry_document` and
:mod:`callboard.core.registry_packages` make it of the official registry's documents, :mod:`callboard.core.bundle` of a
bundle's manifest; :mod:`callboard.core.registry_fill` makes an entry of the roster of it.
"""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

InputKind = Literal["text", "number", "boolean", "file", "folder"]

INPUT = re.compile(r"\$\$\{|\$\{input:([^}]*)\}")


@dataclass(frozen=True)
class Input:
    """One thing that a way asks for. ``key`` is its own within the way, ``default`` what holds if nothing is said.

    ``default`` has at most one text unless the input is ``multiple``: a value for each time that its argument stands.
    """

    key: str
    title: str
    description: str = ""
    kind: InputKind = "text"
    required: bool = False
    secret: bool = False
    default: list[str] = field(default_factory=list)
    choices: list[str] = field(default_factory=list)
    multiple: bool = False
    placeholder: str = ""
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class Argument:
    """Arguments that stand together or not at all. ``when`` is an input that must be "true", "" for always."""

    texts: list[str]
    when: str = ""


@dataclass(frozen=True)
class BundleSource:
    """A bundle that must be fetched before its way is known. ``sha256`` is "" where none was promised."""

    url: str
    sha256: str = ""


@dataclass(frozen=True)
class Way:
    """One way to set a server up.

    Texts of ``command``, ``arguments``, ``env``, ``url`` and ``headers`` are those of a roster's entry, with
    ``${input:KEY}`` where an input's value belongs. ``bearer`` is the key of an input whose value is a bearer token.
    ``fields`` is what the entry has besides. ``programs`` must be on this machine, each with the first version that
    will do ("" for any). ``problem`` says why the way cannot be gone, "" if it can.
    """

    title: str
    short: str  # for a list: "npx", "HTTP"
    kind: Literal["local", "remote", "bundle"]
    command: str = ""
    arguments: list[Argument] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    bearer: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    inputs: list[Input] = field(default_factory=list)
    programs: dict[str, str] = field(default_factory=dict)
    bundle: BundleSource | None = None
    remarks: list[str] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True)
class Offer:
    """One server of a registry, in one version. ``status`` is "active", "deprecated" or "deleted"."""

    name: str  # as the registry knows it: io.github.somebody/weather
    title: str
    description: str = ""
    version: str = ""
    website: str = ""
    repository: str = ""
    status: str = "active"
    status_message: str = ""
    ways: list[Way] = field(default_factory=list)

    @property
    def short_name(self) -> str:
        """A name for it in the roster, not yet looked at for being free."""
        return short_name(self.name)


def short_name(name: str) -> str:
    """The last part of a registry's name, such that the roster takes it."""
    last = name.rstrip("/").rpartition("/")[2]
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", last).strip("-_")[:64]
    return slug or "server"

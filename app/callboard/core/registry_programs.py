"""The programs that run what a registry offers, and how to get them: resources/registry.yaml."""

from collections.abc import Mapping

import yaml

from callboard.core.registry import Way
from callboard.core.shape import Filled, Model, Text
from callboard.core.shipped import GetAdvice, ProgramNeed


class ProgramAdvice(Model):
    """What is known of a program: see :class:`~callboard.core.shipped.ProgramNeed`."""

    of: Filled
    version_of: Text = ""
    get: GetAdvice
    link: Text = ""


class RegistryDefaults(Model):
    """The registry that is searched if nobody says another, and the programs."""

    url: Filled
    programs: dict[Filled, ProgramAdvice]


def load_registry_defaults(text: str) -> RegistryDefaults:
    """The content of the file. Raises ValueError if it is wrong: it is our own."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return RegistryDefaults.model_validate(yaml.load(text, Loader=loader))


def needs_of(way: Way, programs: Mapping[str, ProgramAdvice]) -> list[ProgramNeed]:
    """What must be on this machine for a way."""
    return [_need(name, version, programs.get(name)) for name, version in way.programs.items()]


def _need(name: str, at_least: str, advice: ProgramAdvice | None) -> ProgramNeed:
    if advice is None:
        get = {"any": f"Install {name}, such that it is found on the PATH."}
        return ProgramNeed.model_validate({"kind": "program", "program": name, "of": name, "get": get})
    known = advice.model_dump()
    return ProgramNeed.model_validate({"kind": "program", "program": name, "at_least": at_least, **known})

"""What is set for one served agent: the JSON that the engine or the command line hands over, and the environment.

Each setting can be overridden by an environment variable: ``CALLBOARD_AGENT_EXPOSE``, ``CALLBOARD_AGENT_TYPED``,
``CALLBOARD_AGENT_LIMITS_TURNS`` and so on. Lists are JSON or separated by commas, mappings are JSON.
"""

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, get_type_hints

from callboard.core.argument_aliases import PRESETS

CONFIG: Final = "CALLBOARD_AGENT"
PREFIX: Final = "CALLBOARD_AGENT_"
EXPOSE_WORDS: Final = ("auto", "tools", "whole")
_WORDS: Final = {
    "true": True,
    "yes": True,
    "on": True,
    "1": True,
    "false": False,
    "no": False,
    "off": False,
    "0": False,
}


class SettingsError(ValueError):
    """A setting that cannot be; the message names it and says what it may be."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one served agent; 0 means none."""

    conversations: int = 500  # kept at once; the one unused for longest goes first
    idle: float = 3600.0  # seconds without a call after which a conversation is over
    turns: int = 1000  # calls in one conversation
    conversation_kb: int = 8192  # of requests and answers together, or of its stored state
    queue: int = 8  # calls that may wait for their turn in one conversation
    result_kb: int = 256  # of one answer; what is more can be read as a resource
    attachment_kb: int = 16384  # of all attachments of one call
    resources_kb: int = 65536  # kept of files and long texts that were answers
    wait: float = 60.0  # seconds that a call waits while another engine has the conversation
    grace: float = 5.0  # seconds that a cancelled call has before its worker is ended


@dataclass(frozen=True)
class AgentSettings:
    """One served agent, as roster fields of the same names say it."""

    agent: tuple[str, ...]
    python: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    expose: str | tuple[str, ...] = "auto"  # whole for an agent that answers requests and has no tools for its callers
    name: str = ""  # of the server and, exposed as a whole, of its tool; empty: the agent's own
    instructions: str = ""
    typed: bool = True  # False: tools are published with the one argument kwargs
    aliases: Mapping[str, Any] = field(default_factory=dict)  # {sent: known}, or {tool: {sent: known}}
    stateless: bool = False  # no conversations, and no sessions over HTTP
    reload: bool = False
    persist: bool = False
    store: str = ""  # a database's address; persist is meant
    attachments: bool = True
    thoughts: bool = False
    label: str = ""  # media type of JSON answers that have none
    heartbeat: float = 10.0  # seconds of silence after which a call says that it still runs; 0: never
    limits: Limits = Limits()
    hide: tuple[str, ...] = ()  # values that no message may hold
    server: str = ""  # its name in the roster, if the engine runs it
    gateway: bool = False  # run by the engine for all clients: it says in _meta who calls

    @property
    def is_persistent(self) -> bool:
        """True if conversations outlive the server."""
        return (self.persist or bool(self.store)) and not self.stateless

    @property
    def keeps_state(self) -> bool:
        """True if a conversation's state is told with each answer, so that it outlives the agent's process."""
        return self.is_persistent or self.reload

    @property
    def wants_inner_tools(self) -> bool:
        """True if the tools that an agent uses itself are to be published."""
        return self.expose not in ("auto", "whole")


def read_settings(environment: Mapping[str, str]) -> AgentSettings:
    """The settings of ``CALLBOARD_AGENT`` with the environment's overrides. Raises SettingsError."""
    text = environment.get(CONFIG, "{}")
    try:
        given = json.loads(text)
    except ValueError as error:
        raise SettingsError(f"{CONFIG} is not JSON: {error}") from error
    if not isinstance(given, dict):
        raise SettingsError(f"{CONFIG} must be a JSON object")
    return make_settings({**given, **_overrides(environment, given)})


def make_settings(given: Mapping[str, Any]) -> AgentSettings:
    """Settings from plain values, as JSON has them; names without a meaning are errors. Raises SettingsError."""
    values = dict(given)
    known = {each.name for each in fields(AgentSettings)}
    if unknown := values.keys() - known:
        raise SettingsError(f"{min(unknown)} is no setting of an agent")
    agent = values.get("agent")
    specs = [agent] if isinstance(agent, str) else agent
    if not isinstance(specs, list | tuple) or not specs or not all(isinstance(each, str) and each for each in specs):
        raise SettingsError("agent must name an agent, as in package.module:attribute")
    values["agent"] = tuple(specs)
    for name in ("expose", "hide"):
        if isinstance(values.get(name), list):
            values[name] = tuple(values[name])
    if isinstance(values.get("aliases"), str):
        values["aliases"] = _preset(values["aliases"])
    limits = values.get("limits", {})
    values["limits"] = limits if isinstance(limits, Limits) else _limits(limits)
    settings = AgentSettings(**values)
    for each in fields(AgentSettings):
        _check(each.name, getattr(settings, each.name), _TYPES[each.name])
    return settings


def variable_of(setting: str) -> str:
    """The environment variable of a setting, as in ``typed`` or ``limits.turns``. Raises SettingsError."""
    known = [each.name for each in fields(AgentSettings)] + [f"limits.{each.name}" for each in fields(Limits)]
    if setting not in known:
        near = difflib.get_close_matches(setting, known, n=1, cutoff=0.5)
        raise SettingsError(f"{setting} is no setting of an agent" + (f"; did you mean {near[0]}?" if near else ""))
    return PREFIX + setting.upper().replace(".", "_")


def argument_aliases(settings: AgentSettings, tool: str) -> dict[str, str]:
    """What the arguments of a tool may be called as well: {sent: known}."""
    found: dict[str, str] = {}
    for key, value in settings.aliases.items():
        if isinstance(value, str):
            found[key] = value
        elif key in (tool, "*"):
            found |= value
    return found


def _preset(name: str) -> Mapping[str, str]:
    if name not in PRESETS:
        raise SettingsError(f'aliases: there is no preset "{name}"; there is {", ".join(PRESETS)}')
    return PRESETS[name]


def _limits(given: Any) -> Limits:
    if not isinstance(given, Mapping):
        raise SettingsError("limits must be a mapping")
    known = {each.name: each.type for each in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            raise SettingsError(f"limits has no {name}; it has {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise SettingsError(f"limits.{name} must be a number that is not negative")
    return replace(Limits(), **given)


def _check(name: str, value: Any, wanted: Any) -> None:
    if wanted is bool and not isinstance(value, bool):
        raise SettingsError(f"{name} must be true or false")
    if wanted is str and not isinstance(value, str):
        raise SettingsError(f"{name} must be text")
    if wanted is float and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
        raise SettingsError(f"{name} must be a number that is not negative")
    if name in ("params", "aliases") and not isinstance(value, Mapping):
        raise SettingsError(f"{name} must be a mapping")
    if name == "expose":
        listed = isinstance(value, tuple) and bool(value) and all(isinstance(item, str) for item in value)
        if value not in EXPOSE_WORDS and not listed:
            raise SettingsError('expose must be "auto", "tools", "whole" or a list of names')


def _overrides(environment: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields(AgentSettings):
        text = environment.get(PREFIX + each.name.upper())
        if text is not None and each.name not in ("hide", "server", "gateway"):
            found[each.name] = _from_text(each.name, text)
    limits = dict(given.get("limits") or {})
    for each in fields(Limits):
        text = environment.get(f"{PREFIX}LIMITS_{each.name.upper()}")
        if text is not None:
            limits[each.name] = _number(f"limits.{each.name}", text)
    return {**found, "limits": limits} if limits and "limits" not in found else found


def _from_text(name: str, text: str) -> Any:
    wanted = _TYPES[name]
    if wanted is bool:
        if text.strip().lower() not in _WORDS:
            raise SettingsError(f"{PREFIX}{name.upper()} must be true or false")
        return _WORDS[text.strip().lower()]
    if wanted is float:
        return _number(name, text)
    if wanted is str:
        return text
    if text.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(text)
        except ValueError as error:
            raise SettingsError(f"{PREFIX}{name.upper()} is not JSON: {error}") from error
    if name in ("agent", "expose"):
        items = [item.strip() for item in text.split(",") if item.strip()]
        return items[0] if len(items) == 1 and (name == "agent" or items[0] in EXPOSE_WORDS) else items
    return text


def _number(name: str, text: str) -> float | int:
    try:
        return int(text) if text.strip().isdecimal() else float(text)
    except ValueError as error:
        raise SettingsError(f"{name} must be a number, not {text!r}") from error


_TYPES: Final = get_type_hints(AgentSettings)

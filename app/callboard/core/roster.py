"""The roster's shapes: what an entry may say, with types, defaults and bounds.

Only data. Reading text into these shapes is :mod:`callboard.core.roster_parse`, references are
:mod:`callboard.core.references`, and what an entry becomes when its server starts is :mod:`callboard.core.resolve`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from callboard.core.argument_aliases import PRESETS
from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import ClientEntry, ClientName, DefaultPolicy, Profile, SelectionName
from callboard.core.references import SECRET_NAME, SECRET_NAME_RULE, split_references
from callboard.core.shape import Filled, Model, Seconds, Text, wrong

SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
SERVER_NAME_RULE = "must be 1 to 64 letters (a-z), digits, - and _, beginning with a letter or digit"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


def _env_name(name: str) -> str:
    if not name or "=" in name or "\0" in name:
        raise wrong("is not a name that an environment variable can have")
    return name


def _header_name(name: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        raise wrong("is not a name that a header can have")
    return name


def _header_value(value: str) -> str:
    if "\r" in value or "\n" in value:
        raise wrong("must be one line")
    return value


def _secret_name(name: str) -> str:
    if not SECRET_NAME.fullmatch(name):
        raise wrong(SECRET_NAME_RULE)
    return name


def _url(value: str) -> str:
    if value.startswith("${"):
        return value
    try:
        parts = urlsplit(value)
        port_fits = parts.port is None or parts.port > 0
    except ValueError as error:
        if "${" in value:
            return value
        raise wrong("is not a valid address") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_fits:
        raise wrong("must be an address that begins with http:// or https:// and names a host")
    if re.search(r"\s", value):
        raise wrong("must not contain spaces")
    return value


def _url_if_any(value: str) -> str:
    return _url(value) if value else value


def _referring(value: str) -> str:
    try:
        split_references(value)
    except CallboardError as error:
        raise wrong(error.message) from error
    return value


def _document(value: str) -> str:
    if value and (not value.startswith("https://") or urlsplit(value).path in ("", "/")):
        raise wrong("must be an address that begins with https:// and has a path")
    return _url(value) if value else value


def _scope(value: str) -> str:
    if re.search(r"""[\s"\\]""", value):
        raise wrong("must be one scope, without spaces or quotes")
    return value


def address_problem(text: str) -> str | None:
    """Why ``text`` cannot be the gateway's ``host``, as a clause; None if it can."""
    try:
        ip_address(text)
    except ValueError:
        return "must be an address of this computer, such as 127.0.0.1, or 0.0.0.0 for all that it has"
    return None


def _address(value: str) -> str:
    if (why := address_problem(value)) is not None:
        raise wrong(why)
    return value


def storage_problem(text: str) -> str | None:
    """Why ``text`` cannot be the setting ``storage``, as a clause; None if it can, or is empty."""
    try:
        split_references(text)
    except CallboardError as error:
        return error.message
    if text and not text.startswith(("postgresql://", "postgres://", "${")):
        return "must be the address of a PostgreSQL database, like postgresql://user@host/database"
    return None


def _storage(value: str) -> str:
    if (why := storage_problem(value)) is not None:
        raise wrong(why)
    return value


def _expose(value: Any) -> Any:
    named = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    if value not in ("auto", "tools", "whole") and not named:
        raise wrong('must be "auto", "tools", "whole" or a list of names')
    return value


def _agents(value: Any) -> Any:
    items = value if isinstance(value, list) else [value]
    if not items or not all(isinstance(item, str) and item.strip() for item in items):
        raise wrong("must name an agent, like package.module:attribute, or be a list of such names")
    return value


def _argument_aliases(value: Any) -> Any:
    if isinstance(value, str) and value in PRESETS:
        return value
    if not isinstance(value, dict):
        raise wrong(f'must be "{", ".join(PRESETS)}" or a mapping of names to names')
    for known in value.values():
        per_tool = isinstance(known, dict) and all(isinstance(item, str) and item for item in known.values())
        if not per_tool and not (isinstance(known, str) and known):
            raise wrong("must map each name to the argument that it stands for, for all tools or under a tool's name")
    return value


def _auth(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


EnvName = Annotated[str, AfterValidator(_env_name)]
HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[Text, AfterValidator(_header_value)]
SecretName = Annotated[Text, AfterValidator(_secret_name)]


class Timeouts(Model):
    """Time limits in seconds. ``idle``: stop after so long without a call (None: never)."""

    start: Seconds = 30.0
    call: Seconds = 300.0
    idle: Seconds | None = None


class Restart(Model):
    """How often a server that ended by itself is started again, and after how many seconds the first time."""

    max: Annotated[int, Field(ge=0, le=1000)] = 5
    delay: Annotated[float, Field(ge=0, le=3600)] = 1.0


class Tools(Model):
    """Which tools are offered and under which names. Globs over the server's own tool names.

    ``allow`` None means all. ``rename`` maps a tool's own name to the one shown. ``aliases`` maps a tool ("*": each)
    to {argument as sent: argument as the tool knows it}.
    """

    allow: list[Filled] | None = None
    deny: list[Filled] = []
    rename: dict[Filled, Filled] = {}
    aliases: dict[Filled, dict[Filled, Filled]] = {}

    @model_validator(mode="after")
    def _distinct(self) -> "Tools":
        twice = [name for name, count in Counter(self.rename.values()).items() if count > 1]
        if twice:
            raise wrong(f'gives two tools the name "{twice[0]}"')
        return self


class NoAuth(Model):
    """No authentication."""

    type: Literal["none"]


class BearerAuth(Model):
    """``Authorization: Bearer`` with the secret's value."""

    type: Literal["bearer"]
    secret: SecretName


class ApiKeyAuth(Model):
    """The secret's value in a header of its own."""

    type: Literal["api_key"]
    secret: SecretName
    header: HeaderName = "X-API-Key"


class CustomHeaderAuth(Model):
    """The secret's value as the whole of a header, Authorization if not said otherwise."""

    type: Literal["custom_header"]
    secret: SecretName
    header: HeaderName = "Authorization"


class OAuth(Model):
    """Sign-in through the server's authorisation server.

    ``client_id`` and ``secret`` are those of a client that was registered by hand, with the authorisation server
    ``issuer``; ``client_metadata`` is the address of a Client ID Metadata Document. The other grants sign in as the
    program itself, without a person: client-credentials with the client's secret or its private key (PEM), jwt-bearer
    with an assertion (RFC 7523 section 2.1), which is the secret then.
    """

    type: Literal["oauth"]
    client_id: Text = ""
    secret: SecretName | None = None
    issuer: Annotated[Text, AfterValidator(_url_if_any)] = ""
    client_metadata: Annotated[Text, AfterValidator(_document)] = ""
    grant: Literal["authorization-code", "client-credentials", "jwt-bearer"] = "authorization-code"
    scopes: list[Annotated[Filled, AfterValidator(_scope)]] = []

    @model_validator(mode="after")
    def _whole(self) -> "OAuth":
        if self.grant != "authorization-code" and not (self.client_id and self.secret):
            raise wrong(f"needs client_id and secret where grant is {self.grant}")
        if self.secret and not self.client_id:
            raise wrong("needs client_id where it has a secret")
        return self


class MutualTls(Model):
    """A client certificate."""

    type: Literal["mtls"]
    certificate: Filled
    key: Text = ""
    secret: SecretName | None = None  # the key's passphrase
    ca: Text = ""


Auth = Annotated[NoAuth | BearerAuth | ApiKeyAuth | CustomHeaderAuth | OAuth | MutualTls, Field(discriminator="type")]


class Entry(Model):
    """What every server may say."""

    kind: ClassVar[Literal["local", "remote", "agent"]]

    display_name: Text = ""
    description: Text = ""
    enabled: bool = True
    start: Literal["at-launch", "on-demand", "manual"] = "at-launch"
    timeouts: Timeouts = Timeouts()
    restart: Restart = Restart()
    sharing: Literal["shared", "per-client", "per-session"] = "shared"
    tools: Tools = Tools()


class LocalEntry(Entry):
    """A server that is a child process."""

    kind = "local"

    command: Filled
    args: list[Text] = []
    env: dict[EnvName, Text] = {}
    cwd: Text = ""


class RemoteEntry(Entry):
    """A server reached over HTTP. ``transport`` "http" falls back to "sse" by itself."""

    kind = "remote"

    url: Annotated[Filled, AfterValidator(_url)]
    headers: dict[HeaderName, HeaderValue] = {}
    auth: Annotated[Auth, BeforeValidator(_auth)] = NoAuth(type="none")
    transport: Literal["http", "sse"] = "http"


class AgentLimits(Model):
    """Bounds of an agent's server; 0 means none. ``idle``, ``wait`` and ``grace`` in seconds.

    ``wait`` is how long a call waits for its turn while another engine has the conversation, ``grace`` how long a
    cancelled one may go on before the agent's process is ended.
    """

    conversations: Annotated[int, Field(ge=0)] = 500
    idle: Annotated[float, Field(ge=0)] = 3600.0
    turns: Annotated[int, Field(ge=0)] = 1000
    conversation_kb: Annotated[int, Field(ge=0)] = 8192
    queue: Annotated[int, Field(ge=0)] = 8
    result_kb: Annotated[int, Field(ge=0)] = 256
    attachment_kb: Annotated[int, Field(ge=0)] = 16384
    resources_kb: Annotated[int, Field(ge=0)] = 65536
    wait: Annotated[float, Field(ge=0)] = 60.0
    grace: Annotated[float, Field(ge=0)] = 5.0


class AgentEntry(Entry):
    """A Python agent, ``package.module:attribute`` or ``path/to/file.py:attribute``, run by ``python``.

    ``agent`` may be a list: several agents in one server. ``aliases`` are other names of arguments, for all tools or
    for each of them, or the preset "gaia". ``store`` is a database that several engines share; it means ``persist``.
    ``label`` is the media type of JSON answers that have none of their own. ``expose``: the agent's ``tools`` or the
    agent as a ``whole``; ``auto`` is what it was made for, which for agents of a framework is the whole.
    """

    kind = "agent"

    agent: Annotated[Any, AfterValidator(_agents)]
    python: Text = ""  # empty: our own interpreter
    params: dict[str, Any] = {}
    expose: Annotated[Any, AfterValidator(_expose)] = "auto"
    env: dict[EnvName, Text] = {}
    cwd: Text = ""
    name: Text = ""  # of the server as clients see it, and of its tool where the agent is exposed as a whole
    instructions: Text = ""
    typed: bool = True
    aliases: Annotated[Any, AfterValidator(_argument_aliases)] = {}
    stateless: bool = False
    reload: bool = False
    persist: bool = False
    store: Text = ""
    attachments: bool = True
    thoughts: bool = False
    label: Text = ""
    heartbeat: Annotated[float, Field(ge=0)] = 10.0
    limits: AgentLimits = AgentLimits()


AnyEntry = LocalEntry | RemoteEntry | AgentEntry
ENTRY_KINDS: dict[str, type[LocalEntry] | type[RemoteEntry] | type[AgentEntry]] = {
    "command": LocalEntry,
    "url": RemoteEntry,
    "agent": AgentEntry,
}


class Gateway(Model):
    """Where the gateway listens: at the address ``host`` of this computer (0.0.0.0 and :: are all it has).

    Port 0 takes any free one. ``hosts``: names beside loopback that Host may say. ``control``: whether the control API
    is for programs on this computer alone.
    """

    host: Annotated[Text, AfterValidator(_address)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 4470
    auth: Literal["token", "open"] = "token"
    hosts: list[Filled] = []
    control: Literal["local", "remote"] = "local"


class LogLimits(Model):
    """Bounds of the call log; ``payload_kb`` for each side of a call."""

    max_age_days: Annotated[float, Field(gt=0, le=3650)] = 30.0
    max_size_mb: Annotated[int, Field(ge=1, le=1024 * 1024)] = 512
    payload_kb: Annotated[int, Field(ge=0, le=64 * 1024)] = 64


class RegistryPlace(Model):
    """Where servers are searched: the address of a registry, or a file or folder; "" for the one of the resources."""

    url: Text = ""


class Telemetry(Model):
    """Where traces and metrics go, as OTLP over HTTP; `/v1/traces` and `/v1/metrics` are added to ``endpoint``.

    ``enabled`` None: where there is an endpoint, here or in the ``OTEL_`` variables. ``interval``: seconds between two
    exports of metrics. ``endpoint`` and ``headers`` may have references.
    """

    enabled: bool | None = None
    endpoint: Annotated[Text, AfterValidator(_url_if_any), AfterValidator(_referring)] = ""
    headers: dict[HeaderName, Annotated[HeaderValue, AfterValidator(_referring)]] = {}
    traces: bool = True
    metrics: bool = True
    interval: Annotated[float, Field(ge=1, le=24 * 3600)] | None = None


class Settings(Model):
    """Everything in the roster that is not a server.

    ``storage`` is the address of a PostgreSQL database that this engine shares with others; empty: files of its own.
    """

    version: Literal[1] = 1
    gateway: Gateway = Gateway()
    log: LogLimits = LogLimits()
    storage: Annotated[Text, AfterValidator(_storage)] = ""
    registry: RegistryPlace = RegistryPlace()
    policy: DefaultPolicy = DefaultPolicy()
    clients: dict[ClientName, ClientEntry] = {}
    profiles: dict[SelectionName, Profile] = {}
    telemetry: Telemetry = Telemetry()


@dataclass(frozen=True)
class Roster:
    """A roster that is whole and right. ``written`` holds each entry as it stands in the file, in file order, and
    ``sections`` what stands under "clients" and "profiles", by name; under "" the "policy".
    """

    servers: dict[str, AnyEntry] = field(default_factory=dict)
    settings: Settings = Settings()  # noqa: RUF009  frozen
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    sections: dict[str, dict[str, Any]] = field(default_factory=dict)

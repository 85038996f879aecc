"""What an entry becomes when its server starts: its references replaced by their values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard.core.argument_aliases import PRESETS
from callboard.core.credentials import is_secret_name, looks_like_credential, places
from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch, OAuthLaunch, RemoteLaunch, TlsLaunch
from callboard.core.references import Reference, names_in, replace_references
from callboard.core.roster import (
    AgentEntry,
    AnyEntry,
    ApiKeyAuth,
    BearerAuth,
    CustomHeaderAuth,
    LocalEntry,
    MutualTls,
    OAuth,
    RemoteEntry,
)

AGENT_HOST = "callboard.agents.host"
_AGENT_SETTINGS = (
    "name",
    "instructions",
    "typed",
    "aliases",
    "stateless",
    "reload",
    "persist",
    "store",
    "attachments",
    "thoughts",
    "label",
    "heartbeat",
    "limits",
)
HOME_VARIABLE = "CALLBOARD_HOME"  # where an agent's conversations are kept, beside our other files
AGENT_CONFIG = "CALLBOARD_AGENT"  # JSON in the environment, because params may hold secrets and argv is public


@dataclass(frozen=True)
class Values:
    """What references stand for. ``python`` is our own interpreter, ``home`` the person's folder."""

    env: Mapping[str, str]
    secrets: Mapping[str, str]
    python: str
    home: Path

    def of(self, reference: Reference) -> str:
        """The value; raises ``env-unset`` or ``secret-missing`` where there is none, or an empty one."""
        if reference.kind == "python":
            return self.python
        if reference.kind == "env":
            if not (value := self.env.get(reference.name, "")):
                raise CallboardError(
                    "env-unset",
                    f"The environment variable {reference.name} is not set.",
                    data={"env": reference.name},
                )
            return value
        return self.secret(reference.name)

    def secret(self, name: str) -> str:
        """The value of a secret; raises ``secret-missing``."""
        if not (value := self.secrets.get(name, "")):
            raise CallboardError(
                "secret-missing",
                f'The secret "{name}" has no value.',
                fix=f"Enter its value in the server's configuration, or run `callboard secrets set {name}`.",
                data={"secret": name},
            )
        return value

    def fill(self, text: str) -> str:
        """``text`` with its references replaced."""
        return replace_references(text, self.of)

    def path(self, text: str) -> str:
        """``text`` with its references replaced and a leading ``~`` expanded."""
        return _with_home(self.fill(text), self.home)


def missing_values(entry: AnyEntry, values: Values) -> list[CallboardError]:
    """What of that which ``entry`` refers to has no value, by name: ``env-unset``, ``secret-missing``."""
    names = names_in(entry)
    missing = []
    for reference in (
        *(Reference("env", name) for name in sorted(names.env)),
        *(Reference("secret", name) for name in sorted(names.secrets)),
    ):
        try:
            values.of(reference)
        except CallboardError as error:
            missing.append(error)
    return missing


def resolve(entry: AnyEntry, values: Values, server: str = "") -> Launch:
    """What starts or reaches the server of ``entry``, which has the name ``server`` in the roster.

    Raises ``env-unset``, ``secret-missing`` or ``entry-invalid`` (a relative working folder, a header value of more
    than one line).
    """
    if isinstance(entry, RemoteEntry):
        return _remote(entry, values)
    env = {name: values.fill(text) for name, text in entry.env.items()}
    cwd = _folder(entry.cwd, values)
    if isinstance(entry, LocalEntry):
        return LocalLaunch((values.path(entry.command), *map(values.fill, entry.args)), env, cwd)
    config = json.dumps({**_agent_config(entry, values), "server": server})
    ours = {name: values.env[name] for name in (HOME_VARIABLE,) if name in values.env}
    return LocalLaunch((values.python, "-m", AGENT_HOST), {**env, **ours, AGENT_CONFIG: config}, cwd)


def _agent_config(entry: AgentEntry, values: Values) -> dict[str, Any]:
    """The settings of callboard.agents.settings: what differs from their defaults, which are the roster's."""
    given = entry.model_dump(include=set(_AGENT_SETTINGS), exclude_defaults=True)
    config = {
        **given,
        "agent": values.path(entry.agent) if isinstance(entry.agent, str) else list(map(values.path, entry.agent)),
        "python": values.path(entry.python) or values.python,
        "params": _fill_all(entry.params, values),
        "expose": entry.expose,
        # a process of one client's own need not be told who calls
        "gateway": entry.sharing == "shared",
    }
    if entry.store:
        config["store"] = values.fill(entry.store)
    if entry.tools.aliases:
        config["aliases"] = {**_alias_mapping(entry.aliases), **entry.tools.aliases}
    if hidden := values_to_hide(entry, values):
        config["hide"] = sorted(hidden)
    return config


def _alias_mapping(aliases: Any) -> dict[str, Any]:
    return dict(PRESETS[aliases] if isinstance(aliases, str) else aliases)


def values_to_hide(entry: AnyEntry, values: Values) -> set[str]:
    """What must be masked wherever this server's output or calls are stored or shown.

    Its secrets, the environment variables that it refers to and that look like credentials, and values written into
    the roster in clear that do. Names without a value are passed over.
    """
    names = names_in(entry)
    hidden = {values.secrets[name] for name in names.secrets if values.secrets.get(name)}
    hidden |= {value for name in names.env if (value := values.env.get(name, "")) and _is_credential(name, value)}
    for _, key, text in places(entry.model_dump()):
        if key != "url" and _is_credential(key, text):  # what an address holds is masked by its form
            hidden |= {text, text.partition(" ")[2]} - {""}
    return hidden


def argv_for_display(entry: AnyEntry, *, python: str, home: Path) -> list[str]:
    """The command as it is started, environment variables and secrets still as references; empty for remote servers."""

    def shown(text: str) -> str:
        return replace_references(text, lambda item: python if item.kind == "python" else str(item))

    if isinstance(entry, LocalEntry):
        return [_with_home(shown(entry.command), home), *map(shown, entry.args)]
    return [python, "-m", AGENT_HOST] if isinstance(entry, AgentEntry) else []


def _is_credential(name: str, value: str) -> bool:
    return "${" not in value and (looks_like_credential(name, value) is not None or is_secret_name(name))


def _remote(entry: RemoteEntry, values: Values) -> RemoteLaunch:
    headers = {name: header_value(name, values.fill(text)) for name, text in entry.headers.items()}
    auth = entry.auth
    if isinstance(auth, BearerAuth):
        headers = _with_header(
            headers, "Authorization", "Bearer " + header_value(auth.secret, values.secret(auth.secret))
        )
    elif isinstance(auth, ApiKeyAuth | CustomHeaderAuth):
        headers = _with_header(headers, auth.header, header_value(auth.secret, values.secret(auth.secret)))
    oauth, tls = None, None
    if isinstance(auth, OAuth):
        oauth = _oauth(auth, values)
    elif isinstance(auth, MutualTls):
        tls = _tls(auth, values)
    elif "auth" not in entry.model_fields_set and not any(name.casefold() == "authorization" for name in headers):
        oauth = OAuthLaunch()  # nothing was said of a sign-in: the server may ask for one
    return RemoteLaunch(values.fill(entry.url), headers, entry.transport, oauth, tls)


def _oauth(auth: OAuth, values: Values) -> OAuthLaunch:
    return OAuthLaunch(
        client_id=_line("client_id", values.fill(auth.client_id)),
        client_secret=values.secret(auth.secret).strip() if auth.secret else "",
        issuer=values.fill(auth.issuer),
        client_metadata=auth.client_metadata,
        scopes=tuple(auth.scopes),
        grant=auth.grant,
    )


def _tls(auth: MutualTls, values: Values) -> TlsLaunch:
    files = [Path(values.path(text)) if text else None for text in (auth.certificate, auth.key, auth.ca)]
    certificate, key, ca = files
    if certificate is None or any(file is not None and not file.is_absolute() for file in files):
        raise CallboardError("entry-invalid", "The paths of certificates and keys must be full ones, or begin with ~.")
    return TlsLaunch(certificate, key, values.secret(auth.secret) if auth.secret else "", ca)


def _with_header(headers: dict[str, str], name: str, value: str) -> dict[str, str]:
    return {key: text for key, text in headers.items() if key.casefold() != name.casefold()} | {name: value}


def header_value(name: str, value: str) -> str:
    """``value`` without white space around it; raises ``entry-invalid`` if no header can carry it."""
    return _line(name, value, "be sent as a header")


def _line(name: str, value: str, use: str = "be used") -> str:
    value = value.strip()  # a line end comes along easily when a token is pasted
    if not value.isprintable() or not value.isascii():
        raise CallboardError("entry-invalid", f'The value of "{name}" cannot {use}: it must be one line of ASCII.')
    return value


def _folder(text: str, values: Values) -> Path | None:
    if not text:
        return None
    folder = Path(values.path(text))
    if not folder.is_absolute():
        raise CallboardError("entry-invalid", "The working folder (cwd) must be a full path, or begin with ~.")
    return folder


def _fill_all(value: Any, values: Values) -> Any:
    if isinstance(value, str):
        return values.fill(value)
    if isinstance(value, dict):
        return {key: _fill_all(item, values) for key, item in value.items()}
    return [_fill_all(item, values) for item in value] if isinstance(value, list) else value


def _with_home(text: str, home: Path) -> str:
    if text == "~":
        return str(home)
    return str(home / text[2:]) if text.startswith(("~/", "~\\")) else text

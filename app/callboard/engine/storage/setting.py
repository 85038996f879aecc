"""The setting ``storage``: where it stands, what its references stand for, and what it means for agents."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, unquote_plus, urlsplit

from callboard.api.schema import Notice
from callboard.core.errors import FIXES, CallboardError
from callboard.core.references import Reference, escape_references, replace_references, split_references
from callboard.core.resolve import Values
from callboard.core.roster import AgentEntry, Roster, storage_problem

VARIABLE: Final = "CALLBOARD_STORAGE"  # stands above the roster, for containers
_PASSWORDS: Final = frozenset({"password", "sslpassword"})  # that may stand in an address's query
NAME: Final = "CALLBOARD_ENGINE_NAME"  # what this engine is called among others; its host's name if not set

_FIRST: Final = (  # only a running engine takes secrets
    "Use ${{env:NAME}}, or start the engine once without storage and enter it: `callboard secrets set {name}`."
)
SecretsLookup = Callable[[frozenset[str]], Awaitable[Mapping[str, str]]]


async def find_address(
    written: str, environment: Mapping[str, str], secrets: SecretsLookup
) -> tuple[str, frozenset[str]]:
    """The database's address, "" for none, and the values in it that must be masked wherever they show.

    ``written`` is the roster's. What a reference stands for is escaped as an address needs it, unless the reference is
    all there is. Raises ``storage-invalid``, ``env-unset``, ``secret-missing`` and what the secrets' store raises.
    """
    text = environment.get(VARIABLE, "").strip() or written
    if (why := storage_problem(text)) is not None:
        raise CallboardError("storage-invalid", f"{VARIABLE} {why}.")
    parts = split_references(text)
    names = frozenset(part.name for part in parts if isinstance(part, Reference) and part.kind == "secret")
    known = await secrets(names) if names else {}
    for name in sorted(names):
        if not known.get(name):
            message = f'The secret "{name}", which storage needs, has no value.'
            raise CallboardError("secret-missing", message, fix=_FIRST.format(name=name), data={"secret": name})
    values = Values(environment, known, "", Path())
    whole = len(parts) == 1
    address = replace_references(text, lambda item: values.of(item) if whole else quote(values.of(item), safe=""))
    if whole and (why := storage_problem(address)) is not None:
        raise CallboardError("storage-invalid", f"What the setting storage refers to {why}.")
    return address, frozenset(map(values.secret, names)) | _passwords(address)


def setting_notices(in_force: str, written: str) -> list[Notice]:
    """What a person should know: that the roster's setting is another one than that with which this engine started."""
    if written == in_force:
        return []
    message = "The roster's setting storage was changed; the one before is still in force."
    return [Notice(code="storage-changed", message=message, fix=FIXES["storage-changed"])]


def share_conversations(roster: Roster, address: str) -> Roster:
    """The roster with its agents' conversations in the database, but for entries that say something else of them."""
    servers = {
        name: entry.model_copy(update={"store": escape_references(address)})
        if isinstance(entry, AgentEntry) and _is_open(entry)
        else entry
        for name, entry in roster.servers.items()
    }
    return replace(roster, servers=servers)


def _is_open(entry: AgentEntry) -> bool:
    return not entry.store and not entry.stateless and (entry.persist or "persist" not in entry.model_fields_set)


def _passwords(address: str) -> frozenset[str]:
    """The passwords in an address, before the host and in the query; a ``+`` there is one or a space."""
    try:
        parts = urlsplit(address)
        found = {unquote(parts.password or "")}
    except ValueError:
        return frozenset()  # the database's own library tells what is wrong with it
    for name, _, value in (setting.partition("=") for setting in parts.query.split("&")):
        if unquote(name).lower() in _PASSWORDS:
            found |= {unquote(value), unquote_plus(value)}
    return frozenset(found - {""})

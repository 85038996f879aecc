"""Names of tools and prompts on the aggregated endpoint: ``server__tool``, valid, unique and stable.

A client puts its own prefix before a name (``mcp__callboard__``), and the whole must stay below 64 characters of
``[A-Za-z0-9_-]`` or the model's API refuses the session. A name therefore depends on its own server alone, never on
which others run:

- ``server__tool`` as it is, where that is short and needs no cleaning;
- otherwise cleaned and cut, with a hash of the true names at its end;
- likewise for all tools of one server that differ only by upper and lower case.

Two servers cannot meet, because a server's name that holds ``__`` or ends in ``_`` always brings the hash. Where a tool
is named like another one's hashed name, the latter's hash grows.

Resource URIs get no such names: they also stand in results and templates, where nobody could change them back.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

MAX_LENGTH = 63 - len("mcp__callboard__")
JOINT = "__"
_SERVER_LENGTH = 18  # kept of a server's name where the whole must be cut
_HASH_LENGTH = 8
_INVALID = re.compile(r"[^A-Za-z0-9_-]")

Owner = tuple[str, str]  # server, the server's own name


class WireNames:
    """The names on the wire of a set of (server, name) pairs, and the way back. Immutable."""

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._wire: dict[Owner, str] = {}
        self._owners: dict[str, Owner] = {}
        taken: set[str] = set()
        unique = list(dict.fromkeys(owners))
        plain = {owner: _plain(*owner) for owner in unique}
        spellings = Counter(wire.casefold() for wire in plain.values() if wire is not None)
        free = {owner: wire for owner, wire in plain.items() if wire is not None and spellings[wire.casefold()] == 1}
        # plain names first: they must not depend on what others are called
        for owner in sorted(unique, key=lambda item: (item not in free, item)):
            wire = free.get(owner) or _hashed(owner, taken)
            taken.add(wire.casefold())
            self._wire[owner] = wire
            self._owners[wire] = owner

    def wire(self, server: str, name: str) -> str:
        """The name on the wire. Raises KeyError for a pair that was not given."""
        return self._wire[server, name]

    def owner(self, wire: str) -> Owner | None:
        """The server and its own name behind a name on the wire, or None."""
        return self._owners.get(wire)


def _plain(server: str, name: str) -> str | None:
    """``server__name`` where it can stand as it is."""
    wire = server + JOINT + name
    ambiguous = JOINT in server or server.endswith("_")
    if not server or not name or ambiguous or len(wire) > MAX_LENGTH or _INVALID.search(wire):
        return None
    return wire


def _hashed(owner: Owner, taken: set[str]) -> str:
    server, name = map(_clean, owner)
    digest = hashlib.sha256("\0".join(owner).encode("utf-8", "surrogatepass")).hexdigest()
    for length in range(_HASH_LENGTH, len(digest) + 1):
        room = MAX_LENGTH - length - 1
        head = server + JOINT + name
        if len(head) > room:
            server = server[:_SERVER_LENGTH]
            head = (server + JOINT + name)[:room]
        wire = f"{head}_{digest[:length]}" if room >= 0 else digest[:MAX_LENGTH]
        if wire.casefold() not in taken:
            return wire
    raise AssertionError("two names with one SHA-256")


def _clean(text: str) -> str:
    return _INVALID.sub("_", unicodedata.normalize("NFC", text))

"""What one endpoint shows of the catalogue: lists ready to send, and the way back from a shown name to its owner.

On a single server's endpoint names are the server's own. On the aggregate, tools and prompts get wire names. URIs of
resources stay as they are, since they also stand in tool results; where two servers offer the same one, the second in
roster order is shown as ``SERVER+URI``.
"""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

from callboard.core.names import WireNames
from callboard.core.policy_words import ItemKind
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import PROMPTS, RESOURCES, TEMPLATES, TOOLS, Catalogue, Item, Kind, renamed
from callboard.engine.relay.envelope import encode

ITEM_KIND: Final[dict[Kind, ItemKind]] = {
    TOOLS: "tool",
    PROMPTS: "prompt",
    RESOURCES: "resource",
    TEMPLATES: "resource",
}
Owner = tuple[str, str]  # server, the server's own name or URI
Expose = Callable[[str, str], str | None]  # (server, tool) → shown name, None to hide
_VARIABLE: Final = re.compile(r"\{[^}]*\}")
_NOT_SCHEME: Final = re.compile(r"[^a-z0-9.+-]+")


class View:
    """The lists of some servers as one. Built when first asked for, dropped when a list changes."""

    def __init__(self, catalogue: Catalogue, servers: Iterable[str], expose: Expose, *, single: bool) -> None:
        self._catalogue = catalogue
        self._servers = tuple(servers)
        self._expose = expose
        self._single = single
        self._bytes: dict[str, bytes] = {}
        self._owners: dict[str, dict[str, Owner]] = {}

    def changed(self, kind: Kind) -> None:
        """A list of one of the servers is new."""
        self._bytes.pop(kind.name, None)
        self._owners.pop(kind.name, None)

    def list_bytes(self, kind: Kind) -> bytes:
        """The raw JSON array of one list."""
        found = self._bytes.get(kind.name)
        if found is None:
            self._build(kind)
            found = self._bytes[kind.name]
        return found

    def owner(self, kind: Kind, shown: str) -> Owner | None:
        """Who a shown name or URI belongs to."""
        if kind.name not in self._owners:
            self._build(kind)
        return self._owners[kind.name].get(shown)

    def shown(self, kind: Kind) -> dict[Owner, str]:
        """Every shown name of a list by its owner."""
        if kind.name not in self._owners:
            self._build(kind)
        return {owner: name for name, owner in self._owners[kind.name].items()}

    def owner_of_uri(self, uri: str) -> Owner | None:
        """Who can be asked to read a URI: the owner of the resource, else of a template that fits."""
        if owner := self.owner(RESOURCES, uri):
            return owner
        for template, owner in self._owners_of(TEMPLATES).items():
            if _fits(template, uri):
                prefix = len(template) - len(owner[1])
                return owner[0], uri[prefix:]
        return None

    def _owners_of(self, kind: Kind) -> dict[str, Owner]:
        if kind.name not in self._owners:
            self._build(kind)
        return self._owners[kind.name]

    def _build(self, kind: Kind) -> None:
        entries = [
            (server, item, shown)
            for server in self._servers
            for item in self._catalogue.offer(server).items(kind)
            if (shown := self._expose(server, item.key) if kind is TOOLS else item.key) is not None
        ]
        names = [(server, shown) for server, _, shown in entries]
        if self._single:
            wire = [shown for _, shown in names]
        elif kind in (TOOLS, PROMPTS):
            mapping = WireNames(names)
            wire = [mapping.wire(server, shown) for server, shown in names]
        else:
            wire = _distinct_uris(names)
        items: dict[str, tuple[str, Item]] = {}
        for name, (server, item, _) in zip(wire, entries, strict=True):
            items.setdefault(name, (server, item))  # a tool that was renamed to another one's name is left out
        self._keep(kind, items)

    def _keep(self, kind: Kind, items: dict[str, tuple[str, Item]]) -> None:
        """Take the items of a list by their shown names."""
        self._owners[kind.name] = {name: (server, item.key) for name, (server, item) in items.items()}
        raws = [renamed(item, kind, name) for name, (_, item) in items.items()]
        self._bytes[kind.name] = b"[" + b",".join(raws) + b"]"


class PartView(View):
    """A view's lists with only what one caller may use, under the same names."""

    def __init__(self, whole: View, sees: Callable[[Kind, str, str], bool]) -> None:
        """``sees`` tells by kind, server and own name whether the caller may use something."""
        super().__init__(whole._catalogue, whole._servers, whole._expose, single=whole._single)
        self._whole = whole
        self._sees = sees

    def _build(self, kind: Kind) -> None:
        seen = {name: owner for name, owner in self._whole._owners_of(kind).items() if self._sees(kind, *owner)}
        known = {
            (server, item.key): item
            for server in dict.fromkeys(server for server, _ in seen.values())
            for item in self._catalogue.offer(server).items(kind)
        }
        self._keep(kind, {name: (owner[0], known[owner]) for name, owner in seen.items() if owner in known})


class Views:
    """Every endpoint's lists, whole and as each caller sees them. Owned by the relay; engine loop only."""

    def __init__(self, catalogue: Catalogue, servers: Callable[[], Iterable[str]], expose: Expose) -> None:
        """``servers`` are the roster's enabled ones in order."""
        self._catalogue = catalogue
        self._servers = servers
        self._expose = expose
        self._whole: dict[str, View] = {}
        self._parts: dict[tuple[str, Caller], PartView] = {}

    def whole(self, scope: str) -> View:
        """The lists of an endpoint."""
        view = self._whole.get(scope)
        if view is None:
            servers = [scope] if scope else list(self._servers())
            view = self._whole[scope] = View(self._catalogue, servers, self._expose, single=bool(scope))
        return view

    def of(self, scope: str, caller: Caller) -> View:
        """The lists of an endpoint as a caller sees them."""
        if caller.policy.is_open:
            return self.whole(scope)
        part = self._parts.get((scope, caller))
        if part is None:

            def sees(kind: Kind, server: str, name: str) -> bool:
                return caller.sees(ITEM_KIND[kind], server, name)

            part = self._parts[scope, caller] = PartView(self.whole(scope), sees)
        return part

    def changed(self, server: str, kind: Kind) -> None:
        """A list of a server is new."""
        for scope, view in self._whole.items():
            if scope in ("", server):
                view.changed(kind)
        for (scope, _), part in self._parts.items():
            if scope in ("", server):
                part.changed(kind)

    def policy_changed(self, callers: Collection[Caller]) -> None:
        """These callers may see other things."""
        self._parts = {key: part for key, part in self._parts.items() if key[1] not in callers}

    def clear(self) -> None:
        """The roster's servers are others."""
        self._whole.clear()
        self._parts.clear()


def _distinct_uris(pairs: list[tuple[str, str]]) -> list[str]:
    taken: set[str] = set()
    shown = []
    for server, uri in pairs:
        while uri in taken:
            uri = f"{_scheme(server)}+{uri}"
        taken.add(uri)
        shown.append(uri)
    return shown


def _scheme(server: str) -> str:
    cleaned = _NOT_SCHEME.sub("-", server.lower())
    return cleaned if cleaned[:1].isalpha() else f"s{cleaned}"


def _fits(template: str, uri: str) -> bool:
    """True if each variable can stand for some text. Takes time in proportion to the URI, whatever the template."""
    first, *rest = _VARIABLE.split(template)
    if not rest:
        return uri == first
    last = rest.pop()
    at, end = len(first), len(uri) - len(last)
    if at > end or not uri.startswith(first) or not uri.endswith(last):
        return False
    for part in rest:
        found = uri.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def list_result(kind: Kind, items: bytes, *, modern: bool) -> bytes:
    """The result of a list request: one page with everything."""
    head = b"{%b:%b" % (encode(kind.name), items)
    return head + (b',"resultType":"complete","ttlMs":0,"cacheScope":"private"}' if modern else b"}")

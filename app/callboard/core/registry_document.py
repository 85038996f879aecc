"""Documents of registries: one ``server.json``, a list of them, or a page of the registry's REST API.

The format is that of the official MCP registry, ``docs/reference/server-json`` and ``docs/reference/api`` there. All
its versions are understood, those with snake_case names included. A part that is wrong is passed over.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from callboard.core.registry import Offer
from callboard.core.registry_fields import Fields, as_text
from callboard.core.registry_packages import ways_of

OFFICIAL: Final = "io.modelcontextprotocol.registry/official"  # the registry's own part of _meta
MOST_SERVERS: Final = 20_000


@dataclass(frozen=True)
class Page:
    """Servers in their order. ``cursor`` asks for the next page, "" on the last one."""

    offers: list[Offer] = field(default_factory=list)
    cursor: str = ""


def read_page(document: Any) -> Page:
    """The servers of a document, in one version each: the newest, if the document says which that is."""
    if isinstance(document, list):
        return Page(newest(_offers(document)))
    fields = Fields(document)
    servers = fields.raw("servers")
    if isinstance(servers, list):
        return Page(newest(_offers(servers)), fields.child("metadata").text("nextCursor"))
    return Page(newest(_offers([document])))


def newest(offers: Iterable[tuple[Offer, bool]]) -> list[Offer]:
    """One offer for each name: the one that is marked as the latest, else the first."""
    best: dict[str, Offer] = {}
    marked: set[str] = set()
    for offer, is_latest in offers:
        if offer.name not in best or (is_latest and offer.name not in marked):
            best[offer.name] = offer
        if is_latest:
            marked.add(offer.name)
    return [offer for offer in best.values() if offer.status != "deleted"]


def matches(offer: Offer, words: str) -> bool:
    """Whether all words stand somewhere in an offer's name, title or description."""
    text = f"{offer.name} {offer.title} {offer.description}".casefold()
    return all(word in text for word in words.casefold().split())


def _offers(items: list[Any]) -> Iterable[tuple[Offer, bool]]:
    for item in items[:MOST_SERVERS]:
        outer = Fields(item)
        server = outer.child("server") or outer
        official = outer.child("_meta").child(OFFICIAL) or server.child("_meta").child(OFFICIAL)
        if (offer := _offer(server, official)) is not None:
            yield offer, official.flag("isLatest")


def _offer(server: Fields, official: Fields) -> Offer | None:
    name = server.line("name")[:256]
    if not name:
        return None
    ways = ways_of(server)
    if not ways and not server.line("description"):
        return None  # some other document that happens to have a name
    return Offer(
        name=name,
        title=server.line("title")[:200] or name.rpartition("/")[2] or name,
        description=server.line("description")[:2000],
        version=server.line("version")[:100] or server.child("versionDetail").line("version")[:100],
        website=_address(server.line("websiteUrl")),
        repository=_address(server.child("repository").line("url")),
        status=official.line("status") or server.line("status") or "active",
        status_message=official.line("statusMessage")[:500],
        ways=ways,
    )


def _address(text: str) -> str:
    """An address that may be opened in a browser, "" for any other."""
    return as_text(text) if text.startswith(("https://", "http://")) else ""

"""Searching servers in a registry: over the network, or in files of the same format."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.registry import Offer
from callboard.core.registry_document import Page, matches, newest, read_page
from callboard.core.registry_packages import host_of
from callboard.engine.registry.limits import Limits
from callboard.engine.registry.plain_file import open_plain_file

PAGE_SIZE: Final = 30
_ONE_DOCUMENT: Final = Limits(total=60.0, size=16 * 1024 * 1024)
_LARGEST_FILE: Final = 16 * 1024 * 1024
_MOST_FILES: Final = 2000
_DEEPEST: Final = 4  # folders below the one that is named
_API_VERSIONS: Final = ("v0.1", "v0")
_MOST_OFFERS: Final = 1000  # of one answer, for a registry that does not heed how many were asked for
_MOST_PAGES: Final = 5  # that are read to find one server by its name


async def search(source: str, words: str, cursor: str = "", limit: int = PAGE_SIZE) -> Page:
    """A page of the servers of ``source`` whose name, title or description has ``words``.

    ``source`` is an address (of a registry, or of a document of its format), or the full path of a file or folder.
    Raises ``registry-invalid`` for something else, and ``remote-…`` codes. Documents are read in worker threads.
    """
    if not is_address(source):
        return await asyncio.to_thread(lambda: _slice(_read_path(Path(source)), words, cursor, limit))
    if not host_of(source):
        raise CallboardError("registry-invalid", f"{source} is not a valid address.")
    query = {"search": words, "cursor": cursor, "limit": str(limit), "version": "latest"}
    page = await _from_api(source, "", query)
    if page is not None:
        return Page(page.offers[:_MOST_OFFERS], page.cursor)
    whole = await _fetch_page(source)
    return await asyncio.to_thread(_slice, whole.offers, words, cursor, limit)


async def find(source: str, name: str) -> Offer:
    """The server of exactly that name, or the only one whose last part it is. Raises ``registry-unknown``."""
    if is_address(source) and "/" in name:
        answer = await _from_api(source, f"/{quote(name, safe='')}/versions/latest", {})
        if answer is not None and answer.offers and answer.offers[0].name == name:
            return answer.offers[0]
    found: list[Offer] = []
    cursor = ""
    for _ in range(_MOST_PAGES):
        page = await search(source, name, cursor, 100)
        found += [offer for offer in page.offers if name in (offer.name, offer.name.rpartition("/")[2])]
        cursor = page.cursor
        if not cursor or any(offer.name == name for offer in found):
            break
    exact = [offer for offer in found if offer.name == name] or found
    if len(exact) == 1:
        return exact[0]
    names = [offer.name for offer in exact]
    said = f"There are several servers named {name}: {', '.join(names[:8])}." if names else ""
    raise CallboardError("registry-unknown", said or f'There is no server "{name}" in {source}.', data={"names": names})


def is_address(source: str) -> bool:
    """Whether a source is on the network."""
    return source.startswith(("http://", "https://"))


async def _from_api(source: str, path: str, query: dict[str, str]) -> Page | None:
    """What the registry's REST API answers; None where there is no such API at the address."""
    for base in _api_bases(source):
        given = {key: value for key, value in query.items() if value}
        url = base + path + ("?" + urlencode(given) if given else "")
        try:
            return await _fetch_page(url)
        except CallboardError as error:
            if error.code not in ("remote-not-found", "registry-invalid"):
                raise
    return None


def _api_bases(source: str) -> list[str]:
    parts = urlsplit(source)
    plain = parts._replace(query="", fragment="").geturl().rstrip("/")
    if parts.path.endswith(".json"):
        return []
    if parts.path.rstrip("/").endswith("/servers"):
        return [plain]
    return [f"{plain}/{version}/servers" for version in _API_VERSIONS]


async def _fetch_page(url: str) -> Page:
    from callboard.engine.registry.fetch import fetch_all  # httpx2: only where somebody fetches

    body = await fetch_all(url, _ONE_DOCUMENT)
    return await asyncio.to_thread(_read, body, url)


def _read(body: bytes, where: str) -> Page:
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise CallboardError("registry-invalid", f"What is at {where} is not JSON.") from None
    page = read_page(document)
    is_list = isinstance(document, list) or (isinstance(document, dict) and isinstance(document.get("servers"), list))
    if not page.offers and not is_list:
        raise CallboardError("registry-invalid", f"What is at {where} describes no MCP servers.")
    return page


def _slice(offers: list[Offer], words: str, cursor: str, limit: int) -> Page:
    """A page of those of a whole that have the words; its cursors are numbers."""
    offers = [offer for offer in offers if matches(offer, words)]
    begin = int(cursor) if cursor.isascii() and cursor.isdecimal() and len(cursor) < 9 else 0
    end = begin + limit
    return Page(offers[begin:end], str(end) if end < len(offers) else "")


def _read_path(path: Path) -> list[Offer]:
    """In a worker thread: the servers of a file, or of all JSON files in a folder, where others are passed over."""
    if path.is_dir():
        found: list[tuple[Offer, bool]] = []
        for file in _json_files(path):
            try:
                found += [(offer, False) for offer in _read_file(file)]
            except CallboardError:
                continue
        return newest(found)
    return _read_file(path)


def _read_file(path: Path) -> list[Offer]:
    try:
        with open_plain_file(path) as file:
            body = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise CallboardError("registry-invalid", f"{path} cannot be read: {error.strerror}.") from None
    if len(body) > _LARGEST_FILE:
        raise CallboardError("registry-invalid", f"{path} is larger than {_LARGEST_FILE // (1024 * 1024)} MiB.")
    return _read(body, str(path)).offers


def _json_files(folder: Path) -> Iterator[Path]:
    count = 0
    for root, folders, files in os.walk(folder):
        deep = len(Path(root).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if deep < _DEEPEST else []
        for name in sorted(files):
            if name.endswith(".json"):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(root, name)

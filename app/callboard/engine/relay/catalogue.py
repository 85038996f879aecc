"""What every server offers: read once, kept as raw JSON, served from memory, remembered over restarts.

Lists are read to their end, page by page, with a guard against cursors that never end. A malformed item is left out
and reported; the rest stay.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from callboard.core.errors import CallboardError
from callboard.core.mcp_headers import annotated
from callboard.core.protocol import METHOD_NOT_FOUND
from callboard.engine.relay.envelope import Raw, decode_json, decode_params, raw_json
from callboard.engine.tasks import spawn
from callboard.engine.upstream.answers import error_code, error_text
from callboard.engine.upstream.base import Params, Upstream

log = logging.getLogger(__name__)

MAX_PAGES: Final = 1000
MAX_ITEMS: Final = 50_000
LIST_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 0.2  # between two readings of one server: changes come in bursts
_TWICE: Final = "another one has the same"
_HEADER_MARK: Final = b'"x-mcp-header"'


@dataclass(frozen=True)
class Kind:
    """One of the lists that a server may have."""

    name: str  # member of the result, and of our own tables
    method: str
    capability: str
    key: str  # the member that identifies an item
    changed: str  # the notification that the list changed


TOOLS: Final = Kind("tools", "tools/list", "tools", "name", "notifications/tools/list_changed")
PROMPTS: Final = Kind("prompts", "prompts/list", "prompts", "name", "notifications/prompts/list_changed")
RESOURCES: Final = Kind("resources", "resources/list", "resources", "uri", "notifications/resources/list_changed")
TEMPLATES: Final = Kind("resourceTemplates", "resources/templates/list", "resources", "uriTemplate", RESOURCES.changed)
KINDS: Final = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)
BY_METHOD: Final = {kind.method: kind for kind in KINDS}
BY_NOTIFICATION: Final = {
    TOOLS.changed: (TOOLS,),
    PROMPTS.changed: (PROMPTS,),
    RESOURCES.changed: (RESOURCES, TEMPLATES),
}


@dataclass(frozen=True)
class Item:
    """One tool, prompt, resource or template. ``raw`` is its definition as the server wrote it."""

    key: str
    raw: bytes


@dataclass
class Problem:
    """An item that was left out."""

    kind: str
    key: str
    reason: str


@dataclass
class Offer:
    """What one server offers. ``cached`` until the running server has been read."""

    lists: dict[str, list[Item]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    cached: bool = True
    header_paths: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)  # tool → header → argument
    definitions: dict[str, bytes] | None = None  # of the tools by name; made when first asked for

    def items(self, kind: Kind) -> list[Item]:
        """The items of one list in the server's order."""
        return self.lists.get(kind.name, [])


class Catalogue:
    """The offers of all servers. Owned by the relay; engine loop only."""

    def __init__(
        self, folder: Path | None, on_changed: Callable[[str, Kind], None], on_read: Callable[[str], None]
    ) -> None:
        """``folder`` keeps the last known lists (None: nowhere); ``on_changed`` hears which server's list changed.

        ``on_read`` hears at the end of each reading of a server, whether it brought something new or not.
        """
        self._folder = folder
        self._on_changed = on_changed
        self._on_read = on_read
        self._offers: dict[str, Offer] = {}
        self._upstreams: dict[str, Upstream] = {}  # whom to ask, the newest connection
        self._read_at: dict[str, float] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, set[Kind]] = {}
        self._tools_read: dict[str, asyncio.Event] = {}  # set once the newest connection was asked for its tools

    def offer(self, server: str) -> Offer:
        """What a server offers, the last known if it is not running."""
        offer = self._offers.get(server)
        if offer is None:
            offer = self._offers[server] = self._remembered(server)
        return offer

    def header_paths(self, server: str, tool: str) -> dict[str, tuple[str, ...]]:
        """Which arguments of a tool are mirrored into HTTP headers (``x-mcp-header``), by lower-case header name."""
        return self.offer(server).header_paths.get(tool, {})

    def definition(self, server: str, tool: str) -> bytes | None:
        """A tool's definition as its server wrote it, None for one that is in no list."""
        offer = self.offer(server)
        if offer.definitions is None:
            offer.definitions = {item.key: item.raw for item in offer.items(TOOLS)}
        return offer.definitions.get(tool)

    def known(self, server: str) -> bool:
        """True once the server's tools have been read, in this run or an earlier one."""
        return TOOLS.name in self.offer(server).lists

    def forget(self, server: str) -> None:
        """The server is gone from the roster."""
        self._offers.pop(server, None)
        self._upstreams.pop(server, None)
        self._read_at.pop(server, None)
        task = self._running.pop(server, None)
        if task is not None:
            task.cancel()
        self._wanted.pop(server, None)
        self._tools_were_read(server)
        self._tools_read.pop(server, None)
        if self._folder is not None:
            self._file(server).unlink(missing_ok=True)

    def ended(self, server: str) -> None:
        """The server stopped: its lists are now the last known ones."""
        self._upstreams.pop(server, None)
        self._tools_were_read(server)
        if server in self._offers:
            self._offers[server].cached = True

    def read(self, server: str, upstream: Upstream, kinds: tuple[Kind, ...] = KINDS) -> None:
        """Read lists of a server anew.

        At most one reading runs per server; what is wanted meanwhile, or soon after, follows once.
        """
        pause = 0.0
        if self._upstreams.get(server) is upstream:
            pause = self._read_at.get(server, 0.0) + AGAIN_SECONDS - time.monotonic()
        else:
            self._tools_were_read(server)  # of the connection before
            self._tools_read[server] = asyncio.Event()
        self._upstreams[server] = upstream
        self._wanted.setdefault(server, set()).update(kinds)
        if server not in self._running:
            self._running[server] = spawn(self._read_wanted(server, pause), name=f"lists of {server}")

    def is_reading(self, server: str) -> bool:
        """True while the server's lists are being read."""
        return server in self._running

    async def settled(self, server: str) -> None:
        """Return once no reading of the server's lists runs."""
        while (task := self._running.get(server)) is not None:
            await asyncio.wait([task])

    def is_current(self, server: str) -> bool:
        """True if the server is connected, and its tools are those that it has named on this connection."""
        return server in self._upstreams and self._tools_read[server].is_set()

    async def tools_read(self, server: str) -> None:
        """Return once a connected server was asked for its tools, or its connection has ended."""
        if server in self._tools_read:
            await self._tools_read[server].wait()

    def _tools_were_read(self, server: str) -> None:
        if server in self._tools_read:
            self._tools_read[server].set()

    async def close(self) -> None:
        """Stop all readings."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_wanted(self, server: str, pause: float) -> None:
        try:
            while self._wanted.get(server):
                if pause > 0:
                    await asyncio.sleep(pause)
                pause = AGAIN_SECONDS
                wanted = self._wanted.pop(server)
                upstream = self._upstreams.get(server)
                if upstream is None:
                    return  # it ended; the next connection is read anew
                for kind in KINDS:
                    if kind in wanted and not upstream.closed.done():
                        await self._read_kind(server, upstream, kind)
                        if kind is TOOLS and self._upstreams.get(server) is upstream:
                            self._tools_were_read(server)
                self._read_at[server] = time.monotonic()
                self.offer(server).cached = upstream.closed.done()
                self._on_read(server)
                await self._remember(server)
        finally:
            if self._running.get(server) is asyncio.current_task():
                del self._running[server]
                self._tools_were_read(server)

    async def _read_kind(self, server: str, upstream: Upstream, kind: Kind) -> None:
        offer = self.offer(server)
        items: list[Item] = []
        problems: list[Problem] = []
        if offers(upstream, kind):
            try:
                items, problems = await _read_pages(upstream, kind)
            except CallboardError as error:
                if upstream.closed.done():
                    return  # the next connection is read anew
                problems = [Problem(kind.name, "", error.message.rstrip("."))]
        before = offer.lists.get(kind.name)
        if before and problems and not items:
            items = before  # better the last known ones than none
        offer.lists[kind.name] = items
        if kind is TOOLS:
            offer.header_paths = _header_paths(items)
            offer.definitions = None
        offer.problems = [problem for problem in offer.problems if problem.kind != kind.name] + problems
        if before != items and (before or items):
            self._on_changed(server, kind)

    # memory over restarts

    def _file(self, server: str) -> Path:
        assert self._folder is not None
        return self._folder / f"{server}.json"

    def _remembered(self, server: str) -> Offer:
        offer = Offer()
        if self._folder is None:
            return offer
        try:
            stored = json.loads(self._file(server).read_text(encoding="utf-8"))
            for kind in KINDS:
                if kind.name in stored:
                    offer.lists[kind.name] = [Item(str(key), str(raw).encode()) for key, raw in stored[kind.name]]
            offer.header_paths = _header_paths(offer.items(TOOLS))
        except (OSError, ValueError, TypeError):
            return Offer()
        return offer

    async def _remember(self, server: str) -> None:
        if self._folder is None:
            return
        offer = self.offer(server)
        lists = {name: [[item.key, item.raw.decode()] for item in items] for name, items in offer.lists.items()}
        try:
            await asyncio.to_thread(_write, self._file(server), json.dumps(lists))
        except OSError as error:
            log.info("the lists of %s could not be kept: %s", server, error)


def offers(upstream: Upstream, kind: Kind) -> bool:
    """True if a server has a kind of list. One that declares nothing at all is asked for tools all the same."""
    capabilities = upstream.info.capabilities
    return kind.capability in capabilities or (kind is TOOLS and not capabilities)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


async def _read_pages(upstream: Upstream, kind: Kind) -> tuple[list[Item], list[Problem]]:
    items: list[Item] = []
    problems: list[Problem] = []
    seen: set[bytes] = set()
    keys: set[str] = set()
    params: Params = {}
    for _ in range(MAX_PAGES):
        answer = await upstream.request(kind.method, params, seconds=LIST_SECONDS)
        if answer.result is None:
            if params or error_code(answer) != METHOD_NOT_FOUND:  # who does not know the method has none
                what = "go on" if params else "list them"
                problems.append(Problem(kind.name, "", f"the server refused to {what}: {error_text(answer)}"))
            return items, problems
        try:
            page = decode_params(bytes(answer.result))
            entries = decode_json(page.get(kind.name, Raw(b"[]")), list[Raw])
        except msgspec.DecodeError:
            problems.append(Problem(kind.name, "", "the list is malformed"))
            return items, problems
        for entry in entries:
            _take(entry, kind, items, problems, keys)
        cursor = bytes(page.get("nextCursor", Raw(b"null")))
        if cursor in (b"null", b'""'):
            return items, problems
        if cursor in seen or len(items) >= MAX_ITEMS:
            break
        seen.add(cursor)
        params = {"cursor": Raw(cursor)}
    problems = [problem for problem in problems if not problem.reason.startswith(_TWICE)]  # pages came again
    problems.append(Problem(kind.name, "", "the list never ends; what came so far is used"))
    return items, problems


def _take(entry: Raw, kind: Kind, items: list[Item], problems: list[Problem], keys: set[str]) -> None:
    raw = bytes(entry)
    try:
        members = decode_params(raw)
        key = decode_json(members[kind.key], str)
        if kind is TOOLS:
            schema = members.get("inputSchema")
            if schema is None or bytes(schema)[:1] != b"{":
                raise ValueError("its inputSchema is no object")
            if _HEADER_MARK in raw:
                annotated(decode_json(schema))
        if not key:
            raise ValueError(f"its {kind.key} is empty")
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        reason = f"it has no {kind.key}" if isinstance(error, KeyError) else str(error)
        problems.append(Problem(kind.name, _label(raw, kind), reason))
        return
    if key in keys:
        problems.append(Problem(kind.name, key, f"{_TWICE} {kind.key}"))
        return
    keys.add(key)
    items.append(Item(key, raw))


def _header_paths(tools: list[Item]) -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        item.key: paths
        for item in tools
        if _HEADER_MARK in item.raw and (paths := annotated(decode_json(item.raw)["inputSchema"]))
    }


def _label(raw: bytes, kind: Kind) -> str:
    try:
        found: Any = decode_json(raw)
    except msgspec.DecodeError:
        return ""
    return str(found.get(kind.key, ""))[:100] if isinstance(found, dict) else ""


def renamed(item: Item, kind: Kind, key: str) -> bytes:
    """An item's definition under another name."""
    if key == item.key:
        return item.raw
    members = decode_params(item.raw)
    members[kind.key] = raw_json(key)
    return msgspec.json.encode(members)

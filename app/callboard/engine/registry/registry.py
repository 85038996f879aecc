"""What window and command line ask about registries and bundles, answered with what this machine lacks for it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from callboard.api.registry_schema import BundleRequest, BundleView, OfferPage, OfferView
from callboard.api.schema import NeedView
from callboard.core.errors import CallboardError
from callboard.core.registry import Offer, Way
from callboard.core.registry_programs import RegistryDefaults, load_registry_defaults, needs_of
from callboard.core.shipped import findings_of
from callboard.engine.machine import Machine
from callboard.engine.registry.bundles import Bundles
from callboard.engine.registry.search import find, is_address, search
from callboard.engine.shipped import need_view


class Registry:
    """Engine loop only. Nothing is read, and no network is used, before somebody asks."""

    def __init__(
        self, defaults: Path, machine: Machine, bundles: Bundles, home: Path, configured: Callable[[], str]
    ) -> None:
        """``defaults`` is resources/registry.yaml; ``configured`` the roster's own place to search, "" for none."""
        self.bundles = bundles
        self._file = defaults
        self._machine = machine
        self._home = home
        self._configured = configured
        self._defaults: RegistryDefaults | None = None

    async def search(self, words: str, source: str, cursor: str) -> OfferPage:
        """A page of servers; ``source`` "" means the place that the roster names, or the default."""
        source = await self._source(source)
        page = await search(source, words, cursor)
        views = await self._views(page.offers)
        return OfferPage(offers=views, cursor=page.cursor, source=source)

    async def find(self, name: str, source: str) -> OfferView:
        """One server; raises ``registry-unknown``."""
        offer = await find(await self._source(source), name)
        (view,) = await self._views([offer])
        return view

    async def open_bundle(self, request: BundleRequest) -> BundleView:
        """Unpack a bundle, which may have to be fetched."""
        if request.url:
            key, folder, manifest = await self.bundles.open_url(request.url, request.sha256)
        else:
            path = Path(self._full(request.path, "bundle-invalid"))
            key, folder, manifest = await self.bundles.open_file(path, request.sha256)
        (needs,) = await self._needs([manifest.way])
        return BundleView(
            id=key,
            name=manifest.name,
            title=manifest.title,
            description=manifest.description,
            version=manifest.version,
            author=manifest.author,
            folder=str(folder),
            way=manifest.way,
            needs=needs,
        )

    async def _views(self, offers: list[Offer]) -> list[OfferView]:
        needs = await self._needs([way for offer in offers for way in offer.ways])
        views = []
        for offer in offers:
            count = len(offer.ways)
            views.append(OfferView(offer=offer, needs=needs[:count]))
            needs = needs[count:]
        return views

    async def _needs(self, ways: list[Way]) -> list[list[NeedView]]:
        """What each way needs, and whether it is here; each program is looked for once."""
        programs = (await self._load()).programs
        wanted = [needs_of(way, programs) for way in ways]
        unique = {need.program: need for needs in wanted for need in needs}
        here = await self._machine.look(unique.values())
        return [[need_view(found) for found in findings_of(needs, here)] for needs in wanted]

    async def _source(self, given: str) -> str:
        source = given or self._configured() or (await self._load()).url
        return source if is_address(source) else self._full(source, "registry-invalid")

    def _full(self, text: str, code: str) -> str:
        """A path with ``~`` expanded. Raises ``code`` for one that is not a full one."""
        path = self._home / text[2:] if text.startswith(("~/", "~\\")) else Path(text)
        if not path.is_absolute() or "\0" in text:
            raise CallboardError(code, f'"{text}" is neither an address nor a full path.')
        return str(path)

    async def _load(self) -> RegistryDefaults:
        if self._defaults is None:
            self._defaults = load_registry_defaults(await asyncio.to_thread(self._file.read_text, encoding="utf-8"))
        return self._defaults

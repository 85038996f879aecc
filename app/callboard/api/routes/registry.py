"""Routes of registries, where servers are found, and of bundles, which bring one."""

from callboard.api.query_schema import OfferQuery, RegistryQuery
from callboard.api.registry_schema import BundleRequest, BundleView, OfferPage, OfferView
from callboard.api.routes.route import Route
from callboard.engine.engine import Engine


async def search(engine: Engine, query: RegistryQuery) -> OfferPage:
    """Servers that a registry offers, a page of them. The registry is asked over the network only then."""
    return await engine.registry.search(query.search, query.source, query.cursor)


async def offer(engine: Engine, query: OfferQuery) -> OfferView:
    """One server that a registry offers, with the ways to set it up."""
    return await engine.registry.find(query.name, query.source)


async def open_bundle(engine: Engine, body: BundleRequest) -> BundleView:
    """Fetch or read a bundle and unpack it, so that it can be looked at. Nothing in it is run."""
    return await engine.registry.open_bundle(body)


async def release_bundle(engine: Engine, key: str) -> None:
    """Say that an opened bundle is wanted no more; it goes unless a server of the roster uses it."""
    await engine.registry.bundles.release(key)


ROUTES = (
    Route("GET", "/registry", search),
    Route("GET", "/registry/offer", offer),
    Route("POST", "/bundles", open_bundle),
    Route("DELETE", "/bundles/{key}", release_bundle),
)

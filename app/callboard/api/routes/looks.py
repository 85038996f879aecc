"""Routes of the looks at servers that somebody asks for. What one finds is kept, with its time, until the next."""

from callboard.api.routes.route import Route
from callboard.api.schema import Check, HealthView
from callboard.engine.engine import Engine


async def found(engine: Engine) -> list[HealthView]:
    """What the last look at each server found; nobody looks for it. Servers that nobody has looked at are left out."""
    views = (engine.looks.shown(name) for name in engine.roster_file.roster.servers)
    return [view for view in views if view is not None]


async def check_all(engine: Engine) -> list[HealthView]:
    """Ask every server that runs for a sign of life; the others are told as they are."""
    return await engine.looks.check_all(engine.roster_file.roster.servers)


async def check(engine: Engine, name: str) -> HealthView:
    """Ask a server that runs for a sign of life; one that does not is told as it is."""
    return await engine.looks.check(name)


async def refresh_all(engine: Engine) -> list[HealthView]:
    """Read the lists of all servers anew, and ask each for a sign of life."""
    return await engine.looks.refresh_all(engine.roster_file.roster.servers)


async def refresh(engine: Engine, name: str) -> HealthView:
    """Read a server's lists anew, and ask it for a sign of life. One that starts on demand is started for it."""
    return await engine.looks.refresh(name)


async def test(engine: Engine, name: str) -> list[Check]:
    """Try every step from a server's settings to its answer, each with its time. It is started for that if need be."""
    return await engine.looks.test(name)


ROUTES = (
    Route("GET", "/health", found),
    Route("POST", "/health-check", check_all),
    Route("POST", "/servers/{name}/health-check", check),
    Route("POST", "/refresh", refresh_all),
    Route("POST", "/servers/{name}/refresh", refresh),
    Route("POST", "/servers/{name}/test", test),
)

"""Routes of the engine itself: who it is, what happens in it, and what is wrong with it."""

import contextlib
from collections.abc import AsyncGenerator

from callboard.api.query_schema import DoctorQuery, EventsQuery
from callboard.api.routes.route import Route
from callboard.api.schema import Check, EngineView, Event, FiguresView, NetworkChange
from callboard.engine.engine import Engine


async def engine_view(engine: Engine) -> EngineView:
    """Who and where the engine is."""
    return await engine.view()


async def quit_engine(engine: Engine) -> None:
    """Stop the engine and every server that it started; answers at once."""
    engine.ask_to_quit()


async def network(engine: Engine, body: NetworkChange) -> None:
    """Say that this computer is, or is not, connected to a network."""
    engine.network(online=body.online)


async def doctor(engine: Engine, query: DoctorQuery) -> list[Check]:
    """Run the checks of the engine, or of one server; the latter is started for it, which may take its time."""
    return await engine.doctor(query.server)


async def events(engine: Engine, query: EventsQuery) -> AsyncGenerator[list[Event], None]:
    """What happens, as it happens. Empty lines keep the connection alive; "reset" tells that events were missed."""
    with engine.questions.listening() if query.asks else contextlib.nullcontext():
        yield []  # the headers go out with it
        kinds = frozenset(query.kinds.strip().split(",")) if query.kinds else None
        async with contextlib.aclosing(engine.bus.read(query.after, kinds)) as batches:
            async for batch in batches:
                yield batch


async def figures(engine: Engine) -> AsyncGenerator[list[FiguresView], None]:
    """CPU and memory of the servers, measured every two seconds as long as somebody reads here."""
    async with contextlib.aclosing(engine.figures.follow()) as samples:
        async for sample in samples:
            yield [sample]


async def metrics(engine: Engine) -> str:
    """Calls, their durations, servers by state and the engine's memory, in Prometheus' text format."""
    return await engine.telemetry.prometheus()


ROUTES = (
    Route("GET", "/engine", engine_view),
    Route("POST", "/engine/quit", quit_engine),
    Route("POST", "/engine/network", network),
    Route("GET", "/doctor", doctor),
    Route("GET", "/events", events),
    Route("GET", "/figures", figures),
    Route("GET", "/metrics", metrics, media="text/plain; version=0.0.4; charset=utf-8"),
)

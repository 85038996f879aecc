"""Routes of the call log."""

from callboard.api.query_schema import CallsQuery, Count
from callboard.api.routes.route import Route
from callboard.api.schema import CallDetail, CallPage
from callboard.engine.engine import Engine


async def calls(engine: Engine, query: CallsQuery) -> CallPage:
    """A page of the log, oldest first."""
    return await engine.call_log.page(
        query.offset,
        query.limit,
        server=query.server,
        tool=query.tool,
        client=query.client,
        status=query.status,
        text=query.text,
        engine=query.engine,
    )


async def call(engine: Engine, number: Count) -> CallDetail:
    """One call with its payloads."""
    return await engine.call(number)


ROUTES = (
    Route("GET", "/calls", calls),
    Route("GET", "/calls/{number}", call),
)

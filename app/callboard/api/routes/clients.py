"""Routes of the clients: who may connect, and with which configuration."""

from callboard.api.query_schema import SnippetQuery
from callboard.api.routes.route import Route
from callboard.api.schema import ClientView, SnippetView, TokenView
from callboard.engine.engine import Engine


async def clients(engine: Engine) -> list[ClientView]:
    """The programs for which a configuration can be copied."""
    return engine.clients.views()


async def snippet(engine: Engine, client: str, query: SnippetQuery) -> SnippetView:
    """A configuration for a client, for all servers or for one server's own endpoint."""
    return engine.clients.snippet(client, query.server, with_token=query.with_token)


async def token(engine: Engine, client: str) -> TokenView:
    """The token with which a client calls the gateway."""
    return TokenView(token=engine.clients.token(client))


ROUTES = (
    Route("GET", "/clients", clients),
    Route("GET", "/snippet/{client}", snippet),
    Route("GET", "/token/{client}", token),
)

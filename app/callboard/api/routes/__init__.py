"""The routes of the control API, by topic.

To add one, write its handler into the module of its topic and a line into that module's ``ROUTES``::

    async def log_page(engine: Engine, name: str, query: LogQuery) -> LogPage:
        '''Lines of a server's output.'''
        return engine.log_page(name, query.after, query.limit)

    ROUTES = (Route("GET", "/servers/{name}/log", log_page), ...)

The handler's signature says the rest (see :class:`~callboard.api.routes.route.Route`); a new topic's ``ROUTES`` is
joined to the others here. Shapes stand in ``callboard.api.schema`` or a schema module of their topic, queries in
``callboard.api.query_schema``. Window and command line call a route by a method of
:class:`~callboard.api.client.EngineClient`.
"""

from typing import Any, Final

from callboard.api.routes import calls, clients, engine, looks, policy, registry, roster, secrets, servers, sign_in
from callboard.api.routes.document import document
from callboard.api.routes.route import Route
from callboard.engine.engine import Engine


async def openapi(engine: Engine) -> dict[str, Any]:
    """This document."""
    return document(ROUTES)


ROUTES: Final[tuple[Route, ...]] = (
    *engine.ROUTES,
    *servers.ROUTES,
    *looks.ROUTES,
    *sign_in.ROUTES,
    *roster.ROUTES,
    *registry.ROUTES,
    *secrets.ROUTES,
    *calls.ROUTES,
    *clients.ROUTES,
    *policy.ROUTES,
    Route("GET", "/openapi.json", openapi),
)

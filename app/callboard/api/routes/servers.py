"""Routes of the servers: their states, what they offer, their output, and what is used of them by hand."""

import msgspec

from callboard.api.agent_schema import ConversationsView
from callboard.api.offer_schema import PromptRequest, PromptView, ReadRequest, ResourceView
from callboard.api.query_schema import LogQuery, ServersQuery
from callboard.api.routes.route import Route
from callboard.api.schema import CallRequest, LogPage, ServerAction, ServerView, ToolView
from callboard.engine.engine import Engine


async def servers(engine: Engine, query: ServersQuery) -> list[ServerView]:
    """Every server in roster order."""
    if query.figures:
        await engine.figures.fresh()
    return engine.servers()


async def server(engine: Engine, name: str, query: ServersQuery) -> ServerView:
    """One server."""
    if query.figures:
        await engine.figures.fresh()
    return engine.server(name)


async def act(engine: Engine, name: str, action: ServerAction) -> ServerView:
    """Start, stop, restart, retry, cancel, reset (forget earlier failures), enable or disable a server.

    Answers at once with its new state.
    """
    return await engine.act(name, action)


async def tools(engine: Engine, name: str) -> list[ToolView]:
    """The tools of a server, the last known ones while it is stopped."""
    return await engine.offers.tools(name)


async def resources(engine: Engine, name: str) -> list[ResourceView]:
    """The resources of a server and their templates, the last known ones while it is stopped."""
    return await engine.offers.resources(name)


async def prompts(engine: Engine, name: str) -> list[PromptView]:
    """The prompts of a server, the last known ones while it is stopped."""
    return await engine.offers.prompts(name)


async def read_resource(engine: Engine, name: str, body: ReadRequest) -> msgspec.Raw:
    """Read a resource; answers with MCP's result object."""
    return msgspec.Raw(await engine.offers.read(name, body.uri))


async def get_prompt(engine: Engine, name: str, body: PromptRequest) -> msgspec.Raw:
    """Get a prompt; answers with MCP's result object."""
    return msgspec.Raw(await engine.offers.get(name, body.prompt, body.arguments))


async def log_page(engine: Engine, name: str, query: LogQuery) -> LogPage:
    """Lines of a server's output, oldest first."""
    return engine.log_page(name, query.after, query.limit)


async def call_tool(engine: Engine, name: str, body: CallRequest) -> msgspec.Raw:
    """Call a tool by hand; answers with MCP's result object (`isError` included)."""
    return msgspec.Raw(await engine.call_tool(name, body.tool, body.arguments))


async def conversations(engine: Engine, name: str) -> ConversationsView:
    """The conversations that the server of a Python agent holds."""
    return await engine.agents.conversations(name)


async def reload(engine: Engine, name: str) -> None:
    """Load a server's Python agents anew while it runs; their conversations go on.

    Answers when what they offer has been read. If they cannot be loaded, the old ones go on.
    """
    await engine.agents.reload(name)


ROUTES = (
    Route("GET", "/servers", servers),
    Route("GET", "/servers/{name}", server),
    Route("GET", "/servers/{name}/tools", tools),
    Route("GET", "/servers/{name}/resources", resources),
    Route("GET", "/servers/{name}/prompts", prompts),
    Route("POST", "/servers/{name}/resources/read", read_resource, waits=True),
    Route("POST", "/servers/{name}/prompts/get", get_prompt, waits=True),
    Route("GET", "/servers/{name}/log", log_page),
    Route("POST", "/servers/{name}/call", call_tool, waits=True),
    Route("GET", "/servers/{name}/conversations", conversations),
    Route("POST", "/servers/{name}/reload", reload),
    Route("POST", "/servers/{name}/{action}", act),
)

"""A service as a FastMCP server: tools, prompts, resources, progress, and who calls.

Imported late, and only where a FastMCP server is wanted: the import takes most of a second.
"""

import asyncio
import logging
import secrets
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from pydantic import PrivateAttr

from callboard import __version__
from callboard.agents.conversations import Caller
from callboard.agents.exposing import Tool as ServedTool
from callboard.agents.exposing import proper_name
from callboard.agents.link import AgentError
from callboard.agents.progress import Report
from callboard.agents.results import META_CONVERSATION, Kept, Result
from callboard.agents.service import Service, UnknownError
from callboard.agents.stores import StoreError
from callboard.core.agent_methods import CONVERSATIONS, RELOAD
from callboard.servers import importing_fastmcp

with importing_fastmcp():
    import mcp_types
    from fastmcp import FastMCP
    from fastmcp.exceptions import PromptError, ResourceError
    from fastmcp.prompts import Message as PromptMessage
    from fastmcp.prompts import Prompt, PromptResult
    from fastmcp.resources import Resource, ResourceContent, ResourceResult
    from fastmcp.resources.template import ResourceTemplate
    from fastmcp.server.dependencies import get_context
    from fastmcp.server.providers import Provider
    from fastmcp.tools.base import Tool, ToolResult
    from mcp.server.subscriptions import (
        InMemorySubscriptionBus,
        ListenHandler,
        PromptsListChanged,
        ResourcesListChanged,
        ToolsListChanged,
    )
    from mcp.shared.exceptions import MCPError
    from mcp_types import SubscriptionsListenRequestParams

log = logging.getLogger(__name__)

MODERN: Final = "2026-07-28"
META_CLIENT: Final = "callboard/client"  # set by the engine's relay, which lets no client set it
META_SESSION: Final = "callboard/session"


def make_server(
    service: Service, *, name: str = "", instructions: str = "", version: str = "", owns_service: bool = True
) -> FastMCP[Any]:
    """The FastMCP server of a service, which it starts and closes with itself if it owns it.

    Name, instructions and version are the agent's own where nothing is given, for a service that runs already.
    """
    front = Front(service)
    agents = service.agents
    settings = service.settings
    first = agents[0] if agents else {"name": "", "instructions": "", "version": ""}
    shown = name or settings.name or (first["name"] if len(agents) == 1 else "agents")
    told = (
        instructions
        or settings.instructions
        or "\n\n".join(each["instructions"] for each in agents if each["instructions"])
    )

    @asynccontextmanager
    async def lifespan(server: FastMCP[Any]) -> AsyncIterator[None]:
        if owns_service:
            await service.start()
        front.bind(server)
        try:
            yield
        finally:
            if owns_service:
                await service.close()

    version = version or (first["version"] if len(agents) == 1 else "")
    server: FastMCP[Any] = FastMCP(
        shown or "agent", version=version or __version__, instructions=told or None, lifespan=lifespan
    )
    server.add_provider(front)
    front.announce_by(server)
    if settings.server:
        front.obey_engine(server)
    return server


class Front(Provider):
    """Offers what a service has, and knows its callers. One event loop."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service
        self._process = f"process:{secrets.token_urlsafe(12)}"
        self._bus = InMemorySubscriptionBus()
        self._sessions: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: set[Any] = set()

    # what is offered

    async def _list_tools(self) -> Sequence[Tool]:
        return [self._tool(tool) for tool in self.service.tools.values()]

    async def _get_tool(self, name: str, version: Any = None) -> Tool | None:
        self._remember_session()
        tool = self.service.tools.get(name)
        return self._tool(tool) if tool is not None else None

    def _tool(self, tool: ServedTool) -> Tool:
        annotations = mcp_types.ToolAnnotations.model_validate(tool.annotations) if tool.annotations else None
        made = AgentTool(
            name=tool.name,
            title=tool.title or None,
            description=tool.description or None,
            parameters=tool.input_schema,
            output_schema=tool.output_schema,
            annotations=annotations,
            meta=tool.meta,
        )
        made._front = self
        return made

    async def _list_prompts(self) -> Sequence[Prompt]:
        return [self._prompt(each) for each in self.service.prompts()]

    async def _get_prompt(self, name: str, version: Any = None) -> Prompt | None:
        return next((self._prompt(each) for each in self.service.prompts() if each["name"] == name), None)

    def _prompt(self, spec: dict[str, Any]) -> Prompt:
        made = AgentPrompt.model_validate(
            {"name": spec["name"], "description": spec["description"] or None, "arguments": spec["arguments"] or None}
        )
        made._front = self
        return made

    async def _list_resources(self) -> Sequence[Resource]:
        own = [
            {
                "uri": uri,
                "name": f"conversations of {agent}",
                "description": "How many conversations there are, and which of them are yours",
                "media_type": "application/json",
            }
            for uri, agent in self.service.conversation_lists().items()
        ]
        return [self._resource(each["uri"], each) for each in [*self.service.resources(), *own]]

    async def _get_resource(self, uri: str, version: Any = None) -> Resource | None:
        known = next((each for each in self.service.resources() if each["uri"] == uri), None)
        if known is None and not uri.startswith("agent://"):
            return None
        return self._resource(uri, known or {})

    def _resource(self, uri: str, spec: dict[str, Any]) -> Resource:
        made = AgentResource.model_validate(
            {
                "uri": uri,
                "name": spec.get("name") or uri,
                "description": spec.get("description") or None,
                "mime_type": spec.get("media_type") or "text/plain",
            }
        )
        made._front = self
        return made

    async def _list_resource_templates(self) -> Sequence[ResourceTemplate]:
        names = dict.fromkeys(proper_name(agent["name"]) for agent in self.service.agents)
        return [
            ResourceTemplate(
                name=f"files of {name}",
                description="Files and long texts that were part of an answer, under the addresses given there",
                uri_template=f"agent://{name}/{{id}}",
                mime_type="application/octet-stream",
                parameters={"type": "object", "properties": {"id": {"type": "string"}}},
            )
            for name in names
        ]

    # calls

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """A tools/call."""
        caller, handle = self.caller()
        result = await self.service.call(name, arguments, caller, handle=handle, report=_report())
        return _tool_result(result)

    async def prompt(self, name: str, arguments: dict[str, Any]) -> PromptResult:
        """A prompts/get."""
        try:
            messages = await self.service.prompt(name, arguments, self.caller()[0])
        except (AgentError, UnknownError) as error:
            raise PromptError(str(error)) from error
        return PromptResult(messages=[_prompt_message(each) for each in messages])

    async def read(self, uri: str) -> ResourceResult:
        """A resources/read."""
        try:
            kept = await self.service.read(uri, self.caller()[0])
        except (AgentError, UnknownError) as error:
            raise ResourceError(str(error)) from error
        return ResourceResult([_content(each) for each in kept])

    def caller(self) -> tuple[Caller, str | None]:
        """Who calls, and the conversation that the request's metadata names."""
        context = get_context()
        request = context.request_context
        meta: dict[str, Any] = (request.meta if request is not None else None) or {}
        handle = meta.get(META_CONVERSATION)
        handle = handle if isinstance(handle, str) else None
        if self.service.settings.gateway:
            session = meta.get(META_SESSION)
            return Caller(str(meta.get(META_CLIENT, "")), f"session:{session}" if session else None), handle
        modern = request is not None and request.protocol_version >= MODERN
        http = request.request if request is not None else None
        if http is None:
            # one process, one client: in either era its calls are one conversation unless it says otherwise
            return Caller("stdio", self._process if modern else f"session:{context.session_id}"), handle
        client = http.scope.get("callboard.client", "")
        return Caller(client, None if modern else f"session:{context.session_id}"), handle

    # changes

    def bind(self, server: FastMCP[Any]) -> None:
        """Tell clients from now on when the tools change."""
        self.service.on_change = self._changed

    def announce_by(self, server: FastMCP[Any]) -> None:
        """Let clients of the newest revision listen for changes."""
        server._mcp_server.add_request_handler(
            "subscriptions/listen", SubscriptionsListenRequestParams, ListenHandler(self._bus)
        )

    # the engine

    def obey_engine(self, server: FastMCP[Any]) -> None:
        """Answer what the engine asks beside the protocol."""

        def only_engine(answer: Callable[[], Awaitable[dict[str, Any]]]) -> Any:
            async def handle(context: Any, params: mcp_types.RequestParams) -> dict[str, Any]:
                if META_CLIENT in (params.meta or {}):
                    raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found")
                try:
                    return await answer()
                except (AgentError, StoreError) as error:
                    raise MCPError(mcp_types.INTERNAL_ERROR, str(error)) from error

            return handle

        async def reload() -> dict[str, Any]:
            await self.service.reload()
            return {}

        asked = {CONVERSATIONS: self.service.all_conversations, RELOAD: reload}
        for method, answer in asked.items():
            server._mcp_server.add_request_handler(method, mcp_types.RequestParams, only_engine(answer))

    def _remember_session(self) -> None:
        request = get_context().request_context
        if request is not None and request.protocol_version < MODERN:
            connection = getattr(request.session, "_connection", None)
            if connection is not None:
                self._sessions.add(connection)

    def _changed(self) -> None:
        task = asyncio.get_running_loop().create_task(self._tell())
        self._told.add(task)
        task.add_done_callback(self._told.discard)

    async def _tell(self) -> None:
        for event in (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged()):
            await self._bus.publish(event)
        for connection in list(self._sessions):
            try:
                await connection.send_tool_list_changed()
                await connection.send_prompt_list_changed()
                await connection.send_resource_list_changed()
            except Exception as error:  # noqa: BLE001  a client that has gone must not keep it from the others
                log.debug("a client was not told of changed tools: %s", error)


class AgentTool(Tool):
    """A tool of the service, published as it is."""

    _front: Front = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call it."""
        return await self._front.call(self.name, arguments)

    def to_mcp_tool(self, **overrides: Any) -> mcp_types.Tool:
        """The tool with nothing added: no title or metadata that the agent did not give it."""
        return mcp_types.Tool(
            name=overrides.get("name", self.name),
            title=self.title,
            description=self.description,
            input_schema=self.parameters,
            output_schema=overrides.get("outputSchema", self.output_schema),
            annotations=self.annotations,
            _meta=self.meta,
        )


class AgentPrompt(Prompt):
    """A prompt of the service."""

    _front: Front = PrivateAttr()

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Fill it in."""
        return await self._front.prompt(self.name, arguments or {})


class AgentResource(Resource):
    """A resource of the service."""

    _front: Front = PrivateAttr()

    async def read(self) -> ResourceResult:
        """Read it."""
        return await self._front.read(str(self.uri))


def _report() -> Report | None:
    """What tells the caller of progress, if it asked for that."""
    context = get_context()
    request = context.request_context
    meta = (request.meta if request is not None else None) or {}
    if meta.get("progressToken") is None:
        return None

    async def report(progress: float, total: float | None, message: str) -> None:
        await context.report_progress(progress, total, message or None)

    return report


def _tool_result(result: Result) -> ToolResult:
    return ToolResult(
        content=[_BLOCKS[block["type"]].model_validate(block) for block in result.content],
        structured_content=result.structured,
        meta=result.meta or None,
        is_error=result.is_error,
    )


_BLOCKS: Final[dict[str, Any]] = {
    "text": mcp_types.TextContent,
    "image": mcp_types.ImageContent,
    "audio": mcp_types.AudioContent,
    "resource": mcp_types.EmbeddedResource,
    "resource_link": mcp_types.ResourceLink,
}


def _prompt_message(value: Any) -> PromptMessage:
    if isinstance(value, dict):
        content = value.get("content")
        text = content.get("text", "") if isinstance(content, dict) else content
        return PromptMessage(str(text or ""), role="assistant" if value.get("role") == "assistant" else "user")
    return PromptMessage(str(value))


def _content(kept: Kept) -> ResourceContent:
    return ResourceContent(kept.data, mime_type=kept.media_type)

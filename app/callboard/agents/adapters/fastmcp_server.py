"""FastMCP server objects, and those of the official SDK: served by a client in the same process."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from callboard.agents.contract import (
    TOOL_FAILED,
    AdaptedAgent,
    Blob,
    Context,
    Conversation,
    Data,
    Failure,
    Link,
    PromptSpec,
    ResourceSpec,
    Text,
    ToolSpec,
    construct,
)
from callboard.agents.signatures import WRAPS


def matches(value: Any) -> bool:
    """A FastMCP server, or one of the SDK's (FastMCP in 1.x, MCPServer in 2.x): an object, not a class."""
    names = {f"{kind.__module__}.{kind.__qualname__}" for kind in type(value).__mro__}
    return bool(names & _KINDS)


_KINDS = frozenset(
    {
        "fastmcp.server.server.FastMCP",
        "mcp.server.fastmcp.server.FastMCP",
        "mcp.server.mcpserver.server.MCPServer",
    }
)


def adapt(value: Any, params: Mapping[str, Any]) -> AdaptedAgent:
    """Raises TypeError for params: the object is made already."""
    server = construct(value, params)
    return ServedFastMCP(server) if type(server).__module__.startswith("fastmcp.") else ServedSdk(server)


class Served(AdaptedAgent):
    """What both kinds have in common: content as the protocol has it."""

    def __init__(self, server: Any) -> None:
        super().__init__(server.name, "")
        self.instructions = server.instructions or ""
        version = str(getattr(server, "version", None) or "")
        self.version = "" if version == _library_version(server) else version  # FastMCP's own stands for none
        self._server = server

    def _describe(self, tools: Any, prompts: Any, resources: Any) -> None:
        self.tools = [_tool(each) for each in tools]
        self.prompts = [
            PromptSpec(each.name, each.description or "", [_wire(part) for part in each.arguments or ()])
            for each in prompts
        ]
        self.resources = [
            ResourceSpec(str(each.uri), each.name or "", each.description or "", _either(each, "mime_type", "mimeType"))
            for each in resources
        ]

    def _events(self, tool: str, result: Any) -> list[Any]:
        """The parts of a tool's result, whichever of the SDK's forms it has."""
        content, structured, failed, meta = result, None, False, None
        if isinstance(result, tuple):
            content, structured = result
        elif hasattr(result, "content"):
            content, structured = result.content, _either(result, "structured_content", "structuredContent", None)
            failed, meta = bool(_either(result, "is_error", "isError")), getattr(result, "meta", None)
        elif isinstance(result, dict):
            content, structured = [], result
        events = [_part(each) for each in content]
        if structured is not None:
            schema = next((each.output_schema for each in self.tools if each.name == tool), None)
            if schema is not None and schema.get(WRAPS) and isinstance(structured, dict):
                structured = structured.get("result")  # it is wrapped again on its way out
            label = str(meta.get("media_type", "")) if isinstance(meta, dict) else ""
            events.append(Data(structured, label, text="" if events else None))
        if failed:
            texts = [each.text for each in events if isinstance(each, Text)]
            events = [each for each in events if not isinstance(each, Text)]
            events.append(Failure("\n".join(texts), TOOL_FAILED))
        return events


class ServedFastMCP(Served):
    """A FastMCP server behind FastMCP's own client: one client, and so one session, for each conversation."""

    async def prepare(self) -> None:
        """Ask the server for its lists."""
        async with self._client() as client:
            self._describe(await client.list_tools(), await client.list_prompts(), await client.list_resources())

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Any:
        """Call the tool; its progress is ours."""

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            context.progress(message or "", progress, total)

        client = await self._session(context.conversation)
        return self._events(tool, await client.call_tool_mcp(tool, arguments, progress_handler=heard))

    async def prompt(self, name: str, arguments: dict[str, Any], context: Context) -> Any:
        """The prompt's messages."""
        client = await self._session(context.conversation)
        found = await client.get_prompt(name, arguments)
        return Data([_wire(message) for message in found.messages])

    async def read(self, uri: str, context: Context) -> Any:
        """What the resource holds."""
        client = await self._session(context.conversation)
        contents = await client.read_resource(uri)
        return [Text(each.text) if hasattr(each, "text") else _blob(each) for each in contents]

    async def close_conversation(self, conversation: Conversation) -> None:
        """End the session."""
        client = conversation.memory.pop("client", None)
        if client is not None:
            await client.close()

    async def _session(self, conversation: Conversation) -> Any:
        """The conversation's client; the worker closes what belongs to one call alone."""
        client = conversation.memory.get("client")
        if client is None:
            client = conversation.memory["client"] = self._client()
            await client.__aenter__()
        return client

    def _client(self) -> Any:
        import inspect

        from fastmcp import Client

        # only the older revisions have sessions, which is what a server's own conversations hang on
        pinned = {"mode": "legacy"} if "mode" in inspect.signature(Client).parameters else {}
        return Client(self._server, **pinned)


class ServedSdk(Served):
    """A server of the official SDK, asked directly."""

    keeps_conversations = False

    async def prepare(self) -> None:
        """Ask the server for its lists."""
        server = self._server
        self._describe(await server.list_tools(), await server.list_prompts(), await server.list_resources())

    async def call(self, tool: str, arguments: dict[str, Any], context: Context) -> Any:
        """Call the tool."""
        return self._events(tool, await self._server.call_tool(tool, arguments))

    async def prompt(self, name: str, arguments: dict[str, Any], context: Context) -> Any:
        """The prompt's messages."""
        found = await self._server.get_prompt(name, arguments)
        return Data([_wire(message) for message in found.messages])

    async def read(self, uri: str, context: Context) -> Any:
        """What the resource holds."""
        contents = [each.content for each in await self._server.read_resource(uri)]
        return [Text(each) if isinstance(each, str) else Blob(each) for each in contents]


def _library_version(server: Any) -> str:
    package = sys.modules[type(server).__module__.partition(".")[0]]
    return str(getattr(package, "__version__", ""))


def _part(content: Any) -> Any:
    kind = content.type
    if kind == "text":
        return Text(content.text)
    if kind in ("image", "audio"):
        return Blob(base64.b64decode(content.data), _either(content, "mime_type", "mimeType"))
    if kind == "resource_link":
        media_type = _either(content, "mime_type", "mimeType")
        return Link(str(content.uri), content.name or "", media_type, content.description or "")
    resource = content.resource
    name = unquote(urlsplit(str(resource.uri)).path).rpartition("/")[2]
    if hasattr(resource, "blob"):
        return _blob(resource, name)
    return Blob(resource.text.encode(), _either(resource, "mime_type", "mimeType") or "text/plain", name)


def _blob(resource: Any, name: str = "") -> Blob:
    media_type = _either(resource, "mime_type", "mimeType") or "application/octet-stream"
    return Blob(base64.b64decode(resource.blob), media_type, name)


def _tool(tool: Any) -> ToolSpec:
    annotations = tool.annotations
    return ToolSpec(
        name=tool.name,
        description=tool.description or "",
        input_schema=_either(tool, "input_schema", "inputSchema"),
        output_schema=_either(tool, "output_schema", "outputSchema", None),
        annotations=_wire(annotations) if annotations is not None else None,
        title=tool.title or "",
        meta=getattr(tool, "meta", None),
    )


def _wire(model: Any) -> dict[str, Any]:
    dumped: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return dumped


def _either(value: Any, name: str, other: str, default: Any = "") -> Any:
    """An attribute that the SDK renamed from camelCase in 2.x."""
    found = getattr(value, name if hasattr(value, name) else other, None)
    return default if found is None else found

"""The client that the suite's client scenarios start: our connection to remote servers, driven through the gateway.

The suite gives the address of its own server as the argument, and the scenario in the environment. What the scenario
wants done is done by a client of its era that talks with a gateway whose only server is the suite's.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.mcp_headers import annotated, encode_value, text_of, value_at
from callboard.core.protocol import MODERN
from tests.conformance.signing_in import person
from tests.support.gateway import LegacyClient, ModernClient, TestGateway, gateway

SERVER = "suite"
LIMIT_SECONDS = 25.0
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "sampling": {}, "roots": {}}
ACCEPT = {"action": "accept", "content": {"confirmed": True}}


class MirroringClient(ModernClient):
    """A modern client that repeats arguments in headers where the tool's schema wants it."""

    def __init__(self, url: str, token: str, capabilities: dict[str, Any]) -> None:
        super().__init__(url, token, capabilities)
        self.headers_of: dict[str, dict[str, tuple[str, ...]]] = {}  # tool → header → path of the argument

    def headers_for(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers that mirror a message."""
        params = message["params"]
        paths = self.headers_of.get(params.get("name", ""), {})
        texts = {name: text_of(value_at(params["arguments"], path)) for name, path in paths.items()}
        mirrored = {f"mcp-param-{name}": encode_value(text) for name, text in texts.items() if text is not None}
        return super().headers_for(message) | mirrored


Client = LegacyClient | MirroringClient
Doing = Callable[[Client], Awaitable[None]]


async def tools(client: Client) -> list[dict[str, Any]]:
    """The tools that the gateway offers."""
    answer = await client.request("tools/list")
    found: list[dict[str, Any]] = answer["result"]["tools"]
    return found


async def call_all(client: Client) -> None:
    """Call every tool that is listed."""
    for tool in await tools(client):
        await client.call(tool["name"], {"a": 2, "b": 3})


async def list_only(client: Client) -> None:
    """See what there is and leave it alone."""
    await tools(client)


async def use_everything(client: Client) -> None:
    """Call, read and get one of each kind."""
    await call_all(client)
    for resource in (await client.request("resources/list"))["result"]["resources"]:
        await client.request("resources/read", {"uri": resource["uri"]})
    for prompt in (await client.request("prompts/list"))["result"]["prompts"]:
        await client.request("prompts/get", {"name": prompt["name"]})


async def call_as_told(client: Client) -> None:
    """Make the calls that the suite names."""
    assert isinstance(client, MirroringClient)
    client.headers_of = {tool["name"]: annotated(tool["inputSchema"]) for tool in await tools(client)}
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await client.call(call["name"], call["arguments"])


async def echo_schema(client: Client) -> None:
    """Hand back the schema of one tool as it was seen."""
    schema = next(tool["inputSchema"] for tool in await tools(client) if tool["name"] == "json_schema_2020_12_tool")
    await client.call("json_schema_echo", {"schema": schema})


async def answer_with_defaults(client: Client) -> None:
    """Fill in a form with its defaults, as a client's form does when nothing is typed."""

    def filled(params: dict[str, Any]) -> dict[str, Any]:
        fields = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: field["default"] for name, field in fields.items()}}

    client.answers["elicitation/create"] = filled
    await call_all(client)


async def answer_in_rounds(client: Client) -> None:
    """Answer what tools ask, with another call between the question and the answer."""
    assert isinstance(client, MirroringClient)
    names = [tool["name"] for tool in await tools(client)]
    client.answers["elicitation/create"] = lambda params: ACCEPT
    for name in names:
        params = {"name": name, "arguments": {}}
        answer = await client.request("tools/call", params)
        if answer["result"].get("resultType") == "input_required":
            await client.call("test_mrtr_unrelated")
            await client.request("tools/call", {**params, **client.retry(answer["result"])})


SCENARIOS: dict[str, Doing] = {
    "initialize": list_only,
    "tools_call": call_all,
    "sse-retry": call_all,
    "elicitation-sep1034-client-defaults": answer_with_defaults,
    "request-metadata": list_only,
    "sep-2322-client-request-state": answer_in_rounds,
    "http-standard-headers": use_everything,
    "http-custom-headers": call_as_told,
    "http-invalid-tool-headers": call_all,
    "json-schema-ref-no-deref": call_all,
    "json-schema-2020-12-preservation": echo_schema,
}


async def run(scenario: str, modern: bool, url: str) -> None:
    """Do what a scenario wants."""
    with tempfile.TemporaryDirectory() as folder:
        async with gateway(Path(folder), SERVER) as front:
            if scenario.startswith("auth/"):
                await run_signed_in(front, Path(folder), modern, url)
                return
            await front.reach(SERVER, url)
            async with client_of(front, modern) as client:
                if isinstance(client, LegacyClient):
                    await client.initialize()
                await SCENARIOS[scenario](client)


async def run_signed_in(front: TestGateway, folder: Path, modern: bool, url: str) -> None:
    """Sign in, and call every tool."""
    async with person(folder, url) as helper:
        while True:
            await helper.until_let_in(lambda: front.reach(SERVER, url, auth=helper.auth))
            async with client_of(front, modern) as client:
                if isinstance(client, LegacyClient):
                    await client.initialize()
                for tool in await tools(client):
                    await helper.until_done(partial(client.call, tool["name"]))
            closed = front.servers.ready[SERVER].closed
            if not closed.done():
                return
            await front.lose(SERVER)
            await helper.help(CallboardError(closed.result().error or "upstream-gone", closed.result().reason))


def client_of(front: TestGateway, modern: bool) -> Client:
    """A client of either era that can be asked for everything."""
    return (MirroringClient if modern else LegacyClient)(front.endpoint(SERVER), "token-a", CAPABILITIES)


async def main() -> None:
    """The command."""
    async with asyncio.timeout(LIMIT_SECONDS):
        modern = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"] == MODERN
        await run(os.environ["MCP_CONFORMANCE_SCENARIO"], modern, sys.argv[1])


if __name__ == "__main__":
    asyncio.run(main())

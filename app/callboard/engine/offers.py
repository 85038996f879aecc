"""What servers offer, for window and command line: tools, resources and prompts, listed; read and got by hand."""

from collections.abc import Callable
from typing import Final

from callboard.api.offer_schema import PromptView, ResourceView
from callboard.api.schema import ToolView
from callboard.core.roster import AnyEntry
from callboard.engine.manual_call import request
from callboard.engine.policy.callers import Caller
from callboard.engine.relay.catalogue import PROMPTS, TOOLS
from callboard.engine.relay.envelope import raw_json
from callboard.engine.relay.relay import Relay
from callboard.engine.views import prompt_views, resource_views, tool_views

FIRST_READ: Final = 10.0  # seconds that whoever asks waits for a server's first lists


class Offers:
    """Engine loop only; every method raises ``server-unknown``. Lists of a server that is down are the last known."""

    def __init__(self, relay: Relay, entry_of: Callable[[str], AnyEntry], person: Caller) -> None:
        """``person``: in whose name things are read and got by hand."""
        self._relay = relay
        self._person = person
        self._entry_of = entry_of

    async def tools(self, name: str) -> list[ToolView]:
        """The tools of a server."""
        await self._read(name)
        return tool_views(name, self._relay.catalogue.offer(name), self._relay.view("").shown(TOOLS))

    async def resources(self, name: str) -> list[ResourceView]:
        """The resources and templates of a server."""
        await self._read(name)
        return resource_views(self._relay.catalogue.offer(name))

    async def prompts(self, name: str) -> list[PromptView]:
        """The prompts of a server."""
        await self._read(name)
        return prompt_views(name, self._relay.catalogue.offer(name), self._relay.view("").shown(PROMPTS))

    async def read(self, name: str, uri: str) -> bytes:
        """Read a resource; MCP's result object as raw JSON."""
        self._entry_of(name)
        return await request(self._relay, name, "resources/read", {"uri": raw_json(uri)}, caller=self._person)

    async def get(self, name: str, prompt: str, arguments: dict[str, str]) -> bytes:
        """Get a prompt; MCP's result object as raw JSON."""
        self._entry_of(name)
        params = {"name": raw_json(prompt), "arguments": raw_json(arguments)}
        return await request(self._relay, name, "prompts/get", params, caller=self._person)

    async def _read(self, name: str) -> None:
        self._entry_of(name)
        await self._relay.first_lists.settled(name, FIRST_READ)

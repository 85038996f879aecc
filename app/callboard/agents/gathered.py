"""The service of a registry: agents of this process that come and go while it runs."""

import asyncio

from callboard.agents.contract import AdaptedAgent
from callboard.agents.exposing import tools_of
from callboard.agents.keeper import Keeper
from callboard.agents.registry import AgentRegistry
from callboard.agents.server import local_maker
from callboard.agents.service import Service
from callboard.agents.settings import AgentSettings


class GatheredService(Service):
    """Follows a registry: a keeper for each of its agents, so that the others' conversations go on."""

    def __init__(self, registry: AgentRegistry) -> None:
        super().__init__(AgentSettings(agent=(registry.name,), stateless=registry.stateless), [])
        self._registry = registry
        self._by_agent: dict[int, tuple[AdaptedAgent, Keeper]] = {}
        self._following: asyncio.Task[None] | None = None
        self._again = False

    async def start(self) -> None:
        """Start all that is registered by now."""
        await self._follow()
        await super().start()

    async def close(self) -> None:
        """End them."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await super().close()
        self._is_up = False

    def refresh(self) -> None:
        """The registry has changed. On the loop of the service, if it runs."""
        if not self._is_up:
            return
        self._again = True
        if self._following is None or self._following.done():
            self._following = asyncio.get_running_loop().create_task(self._catch_up())

    async def _catch_up(self) -> None:
        while self._again:
            self._again = False
            await self._follow()
            self._agents_changed()

    async def _follow(self) -> None:
        wanted = {id(agent): agent for agent in self._registry.adapted}
        for key in self._by_agent.keys() - wanted.keys():
            _, keeper = self._by_agent.pop(key)
            await keeper.close()
        for key, agent in wanted.items():
            if key not in self._by_agent:
                keeper = self.keeper(local_maker([agent]))
                await keeper.link()
                self._by_agent[key] = (agent, keeper)
        self._keepers = [self._by_agent[key][1] for key in wanted]

    def _expose(self) -> None:
        found = tools_of(self._keepers, self.settings, listed=self._registry.exposed)
        self.tools = {tool.name: tool for tool in found}

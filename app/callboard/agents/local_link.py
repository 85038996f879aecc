"""An agent in this very process: for programs that hold the agent's object already."""

import asyncio
import itertools
from typing import Any

from callboard.agents.contract import AdaptedAgent, agent_to_wire, part_from_wire
from callboard.agents.link import Message, OnProgress, Outcome
from callboard.agents.loading import prepare
from callboard.agents.running import Runner


class LocalLink:
    """Stands in for a worker: the same messages, without a pipe. One event loop only."""

    def __init__(self, agents: list[AdaptedAgent], *, persist: bool = False, thoughts: bool = False) -> None:
        self.agents: list[Message] = []
        self.files: list[str] = []
        self._adapted = agents
        self._numbers = itertools.count(1)
        self._calls: dict[int, tuple[asyncio.Future[Outcome], OnProgress | None]] = {}
        self._runner = Runner(agents, self._heard, persist=persist, thoughts=thoughts)
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        """True between :meth:`start` and :meth:`close`."""
        return self._loop is not None

    @property
    def pending(self) -> "list[asyncio.Future[Outcome]]":
        """The calls in flight."""
        return [future for future, _ in self._calls.values()]

    async def start(self) -> None:
        """Ask the agents what they offer. Raises LoadError."""
        await prepare(self._adapted)
        self.agents = [agent_to_wire(agent) for agent in self._adapted]
        self._loop = asyncio.get_running_loop()

    def begin(self, message: Message, on_progress: OnProgress | None) -> tuple[int, asyncio.Future[Outcome]]:
        """Begin a call; its number, and what will be its outcome."""
        assert self._loop is not None
        number = next(self._numbers)
        future: asyncio.Future[Outcome] = self._loop.create_future()
        self._calls[number] = (future, on_progress)
        self._runner.take({**message, "id": number})
        return number, future

    def tell(self, message: Message) -> None:
        """Hand on what has no answer."""
        self._runner.take(message)

    async def close(self) -> None:
        """Cancel what runs, and let the agents go."""
        if self._loop is not None:
            await self._runner.shutdown()
            self._loop = None

    async def kill(self) -> None:
        """What cannot be cancelled here cannot be killed either: its thread ends with the process."""

    def _heard(self, message: Message) -> None:
        """An answer or a remark of the runner's, from any thread."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._take, message)

    def _take(self, message: dict[str, Any]) -> None:
        if message["type"] == "progress":
            call = self._calls.get(message["id"])
            if call is not None and call[1] is not None:
                call[1](message)
            return
        call = self._calls.pop(message["id"], None)
        if call is not None and not call[0].done():
            parts = [part_from_wire(part) for part in message["parts"]]
            call[0].set_result(Outcome(parts, message.get("error"), message.get("state")))

"""Keeps a worker running for each of a server's agents: starts it again when it has ended, replaces it on request."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, Final

from callboard.agents.contract import CANCELLED
from callboard.agents.link import AgentError, Message, OnProgress, Outcome, WorkerLink
from callboard.agents.local_link import LocalLink

log = logging.getLogger(__name__)

DRAIN: Final = 60.0  # seconds that other calls have in a worker that is to be ended
LOOK: Final = 0.5  # seconds between two looks at the agent's files
AnyLink = WorkerLink | LocalLink
MakeLink = Callable[[], Awaitable[AnyLink]]


class Keeper:
    """One agent entry's worker, whichever process that is at the time. One event loop; :meth:`close` it."""

    def __init__(
        self,
        make: MakeLink,
        *,
        grace: float,
        on_agents: Callable[[], None],
        on_replace: Callable[[AnyLink], Awaitable[None]],
    ) -> None:
        """``make`` starts a worker and loads the agent; ``on_agents`` hears that what the agents offer may differ.

        ``on_replace`` is awaited with a worker that is about to be replaced.
        """
        self._make = make
        self._grace = grace
        self._on_agents = on_agents
        self._on_replace = on_replace
        self._link: AnyLink | None = None
        self._starting: asyncio.Task[AnyLink] | None = None
        self._chores: set[asyncio.Task[None]] = set()
        self.agents: list[Message] = []

    async def link(self) -> AnyLink:
        """The worker, started if there is none that runs. Raises AgentError."""
        if self._link is not None and self._link.is_open:
            return self._link
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> AnyLink:
        try:
            link = await self._make()
        finally:
            self._starting = None
        self._use(link)
        return link

    def _use(self, link: AnyLink) -> None:
        self._link = link
        changed = self.agents != link.agents
        self.agents = link.agents
        if changed:
            self._on_agents()

    async def call(
        self, link: AnyLink, message: Message, on_progress: OnProgress | None, on_end: Callable[[Outcome], None]
    ) -> Outcome:
        """One call. Cancelled, it is cancelled in the worker too, which is ended if it does not heed that.

        ``on_end`` hears the outcome once the worker is done with the call, also where nobody waits for it any more.
        """
        number, outcome = link.begin(message, on_progress)
        outcome.add_done_callback(lambda future: None if future.cancelled() else on_end(future.result()))
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            link.tell({"type": "cancel", "id": number})
            self._chore(self._see_to_end(link, outcome))
            raise

    async def _see_to_end(self, link: AnyLink, outcome: "asyncio.Future[Outcome]") -> None:
        done, _ = await asyncio.wait([outcome], timeout=self._grace)
        if not done:
            log.warning("The agent goes on with a call that was cancelled: its worker is ended.")
            await self._retire(link, stuck=outcome)

    async def replace(self) -> None:
        """Load the agent anew in a fresh worker; the old one ends once its calls are over.

        Raises AgentError if the agent cannot be loaded; then all stays as it is.
        """
        link = await self._make()
        old = self._link
        if old is not None:
            await self._on_replace(old)
        self._use(link)
        if old is not None:
            self._chore(self._retire(old))

    async def _retire(self, link: AnyLink, stuck: "asyncio.Future[Outcome] | None" = None) -> None:
        """End a worker as soon as no call but ``stuck`` is in flight in it, at the latest when time is up."""
        if link is self._link:
            self._link = None
        others = [future for future in link.pending if future is not stuck]
        if others:
            await asyncio.wait(others, timeout=DRAIN)
        if link.pending:
            await link.kill()
        await link.close()

    def watch(self) -> Coroutine[Any, Any, None]:
        """Replace the worker whenever a file of the agent's own changes from now on.

        A version with mistakes is told to the log, and the old one stays.
        """
        return self._watch(_times(self._link))

    async def _watch(self, known: dict[str, float]) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = _times(self._link)
            if not now or now == known:
                continue
            changed = [name for name in now if now[name] != known.get(name)]
            known = now
            await asyncio.to_thread(_forget_compiled, changed)
            try:
                await self.replace()
                log.info("The agent was loaded anew.")
            except AgentError as error:
                log.error("The changed agent cannot be loaded, the old one stays: %s", error)
            known = _times(self._link) or known

    async def close(self) -> None:
        """End the worker, and whatever else is under way."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        for task in list(self._chores):
            task.cancel()
        if self._chores:
            await asyncio.wait(self._chores)
        if self._link is not None:
            link, self._link = self._link, None
            await link.close()

    def _chore(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)


def was_cancelled(outcome: Outcome) -> bool:
    """True for a call that the worker gave up because it was told to."""
    return outcome.error is not None and outcome.error["code"] == CANCELLED


def _forget_compiled(files: Iterable[str]) -> None:
    """Python takes a compiled file for current if the source has the same second and size: a quick edit would hide."""
    for name in files:
        source = Path(name)
        for compiled in (source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"):
            with contextlib.suppress(OSError):
                compiled.unlink()


def _times(link: AnyLink | None) -> dict[str, float]:
    found = {}
    for name in link.files if link is not None else ():
        with contextlib.suppress(OSError):
            found[name] = Path(name).stat().st_mtime
    return found

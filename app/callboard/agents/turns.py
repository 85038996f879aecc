"""Turns in conversations that several engines share: one call at a time in each, whichever engine it came to."""

import asyncio
from typing import Final

from callboard.agents.stores import Store

FIRST_PAUSE: Final = 0.02  # seconds between two looks whether the other engine is done; doubled up to the longest
LONGEST_PAUSE: Final = 0.25


class Turns:
    """Asks the store for turns. One event loop; :meth:`close` it before the store."""

    def __init__(self, store: Store, wait: float) -> None:
        """``wait``: seconds for which a call waits for its turn at most, 0 for as long as it takes."""
        self._store = store
        self._wait = wait
        self._undoing: set[asyncio.Task[None]] = set()

    async def take(self, id_: str) -> bool:
        """Have the conversation for oneself; False if another engine still had it when the time was up.

        Raises StoreError.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self._wait if self._wait else float("inf")
        pause = FIRST_PAUSE
        while not await self._ask(id_):
            left = end - loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_PAUSE)
        return True

    async def give(self, id_: str) -> None:
        """Let the next engine have it. Raises StoreError."""
        await asyncio.to_thread(self._store.give_turn, id_)

    async def close(self) -> None:
        """Wait until turns that nobody wants any more are given back."""
        if self._undoing:
            await asyncio.wait(self._undoing)

    async def _ask(self, id_: str) -> bool:
        asking = asyncio.ensure_future(asyncio.to_thread(self._store.take_turn, id_))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            task = asyncio.get_running_loop().create_task(self._undo(asking, id_))
            self._undoing.add(task)
            task.add_done_callback(self._undoing.discard)
            raise

    async def _undo(self, asking: "asyncio.Future[bool]", id_: str) -> None:
        await asyncio.wait([asking])
        if asking.exception() is None and asking.result():
            await self.give(id_)

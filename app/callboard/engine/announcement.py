"""The file by which window and command line find this engine."""

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Final

from callboard.engine import tasks
from callboard.system.engine_file import EngineAddress, write_engine_file

log = logging.getLogger(__name__)

TRY_AGAIN: Final = 10.0  # seconds


class Announcement:
    """Written once the engine answers, taken away when it ends. A full disk only delays it. Engine loop only."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._trying: asyncio.Task[None] | None = None

    async def make(self, address: EngineAddress) -> None:
        """Write the file; if that fails, it is tried again until it works."""
        if not await self._write(address):
            self._trying = tasks.spawn(self._keep_trying(address), name="write the engine's address")

    async def withdraw(self) -> None:
        """Take the file away; never raises."""
        if self._trying is not None:
            await tasks.cancel_and_wait(self._trying)
        with contextlib.suppress(OSError):
            await asyncio.to_thread(self._file.unlink, missing_ok=True)

    async def _write(self, address: EngineAddress) -> bool:
        try:
            await asyncio.to_thread(write_engine_file, self._file, address)
        except OSError as error:
            log.error("the engine's address cannot be written: %s", error)
            return False
        return True

    async def _keep_trying(self, address: EngineAddress) -> None:
        while True:
            await asyncio.sleep(TRY_AGAIN)
            if await self._write(address):
                return

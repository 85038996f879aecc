"""How the window ends the engine when the person quits."""

import asyncio
import logging

from callboard.api.client import EngineClient
from callboard.core.errors import CallboardError
from callboard.system.engine_child import EngineChild
from callboard.system.paths import Paths

log = logging.getLogger(__name__)

QUIT_TIME = 6.0  # seconds; the engine itself gives its servers five
LOOK_AGAIN = 0.05  # seconds


async def stop_engine(client: EngineClient | None, child: EngineChild, paths: Paths) -> bool:
    """Stop the engine, ours or another's, and wait until it is gone; False if it was not within :data:`QUIT_TIME`.

    ``client`` is the connection, if there is one; an engine that is still starting is sent SIGTERM, which it takes as
    the same wish.
    """
    try:
        async with asyncio.timeout(QUIT_TIME):
            await _ask(client, child, paths)
            while await asyncio.to_thread(child.is_alive):  # noqa: ASYNC110  a process has no event
                await asyncio.sleep(LOOK_AGAIN)
    except TimeoutError:
        log.warning("The engine did not end within %g s", QUIT_TIME)
        child.terminate()
        return False
    child.take_exit()
    return True


async def _ask(client: EngineClient | None, child: EngineChild, paths: Paths) -> None:
    try:
        if client is not None:
            await client.quit()
            return
        async with EngineClient.from_file(paths.engine_file) as new:
            await new.quit()
    except CallboardError as error:
        log.info("The engine could not be asked to quit: %s", error.message)
        child.terminate()

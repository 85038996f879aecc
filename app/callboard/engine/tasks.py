"""Starting background tasks so that none is lost and none fails in silence."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

_logger = logging.getLogger(__name__)
_T = TypeVar("_T")

# The loop itself holds tasks weakly; this keeps a task from being collected while it waits.
_running: set[asyncio.Task[Any]] = set()


def spawn(coro: Coroutine[Any, Any, _T], name: str) -> asyncio.Task[_T]:
    """Run ``coro`` in the background on the running loop.

    An exception that leaves it is logged as an error with the task's name, once; the caller may await or cancel
    the task as well. The task ends with its coroutine: whoever spawned it must see to that before the loop closes.
    """
    task = asyncio.get_running_loop().create_task(coro, name=name)
    _running.add(task)
    task.add_done_callback(_finished)
    return task


def _finished(task: asyncio.Task[Any]) -> None:
    _running.discard(task)
    if task.cancelled():
        return
    error = task.exception()
    if error is not None:
        _logger.error("The task %s failed", task.get_name(), exc_info=error)


async def cancel_and_wait(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until each has ended, whatever it ended with."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.gather(*tasks, return_exceptions=True)

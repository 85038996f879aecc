"""Background work of the window: every task has an owner, a name and a way to tell that it failed."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from PySide6.QtCore import QCoreApplication, QObject, Signal

from callboard.core.errors import CallboardError

log = logging.getLogger(__name__)


class Tasks(QObject):
    """Keeps the window's tasks alive, and their failures visible.

    Belongs to the window's loop. A bare ``asyncio.create_task`` may be collected while it runs and swallows what it
    raises; here a :class:`CallboardError` is shown through :attr:`failed`, anything else is logged with its trace
    and shown as ``internal``.
    """

    failed = Signal(object)  # CallboardError

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run ``work`` as a task called ``name``. Call it from the loop's thread, while the loop runs."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        running = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            return
        if isinstance(error, CallboardError):
            log.info("%s: %s (%s)", task.get_name(), error.message, error.code)
            self.failed.emit(error)
            return
        log.error("%s failed", task.get_name(), exc_info=error)
        message = QCoreApplication.translate("Tasks", "Something went wrong in the window: {error}.")
        self.failed.emit(CallboardError("internal", message.format(error=type(error).__name__)))

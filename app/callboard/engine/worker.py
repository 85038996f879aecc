"""One thread for work that may block for as long as a person takes to answer a prompt."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
_Job = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Worker:
    """Runs functions one after the other in a thread of its own, started when first needed.

    The thread is a daemon: one that hangs in a system call does not keep the program from ending. Belongs to one loop.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, or what it raises. Cancelling gives up waiting; a function that began runs on."""
        if self._closed:
            raise RuntimeError(f"{self._name} is closed")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((function, future))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        return await future

    def close(self, timeout: float = 0.5) -> None:
        """Take no more work and wait at most ``timeout`` seconds for what runs."""
        self._closed = True
        self._jobs.put(None)
        if self._thread is not None:
            self._thread.join(timeout)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            function, future = job
            if future.cancelled() or self._closed:
                continue
            try:
                result, error = function(), None
            except BaseException as raised:  # noqa: BLE001  handed to whoever waits
                result, error = None, raised
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                future.get_loop().call_soon_threadsafe(_deliver, future, result, error)
            del function, future, job, result, error  # values must not live on in this frame


def _deliver(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)

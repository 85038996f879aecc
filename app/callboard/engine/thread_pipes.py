"""The pipes of :mod:`callboard.engine.pipes` for systems on which pipes cannot be watched: a thread for each.

Made for Windows, where it has not been run yet; the tests run it elsewhere.
"""

import asyncio
import contextlib
import logging
import os
import queue
import threading
from collections.abc import Callable

_READ = 256 * 1024
_AHEAD = 4  # chunks that a reader may be ahead of the loop
_HIGH_WATER = 256 * 1024

_logger = logging.getLogger(__name__)


def enlarge(descriptor: int, size: int) -> None:
    """Nothing: the size of a pipe is settled when it is made."""


class OutputPipe:
    """See :class:`callboard.engine.pipes.OutputPipe`. After :meth:`close` the thread lasts until the child ends."""

    def __init__(
        self,
        descriptor: int,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        *,
        burst: bool = False,
    ) -> None:
        """``burst`` makes no difference here."""
        self._loop = asyncio.get_running_loop()
        self._on_data = on_data
        self._on_end = on_end
        self._ahead = threading.Semaphore(_AHEAD)
        self._held: list[bytes] | None = None  # what came while reading was paused
        self.ended = False
        self._at_end = False
        threading.Thread(target=self._run, args=(descriptor,), name="read a pipe", daemon=True).start()

    def pause(self) -> None:
        """Stop handing on. Idempotent."""
        if self._held is None:
            self._held = []

    def resume(self) -> None:
        """Hand on again. Idempotent."""
        held, self._held = self._held or [], None
        for data in held:
            self._deliver(data)
        if self._at_end:
            self.close()

    def close(self) -> None:
        """Hand on nothing any more; ``on_end`` is called unless the end was reached before. Idempotent."""
        if not self.ended:
            self.ended = True
            self._ahead.release()
            self._on_end()

    def _run(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb", buffering=0) as file, contextlib.suppress(RuntimeError):  # the loop has closed
            while not self.ended:
                try:
                    data = file.read(_READ)
                except OSError:
                    data = b""
                if not data:
                    self._loop.call_soon_threadsafe(self._reached_end)
                    return
                self._loop.call_soon_threadsafe(self._deliver, data)
                self._ahead.acquire()

    def _deliver(self, data: bytes) -> None:
        if self._held is not None:
            self._held.append(data)
            return
        self._ahead.release()
        if self.ended:
            return
        try:
            self._on_data(data)
        except Exception:
            _logger.exception("Output of a child process could not be handled")

    def _reached_end(self) -> None:
        if self._held is None:
            self.close()
        else:
            self._at_end = True


class InputPipe:
    """See :class:`callboard.engine.pipes.InputPipe`."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_broken = on_broken
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiters: list[asyncio.Future[None]] = []
        self._finished = False
        self.closed = False
        self.pending = 0
        threading.Thread(target=self._run, args=(descriptor,), name="write a pipe", daemon=True).start()

    def write(self, data: bytes) -> None:
        """Write all of ``data`` in order; silently dropped when the child has closed its end."""
        if not self._finished and not self.closed:
            self.pending += len(data)
            self._queue.put(data)

    async def drain(self) -> None:
        """Return once less than 256 KiB is pending, or the pipe is closed."""
        while self.pending > _HIGH_WATER:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def finish(self) -> None:
        """Close once everything pending was taken. Idempotent."""
        if not self._finished:
            self._finished = True
            self._queue.put(None)

    def close(self) -> None:
        """Take nothing any more. Idempotent."""
        self.finish()
        self.closed = True
        self.pending = 0
        self._wake()

    def _run(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "wb", buffering=0) as file, contextlib.suppress(RuntimeError):  # the loop has closed
            while (data := self._queue.get()) is not None and not self.closed:
                rest = memoryview(data)
                try:
                    while rest:
                        rest = rest[file.write(rest) :]
                except OSError:
                    self._loop.call_soon_threadsafe(self._broken)
                    return
                self._loop.call_soon_threadsafe(self._written, len(data))

    def _written(self, count: int) -> None:
        self.pending = max(0, self.pending - count)
        if self.pending <= _HIGH_WATER:
            self._wake()

    def _broken(self) -> None:
        if not self.closed:
            self.close()
            self._on_broken()

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

"""The three pipes between the engine and a child process, on any event loop that can watch a file descriptor."""

import asyncio
import contextlib
import logging
import os
import sys
from collections import deque
from collections.abc import Callable

if sys.platform == "linux":
    import fcntl
    import termios

_logger = logging.getLogger(__name__)

_SMALL_READ = 64 * 1024
_LARGE_READ = 1024 * 1024
_HIGH_WATER = 256 * 1024
_LOW_WATER = 64 * 1024


def enlarge(descriptor: int, size: int) -> None:
    """Ask the kernel for a larger pipe (Linux; elsewhere, or when refused, the pipe stays as it is)."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, size)


def _unread(descriptor: int) -> int:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            return int.from_bytes(fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)), sys.byteorder)
    return 0


class OutputPipe:
    """Reads what a child writes and hands it on in raw chunks, as they come.

    Owns the descriptor. ``on_data`` and ``on_end`` are called on the loop; an exception of ``on_data`` is logged and
    reading goes on. ``burst``: read on at once when a chunk was full (large results), at most 1 MiB more each time, and
    expect more large ones until a chunk is small again.
    """

    def __init__(
        self,
        descriptor: int,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        *,
        burst: bool = False,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_data = on_data
        self._on_end = on_end
        self._burst = burst
        # Small first: where memory of such a size is mapped anew each time, a buffer of a megabyte for each short line
        # costs fifteen times as much as the read itself.
        self._size = _SMALL_READ
        self._paused = False
        self.ended = False
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._readable)

    def pause(self) -> None:
        """Stop reading: the child blocks once the pipe is full. Idempotent."""
        if not self._paused and not self.ended:
            self._paused = True
            self._loop.remove_reader(self._descriptor)

    def resume(self) -> None:
        """Read again. Idempotent."""
        if self._paused and not self.ended:
            self._paused = False
            self._loop.add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        """Stop for good; ``on_end`` is called unless the end was reached before. Idempotent."""
        if self.ended:
            return
        self.ended = True
        if not self._paused:
            self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._on_end()

    def _readable(self) -> None:
        size = self._size
        count = self._read(size)
        if self._burst:
            self._size = _LARGE_READ if count >= _SMALL_READ else _SMALL_READ
            if count == size and not self._paused and not self.ended:
                self._read(_LARGE_READ)

    def _read(self, size: int) -> int:
        try:
            data = os.read(self._descriptor, size)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
            return 0
        try:
            self._on_data(data)
        except Exception:
            _logger.exception("Output of a child process could not be handled")
        return len(data)


class InputPipe:
    """Writes to a child without ever waiting; what the pipe does not take is kept. Owns the descriptor.

    What is written first in a turn of the loop leaves at once, the rest of it together at the end: a child that is sent
    many requests at once is not woken up for each. ``on_broken`` is called, at most once, when the child has closed
    its end.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._pending = bytearray()
        self._holding = False  # something was written in this turn, or the pipe is full
        self._full = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closing = False
        self.closed = False
        self.left = 0  # bytes that the child had not read when this was closed, as far as the system tells
        os.set_blocking(descriptor, False)
        # Nothing can be read here: it is "readable" when nobody is left at the other end.
        self._loop.add_reader(descriptor, self._break)

    @property
    def pending(self) -> int:
        """Bytes that were written here and not yet taken by the pipe."""
        return len(self._pending)

    def write(self, data: bytes) -> None:
        """Write all of ``data`` in order; silently dropped when the child has closed its end."""
        if self._closing or self.closed:
            return
        if self._holding:
            self._pending += data
            return
        self._holding = True
        self._pending += memoryview(data)[self._try_write(data) :]
        self._loop.call_soon(self._flush)

    async def drain(self) -> None:
        """Return once less than 256 KiB is pending, or the pipe is closed."""
        while len(self._pending) > _HIGH_WATER:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def finish(self) -> None:
        """Close once everything pending was taken. Idempotent."""
        self._closing = True
        if not self._pending:
            self.close()

    def close(self) -> None:
        """Close now; what is pending is lost. Idempotent."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._descriptor)
        self._watch(False)
        self.left = len(self._pending) + _unread(self._descriptor)
        self._pending.clear()
        os.close(self._descriptor)
        self._wake()

    def _flush(self) -> None:
        if self._pending:
            del self._pending[: self._try_write(self._pending)]
        if self.closed:
            return
        if not self._pending:
            self._holding = False
            self._watch(False)
            if self._closing:
                self.close()
        else:
            self._watch(True)
        if len(self._pending) <= _LOW_WATER:
            self._wake()

    def _watch(self, full: bool) -> None:
        """Flush as soon as a full pipe takes more."""
        if full and not self._full:
            self._loop.add_writer(self._descriptor, self._flush)
        elif self._full and not full:
            self._loop.remove_writer(self._descriptor)
        self._full = full

    def _break(self) -> None:
        if not self.closed:
            self.close()
            self._on_broken()

    def _try_write(self, data: bytes | bytearray) -> int:
        try:
            return os.write(self._descriptor, data)
        except BlockingIOError:
            return 0
        except OSError:  # the child has closed its end: nothing of this will arrive
            self._break()
            return len(data)

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)

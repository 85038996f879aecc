"""Standard input and output in threads of their own: they may be pipes, files or terminals, on every system."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from queue import SimpleQueue
from typing import Final

MAX_LINE: Final = 64 * 1024 * 1024
"""Bytes of one message; longer ones are told as ``None``."""
_CHUNK: Final = 1024 * 1024
_BACKLOG: Final = 16 * 1024 * 1024  # bytes that wait for a slow reader before we read no more for it
_READ_AHEAD: Final = 16  # chunks


class Input:
    """Lines of a file descriptor. Read by one task of the loop on which :meth:`lines` is called."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._queue: asyncio.Queue[list[bytes | None] | None] = asyncio.Queue(_READ_AHEAD)

    async def lines(self) -> AsyncIterator[bytes | None]:
        """Lines without their end, empty ones left out; None for one that is too long. Ends at the end of input."""
        loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(loop,), name="callboard-stdin", daemon=True).start()
        while (lines := await self._queue.get()) is not None:
            for line in lines:
                yield line

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        rest: list[bytes] = []
        held = 0
        with contextlib.suppress(OSError, RuntimeError):  # the loop is closed: nobody reads any more
            while chunk := os.read(self._descriptor, _CHUNK):
                *whole, tail = chunk.split(b"\n")
                lines: list[bytes | None] = []
                for line in whole:
                    rest.append(line)
                    lines.append(b"".join(rest) if held + len(line) <= MAX_LINE else None)
                    rest, held = [], 0
                held += len(tail)
                if held <= MAX_LINE:
                    rest.append(tail)
                else:
                    rest.clear()
                self._hand_over([line for line in lines if line is None or line.strip()], loop)
            if rest and held <= MAX_LINE and (last := b"".join(rest)).strip():
                self._hand_over([last], loop)
        with contextlib.suppress(RuntimeError):
            self._hand_over(None, loop)

    def _hand_over(self, lines: list[bytes | None] | None, loop: asyncio.AbstractEventLoop) -> None:
        if lines is None or lines:
            putting = self._queue.put(lines)
            try:
                asyncio.run_coroutine_threadsafe(putting, loop).result()
            except BaseException:
                putting.close()
                raise


class Output:
    """Whole lines to a file descriptor, in the order of :meth:`write`. Used by the loop it was made on."""

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        """``on_broken`` is called on the loop when the reader has gone."""
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._done = asyncio.Event()
        self._thread = threading.Thread(target=self._write, name="callboard-stdout", daemon=True)
        self._thread.start()

    async def write(self, line: bytes) -> None:
        """Write a line; returns at once unless the reader is far behind."""
        self._waiting += len(line)
        self._queue.put(line)
        if self._waiting > _BACKLOG:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        """Wait until all is written; a reader that reads no more is given up after five seconds."""
        self._queue.put(None)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5.0):
                await self._done.wait()

    def _write(self) -> None:
        while (line := self._queue.get()) is not None:
            try:
                _write_all(self._descriptor, line + b"\n")
            except OSError:
                self._tell(self._broken)
                break
            self._tell(self._written, len(line))
        self._tell(self._done.set)

    def _tell(self, hear: Callable[..., None], *args: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(hear, *args)

    def _written(self, count: int) -> None:
        self._waiting -= count
        if self._waiting <= _BACKLOG // 2:
            self._room.set()

    def _broken(self) -> None:
        self._waiting = 0
        self._room.set()
        self._on_broken()


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]

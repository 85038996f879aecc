"""Waiting for a file to change without waking up when it does not."""

import asyncio
import ctypes
import ctypes.util
import logging
import os
import sys
from collections.abc import Iterable
from pathlib import Path

log = logging.getLogger(__name__)

SETTLE = 0.1  # seconds without another event, so that a writer has finished
POLL = 2.0  # where the system cannot tell
SAFETY = 15.0  # also where it can: network file systems tell nothing of other machines

_IN_NONBLOCK = os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0
_IN_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
_EVENTS = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800  # modify, attrib, close, move, create, delete


class FolderWatch:
    """Tells that something happened in one of some folders. Used by one task on one loop; :meth:`close` it.

    On Linux by inotify, elsewhere by waiting for a fixed time.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._fd = _inotify(folders) if sys.platform == "linux" else -1
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._drain)

    async def wait(self) -> None:
        """Return when something may have changed, and no more happened for a moment."""
        try:
            async with asyncio.timeout(SAFETY if self._fd >= 0 else POLL):
                await self._event.wait()
        except TimeoutError:
            return
        while self._event.is_set():
            self._event.clear()
            await asyncio.sleep(SETTLE)

    def close(self) -> None:
        """Stop watching."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _drain(self) -> None:
        try:
            while os.read(self._fd, 65536):
                pass
        except BlockingIOError:
            pass
        self._event.set()


def _inotify(folders: Iterable[Path]) -> int:
    """A non-blocking inotify descriptor for ``folders``, or -1."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = int(libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC))
        if fd < 0:
            raise OSError(ctypes.get_errno(), "inotify_init1")
        for folder in folders:
            if libc.inotify_add_watch(fd, os.fsencode(folder), _EVENTS) < 0:
                os.close(fd)
                raise OSError(ctypes.get_errno(), "inotify_add_watch")
    except (OSError, AttributeError) as error:
        log.info("The system does not tell about changed files (%s); looking every %s s.", error, POLL)
        return -1
    return fd

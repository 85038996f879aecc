"""Learning that a child process has ended, without a thread for each where the system allows."""

import asyncio
import contextlib
import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable


class ExitWatch:
    """Calls back, once, on the running loop, when a child of ours has ended; leaves it to be waited for.

    Nothing is called after :meth:`close`.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", on_exit: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_exit = on_exit
        self._descriptor: int | None = None
        self._closed = False
        try:
            self._descriptor = _exit_descriptor(process.pid)
        except (OSError, AttributeError):
            name = f"wait for {process.pid}"
            threading.Thread(target=self._wait, args=(process,), name=name, daemon=True).start()
        else:
            self._loop.add_reader(self._descriptor, self._ended)

    def close(self) -> None:
        """Stop watching. Idempotent."""
        self._closed = True
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None

    def _ended(self) -> None:
        if not self._closed:
            self.close()
            self._on_exit()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        if sys.platform == "win32":
            process.wait()  # its pid stays taken while Popen holds the process
        else:
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            self._loop.call_soon_threadsafe(self._ended)


def _exit_descriptor(pid: int) -> int:
    """A descriptor that becomes readable when the process ends."""
    if sys.platform == "darwin":
        queue = select.kqueue()
        queue.control([select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)], 0)
        return os.dup(queue.fileno())
    if sys.platform == "win32":
        raise OSError("there is none on Windows")
    return os.pidfd_open(pid)

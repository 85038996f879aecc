"""Log files of the servers, written by a thread of their own so that a slow or full disk holds nobody up."""

import logging
import queue
import threading
from pathlib import Path

_MAX_FILE = 1024 * 1024
_FILES = 3
_MAX_QUEUED = 4 * 1024 * 1024  # bytes that wait for the disk; what comes on top is not written

_logger = logging.getLogger(__name__)


class LogFiles:
    """One rotated file per server in ``folder``: NAME.log, NAME.log.1, NAME.log.2, of 1 MiB each.

    :meth:`write` never waits and never raises. ``problem`` says why the last write failed, empty if it did not.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problem = ""
        self._queue: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._queued = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def write(self, server: str, text: str) -> None:
        """Append ``text``; lone surrogates in it are replaced."""
        data = text.encode("utf-8", "replace")
        with self._lock:
            if self._queued + len(data) > _MAX_QUEUED:
                return
            self._queued += len(data)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="log writer", daemon=True)
            self._thread.start()
        self._queue.put((server, data))

    def close(self, *, timeout: float = 2.0) -> None:
        """Write what waits and end the thread; gives up after ``timeout`` seconds. Idempotent."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout)
            self._thread = None

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            server, data = item
            with self._lock:
                self._queued -= len(data)
            try:
                self._append(self.folder / f"{server}.log", data)
            except OSError as error:
                if not self.problem:
                    _logger.warning("The log of %s cannot be written: %s", server, error)
                self.problem = error.strerror or str(error)
            else:
                self.problem = ""

    def _append(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab") as file:
            file.write(data)
            size = file.tell()
        if size >= _MAX_FILE:
            for number in range(_FILES - 1, 0, -1):
                older = path.with_name(f"{path.name}.{number}")
                newer = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
                if newer.exists():
                    newer.replace(older)

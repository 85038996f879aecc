"""A lock file that the system releases when its holder ends, however it ends."""

import os
from pathlib import Path
from types import TracebackType
from typing import Self


class FileLock:
    """Held from ``__enter__`` to ``__exit__`` if :attr:`held` says so; never waits."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self.held = False

    def __enter__(self) -> Self:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        self.held = _try_lock(self._descriptor)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        self.held = False


if os.name == "nt":  # pragma: no cover  (not run on this system)
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

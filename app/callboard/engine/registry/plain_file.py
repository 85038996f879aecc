"""Reading files that somebody else put there. Everything here runs in a worker thread."""

import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain_file(path: Path) -> BinaryIO:
    """Open a file for reading. Raises OSError, also for what is no plain file; never waits for the end of a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is not a plain file", str(path))
    return os.fdopen(descriptor, "rb")

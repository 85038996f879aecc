"""How the process deals with memory that it has freed."""

import contextlib
import ctypes
import sys
from typing import Final

_MMAP_THRESHOLD: Final = -3  # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of <malloc.h>
_TRIM_THRESHOLD: Final = -1
MIB: Final = 1024 * 1024


def keep_freed_memory(*, block: int = 4 * MIB, kept: int = 8 * MIB) -> None:
    """Use freed blocks of up to ``block`` bytes again, and give back to the system only what is beyond ``kept``.

    By default glibc maps each block of more than 128 KiB anew and gives freed ones back at once: clearing the pages of
    a buffer for each message costs more than all that is done with it. Elsewhere than with glibc this does nothing.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, block)
            mallopt(_TRIM_THRESHOLD, kept)

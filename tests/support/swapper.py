"""Exchanges two names without a pause until its standard input ends: what an attacker does who waits for a moment
between the check of a path and its use. The exchange is one step, so that both names are always there.
"""

import ctypes
import os
import sys
import threading

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def main() -> None:
    """The arguments are pairs of paths, to be exchanged by turns."""
    libc = ctypes.CDLL(None, use_errno=True)
    names = [os.fsencode(name) for name in sys.argv[1:]]
    pairs = list(zip(names[::2], names[1::2], strict=True))
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    print("begun", flush=True)
    while not ended.is_set():
        for one, other in pairs:
            if libc.renameat2(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()

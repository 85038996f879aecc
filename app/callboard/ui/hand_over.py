"""How a second start reaches the first window. Imports no Qt, so that it costs next to nothing."""

import hashlib
import json
import os
import socket
import sys
from pathlib import Path

from callboard.system.paths import Paths

REPLY = b"ok\n"
REPLY_TIME = 3.0  # seconds in which a running window answers, however busy
LONGEST_PATH = 100  # bytes that a socket's path may have on every system


def hand_over(paths: Paths, *, activation: str = "", bundle: str = "") -> bool:
    """Ask a running window to show itself, and to open the file of a bundle if there is one; False if none answers.

    ``activation`` is the desktop's token that lets a window come to the front (XDG_ACTIVATION_TOKEN).
    """
    message = json.dumps({"v": 1, "show": True, "activation": activation, "bundle": bundle}).encode() + b"\n"
    try:
        return _ask(socket_address(paths), message) == REPLY
    except OSError:
        return False


def socket_address(paths: Paths) -> str:
    """Where the first window listens: the path of a socket (POSIX) or the name of a pipe (Windows)."""
    path = str(paths.window_socket)
    digest = hashlib.sha256(path.encode()).hexdigest()[:16]
    if os.name != "posix":
        return f"callboard-{digest}"
    if len(os.fsencode(path)) <= LONGEST_PATH:
        return path
    import tempfile  # ten milliseconds, and hardly ever needed

    return str(Path(tempfile.gettempdir()) / f"callboard-{os.getuid()}-{digest}.sock")


def _ask(address: str, message: bytes) -> bytes:
    if sys.platform == "win32":
        with Path(rf"\\.\pipe\{address}").open("r+b", buffering=0) as pipe:
            pipe.write(message)
            return pipe.read(len(REPLY)) or b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(REPLY_TIME)
        connection.connect(address)
        connection.sendall(message)
        return connection.recv(len(REPLY))

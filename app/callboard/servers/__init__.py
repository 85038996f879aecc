"""The MCP servers that ship with Callboard. Each is a program of its own: `python -m callboard.servers.NAME`."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing_fastmcp() -> Iterator[None]:
    """Wrap the first import of fastmcp in this: it keeps the import from having effects, and makes it quicker.

    Left to itself fastmcp reads a `.env` file of the working folder, writes its log to stderr through handlers of its
    own, keeps a folder in the home, and prints a banner with a look for updates. A shipped server does only its work,
    whatever settings for fastmcp the person has.
    """
    os.environ["FASTMCP_ENV_FILE"] = os.devnull
    os.environ["FASTMCP_LOG_ENABLED"] = "false"
    os.environ["FASTMCP_SHOW_SERVER_BANNER"] = "false"
    os.environ["FASTMCP_CHECK_FOR_UPDATES"] = "off"
    # The many small objects of the import are all there to stay; looking through them again and again takes a tenth
    # of the time to start.
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

"""The stdio bridge: MCP on stdin and stdout on one side, the gateway's HTTP endpoint on the other.

Messages pass as they are, byte for byte, in both eras of the protocol.
"""

import asyncio
import contextlib
import os
import signal
import sys

from callboard.connect.bridge import Bridge
from callboard.connect.endpoint import Endpoint, FixedEndpoint, LocalEndpoint
from callboard.connect.stdio import Input, Output
from callboard.core.errors import CallboardError
from callboard.system.paths import find_paths


def main(*, server: str | None, client: str, url: str | None, token_variable: str | None) -> int:
    """Bridge until stdin ends. Exit code 0, or 2 for a wrong address; what goes wrong later is told to the client."""
    try:
        if url:
            endpoint: Endpoint = FixedEndpoint(url, os.environ.get(token_variable or "", ""))
        else:
            endpoint = LocalEndpoint(find_paths(), client, server or "")
        return asyncio.run(_bridge(endpoint))
    except CallboardError as error:
        sys.stderr.write(f"callboard: {error.message}\n  {error.fix}\n")
        return 2
    except KeyboardInterrupt:
        return 130


async def _bridge(endpoint: Endpoint) -> int:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows
            loop.add_signal_handler(number, ended.set)
    output = Output(sys.stdout.fileno(), ended.set)
    source = Input(sys.stdin.fileno())
    async with Bridge(endpoint, output) as bridge:
        await bridge.serve(source, ended)
    await output.close()
    return 0

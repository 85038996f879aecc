"""The listening socket and the HTTP server on it."""

import asyncio
import contextlib
import errno
import logging
import socket
from typing import Any, Final

import uvicorn
from uvicorn.config import Config

from callboard.core.errors import CallboardError
from callboard.engine.gateway.address import LOOPBACK_ADDRESS
from callboard.engine.gateway.protocol import GatewayProtocol
from callboard.engine.tasks import cancel_and_wait

log = logging.getLogger(__name__)

TRIES: Final = 100  # ports after the wanted one
BACKLOG: Final = 2048
GOODBYE_SECONDS: Final = 2


def listen(wanted: int, host: str = LOOPBACK_ADDRESS) -> socket.socket:
    """A listening socket on the wanted port of an address of this computer, or on the next free one; port 0 takes any.

    Raises ``port-in-use`` when none of the next hundred ports is free, and OSError for an address that is not there.
    The protocol number is named because asyncio sets TCP_NODELAY only on sockets that carry it: else small answers wait
    44 ms.
    """
    for port in range(wanted, min(wanted + TRIES, 65536)) if wanted else (0,):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # :: means the older addresses too
            if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            continue
        sock.setblocking(False)
        return sock
    raise CallboardError("port-in-use", f"None of the ports {wanted} to {wanted + TRIES - 1} is free.")


class GatewayServer:
    """Serves an ASGI application on a socket until :meth:`stop`. Engine loop only.

    uvicorn's start and end are called one by one: its main loop would wake up ten times a second, and its signal
    handlers would take the engine's place.
    """

    def __init__(self, app: Any, sock: socket.socket) -> None:
        config = Config(
            app,
            loop="none",
            http=GatewayProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="warning",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=3600,
            timeout_graceful_shutdown=GOODBYE_SECONDS,
        )
        self._server = uvicorn.Server(config)
        self._socket = sock

    async def start(self) -> None:
        """Begin to serve; returns when connections are accepted."""
        config = self._server.config
        config.load()
        self._server.lifespan = config.lifespan_class(config)
        await self._server.startup(sockets=[self._socket])

    async def stop(self) -> None:
        """Close the socket, let answers under way end for two seconds, then close what is left."""
        server, state = self._server, self._server.server_state
        server.should_exit = True
        for listener in server.servers:
            listener.close()
        self._socket.close()
        for connection in list(state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                while state.connections or state.tasks:  # noqa: ASYNC110  uvicorn tells nobody
                    await asyncio.sleep(0.005)
        await cancel_and_wait(*state.tasks)
        for connection in list(state.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # in which connections hear of their end

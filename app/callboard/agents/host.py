"""The program that serves an agent on standard input and output: ``python -m callboard.agents.host``.

Its settings are in the environment variable ``CALLBOARD_AGENT`` (:mod:`callboard.agents.settings`). The agent's worker
starts first, so that it loads the agent while this process imports FastMCP.
"""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from callboard.agents.exposing import ExposeError
from callboard.agents.link import AgentError
from callboard.agents.service import Service
from callboard.agents.settings import AgentSettings, SettingsError, read_settings
from callboard.agents.stores import StoreError

if TYPE_CHECKING:
    from fastmcp import FastMCP

Serve = Callable[["FastMCP[Any]", Service], Awaitable[None]]


def main() -> int:
    """Serve until the client closes the input; the exit code is 1 if the agent cannot be served."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s: %(message)s")
    quiet_libraries()
    try:
        settings = read_settings(os.environ)
        asyncio.run(serve_with(settings, _serve_stdio))
    except (AgentError, ExposeError, SettingsError, StoreError) as error:
        print(f"callboard: {sentence(error)}", file=sys.stderr)  # noqa: T201  it is the program's last word
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


async def serve_with(settings: AgentSettings, serve: Serve) -> None:
    """Load the agents, make their server, and serve it. Raises what loading raises."""
    service = Service(settings)
    starting = asyncio.get_running_loop().create_task(service.start())
    try:
        front = await asyncio.to_thread(_import_front)
        await starting
        server = front.make_server(service, owns_service=False)
        await serve(server, service)
    finally:
        if not starting.done():
            starting.cancel()
            await asyncio.wait([starting])
        await service.close()


def quiet_libraries() -> None:
    """Only warnings of the libraries beneath: they tell each request."""
    for name in ("mcp", "fastmcp", "uvicorn", "httpx", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)


def sentence(error: Exception) -> str:
    """An error as a sentence. One that begins with the name of a file or a setting keeps it as it is."""
    text = str(error).rstrip(".")
    word = text.partition(" ")[0]
    begin = text[:1].upper() if word.isalpha() else text[:1]
    return begin + text[1:] + ("" if text.endswith("?") else ".")


async def _serve_stdio(server: "FastMCP[Any]", service: Service) -> None:
    await server.run_stdio_async(show_banner=False)


def _import_front() -> Any:
    from callboard.agents import front

    return front


if __name__ == "__main__":
    sys.exit(main())

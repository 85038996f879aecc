"""A real window process for tests of the desktop: `callboard run` with a home of its own, and what one sees of it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from callboard.api.client import EngineClient
from callboard.api.schema import ServerView
from callboard.core.errors import CallboardError
from callboard.system.engine_file import read_engine_file
from callboard.system.paths import Paths
from tests.support.processes import is_running
from tests.support.tray_host import wait_for

FIXTURE = [sys.executable, str(Path(__file__).parent / "servers" / "mcp_fixture.py"), "--era", "legacy"]
START_SECONDS = 30.0
STOP_SECONDS = 20.0


class WindowProcess:
    """`callboard run`. Use as an async context manager: at the end window, engine and servers are gone.

    ``servers`` becomes the roster; None leaves the first start to make one.
    """

    def __init__(self, home: Path, servers: dict[str, dict[str, object]] | None = None, *options: str) -> None:
        self.home = home
        self.paths = Paths(home / "config", home / "state", home / "logs", home / "runtime", home / "data")
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        if servers is not None:
            self.paths.create()
            roster = {"version": 1, "gateway": {"port": 0}, "servers": servers}
            self.paths.roster.write_text(yaml.safe_dump(roster, sort_keys=False), encoding="utf-8")

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            await self.wait_for_end()
        await self.end_engine()

    @property
    def pid(self) -> int:
        """The window's process."""
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        """Start it (again, if it has ended)."""
        self.process = start_window(self.home, *self._options)

    def kill(self) -> None:
        """End it the hard way (SIGKILL)."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def wait_for_end(self) -> int:
        """Wait until the window's process has ended; its exit code."""
        assert self.process is not None
        return await asyncio.to_thread(self.process.wait, STOP_SECONDS)

    async def engine_pid(self, *, other_than: int = 0) -> int:
        """The process of the engine, once one answers."""

        async def look() -> int:
            address = read_engine_file(self.paths.engine_file)
            if address is None or address.pid == other_than:
                return 0
            try:
                async with EngineClient(address) as client:
                    return (await client.engine()).pid
            except CallboardError:
                return 0

        return await wait_for(look, "an engine", START_SECONDS)

    async def wait_for_state(self, name: str, *states: str) -> ServerView:
        """A server's view, once the engine says that it is in one of these states."""

        async def look() -> ServerView | None:
            try:
                async with EngineClient.from_file(self.paths.engine_file) as client:
                    view = await client.server(name)
            except CallboardError:
                return None
            return view if view.state in states else None

        view = await wait_for(look, f"{name} being {' or '.join(states)}", START_SECONDS)
        assert view is not None
        return view

    async def is_shown(self) -> bool:
        """Whether a window of the process can be seen on the screen."""
        return bool(await shown_windows(self.pid))

    async def wait_until_shown(self) -> None:
        """Wait until it can be seen."""
        await wait_for(self.is_shown, "the window on the screen", START_SECONDS)

    async def wait_until_hidden(self) -> None:
        """Wait until it cannot be seen."""

        async def look() -> bool:
            return not await self.is_shown()

        await wait_for(look, "no window on the screen", START_SECONDS)

    async def end_engine(self) -> None:
        """Stop the engine, whoever started it, and wait until its process is gone."""
        address = read_engine_file(self.paths.engine_file)
        if address is None or not is_running(address.pid):
            return
        try:
            async with EngineClient(address) as client:
                await client.quit()
        except CallboardError:
            os.kill(address.pid, signal.SIGTERM)
        await wait_until_gone(address.pid)


def start_window(home: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start `callboard run` in this home; the caller waits for its end."""
    return subprocess.Popen(
        [sys.executable, "-m", "callboard", "run", *options],
        env={**os.environ, "CALLBOARD_HOME": str(home), "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"},
        stdin=subprocess.DEVNULL,
    )


async def shown_windows(pid: int) -> list[str]:
    """Ids of the windows of a process that can be seen on the screen."""
    search = await asyncio.create_subprocess_exec(
        "xdotool",
        *("search", "--all", "--onlyvisible", "--pid", str(pid), "--name", "."),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    output, _ = await search.communicate()
    return output.decode().split()


async def wait_until_gone(pid: int) -> None:
    """Wait until a process runs no more."""

    async def look() -> bool:
        return not is_running(pid)

    await wait_for(look, f"the end of process {pid}", STOP_SECONDS)

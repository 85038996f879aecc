"""A real engine process for tests: started with a home of its own, ended by the test."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from callboard.api.client import EngineClient
from callboard.api.schema import CallView, RosterProblem, ServerView
from callboard.core.errors import CallboardError
from callboard.system.engine_file import read_engine_file
from callboard.system.paths import Paths

START_SECONDS = 30.0
STOP_SECONDS = 15.0
FIXTURE = Path(__file__).parent / "servers" / "mcp_fixture.py"

Entry = dict[str, object]


def entry(*command: str, **fields: object) -> Entry:
    """A roster's entry for a server that is started by a command."""
    return {"command": command[0], "args": list(command[1:]), **fields}


def fixture_entry(name: str = "fixture", era: str = "legacy", **fields: object) -> Entry:
    """A roster's entry for the fixture server; its tools stand in servers/mcp_fixture.py."""
    return entry(sys.executable, str(FIXTURE), "--era", era, "--name", name, **fields)


class EngineProcess:
    """`callboard engine` in a folder of its own. Use as an async context manager.

    ``client`` belongs to the loop of the test. The process gets a free port and no keyring unless ``environment`` says
    otherwise. What it prints goes to ``output``.
    """

    command: Sequence[str] = (sys.executable, "-m", "callboard", "engine")

    def __init__(
        self, home: Path, servers: dict[str, Entry] | None = None, *, environment: dict[str, str] | None = None
    ) -> None:
        self.home = home
        self.paths = Paths(home / "config", home / "state", home / "logs", home / "runtime", home / "data")
        self.output = home / "engine-output.txt"
        self._environment = environment or {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        if servers is not None:
            self.write_roster(servers)
        self.process: subprocess.Popen[bytes] | None = None
        self.client: EngineClient = None  # type: ignore[assignment]  # set once it runs

    def write_roster(self, servers: dict[str, Entry], **settings: object) -> None:
        """Write the roster's file; a running engine takes it up by itself."""
        self.paths.roster.parent.mkdir(parents=True, exist_ok=True)
        roster = {"version": 1, "gateway": {"port": 0}, **settings, "servers": servers}
        self.paths.roster.write_text(yaml.safe_dump(roster, sort_keys=False), encoding="utf-8")

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the process and wait until it can be reached."""
        if self.client is not None:
            await self.client.close()
        self.process = self.launch()
        async with asyncio.timeout(START_SECONDS):
            while True:
                address = read_engine_file(self.paths.engine_file)
                if address is not None and address.pid == self.process.pid:
                    break
                assert self.process.poll() is None, f"the engine ended at once: {self.output.read_text()}"
                await asyncio.sleep(0.02)
        self.client = EngineClient(address)

    def launch(self) -> "subprocess.Popen[bytes]":
        """One more engine process for this home; the caller waits for its end."""
        with self.output.open("ab") as output:
            return subprocess.Popen(
                self.command,
                env={**os.environ, "CALLBOARD_HOME": str(self.home), **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def pid(self) -> int:
        """The engine's process."""
        assert self.process is not None
        return self.process.pid

    async def token(self, client: str = "script") -> str:
        """A client's token for the gateway."""
        return await self.client.token(client)

    async def stop(self) -> None:
        """Ask the engine to end and wait until it has."""
        process, self.process = self.process, None
        if process is None:
            return
        try:
            await self.client.quit()
        except CallboardError:
            process.terminate()
        await self.client.close()
        try:
            await asyncio.to_thread(process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)
            raise

    def kill(self) -> None:
        """End the process the hard way (SIGKILL); :meth:`start` starts another one."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    async def wait_for_end(self) -> int:
        """Wait until the process has ended by itself or was told to; its exit code."""
        process, self.process = self.process, None
        assert process is not None
        code = await asyncio.to_thread(process.wait, STOP_SECONDS)
        await self.client.close()
        return code

    async def wait_for(self, name: str, *states: str) -> ServerView:
        """The server's view once it is in one of these states."""
        return await self.wait_for_view(name, lambda view: view.state in states)

    async def wait_for_view(self, name: str, condition: Callable[[ServerView], bool]) -> ServerView:
        """The server's view once it is as wanted; while the roster does not have it yet, it is waited for."""
        view = None
        try:
            async with asyncio.timeout(START_SECONDS):
                while True:
                    try:
                        view = await self.client.server(name)
                    except CallboardError as error:
                        if error.code != "server-unknown":
                            raise
                    if view is not None and condition(view):
                        return view
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise AssertionError(f"{name} did not become what was wanted; it is {view}") from error

    async def wait_for_roster_problem(self) -> RosterProblem:
        """Why the roster's file is not in force, once it is not."""
        async with asyncio.timeout(START_SECONDS):
            while (problem := (await self.client.roster()).problem) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return problem

    async def wait_for_good_roster(self) -> None:
        """Wait until the roster's file is in force."""
        async with asyncio.timeout(START_SECONDS):
            while (await self.client.roster()).problem is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def wait_for_call(self, tool: str, status: str = "running") -> CallView:
        """The newest call of this tool in the call log, once it has this status."""
        async with asyncio.timeout(START_SECONDS):
            while not (calls := (await self.client.calls(tool=tool, status=status)).calls):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return calls[-1]

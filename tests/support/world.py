"""A supervisor with real child processes for tests, and the history of what it told."""

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.core.launch import Launch
from callboard.core.roster import AnyEntry, LocalEntry, Roster
from callboard.core.supervision import ServerStatus
from callboard.engine.environment import Environment
from callboard.engine.health import HealthPlan
from callboard.engine.leftovers import Leftovers
from callboard.engine.output import OutputLog
from callboard.engine.relay.envelope import raw_json
from callboard.engine.supervisor import Supervisor
from callboard.engine.upstream.base import Answer, Closed, Params, ServerInfo, Upstream
from callboard.engine.upstream.stdio import StdioUpstream
from tests.support.processes import odd_server, until


class Peer:
    """Takes what a server says outside any request."""

    def __init__(self, noise: Callable[[bytes], None]) -> None:
        self.on_noise = noise

    def on_server_notification(self, method: str, params: Params) -> None:
        """Nothing depends on it."""

    async def on_server_request(self, method: str, params: Params) -> Answer:
        """Servers here ask nothing."""
        return Answer(error=b'{"code":-32601,"message":"no"}')


class DownRemote:
    """A remote server that cannot be reached until ``up`` is set."""

    def __init__(self) -> None:
        self.info = ServerInfo(protocol="2025-11-25", modern=False)
        self.pid = None
        self.closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.pending: dict[int, object] = {}
        self.busy = False
        self.last_heard = time.monotonic()
        self.given_up: float | None = None
        self.failure: CallboardError | None = None
        self.pinged: Callable[[], None] = lambda: None

    async def open(self, launch: Launch) -> None:
        """Connect."""
        if self.failure is not None:
            raise self.failure

    def send(self, method: str, params: Params, listener: object) -> Any:
        """Never called here."""
        raise NotImplementedError

    async def request(self, method: str, params: Params | None = None, *, limit: float = 30.0) -> Answer:
        """Never called here."""
        raise NotImplementedError

    def notify(self, method: str, params: Params) -> None:
        """Never called here."""

    async def ping(self, *, seconds: float = 10.0) -> None:
        """Answers at once while it can be reached."""
        self.pinged()
        if self.failure is not None:
            raise self.failure
        self.last_heard = time.monotonic()

    async def close(self) -> None:
        """End."""
        if not self.closed.done():
            self.closed.set_result(Closed("closed"))


class World:
    """A supervisor with real processes, and the history of what it told."""

    def __init__(self, folder: Path, *, health: HealthPlan = HealthPlan()) -> None:  # noqa: B008  frozen
        self.folder = folder
        self.statuses: dict[str, list[ServerStatus]] = {}
        self.upstreams: dict[str, list[Upstream | None]] = {}
        self.secrets: dict[str, str] = {}
        self.secret_error: CallboardError | None = None
        self.remote_failure: CallboardError | None = None
        self.remotes: list[DownRemote] = []
        self.output = OutputLog(folder / "logs", lambda server, lines: None)
        self.leftovers = Leftovers(folder / "state" / "processes.json")
        self.environment = Environment(os.environ, folder)
        self.supervisor = Supervisor(
            self.connect,
            self.output,
            self.lookup,
            self.environment,
            self.on_change,
            lambda name, upstream: self.upstreams.setdefault(name, []).append(upstream),
            leftovers=self.leftovers,
            health=health,
        )

    def connect(self, name: str, entry: AnyEntry, launch: Launch, key: str) -> Upstream:
        """A connection as the engine makes it."""
        if entry.kind == "remote":
            remote = DownRemote()
            remote.failure = self.remote_failure
            self.remotes.append(remote)
            return remote

        def on_noise(line: bytes) -> None:
            self.output.append(name, "stdout", line)
            self.supervisor.degraded(name, "stdout-noise", "prints on stdout")

        return StdioUpstream(
            Peer(on_noise),
            environment=self.environment.variables,
            on_stderr=lambda data: self.output.append(name, "stderr", data),
            modern=False,
        )

    async def lookup(self, names: frozenset[str]) -> Mapping[str, str]:
        """The secrets that are there."""
        if self.secret_error is not None:
            raise self.secret_error
        return {name: self.secrets[name] for name in names if name in self.secrets}

    def on_change(self, name: str) -> None:
        """Keeps the status."""
        self.statuses.setdefault(name, []).append(self.supervisor.status(name))

    def apply(self, **entries: AnyEntry) -> None:
        """Take a roster of these entries."""
        self.supervisor.apply(Roster(servers=dict(entries)))

    def status(self, name: str = "odd") -> ServerStatus:
        """The status now."""
        return self.supervisor.status(name)

    def history(self, name: str = "odd") -> list[State]:
        """The states so far, each change once."""
        states = [status.state for status in self.statuses.get(name, [])]
        return [state for number, state in enumerate(states) if number == 0 or state is not states[number - 1]]

    async def reach(self, *states: State, name: str = "odd", seconds: float = 60.0) -> ServerStatus:
        """Wait for one of the states; it is no other failure meanwhile."""
        await until(lambda: self.status(name).state in states, seconds=seconds)
        return self.status(name)

    def marks(self, name: str = "odd") -> list[str]:
        """The separators in the server's log."""
        return [line.text for line in self.output.page(name, 0, 9999).lines if line.stream == "mark"]


def odd(*options: str | Path, **fields: Any) -> LocalEntry:
    """An entry for the misbehaving server."""
    command, *args = odd_server(*options)
    return LocalEntry(command=command, args=args, **fields)


async def call(upstream: Upstream, tool: str, **arguments: Any) -> Answer:
    """Call a tool and return its answer."""
    return await upstream.request("tools/call", {"name": raw_json(tool), "arguments": raw_json(arguments)})

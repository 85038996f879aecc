"""All servers of the roster, each in the state that it should be in."""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from callboard.core import supervision
from callboard.core.errors import CallboardError, fix_for
from callboard.core.health import State
from callboard.core.launch import Launch
from callboard.core.references import names_in
from callboard.core.roster import AnyEntry, RemoteEntry, Roster
from callboard.core.supervision import ServerStatus
from callboard.engine import tasks
from callboard.engine.connector import Connect, SecretsLookup, Services, Unlock
from callboard.engine.containers import Containers
from callboard.engine.environment import Environment
from callboard.engine.health import HealthPlan
from callboard.engine.leftovers import Leftovers
from callboard.engine.output import OutputLog
from callboard.engine.runner import Runner
from callboard.engine.upstream.base import Upstream

_STARTS_PER_CORE = 2
_CLOSE_LIMIT = 5.0  # seconds
_SETTLE = 1.0  # seconds in which several signs of an interruption are one
_STAGGER = 0.25  # seconds between two remote servers that are looked at after an interruption

_logger = logging.getLogger(__name__)


class Supervisor:
    """Owns every server's connection and process. Engine loop only; made on it, ended with :meth:`close`.

    Actions return at once; what becomes of them is told by ``on_change(name)``, called whenever the status of a server
    changed. ``on_upstream(name, upstream)`` is called when a connection is ready, and with None when it is no more.
    Both are called synchronously and must not raise. ``connect`` makes a connection without opening it;
    ``secrets_lookup`` gives the values of secrets by name, leaving out those that have none.
    """

    def __init__(
        self,
        connect: Connect,
        output: OutputLog,
        secrets_lookup: SecretsLookup,
        environment: Environment,
        on_change: Callable[[str], None],
        on_upstream: Callable[[str, Upstream | None], None],
        *,
        leftovers: Leftovers | None = None,
        containers: Containers | None = None,
        python: str = sys.executable,
        mask: Callable[[str], str] = str,
        unlock: Unlock | None = None,
        health: HealthPlan = HealthPlan(),  # noqa: B008  frozen
    ) -> None:
        """``python`` is what ``${python}`` in the roster stands for; ``mask`` takes secrets out of a reason."""
        self._services = Services(
            connect=connect,
            output=output,
            secrets_lookup=secrets_lookup,
            environment=environment,
            leftovers=leftovers,
            containers=containers,
            on_change=self._tell,
            on_upstream=on_upstream,
            slots=asyncio.Semaphore(_STARTS_PER_CORE * (os.cpu_count() or 1)),
            python=python,
            mask=mask,
            unlock=unlock,
            health=health,
        )
        self._on_change = on_change
        self._runners: dict[str, Runner] = {}
        self._ending: dict[str, asyncio.Task[None]] = {}
        self._closed = False
        self._interruption: asyncio.TimerHandle | None = None

    @property
    def names(self) -> list[str]:
        """All servers, in the roster's order."""
        return list(self._runners)

    def apply(self, roster: Roster) -> None:
        """Take a roster: what is new and starts at launch is started, what is gone or disabled is stopped, what runs
        and was changed starts anew; nothing happens to the others.
        """
        if self._closed:
            return
        for name in [name for name in self._runners if name not in roster.servers]:
            self._retire(self._runners.pop(name))
        before = self._runners
        self._runners = {
            name: before.get(name) or Runner(name, entry, self._services, self._ending.get(name))
            for name, entry in roster.servers.items()
        }
        for name, runner in self._runners.items():
            if name in before:
                runner.configure(roster.servers[name])
            else:
                self._tell(name)
                if runner.entry.enabled and runner.entry.start == "at-launch":
                    runner.start()

    def status(self, name: str) -> ServerStatus:
        """The server's health now; raises ``server-unknown``."""
        return self._runner(name).status

    def pids(self) -> dict[str, list[int]]:
        """The first processes of each server: the shared one, and those of clients and sessions."""
        return {name: pids for name, runner in self._runners.items() if (pids := runner.pids())}

    async def prepare(self, name: str) -> Launch:
        """What would start or reach the server now; raises ``server-unknown`` and what a start raises before it."""
        return await self._runner(name).prepare()

    async def settle(self, name: str, *, seconds: float) -> None:
        """Wait until a start or stop that goes on has ended, ``seconds`` at most; raises ``server-unknown``."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._runner(name).settle()

    def ready_upstream(self, name: str) -> Upstream | None:
        """The connection if it is ready; a dictionary look-up, never raises."""
        runner = self._runners.get(name)
        return runner.upstream if runner is not None else None

    async def upstream(self, name: str) -> Upstream:
        """The ready connection. Waits for a server that is starting; starts one that starts on demand.

        Waits ``timeouts.start`` seconds at most. Raises ``server-unknown``, ``disabled``, ``server-not-ready``.
        """
        return await self._runner(name).get()

    async def open_instance(self, name: str, key: str) -> Upstream:
        """A connection of its own for ``key``, made if there is none; it ends with the server at the latest.

        Raises ``server-unknown``, ``disabled``, and whatever keeps the server from starting.
        """
        runner = self._runner(name)
        if self._closed or not runner.entry.enabled:
            raise CallboardError("disabled", f"The server {name} is disabled.", fix=fix_for("disabled", name))
        return await runner.instances.open(key)

    async def close_instance(self, name: str, key: str) -> None:
        """End the connection for ``key`` and wait until it is gone; nothing happens when there is none."""
        runner = self._runners.get(name)
        if runner is not None:
            await runner.instances.close_one(key)

    def start(self, name: str) -> None:
        """Run it, also after a failure. Raises ``server-unknown``, ``disabled``."""
        self._runner(name).start()

    def stop(self, name: str) -> None:
        """Stop it; also ends a start, or the pause before one. Raises ``server-unknown``."""
        self._runner(name).stop()

    def cancel(self, name: str) -> None:
        """End a start that goes on; a server that is ready stays so. Raises ``server-unknown``."""
        runner = self._runner(name)
        if runner.status.state in (State.STARTING, State.RESTARTING):
            runner.stop()

    def restart(self, name: str) -> None:
        """Stop it if it runs, then start it. Raises ``server-unknown``, ``disabled``."""
        self._runner(name).restart()

    def retry(self, name: str) -> None:
        """Try again now, with all tries anew. Raises ``server-unknown``, ``disabled``."""
        self._runner(name).start()

    def reset(self, name: str) -> None:
        """Earlier failures no longer count. Raises ``server-unknown``."""
        self._runner(name).reset()

    def touch(self, name: str) -> None:
        """The server is being used; unknown names are ignored."""
        runner = self._runners.get(name)
        if runner is not None:
            runner.touch()

    def degraded(self, name: str, code: str, reason: str) -> None:
        """Something is odd about a running server; unknown names are ignored. One reason for each code."""
        runner = self._runners.get(name)
        if runner is not None:
            runner.feed(supervision.ProblemFound(code, reason))

    def clear_degraded(self, name: str, code: str) -> None:
        """What was odd is no more."""
        runner = self._runners.get(name)
        if runner is not None:
            runner.feed(supervision.ProblemGone(code))

    def signed_in(self, name: str) -> None:
        """There is a new sign-in for this server: it starts if it waited for that; unknown names are ignored."""
        runner = self._runners.get(name)
        if runner is not None and runner.status.state is State.NEEDS_SIGN_IN:
            runner.start()

    def secrets_changed(self, names: Iterable[str]) -> None:
        """Servers that could not start for want of one of these secrets are tried again."""
        changed = set(names)
        for runner in self._runners.values():
            if runner.status.state is State.NEEDS_CONFIG and names_in(runner.entry).secrets & changed:
                runner.start()

    def rest(self, name: str, reason: str) -> None:
        """Stop it until a call wants it, if nobody has used it since it became ready; unknown names are ignored."""
        runner = self._runners.get(name)
        if runner is not None:
            runner.rest(reason)

    def interrupted(self) -> None:
        """Connections may have been cut (the computer slept, the network changed): look at the remote servers once,
        one after the other, and try now those that wait for another try.
        """
        if self._interruption is None and not self._closed:
            self._interruption = asyncio.get_running_loop().call_later(_SETTLE, self._look_at_remotes)

    def network(self, *, online: bool) -> None:
        """This computer has, or has lost, its network. Servers on this computer do not depend on it."""
        for runner in self._remotes():
            if online:
                runner.feed(supervision.ProblemGone("offline"))
            elif runner.upstream is not None:
                runner.feed(supervision.ProblemFound("offline", "this computer is not connected to a network"))
        if online:
            self.interrupted()

    def _look_at_remotes(self) -> None:
        self._interruption = None
        for number, runner in enumerate(self._remotes()):
            runner.check_soon((number + self._services.chance()) * _STAGGER)

    def _remotes(self) -> list[Runner]:
        return [runner for runner in self._runners.values() if _is_elsewhere(runner.entry)]

    async def close(self) -> None:
        """Stop everything at once and wait until nothing is left, at most 5 seconds. Idempotent."""
        self._closed = True
        if self._interruption is not None:
            self._interruption.cancel()
        for runner in self._runners.values():
            if runner.name not in self._ending:
                self._retire(runner)
        if self._ending:
            _, late = await asyncio.wait(self._ending.values(), timeout=_CLOSE_LIMIT)
            for task in late:
                _logger.error("Not ended within %g s: %s", _CLOSE_LIMIT, task.get_name())

    def _tell(self, name: str) -> None:
        if name in self._runners:  # one that was taken out of the roster has no status any more
            self._on_change(name)

    def _retire(self, runner: Runner) -> None:
        task = tasks.spawn(runner.close(), f"end {runner.name}")
        self._ending[runner.name] = task
        task.add_done_callback(lambda done: self._retired(runner.name, done))

    def _retired(self, name: str, task: "asyncio.Task[None]") -> None:
        if self._ending.get(name) is task:
            del self._ending[name]

    def _runner(self, name: str) -> Runner:
        runner = self._runners.get(name)
        if runner is None:
            raise CallboardError("server-unknown", f'There is no server "{name}".')
        return runner


def _is_elsewhere(entry: AnyEntry) -> bool:
    """Whether a server is reached over the network; one whose address is not known here counts."""
    if not isinstance(entry, RemoteEntry):
        return False
    try:
        host = urlsplit(entry.url).hostname or ""
    except ValueError:
        return True
    return not (host == "localhost" or host.startswith("127.") or host == "::1")

"""Making and ending connections to one server: what its shared connection and its extra ones have in common."""

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import TracebackType

from callboard.core.errors import CallboardError
from callboard.core.launch import Launch, LocalLaunch
from callboard.core.references import names_in
from callboard.core.resolve import Values, missing_values, resolve
from callboard.core.roster import AnyEntry
from callboard.core.supervision import Exit
from callboard.engine import tasks
from callboard.engine.containers import Claim, Containers
from callboard.engine.environment import Environment
from callboard.engine.health import HealthPlan
from callboard.engine.leftovers import MARK, Leftovers
from callboard.engine.output import OutputLog
from callboard.engine.upstream.base import Closed, Upstream

HARD_LIMIT = 4  # times timeouts.start: then a start ends even if the server still prints
QUIET = 10.0  # seconds (timeouts.start, if that is shorter) without output after which a late start has failed
SLOT_TIME = 1.0  # seconds for which a start counts as one that needs the machine
CLOSE_LIMIT = 8.0  # seconds; a process needs at most 5 to be ended
_LOOK = 0.25  # seconds between two looks at a start
_TELL_AFTER = 1.5  # seconds after which a start tells what it waits for
_LONGEST_WORDS = 300  # characters of the server's own words in a reason

_logger = logging.getLogger(__name__)

Connect = Callable[[str, AnyEntry, Launch, str], Upstream]
SecretsLookup = Callable[[frozenset[str]], Awaitable[Mapping[str, str]]]
Unlock = Callable[[str, Launch], Awaitable[None]]


@dataclass(frozen=True)
class Services:
    """What the runners of all servers share. The callbacks run on the engine's loop and must not raise.

    ``slots`` bounds how many servers start at the same moment. ``python`` is our own interpreter. ``mask`` takes the
    values of secrets out of a text. ``unlock`` reads what else is kept of a server's sign-in, before it is reached.
    """

    connect: Connect
    output: OutputLog
    secrets_lookup: SecretsLookup
    environment: Environment
    leftovers: Leftovers | None
    on_change: Callable[[str], None]
    on_upstream: Callable[[str, Upstream | None], None]
    slots: asyncio.Semaphore
    python: str
    mask: Callable[[str], str] = str
    chance: Callable[[], float] = field(default=random.random)
    unlock: Unlock | None = None
    containers: Containers | None = None
    health: HealthPlan = HealthPlan()  # noqa: RUF009  frozen


class Connector:
    """Connections to one server, as its ``entry`` says. Engine loop only; owned by the server's runner."""

    def __init__(self, name: str, entry: AnyEntry, services: Services) -> None:
        self.name = name
        self.entry = entry
        self._services = services
        self._claims: dict[Upstream, tuple[Claim, dict[str, str]]] = {}
        self._marks: dict[Upstream, str] = {}

    async def prepare(self, on_wait: Callable[[str], None]) -> Launch:
        """The entry with its references replaced; raises what :func:`resolve` and the secrets' store raise.

        ``on_wait`` hears what is waited for if that takes long.
        """
        services = self._services
        needed = names_in(self.entry).secrets
        secrets: Mapping[str, str] = {}
        if needed:
            with _telling(on_wait, "waiting for the keyring"):
                secrets = await services.secrets_lookup(needed)
        environment = services.environment
        values = Values(environment.own, secrets, services.python, environment.home)
        try:
            launch = resolve(self.entry, values, self.name)
        except CallboardError as error:
            missing = missing_values(self.entry, values)
            error.data["missing"] = [{"code": each.code, "message": each.message, "fix": each.fix} for each in missing]
            raise
        if services.unlock is not None:
            with _telling(on_wait, "waiting for the keyring"):
                await services.unlock(self.name, launch)
        with _telling(on_wait, "waiting for the login shell to tell its PATH"):
            await environment.prepare(launch)
        return launch

    def connect(self, launch: Launch, key: str = "") -> Upstream:
        """A connection, not yet open; ``key`` names an extra one, for a client or session of its own."""
        return self._services.connect(self.name, self.entry, launch, key)

    async def open(
        self, upstream: Upstream, launch: Launch, on_pid: Callable[[int], None], on_wait: Callable[[str], None]
    ) -> None:
        """Connect and shake hands within ``timeouts.start``; four times that while the server prints something.

        ``on_pid`` hears of the process as soon as it runs; ``on_wait`` hears, while it takes long, the last line that
        the server printed. Raises ``start-timeout`` and what the upstream raises; closing is left to the caller.
        """
        loop = asyncio.get_running_loop()
        limit = self.entry.timeouts.start
        launch = self._claim(upstream, launch)
        async with _StartSlot(self._services.slots):
            began = loop.time()
            launch = self._marked(upstream, launch)
            opening = loop.create_task(upstream.open(launch), name=f"open {self.name}")
            noted: int | None = None
            pause = 0.0  # a process is there as soon as the task has taken its first step
            try:
                while not opening.done():
                    await asyncio.wait([opening], timeout=pause)
                    if upstream.pid is not None and upstream.pid != noted:  # also one that bore no probe
                        noted = upstream.pid
                        self._note(upstream, noted)
                        on_pid(noted)
                    elapsed = loop.time() - began
                    if not opening.done() and self._too_late(elapsed):
                        reason = self.with_last_line(f"did not answer the handshake within {elapsed:.0f} s")
                        raise CallboardError("start-timeout", reason)
                    if elapsed >= _TELL_AFTER and (line := self.last_line()):
                        on_wait(line)
                    pause = _LOOK if elapsed >= limit else min(_LOOK, limit - elapsed)
            finally:
                await tasks.cancel_and_wait(opening)
            await opening

    async def close(self, upstream: Upstream) -> None:
        """Close a connection and the process behind it, even if the caller is cancelled meanwhile; never raises."""
        closing = tasks.spawn(self._close(upstream), f"close {self.name}")
        while not closing.done():
            with contextlib.suppress(asyncio.CancelledError):  # whoever stops the caller wants just this
                await asyncio.wait([closing])
        if upstream.pid is not None and upstream.closed.done():
            self._services.output.mark(self.name, upstream.closed.result().reason)
        if upstream in self._marks and self._services.leftovers is not None:
            self._services.leftovers.remove(self._marks.pop(upstream))

    def exit_of(self, upstream: Upstream) -> Exit | None:
        """How the process behind a connection ended; None if it did not, or there was none."""
        closed = upstream.closed.result() if upstream.closed.done() else Closed("")
        if closed.code is None and closed.signal is None:
            return None
        tail = self._services.output.tail(self.name)
        return Exit(time.time(), closed.code, closed.signal, tuple(tail.split("\n")) if tail else ())

    def last_line(self) -> str:
        """The last thing that the server printed in this run, shortened."""
        return "".join(self._services.output.last_lines(self.name, 1)).strip()[:_LONGEST_WORDS]

    def with_last_line(self, reason: str) -> str:
        """``reason`` with the server's own last words, if there are any."""
        line = self.last_line()
        return f"{reason}: {line}" if line else reason

    def _claim(self, upstream: Upstream, launch: Launch) -> Launch:
        """The launch, changed where it runs a container, which ends with the connection then."""
        services = self._services
        if services.containers is None or not isinstance(launch, LocalLaunch):
            return launch
        environment = {**services.environment.variables, **launch.env}
        claim = services.containers.claim(self.name, launch, environment)
        if claim is None:
            return launch
        self._claims[upstream] = (claim, environment)
        return claim.launch

    def _marked(self, upstream: Upstream, launch: Launch) -> Launch:
        """The launch with the mark by which the next engine knows what this one started, should it be killed."""
        if self._services.leftovers is None or not isinstance(launch, LocalLaunch):
            return launch
        mark = self._marks[upstream] = self._services.leftovers.expect(self.name)
        return replace(launch, env={**launch.env, MARK: mark})

    async def _close(self, upstream: Upstream) -> None:
        try:
            async with asyncio.timeout(CLOSE_LIMIT):
                await upstream.close()
        except TimeoutError:
            _logger.error("The server %s did not end within %g s", self.name, CLOSE_LIMIT)
        except Exception:
            _logger.exception("The server %s could not be closed", self.name)
        if upstream in self._claims:
            claim, environment = self._claims.pop(upstream)
            await claim.release(environment)

    def _note(self, upstream: Upstream, pid: int) -> None:
        self._services.output.mark(self.name, f"started, pid {pid}")
        if upstream in self._marks and self._services.leftovers is not None:
            self._services.leftovers.add(self._marks[upstream], pid)

    def _too_late(self, elapsed: float) -> bool:
        limit = self.entry.timeouts.start
        silence = self._services.output.silent_for(self.name)
        return elapsed >= limit and (silence >= min(QUIET, limit) or elapsed >= HARD_LIMIT * limit)


class _StartSlot:
    """The right to start a server now. One that takes long gives it back, so that a dead server delays no other."""

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._slots.acquire()
        self._timer = asyncio.get_running_loop().call_later(SLOT_TIME, self._release)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._slots.release()


@contextlib.contextmanager
def _telling(on_wait: Callable[[str], None], reason: str) -> Iterator[None]:
    timer = asyncio.get_running_loop().call_later(_TELL_AFTER, on_wait, reason)
    try:
        yield
    finally:
        timer.cancel()
        on_wait("")

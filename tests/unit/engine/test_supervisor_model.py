"""The whole supervisor against a model: whatever is asked of it in whatever order, what comes of it is known."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.core.launch import Launch
from callboard.core.roster import AnyEntry, LocalEntry, Restart, Roster, Timeouts
from callboard.core.supervision import CONNECTED
from callboard.engine import connector, health, output, runner, supervisor
from callboard.engine.environment import Environment
from callboard.engine.output import OutputLog
from callboard.engine.supervisor import Supervisor
from callboard.engine.upstream.base import Closed, Params, ServerInfo, Upstream
from tests.support.virtual_time import Clock, VirtualLoop

MOST = 4  # restarts
LONG = 5_000.0  # seconds after which everything has come to rest
CLOSING = 0.5  # seconds that a connection takes to end
ENTRIES: dict[str, LocalEntry] = {
    "always": LocalEntry(command="x", restart=Restart(max=MOST)),
    "lazy": LocalEntry(command="x", start="on-demand", restart=Restart(max=MOST)),
    "idle": LocalEntry(command="x", start="on-demand", restart=Restart(max=MOST), timeouts=Timeouts(idle=60.0)),
}
# how a server behaves at a start, and the state that it comes to rest in if it is wanted
RESTS = {
    "works": State.READY,
    "slow": State.READY,
    "deaf": State.FAILED,
    "dies": State.FAILED,
    "missing": State.FAILED,
    "unset": State.NEEDS_CONFIG,
    "sign-in": State.NEEDS_SIGN_IN,
}
CODES = {"dies": "exited-early", "missing": "command-not-found", "unset": "env-unset", "sign-in": "remote-sign-in"}


class Connection:
    """A connection to a server that exists in the machine's mind only."""

    def __init__(self, machine: "Supervision", name: str) -> None:
        self.machine = machine
        self.name = name
        self.info = ServerInfo(protocol="2025-11-25", modern=False)
        self.pid: int | None = None
        self.closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.pending: dict[int, object] = {}
        self.busy = False
        self.last_heard = machine.loop.now
        self.given_up: float | None = None
        self._over = False

    async def open(self, launch: Launch) -> None:
        """Behave as the machine says."""
        self.machine.begin(self.name)
        self.pid = next_pid()
        behaviour = self.machine.behaviours[self.name]
        await asyncio.sleep({"slow": 3.0, "deaf": 1e6}.get(behaviour, 0.01))
        if behaviour in CODES:
            if behaviour == "dies":
                self.closed.set_result(Closed("exited with code 1", code=1))
            raise CallboardError(CODES[behaviour], f"It {behaviour}.")

    async def ping(self, *, seconds: float = 10.0) -> None:
        """Alive."""
        self.last_heard = self.machine.loop.now

    async def request(self, method: str, params: Params | None = None, *, seconds: float = 30.0) -> Any:
        """Never called here."""
        raise NotImplementedError

    def send(self, method: str, params: Params, listener: object) -> Any:
        """Never called here."""
        raise NotImplementedError

    def notify(self, method: str, params: Params) -> None:
        """Never called here."""

    async def close(self) -> None:
        """End, which takes its time."""
        await asyncio.sleep(CLOSING)
        if not self.closed.done():
            self.closed.set_result(Closed("exited with code 0", code=0))
        if not self._over and self.pid is not None:
            self._over = True
            self.machine.end(self.name)


_pids = iter(range(2**40, 2**41))


def next_pid() -> int:
    """A number that no process has."""
    return next(_pids)


class Supervision(RuleBasedStateMachine):
    """Rules ask for things at any moment; :meth:`come_to_rest` compares what became of them with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualLoop()
        self.clock = Clock(self.loop)
        self.patch = pytest.MonkeyPatch()
        for module in (connector, health, output, runner):
            self.patch.setattr(module, "time", self.clock)
        self.patch.setattr(supervisor, "_STARTS_PER_CORE", 100)
        self.running: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.behaviours = dict.fromkeys(ENTRIES, "works")
        self.entries: dict[str, LocalEntry] = dict(ENTRIES)
        # the model
        self.wanted = {"always": True, "lazy": False, "idle": False}
        self.resting: dict[str, State] = {}  # the state at the last rest, until something is asked
        self.disturbed: set[str] = set()  # stopped or changed by somebody, or ended by itself, since the last rest
        self.crashes = dict.fromkeys(ENTRIES, 0)  # that count: not those that were forgotten
        self.asked = dict.fromkeys(ENTRIES, 0)  # how often it was to start since the last rest
        self.calls: dict[str, list[asyncio.Task[Upstream]]] = {name: [] for name in ENTRIES}
        self.loop.run(self.set_up())
        self.come_to_rest()

    async def set_up(self) -> None:
        """Make the supervisor, on its loop."""
        folder = Path(gettempdir()) / "never-written"
        self.log = OutputLog(folder, lambda server, lines: None)
        self.patch.setattr(self.log.files, "write", lambda server, text: None)
        self.supervisor = Supervisor(
            self.connect,
            self.log,
            self.no_secrets,
            Environment(os.environ, folder),
            lambda name: None,
            lambda name, upstream: None,
        )
        self.supervisor.apply(Roster(servers=dict(self.entries)))

    def connect(self, name: str, entry: AnyEntry, launch: Launch, key: str) -> Upstream:
        """See Services."""
        return Connection(self, name)

    async def no_secrets(self, names: frozenset[str]) -> Mapping[str, str]:
        """See Services."""
        return {}

    def begin(self, name: str) -> None:
        """A process of the server starts."""
        self.running[name] = self.running.get(name, 0) + 1
        self.starts[name] = self.starts.get(name, 0) + 1
        assert self.running[name] == 1, "never two at once"

    def end(self, name: str) -> None:
        """It has ended."""
        self.running[name] -= 1

    def state(self, name: str) -> State:
        """The state that is shown."""
        return self.supervisor.status(name).state

    def ask(self, name: str, *, wants: bool) -> None:
        """Somebody has asked for something; what is known of the last rest no longer holds."""
        if self.entries[name].enabled:
            self.wanted[name] = wants
            self.asked[name] += wants
        self.resting.pop(name, None)

    # what can be asked

    @rule(name=st.sampled_from(sorted(ENTRIES)), action=st.sampled_from(["start", "restart", "retry"]))
    def start(self, name: str, action: str) -> None:
        self.disturbed.add(name)
        runs = self.state(name) in CONNECTED
        self.act(name, action, wants=True, anew=action == "restart" or not runs)

    @rule(name=st.sampled_from(sorted(ENTRIES)))
    def stop(self, name: str) -> None:
        self.disturbed.add(name)
        self.act(name, "stop", wants=False)

    @rule(name=st.sampled_from(sorted(ENTRIES)), first=st.sampled_from(["start", "restart", "retry"]))
    def start_and_stop(self, name: str, first: str) -> None:
        """At one moment: nothing has happened in between."""
        self.disturbed.add(name)
        self.ask(name, wants=False)

        def both() -> None:
            if self.entries[name].enabled:
                getattr(self.supervisor, first)(name)
            self.supervisor.stop(name)

        self.run_now(both)

    @rule(name=st.sampled_from(sorted(ENTRIES)))
    def cancel(self, name: str) -> None:
        if self.state(name) in (State.STARTING, State.RESTARTING):
            self.disturbed.add(name)
            self.ask(name, wants=False)
        self.run_now(lambda: self.supervisor.cancel(name))

    @rule(name=st.sampled_from(sorted(ENTRIES)))
    def reset(self, name: str) -> None:
        if self.state(name) in (State.RESTARTING, State.FAILED):
            self.ask(name, wants=True)
        self.crashes[name] = 0
        self.run_now(lambda: self.supervisor.reset(name))

    @rule(name=st.sampled_from(sorted(ENTRIES)), count=st.integers(1, 5))
    def call(self, name: str, count: int) -> None:
        entry = self.entries[name]
        if entry.enabled and entry.start == "on-demand":
            forgotten = self.state(name) in (State.FAILED, State.NEEDS_CONFIG) and name in self.resting
            if self.state(name) in (State.STOPPED, State.STOPPING) or forgotten:
                self.ask(name, wants=True)

        def ask() -> None:
            for _ in range(count):
                self.calls[name].append(self.loop.create_task(self.supervisor.upstream(name)))

        self.run_now(ask)

    @rule(name=st.sampled_from(sorted(ENTRIES)), jump=st.sampled_from([0.0, -1e8, 1e8]))
    def crash(self, name: str, jump: float) -> None:
        """It ends by itself; perhaps the wall clock is set at that moment."""
        upstream = self.supervisor.ready_upstream(name)
        if upstream is None or upstream.closed.done() or self.crashes[name] >= MOST:
            return
        self.crashes[name] += 1
        self.disturbed.add(name)
        self.resting.pop(name, None)
        self.run_now(lambda: upstream.closed.set_result(Closed("exited with code 7", code=7)))
        self.loop.settle()  # what is asked next depends on the state that follows
        self.clock.offset += jump

    @rule(name=st.sampled_from(sorted(ENTRIES)), enabled=st.booleans(), value=st.sampled_from("abc"))
    def configure(self, name: str, enabled: bool, value: str) -> None:
        old = self.entries[name]
        new = old.model_copy(update={"enabled": enabled, "env": {"VALUE": value}})
        self.entries[name] = new
        self.disturbed.add(name)
        if not enabled:
            self.wanted[name] = False
            self.resting.pop(name, None)
        elif old != new:
            anew = not old.enabled and new.start == "at-launch"
            if old.enabled and old.env != new.env and self.state(name) not in (State.STOPPED, State.STOPPING):
                anew = True
            if anew:
                self.ask(name, wants=True)
            else:
                self.resting.pop(name, None)
        self.run_now(lambda: self.supervisor.apply(Roster(servers=dict(self.entries))))

    @rule(name=st.sampled_from(sorted(ENTRIES)), behaviour=st.sampled_from(sorted(RESTS)))
    def behave(self, name: str, behaviour: str) -> None:
        self.come_to_rest()
        self.behaviours[name] = behaviour

    @rule(name=st.sampled_from(sorted(ENTRIES)), behaviour=st.sampled_from(sorted(RESTS)))
    def fail_and_be_mended(self, name: str, behaviour: str) -> None:
        """One start of a server that behaves like this; then it is mended, and somebody calls it."""
        self.behave(name, behaviour)
        self.act(name, "restart", wants=True)
        self.behave(name, "works")
        self.call(name, 2)
        self.come_to_rest()

    @rule(seconds=st.sampled_from([0.0, 0.005, 0.3, 1.0, 4.0, 31.0]))
    def pass_time(self, seconds: float) -> None:
        self.loop.pass_time(seconds)

    @rule(by=st.sampled_from([-1e8, -3600.0, 3600.0, 1e8]))
    def set_the_clock(self, by: float) -> None:
        self.clock.offset += by

    @rule()
    def interrupt(self) -> None:
        self.run_now(self.supervisor.interrupted)

    # what is known

    @rule()
    def come_to_rest(self) -> None:
        self.loop.pass_time(LONG)
        for name in ENTRIES:
            expected = self.expected(name)
            assert self.state(name) is expected, name
            self.check_calls(name, expected)
            self.check_tries(name)
            self.resting[name] = expected
            self.wanted[name] = expected not in (State.STOPPED, State.DISABLED)
        self.crashes = dict.fromkeys(ENTRIES, 0)
        self.asked = dict.fromkeys(ENTRIES, 0)
        self.starts = {}
        self.disturbed = set()

    def expected(self, name: str) -> State:
        """The state in which a server must be at rest."""
        if not self.entries[name].enabled:
            return State.DISABLED
        if name in self.resting:
            return self.resting[name]
        if not self.wanted[name]:
            return State.STOPPED
        rest = RESTS[self.behaviours[name]]
        return State.STOPPED if rest is State.READY and name == "idle" else rest

    def check_calls(self, name: str, rest: State) -> None:
        """Each call has an end; and a good one, if nothing stood in the way."""
        calls, self.calls[name] = self.calls[name], []
        assert all(call.done() for call in calls)
        good = [call.result() for call in calls if call.exception() is None]
        assert all(isinstance(call.exception(), CallboardError | None) for call in calls)
        works = RESTS[self.behaviours[name]] is State.READY and rest in (State.READY, State.STOPPED)
        undisturbed = name not in self.disturbed
        if calls and works and undisturbed and self.entries[name].start == "on-demand":
            assert len(good) == len(calls)
        if undisturbed and works and name == "lazy":
            assert self.starts.get(name, 0) <= 1, "one start, however many calls"

    def check_tries(self, name: str) -> None:
        """One that dies at each start was started so often as it may be."""
        once = self.asked[name] == 1 and name not in self.disturbed
        if once and self.behaviours[name] == "dies" and self.entries[name].enabled:
            assert self.starts[name] == MOST + 1

    def act(self, name: str, action: str, *, wants: bool, anew: bool = True) -> None:
        """Ask for an action; a disabled server refuses to start."""
        if anew:
            self.ask(name, wants=wants)

        def act() -> None:
            if self.entries[name].enabled or action == "stop":
                getattr(self.supervisor, action)(name)
            else:
                with pytest.raises(CallboardError, match="disabled"):
                    getattr(self.supervisor, action)(name)

        self.run_now(act)

    def run_now(self, function: Any) -> None:
        """Call something on the loop."""

        async def call() -> None:
            function()

        self.loop.run(call())

    @invariant()
    def what_is_shown_is_so(self) -> None:
        for name in ENTRIES:
            upstream = self.supervisor.ready_upstream(name)
            status = self.supervisor.status(name)
            assert (upstream is not None) == (status.state in CONNECTED)
            if status.state in CONNECTED:
                assert self.running[name] == 1
            if status.state in (State.STOPPED, State.DISABLED, State.RESTARTING):
                assert status.pid is None

    def teardown(self) -> None:
        async def close() -> None:
            await self.supervisor.close()
            self.log.close()

        self.loop.run(close())
        assert not any(self.running.values()), "nothing is left"
        self.loop.pass_time(LONG)
        assert not any(self.running.values()), "and nothing comes back"
        for calls in self.calls.values():
            for call in calls:
                assert call.done()
                call.exception()
        assert not [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        self.loop.close()
        self.patch.undo()


TestSupervision = Supervision.TestCase
TestSupervision.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)

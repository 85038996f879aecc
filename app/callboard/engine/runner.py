"""The life of one server: started, watched, started again, stopped."""

import asyncio
import logging
import time
from dataclasses import replace
from typing import Any

from callboard.core import supervision
from callboard.core.errors import CallboardError, fix_for
from callboard.core.health import State
from callboard.core.launch import Launch
from callboard.core.roster import AnyEntry
from callboard.core.supervision import CONNECTED
from callboard.engine import tasks
from callboard.engine.connector import Connector, Services
from callboard.engine.health import Health
from callboard.engine.instances import Instances
from callboard.engine.upstream.base import Upstream

_FORGET_FAILURE = 30.0  # seconds after which a call tries a failed on-demand server again
_WITH_LAST_WORDS = {"exited", "exited-early", "crash-loop", "start-timeout", "handshake-failed", "not-responding"}
# What of an entry may change without a new start.
_LIVE_FIELDS = {"display_name", "description", "enabled", "start", "timeouts", "restart", "sharing", "tools"}

_logger = logging.getLogger(__name__)


class Runner:
    """Keeps one server in the state that was asked for. Engine loop only; owned by the supervisor.

    ``upstream`` is set exactly while the status is ready or degraded. One task lives as long as anything runs or is
    to run; inside it, one more for each run, which stopping cancels.
    """

    def __init__(self, name: str, entry: AnyEntry, services: Services, after: "asyncio.Task[None] | None") -> None:
        """``after``: the end of an earlier server of the same name; nothing starts before it."""
        self.name = name
        self.entry = entry
        self.status = supervision.initial(time.time(), enabled=entry.enabled)
        self.upstream: Upstream | None = None
        self.last_used = 0.0  # of the monotonic clock
        self._ready_at = 0.0  # of the monotonic clock, as are the next ones: the wall clock may be set
        self._failed_at = 0.0
        self._retry_at = 0.0
        self._health: Health | None = None
        self._look = asyncio.Event()  # there is something new to wait for while the server is ready
        self._services = services
        self._connector = Connector(name, entry, services)
        self.instances = Instances(self._connector)
        self._after = after
        self._life: asyncio.Task[None] | None = None
        self._run: asyncio.Task[None] | None = None
        self._exit: supervision.Exit | None = None
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        self._again = False
        self._idle_stopped = False
        self._closed = False
        self._waiters: list[asyncio.Future[Upstream]] = []
        self.status = supervision.transition(self.status, _configured(entry), time.time())

    # what is asked for

    def start(self) -> None:
        """Run, also after a failure; nothing happens when it runs. Raises ``disabled``."""
        self._check_wanted()
        if self.status.state is State.STARTING or self.status.state in CONNECTED:
            return
        self._again = True
        self._wake.set()
        if self._after is None:
            self.feed(supervision.StartWanted())  # so that whoever asked sees at once that it was heard
        if self._life is None:
            self._life = tasks.spawn(self._live(), f"life of {self.name}")

    def stop(self) -> None:
        """Stop, and stay stopped. Nothing happens when it is stopped."""
        self._again = False
        self._idle_stopped = False
        self.instances.close_soon()
        self.feed(supervision.StopWanted())
        self._tell_waiters()

    def rest(self, reason: str) -> None:
        """Stop until a call wants it, if nobody has used it since it became ready. ``reason`` for display."""
        if self.status.state in CONNECTED and self.last_used == self._ready_at and not self._waiters:
            self._idle_stopped = True
            self.feed(supervision.StopWanted(reason))

    def restart(self) -> None:
        """Stop if it runs, then start. Raises ``disabled``."""
        self.stop()
        self.start()

    def reset(self) -> None:
        """Earlier failures no longer count; where they brought the server down, it is tried again."""
        if self.status.state in (State.RESTARTING, State.FAILED):
            self.start()
        else:
            self.feed(supervision.Healthy())

    def check_soon(self, delay: float) -> None:
        """Something may have cut the connection: look at it, or try to make it, in ``delay`` seconds.

        For remote servers; nothing happens to one that is stopped or starting.
        """
        if self._health is not None:
            self._health.check_at(time.monotonic() + delay)
            self._look.set()
        elif self.status.state is State.FAILED and self.status.error_code == "remote-tls":
            self.start()  # the network may have been one that asks for a sign-in of its own
        else:
            self.feed(supervision.RetryBy(time.time() + delay))

    def configure(self, entry: AnyEntry) -> None:
        """Take a changed entry; if it changes what a running server was started with, that starts anew."""
        old, self.entry = self.entry, entry
        if entry == old:
            return
        self._connector.entry = entry
        self._look.set()
        self.feed(_configured(entry))
        if not entry.enabled:
            self.stop()
        elif _launch_part(old) != _launch_part(entry) and self.status.state not in (State.STOPPED, State.STOPPING):
            self.restart()
        elif entry.start == "at-launch" and not (old.enabled and old.start == "at-launch"):
            self.start()

    async def get(self) -> Upstream:
        """The ready connection; waits for a start, makes one for a server that starts on demand.

        Waits ``timeouts.start`` seconds at most. Raises ``disabled`` and ``server-not-ready``.
        """
        upstream = self.upstream
        if upstream is not None and not upstream.closed.done():
            return upstream
        self._check_wanted()
        if self._starts_by_call():
            self.start()
        elif upstream is None and not self._coming():
            raise self._not_ready()
        waiter: asyncio.Future[Upstream] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wake.set()
        try:
            async with asyncio.timeout(self.entry.timeouts.start):
                return await waiter
        except TimeoutError:
            raise self._not_ready() from None
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    async def prepare(self) -> Launch:
        """What would start the server now; raises what a start raises before it."""
        return await self._connector.prepare(lambda _: None)

    def pids(self) -> list[int]:
        """The first process of each connection."""
        own = [self.status.pid] if self.status.pid is not None else []
        return own + self.instances.pids()

    async def settle(self) -> None:
        """Wait until a start or stop that is wanted or goes on has come to an end, whichever."""
        while self._again or self.status.state in (State.STARTING, State.STOPPING):
            self._changed.clear()
            await self._changed.wait()

    def touch(self) -> None:
        """The server is being used."""
        self.last_used = time.monotonic()

    async def close(self) -> None:
        """Stop for good and wait until nothing of the server is left."""
        self._closed = True
        self.stop()
        for task in (self._life, self._after):
            if task is not None:
                await asyncio.wait([task])
        await self.instances.close()

    def feed(self, event: supervision.Event) -> None:
        """Let something happen: the only place where the status changes."""
        if isinstance(event, supervision.Failed | supervision.Waiting):
            event = replace(event, reason=self._services.mask(event.reason))  # it may quote the command or the address
        old, now = self.status, time.time()
        status = supervision.transition(old, event, now, chance=self._services.chance())
        if status is old:
            return
        self.status = replace(status, fix=fix_for(status.error_code, self.name, status.fix)) if status.fix else status
        self._changed.set()
        if self.status.state is not old.state:
            self._on_state()
        if self.status.next_retry != old.next_retry:
            # How long the pause is, is settled here: later on the wall clock may be set.
            self._retry_at = time.monotonic() + max(0.0, (self.status.next_retry or now) - now)
            self._wake.set()
        self._tell_waiters()
        self._services.on_change(self.name)

    def _on_state(self) -> None:
        self._wake.set()
        if self.status.state in (State.FAILED, State.NEEDS_CONFIG):
            self._failed_at = time.monotonic()
        if self.upstream is not None and self.status.state not in CONNECTED:
            self.upstream = None
            self._services.on_upstream(self.name, None)
        stopping = self.status.state is State.STOPPING
        if stopping and self._run is not None and self._run is not asyncio.current_task():
            self._run.cancel()

    # who waits for it

    def _check_wanted(self) -> None:
        if self._closed:
            raise CallboardError("server-not-ready", f"The server {self.name} is being stopped for good.")
        if not self.entry.enabled:
            raise CallboardError("disabled", f"The server {self.name} is disabled.", fix=fix_for("disabled", self.name))

    def _coming(self) -> bool:
        return self._again or self.status.state in (State.STARTING, State.RESTARTING)

    def _starts_by_call(self) -> bool:
        if self.entry.start != "on-demand" and not self._idle_stopped:
            return False
        status = self.status
        if status.state in (State.STOPPED, State.STOPPING):
            return True
        given_up = status.state in (State.FAILED, State.NEEDS_CONFIG) and status.next_retry is None
        return given_up and time.monotonic() - self._failed_at > _FORGET_FAILURE

    def _tell_waiters(self) -> None:
        if self.upstream is None and self._coming():
            return
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if self.upstream is not None:
                waiter.set_result(self.upstream)
            else:
                waiter.set_exception(self._not_ready())

    def _not_ready(self) -> CallboardError:
        status = self.status
        why = f": {status.reason.rstrip('.')}" if status.reason else ""
        data = {"server": self.name, "state": str(status.state), "cause": status.error_code}
        if status.error_code in _WITH_LAST_WORDS and status.last_exit is not None:
            data["stderr"] = "\n".join(status.last_exit.stderr)
        message = f"The server {self.name} is not ready ({status.state}){why}."
        return CallboardError("server-not-ready", message, fix=status.fix, data=data)

    # its life

    async def _live(self) -> None:
        try:
            if self._after is not None:
                await asyncio.wait([self._after])
                self._after = None
            event: supervision.Event | None = supervision.StartWanted() if self._again else None
            while event is not None:
                self._again = False
                self.feed(event)
                if self.status.state is State.STARTING:
                    self._run = tasks.spawn(self._run_once(), f"run of {self.name}")
                    await asyncio.wait([self._run])
                    self._run = None
                self.feed(supervision.Stopped(self._exit))
                event = await self._what_next()
            self.feed(supervision.Stopped())  # it was stopped before a run began
        finally:
            self._life = None

    async def _what_next(self) -> supervision.Event | None:
        """Wait for the next try, or for a wish to start; None if there will be neither."""
        while self.status.next_retry is not None and not self._wanted_now():
            self._wake.clear()
            try:
                async with asyncio.timeout(self._retry_at - time.monotonic()):
                    await self._wake.wait()
            except TimeoutError:
                break
        if self._again:
            return supervision.StartWanted()
        return supervision.RetryDue() if self.status.next_retry is not None else None

    def _wanted_now(self) -> bool:
        # Somebody who waits is spared the first pause, but not those of a server that fails again.
        return self._again or bool(self._waiters and self.status.attempt == 1)

    async def _run_once(self) -> None:
        """One run, from the references to the end. Cancelled by a stop; returns when nothing of it is left."""
        upstream: Upstream | None = None
        failure: supervision.Failed | None = None
        self._exit = None
        self._services.output.begin_run(self.name)
        try:
            launch = await self._connector.prepare(self._on_wait)
            upstream = self._connector.connect(launch)
            await self._connector.open(upstream, launch, self._on_pid, self._on_wait)
            self._connected(upstream)
            await self._watch(upstream)
        except asyncio.CancelledError:
            pass  # a stop; what is left of the run is ended below
        except CallboardError as error:
            failure = self._failure(error, upstream)
        except Exception as error:
            _logger.exception("The server %s met an error of ours", self.name)
            failure = supervision.Failed("internal", f"{type(error).__name__}: {error}")
        if upstream is not None:
            ended_before = upstream.closed.done()
            await self._connector.close(upstream)
            self._exit = self._connector.exit_of(upstream)
            if failure is None and self._exit is not None and not ended_before:
                self.feed(supervision.Ended(self._exit))
        if failure is not None:
            self.feed(replace(failure, exit=failure.exit or self._exit))

    def _on_pid(self, pid: int) -> None:
        self.feed(supervision.Spawned(pid))

    def _on_wait(self, reason: str) -> None:
        self.feed(supervision.Waiting(reason))

    def _connected(self, upstream: Upstream) -> None:
        if self.status.state is State.STARTING:  # else a stop is on its way
            self.upstream = upstream
            self.last_used = self._ready_at = time.monotonic()
            self._services.on_upstream(self.name, upstream)
            self.feed(supervision.Connected(upstream.pid))

    async def _watch(self, upstream: Upstream) -> None:
        """Stay with a ready connection until it ends, is of no use any more, or has reached its idle limit."""
        self._health = Health(upstream, self._services.health, stretch=self._services.chance())
        try:
            while not upstream.closed.done():
                await self._next_look(upstream)
                now = time.monotonic()
                if self.status.attempt and now - self._ready_at >= supervision.HEALTHY_AFTER:
                    self.feed(supervision.Healthy())
                if self._unused(upstream):
                    self._idle_stopped = True
                    self.feed(supervision.StopWanted(f"not used for {_span(self.entry.timeouts.idle or 0)}"))
                    return
                if now >= self._health.due and not upstream.closed.done():
                    found = await self._health.check(self.entry.timeouts.call)
                    if found is not None:
                        self.feed(found)
                    if isinstance(found, supervision.Failed):
                        return
        finally:
            self._health = None
        closed = upstream.closed.result()
        code = closed.error or ("exited" if upstream.pid is not None else "remote-unreachable")
        reason = self._connector.with_last_line(closed.reason)
        self.feed(supervision.Failed(code, reason, exit=self._connector.exit_of(upstream)))

    async def _next_look(self, upstream: Upstream) -> None:
        looks = []
        now = time.monotonic()
        if self._health is not None:
            looks.append(self._health.due)
        if self.status.attempt:
            looks.append(self._ready_at + supervision.HEALTHY_AFTER)
        if self.entry.timeouts.idle is not None:
            looks.append(self.last_used + self.entry.timeouts.idle)
        self._look.clear()
        looking = asyncio.ensure_future(self._look.wait())
        try:
            pause = max(0.05, min(looks) - now)
            waits: list[asyncio.Future[Any]] = [upstream.closed, looking]
            await asyncio.wait(waits, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
        finally:
            looking.cancel()

    def _unused(self, upstream: Upstream) -> bool:
        limit = self.entry.timeouts.idle
        if limit is None or upstream.closed.done() or upstream.busy:
            return False
        return time.monotonic() - self.last_used >= limit

    def _failure(self, error: CallboardError, upstream: Upstream | None) -> supervision.Failed:
        code = error.code
        if code == "start-timeout":
            self._on_wait(f"{error.message}; it is being ended")
            if self.entry.kind == "remote":
                code = "remote-timeout"  # nobody here has to mend anything: it is tried on
        exit_ = self._connector.exit_of(upstream) if upstream is not None else None
        reason = error.message
        if code == "exited-early" and upstream is not None and upstream.closed.done():
            reason = self._connector.with_last_line(upstream.closed.result().reason)
        return supervision.Failed(code, reason, error.fix if code == error.code else "", exit_)


def _configured(entry: AnyEntry) -> supervision.Configured:
    return supervision.Configured(entry.enabled, entry.restart.max, entry.restart.delay)


def _launch_part(entry: AnyEntry) -> dict[str, Any]:
    """What of an entry a running server was started with."""
    return {"kind": entry.kind, **entry.model_dump(exclude=_LIVE_FIELDS)}


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 120 else f"{seconds:g} s"

"""What becomes of a server that is ready and no longer answers, and of connections that were interrupted."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.core.roster import RemoteEntry, Restart, Timeouts
from callboard.engine import supervisor
from callboard.engine.health import HealthPlan
from tests.support.processes import until
from tests.support.world import World, call, odd

pytestmark = pytest.mark.timeout(60)

QUICK = HealthPlan(silence=0.1, again=0.05, patience=0.15, short=0.1)
REMOTE = RemoteEntry(url="https://example.test/mcp", restart=Restart(delay=0))
LOST = CallboardError("remote-unreachable", "The server cannot be reached: reset.")


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(supervisor, "_SETTLE", 0.02)
    monkeypatch.setattr(supervisor, "_STAGGER", 0.02)
    world = World(tmp_path, health=QUICK)
    yield world
    await world.supervisor.close()
    world.output.close()


async def test_a_process_that_answers_nothing_any_more_is_started_again(world: World):
    world.apply(odd=odd("--deaf-after", "1", restart=Restart(max=1, delay=0)))
    first = await world.supervisor.upstream("odd")
    await until(lambda: State.RESTARTING in world.history())
    degraded, restarting = (
        next(status for status in world.statuses["odd"] if status.state is state)
        for state in (State.DEGRADED, State.RESTARTING)
    )
    assert (degraded.error_code, degraded.reason) == ("not-responding", "has not answered 2 health checks in a row")
    assert (restarting.error_code, restarting.pid) == ("not-responding", None)
    second = await world.supervisor.upstream("odd")
    assert second.pid != first.pid
    status = await world.reach(State.FAILED)
    assert status.error_code == "not-responding"
    assert status.fix
    assert status.last_exit is not None


async def test_a_slow_call_and_a_cancelled_one_leave_the_server_ready(world: World):
    world.apply(odd=odd())
    upstream = await world.supervisor.upstream("odd")
    slow = asyncio.ensure_future(call(upstream, "sleep", seconds=1.5))
    await asyncio.sleep(0.7)
    assert world.history()[-1] is State.READY
    slow.cancel()  # it goes on in there, and nothing else is answered meanwhile
    await until(lambda: world.status().state is State.DEGRADED)
    await until(lambda: world.status().state is State.READY)
    assert world.supervisor.ready_upstream("odd") is upstream
    assert State.RESTARTING not in world.history()


async def test_a_healthy_server_stays_as_it_is(world: World):
    world.apply(odd=odd())
    upstream = await world.supervisor.upstream("odd")
    heard = upstream.last_heard
    await until(lambda: upstream.last_heard > heard + 0.3)
    assert world.history() == [State.STOPPED, State.STARTING, State.READY]


async def test_checks_are_no_use_of_a_server(world: World):
    world.apply(odd=odd(start="on-demand", timeouts=Timeouts(idle=0.6)))
    await world.supervisor.upstream("odd")
    status = await world.reach(State.STOPPED)
    assert status.reason == "not used for 0.6 s"


async def test_a_token_that_is_refused_later_is_a_matter_of_signing_in(world: World):
    world.apply(odd=REMOTE)
    await world.supervisor.upstream("odd")
    world.remotes[0].failure = CallboardError("remote-sign-in", "HTTP 401", data={"status": 401})
    status = await world.reach(State.NEEDS_SIGN_IN)
    assert (status.error_code, status.next_retry) == ("remote-sign-in", None)


async def test_a_gateway_that_fails_is_told_with_its_status_and_tried_on(world: World):
    world.apply(odd=REMOTE)
    await world.supervisor.upstream("odd")
    world.remotes[0].failure = CallboardError("remote-status", "HTTP 502", data={"status": 502})
    await until(lambda: len(world.remotes) == 2 and world.status().state is State.READY)
    assert world.history()[-5:] == [State.READY, State.DEGRADED, State.RESTARTING, State.STARTING, State.READY]
    restarting = next(status for status in world.statuses["odd"] if status.state is State.RESTARTING)
    assert restarting.error_code == "remote-status"
    assert restarting.reason == "has failed 3 health checks in a row: HTTP 502"


async def test_a_remote_server_that_does_not_answer_in_time_is_tried_on(world: World):
    world.remote_failure = CallboardError("start-timeout", "did not answer the handshake within 30 s")
    world.apply(odd=RemoteEntry(url="https://example.test/mcp", restart=Restart(max=0, delay=0)))
    status = await world.reach(State.FAILED)
    assert status.error_code == "remote-timeout"
    assert status.next_retry is not None


async def test_after_a_sleep_each_remote_server_is_looked_at_once_and_one_after_the_other(tmp_path: Path) -> None:
    world = World(tmp_path)  # with the pauses of everyday
    world.apply(**{f"remote{number}": REMOTE for number in range(6)}, local=odd())
    for name in world.supervisor.names:
        await world.supervisor.upstream(name)
    moments: list[float] = []
    for remote in world.remotes:
        remote.pinged = lambda: moments.append(time.monotonic())
    world.remotes[3].failure = LOST
    supervisor_, settled = world.supervisor, supervisor._SETTLE
    for _ in range(5):
        supervisor_.interrupted()
    began = time.monotonic()
    await until(lambda: len(moments) == 6)
    assert moments[0] - began >= settled - 0.01
    assert moments == sorted(moments)
    await until(lambda: len(world.remotes) == 7 and world.status("remote3").state is State.READY)
    assert [State.RESTARTING in world.history(f"remote{number}") for number in range(6)] == [False] * 3 + [True] + [
        False
    ] * 2
    assert State.RESTARTING not in world.history("local")
    assert len(moments) == 6
    await supervisor_.close()
    world.output.close()


async def test_when_the_network_is_back_what_waited_is_tried_at_once(world: World):
    world.remote_failure = LOST
    world.apply(odd=RemoteEntry(url="https://example.test/mcp", restart=Restart(delay=3600)))
    status = await world.reach(State.RESTARTING)
    assert status.next_retry is not None
    assert status.next_retry > time.time() + 1000
    world.remote_failure = None
    world.supervisor.network(online=True)
    await world.reach(State.READY)


async def test_without_a_network_only_what_is_elsewhere_is_concerned(world: World):
    world.apply(odd=odd(), far=REMOTE, near=RemoteEntry(url="http://127.0.0.1:1/mcp"), off=REMOTE)
    for name in world.supervisor.names:
        await world.supervisor.upstream(name)
    world.supervisor.stop("off")
    world.supervisor.network(online=False)
    assert (world.status("far").state, world.status("far").error_code) == (State.DEGRADED, "offline")
    for name in ("odd", "near"):
        assert world.status(name).state is State.READY
    world.supervisor.network(online=True)
    assert world.status("far").state is State.READY
    assert world.status("off").state is not State.DEGRADED


async def test_what_was_sleeping_when_the_supervisor_closed_stays_closed(world: World):
    world.apply(odd=REMOTE)
    await world.supervisor.upstream("odd")
    world.supervisor.interrupted()
    await world.supervisor.close()
    world.supervisor.interrupted()

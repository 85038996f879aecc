import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.core.roster import LocalEntry, RemoteEntry, Restart, Timeouts
from callboard.engine import connector, runner
from callboard.engine.process import ChildProcess
from callboard.engine.upstream.base import Closed
from tests.support.processes import is_running, pid_in, until
from tests.support.world import DownRemote, World, call, odd

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    world = World(tmp_path)
    yield world
    await world.supervisor.close()
    world.output.close()
    assert not (tmp_path / "state" / "processes.json").exists()


async def test_a_server_starts_works_and_stops(world: World):
    world.apply(odd=odd())
    assert world.status().state in (State.STOPPED, State.STARTING)
    upstream = await world.supervisor.upstream("odd")
    assert world.supervisor.ready_upstream("odd") is upstream
    assert world.status().pid == upstream.pid
    assert b"hello" in bytes((await call(upstream, "echo", text="hello")).result or b"")
    world.supervisor.stop("odd")
    assert world.status().state is State.STOPPING
    assert world.supervisor.ready_upstream("odd") is None
    status = await world.reach(State.STOPPED)
    assert status.last_exit is not None
    assert status.last_exit.code == 0
    assert world.upstreams["odd"] == [upstream, None]
    assert world.history() == [State.STOPPED, State.STARTING, State.READY, State.STOPPING, State.STOPPED]
    assert world.marks() == [f"started, pid {upstream.pid}", "exited with code 0"]


async def test_actions_are_idempotent(world: World):
    world.apply(odd=odd())
    for _ in range(3):
        world.supervisor.start("odd")
    first = await world.supervisor.upstream("odd")
    world.supervisor.start("odd")
    world.supervisor.retry("odd")
    assert await world.supervisor.upstream("odd") is first
    for _ in range(3):
        world.supervisor.stop("odd")
    await world.reach(State.STOPPED)
    world.supervisor.stop("odd")
    assert world.status().state is State.STOPPED


async def test_a_restart_while_it_stops_and_starts_ends_in_one_process(world: World, tmp_path: Path):
    world.apply(odd=odd("--mark", tmp_path / "starts"))
    first = await world.supervisor.upstream("odd")
    world.supervisor.restart("odd")
    world.supervisor.restart("odd")
    second = await world.supervisor.upstream("odd")
    assert second.pid != first.pid
    assert not is_running(first.pid or 0)
    world.supervisor.restart("odd")
    world.supervisor.stop("odd")
    await world.reach(State.STOPPED)
    assert len((tmp_path / "starts").read_text().split()) == 2


async def test_unknown_and_disabled_servers_say_so(world: World):
    world.apply(odd=odd(enabled=False))
    assert world.status().state is State.DISABLED
    with pytest.raises(CallboardError, match="disabled"):
        world.supervisor.start("odd")
    with pytest.raises(CallboardError, match="disabled"):
        await world.supervisor.upstream("odd")
    with pytest.raises(CallboardError, match="disabled"):
        await world.supervisor.open_instance("odd", "a")
    with pytest.raises(CallboardError) as caught:
        world.supervisor.status("nobody")
    assert caught.value.code == "server-unknown"
    assert world.supervisor.ready_upstream("nobody") is None
    world.supervisor.touch("nobody")


async def test_an_exit_before_the_handshake_tells_code_and_last_words(world: World):
    world.apply(odd=odd("--crash-before", "1", restart=Restart(max=1, delay=0)))
    status = await world.reach(State.FAILED)
    assert status.error_code == "crash-loop"
    assert status.reason == 'exited with code 1: KeyError: "API_KEY"; given up after 1 restart'
    assert status.last_exit is not None
    assert status.last_exit.code == 1
    assert status.last_exit.stderr[0] == "Traceback (most recent call last):"
    assert world.history() == [
        State.STOPPED,
        State.STARTING,
        State.RESTARTING,
        State.STARTING,
        State.FAILED,
    ]
    restarting = next(status for status in world.statuses["odd"] if status.state is State.RESTARTING)
    assert restarting.error_code == "exited-early"
    with pytest.raises(CallboardError, match="KeyError") as caught:
        await world.supervisor.upstream("odd")
    assert caught.value.code == "server-not-ready"


async def test_the_tail_is_that_of_the_failed_run_only(world: World, tmp_path: Path):
    world.apply(odd=odd("--crash-first", "2", tmp_path / "count", restart=Restart(max=3, delay=0)))
    status = await world.reach(State.READY)
    assert (status.attempt, status.restarts, status.reason) == (2, 2, "")
    assert status.last_exit is not None
    assert len(status.last_exit.stderr) == 3


@pytest.mark.parametrize(
    ("fields", "state", "code"),
    [
        ({"command": "no-such-tool"}, State.FAILED, "command-not-found"),
        ({"command": "/etc/passwd"}, State.FAILED, "command-not-executable"),
        ({"command": "cat", "cwd": "/no/such/folder"}, State.FAILED, "cwd-missing"),
        ({"command": "cat", "args": ["${env:NO_SUCH_VARIABLE}"]}, State.NEEDS_CONFIG, "env-unset"),
        ({"command": "cat", "env": {"TOKEN": "${secret:gone}"}}, State.NEEDS_CONFIG, "secret-missing"),
    ],
)
async def test_each_cause_of_a_failed_start_is_told_apart(
    world: World, fields: dict[str, Any], state: State, code: str
):
    world.apply(odd=LocalEntry(**fields))
    status = await world.reach(state)
    assert status.error_code == code
    assert status.reason
    assert status.fix
    assert status.next_retry is None


async def test_a_secret_that_is_entered_starts_the_servers_that_lacked_it(world: World):
    world.apply(odd=odd(env={"TOKEN": "${secret:token}"}), other=LocalEntry(command="${env:NO_SUCH_VARIABLE}"))
    await world.reach(State.NEEDS_CONFIG)
    await world.reach(State.NEEDS_CONFIG, name="other")
    world.secrets["token"] = "s3cret"
    world.supervisor.secrets_changed(["unrelated"])
    assert world.status().state is State.NEEDS_CONFIG
    world.supervisor.secrets_changed(["token"])
    await world.reach(State.READY)
    assert world.status("other").state is State.NEEDS_CONFIG


async def test_a_locked_keyring_is_no_failure_of_the_server(world: World):
    world.secret_error = CallboardError("secrets-locked", "The keyring is locked.")
    world.apply(odd=odd(env={"TOKEN": "${secret:token}"}))
    status = await world.reach(State.NEEDS_CONFIG)
    assert (status.error_code, status.reason) == ("secrets-locked", "The keyring is locked.")


async def test_a_server_that_never_answers_fails_with_its_limit(world: World):
    world.apply(odd=odd("--silent", timeouts=Timeouts(start=0.3)))
    status = await world.reach(State.FAILED)
    assert status.error_code == "start-timeout"
    assert "did not answer the handshake" in status.reason
    assert status.next_retry is None


async def test_a_slow_start_is_let_be_while_it_prints(world: World):
    world.apply(odd=odd("--slow", "1.0", "--chatty", timeouts=Timeouts(start=0.4)))
    await world.reach(State.READY)
    assert State.FAILED not in world.history()


async def test_printing_does_not_help_beyond_the_hard_limit(world: World):
    world.apply(odd=odd("--slow", "600", "--chatty", timeouts=Timeouts(start=0.3)))
    status = await world.reach(State.FAILED)
    assert status.error_code == "start-timeout"
    assert "downloading" in status.reason


async def test_a_long_start_shows_what_the_server_says(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connector, "_TELL_AFTER", 0.1)
    world.apply(odd=odd("--slow", "1", "--chatty"))
    await until(lambda: world.status().reason.startswith("downloading, "))
    assert world.status().state is State.STARTING
    assert world.status().pid is not None
    assert (await world.reach(State.READY)).reason == ""


async def test_cancelling_a_start_ends_the_process(world: World):
    world.apply(odd=odd("--silent"))
    await until(lambda: world.status().pid is not None)
    pid = world.status().pid or 0
    waiting = asyncio.ensure_future(world.supervisor.upstream("odd"))
    await asyncio.sleep(0)
    world.supervisor.cancel("odd")
    with pytest.raises(CallboardError, match="not ready"):
        await waiting
    await world.reach(State.STOPPED)
    assert not is_running(pid)
    world.supervisor.start("odd")
    await until(lambda: world.status().pid is not None)


async def test_cancel_leaves_a_ready_server_alone(world: World):
    world.apply(odd=odd())
    upstream = await world.supervisor.upstream("odd")
    world.supervisor.cancel("odd")
    assert world.supervisor.ready_upstream("odd") is upstream


async def test_a_crash_is_told_with_its_cause_and_mended(world: World):
    world.apply(odd=odd(restart=Restart(delay=0)))
    first = await world.supervisor.upstream("odd")
    with pytest.raises(CallboardError) as caught:
        await call(first, "exit", code=3)
    assert caught.value.code == "upstream-gone"
    await until(lambda: State.RESTARTING in world.history())
    restarting = next(status for status in world.statuses["odd"] if status.state is State.RESTARTING)
    assert (restarting.error_code, restarting.reason) == ("exited", "exited with code 3: exit was asked for")
    second = await world.supervisor.upstream("odd")
    assert second.pid != first.pid
    assert world.upstreams["odd"] == [first, None, second]
    assert world.status().restarts == 1


async def test_a_call_does_not_wait_out_the_first_pause(world: World):
    world.apply(odd=odd(restart=Restart(delay=3000)))
    first = await world.supervisor.upstream("odd")
    os.kill(first.pid or 0, signal.SIGKILL)
    status = await world.reach(State.RESTARTING)
    assert status.last_exit is not None
    assert status.last_exit.signal == "SIGKILL"
    assert status.next_retry is not None
    assert status.next_retry > time.time() + 1000
    second = await world.supervisor.upstream("odd")
    assert second.pid != first.pid


async def test_a_call_right_after_the_end_gets_the_next_connection(world: World):
    world.apply(odd=odd(restart=Restart(delay=3000)))
    first = await world.supervisor.upstream("odd")
    os.kill(first.pid or 0, signal.SIGKILL)
    await first.closed
    second = await world.supervisor.upstream("odd")
    assert not second.closed.done()


async def test_calls_wait_out_the_pauses_of_a_server_that_fails_again(world: World, tmp_path: Path):
    mark = tmp_path / "starts"
    entry = odd("--mark", mark, "--crash-before", "1", restart=Restart(delay=3000), timeouts=Timeouts(start=0.5))
    world.apply(odd=entry)
    await world.reach(State.RESTARTING)
    with pytest.raises(CallboardError, match=r"not ready \(restarting\)"):
        await world.supervisor.upstream("odd")
    assert len(mark.read_text().split()) == 2


async def test_stopping_during_a_pause_starts_nothing(world: World, tmp_path: Path):
    mark = tmp_path / "starts"
    world.apply(odd=odd("--mark", mark, "--crash-before", "1", restart=Restart(delay=3000)))
    await world.reach(State.RESTARTING)
    world.supervisor.stop("odd")
    assert world.status().state is State.STOPPED
    await world.supervisor.close()
    assert len(mark.read_text().split()) == 1


async def test_retry_ends_a_pause_and_resets_the_count(world: World, tmp_path: Path):
    world.apply(odd=odd("--crash-first", "1", tmp_path / "count", restart=Restart(delay=3000)))
    await world.reach(State.RESTARTING)
    world.supervisor.retry("odd")
    status = await world.reach(State.READY)
    assert (status.attempt, status.restarts) == (0, 0)


async def test_reset_forgives(world: World, tmp_path: Path):
    world.apply(odd=odd("--crash-first", "1", tmp_path / "count", restart=Restart(delay=0)))
    assert (await world.reach(State.READY)).attempt == 1
    world.supervisor.reset("odd")
    assert (world.status().attempt, world.status().state) == (0, State.READY)


async def test_health_forgives_by_itself(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(runner.supervision, "HEALTHY_AFTER", 0.1)
    world.apply(odd=odd("--crash-first", "1", tmp_path / "count", restart=Restart(delay=0)))
    await world.reach(State.READY)
    await until(lambda: world.status().attempt == 0)


async def test_on_demand_starts_once_however_many_ask(world: World, tmp_path: Path):
    mark = tmp_path / "starts"
    world.apply(odd=odd("--mark", mark, start="on-demand"))
    await asyncio.sleep(0)
    assert world.status().state is State.STOPPED
    upstreams = await asyncio.gather(*(world.supervisor.upstream("odd") for _ in range(50)))
    assert len(set(map(id, upstreams))) == 1
    assert len(mark.read_text().split()) == 1


async def test_a_manual_server_waits_for_a_person(world: World):
    world.apply(odd=odd(start="manual"))
    with pytest.raises(CallboardError, match=r"not ready \(stopped\)"):
        await world.supervisor.upstream("odd")
    world.supervisor.start("odd")
    await world.supervisor.upstream("odd")


async def test_waiting_for_a_start_is_bounded(world: World):
    world.apply(odd=odd("--slow", "600", "--chatty", timeouts=Timeouts(start=0.5)))
    began = time.monotonic()
    with pytest.raises(CallboardError, match=r"not ready \(starting\)"):
        await world.supervisor.upstream("odd")
    assert time.monotonic() - began < 5


async def test_an_unused_server_stops_and_the_next_call_starts_it(world: World):
    world.apply(odd=odd(timeouts=Timeouts(idle=0.3)))
    first = await world.supervisor.upstream("odd")
    busy = asyncio.ensure_future(call(first, "sleep", seconds=0.6))
    while not busy.done():
        assert world.status().state is State.READY  # a call in flight is use
        await asyncio.wait([busy], timeout=0.02)
    status = await world.reach(State.STOPPED)
    assert status.reason == "not used for 0.3 s"
    assert not is_running(first.pid or 0)
    second = await world.supervisor.upstream("odd")
    assert second.pid != first.pid


async def test_only_what_changed_is_started_anew(world: World):
    world.apply(one=odd(), two=odd(), gone=odd())
    one, two, gone = [await world.supervisor.upstream(name) for name in ("one", "two", "gone")]
    world.apply(new=odd(), two=odd(env={"A": "1"}), one=odd(display_name="One", timeouts=Timeouts(call=5)))
    assert world.supervisor.names == ["new", "two", "one"]
    assert world.supervisor.ready_upstream("one") is one
    assert world.supervisor.ready_upstream("two") is None
    assert (await world.supervisor.upstream("two")).pid != two.pid
    await world.supervisor.upstream("new")
    await until(lambda: not is_running(gone.pid or 0))
    with pytest.raises(CallboardError):
        world.supervisor.status("gone")


async def test_disabling_and_enabling_through_the_roster(world: World):
    world.apply(odd=odd())
    first = await world.supervisor.upstream("odd")
    world.apply(odd=odd(enabled=False))
    assert world.status().state is State.STOPPING
    await world.reach(State.DISABLED)
    assert not is_running(first.pid or 0)
    world.apply(odd=odd())
    await world.reach(State.READY)
    world.apply(odd=odd(enabled=False))
    world.apply(odd=odd())
    await until(lambda: world.history()[-1] is State.READY)
    assert world.history().count(State.STARTING) == 3


async def test_a_mended_entry_is_tried_at_once(world: World):
    world.apply(odd=LocalEntry(command="no-such-tool"))
    await world.reach(State.FAILED)
    world.apply(odd=odd())
    await world.reach(State.READY)
    world.supervisor.stop("odd")
    await world.reach(State.STOPPED)
    world.apply(odd=odd(env={"A": "1"}))
    await asyncio.sleep(0)
    assert world.status().state is State.STOPPED  # a person stopped it


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops need less time than they have in earnest."""
    monkeypatch.setitem(ChildProcess.stop.__kwdefaults__, "grace", 0.2)


@pytest.mark.usefixtures("impatient")
async def test_a_name_that_comes_back_waits_for_its_predecessor(world: World):
    world.apply(odd=odd("--ignore-term"))
    first = await world.supervisor.upstream("odd")
    world.apply()
    world.apply(odd=odd())
    world.apply()
    world.apply(odd=odd())
    assert is_running(first.pid or 0)
    second = await world.supervisor.upstream("odd")
    assert not is_running(first.pid or 0)
    assert is_running(second.pid or 0)


async def test_dead_servers_delay_no_other(world: World):
    dead = {f"dead{number}": odd("--silent") for number in range(5)}
    broken = {f"broken{number}": odd("--crash-before", "1") for number in range(3)}
    world.apply(**dead, **broken, **{f"good{number}": odd() for number in range(4)})
    for number in range(4):
        await world.reach(State.READY, name=f"good{number}")
    assert all(world.status(name).state is State.STARTING for name in dead)


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(connector, "SLOT_TIME", 60.0)


async def test_few_start_at_the_same_moment(one_core: None, world: World, monkeypatch: pytest.MonkeyPatch):
    names = [f"slow{number}" for number in range(7)]
    most = 0

    def count(_name: str) -> None:
        nonlocal most
        statuses = [world.status(name) for name in world.supervisor.names]
        most = max(most, sum(each.state is State.STARTING and each.pid is not None for each in statuses))

    monkeypatch.setattr(world.supervisor, "_on_change", count)
    world.apply(**{name: odd("--slow", "0.2") for name in names})
    for name in names:
        await world.reach(State.READY, name=name, seconds=60)
    assert most == 2, "two for each core"


async def test_noise_on_stdout_is_kept_and_the_server_too(world: World):
    world.apply(odd=odd("--noise"))
    await world.supervisor.upstream("odd")
    assert world.status().state is State.DEGRADED
    assert world.status().error_code == "stdout-noise"
    noise = [line.text for line in world.output.page("odd", 0, 99).lines if line.stream == "stdout"]
    assert noise == ["Server v1.0 ready!", "not json"]
    world.supervisor.clear_degraded("odd", "stdout-noise")
    assert world.status().state is State.READY


async def test_a_flood_on_stderr_does_not_keep_a_server_from_starting(world: World):
    world.apply(odd=odd("--flood"))
    upstream = await world.supervisor.upstream("odd")
    for _ in range(20):
        assert (await call(upstream, "echo", text="x")).error is None


async def test_a_remote_server_that_is_down_is_tried_on(world: World):
    world.remote_failure = CallboardError("remote-status", "HTTP 502")
    world.apply(odd=RemoteEntry(url="http://localhost:1/mcp", restart=Restart(max=1, delay=0)))
    await until(lambda: world.history().count(State.FAILED) == 1)
    failed = next(status for status in world.statuses["odd"] if status.state is State.FAILED)
    assert (failed.error_code, failed.reason) == ("remote-status", "HTTP 502")
    assert failed.next_retry is not None
    world.remote_failure = None
    await world.reach(State.READY)
    upstream = world.supervisor.ready_upstream("odd")
    assert isinstance(upstream, DownRemote)
    world.supervisor.reset("odd")
    world.remote_failure = CallboardError("remote-sign-in", "HTTP 401")
    upstream.closed.set_result(Closed("the connection was reset"))
    status = await world.reach(State.NEEDS_SIGN_IN)
    assert status.next_retry is None


async def test_an_error_of_ours_is_told_and_logged(world: World, caplog: pytest.LogCaptureFixture):
    world.remote_failure = ZeroDivisionError("ours")  # type: ignore[assignment]
    world.apply(odd=RemoteEntry(url="http://localhost:1/mcp"))
    status = await world.reach(State.FAILED)
    assert (status.error_code, status.reason) == ("internal", "ZeroDivisionError: ours")
    assert len(caplog.records) == 1


async def test_extra_connections_have_processes_of_their_own(world: World):
    world.apply(odd=odd(start="on-demand"))
    first, again, other = await asyncio.gather(*(world.supervisor.open_instance("odd", key) for key in ("a", "a", "b")))
    assert first is again
    assert first.pid != other.pid
    assert b"hi" in bytes((await call(first, "echo", text="hi")).result or b"")
    await world.supervisor.close_instance("odd", "a")
    assert not is_running(first.pid or 0)
    assert is_running(other.pid or 0)
    os.kill(other.pid or 0, signal.SIGKILL)
    await other.closed
    assert (await world.supervisor.open_instance("odd", "b")).pid != other.pid


async def test_extra_connections_end_with_the_server(world: World):
    world.apply(odd=odd(), slow=odd("--silent"))
    shared = await world.supervisor.upstream("odd")
    extra = await world.supervisor.open_instance("odd", "a")
    opening = asyncio.ensure_future(world.supervisor.open_instance("slow", "a"))
    await asyncio.sleep(0.05)
    world.supervisor.stop("slow")
    with pytest.raises(CallboardError, match="was stopped"):
        await opening
    world.supervisor.stop("odd")
    await until(lambda: not is_running(extra.pid or 0) and not is_running(shared.pid or 0))


async def test_an_extra_connection_that_cannot_be_made_says_why(world: World):
    world.apply(odd=odd("--crash-before", "7", start="manual"))
    with pytest.raises(CallboardError) as caught:
        await world.supervisor.open_instance("odd", "a")
    assert caught.value.code == "exited-early"


async def test_closing_ends_everything_at_once(world: World, tmp_path: Path):
    pidfile = tmp_path / "pid"
    world.apply(
        plain=odd(),
        stubborn=odd("--ignore-term"),
        wrapper=odd("--grandchild", pidfile),
        starting=odd("--silent"),
        crashing=odd("--crash-before", "1"),
    )
    pids = [(await world.supervisor.upstream(name)).pid or 0 for name in ("plain", "stubborn", "wrapper")]
    pids.append(await pid_in(pidfile))
    await until(lambda: world.status("starting").pid is not None)
    pids.append(world.status("starting").pid or 0)
    await world.supervisor.close()
    assert [pid for pid in pids if is_running(pid)] == []
    with pytest.raises(CallboardError):
        world.supervisor.start("plain")
    with pytest.raises(CallboardError):
        await world.supervisor.upstream("plain")

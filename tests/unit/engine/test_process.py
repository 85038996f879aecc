import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch
from callboard.engine import process
from callboard.engine.process import ChildProcess, ExitStatus
from callboard.system import exit_watch
from callboard.system.process_group import tie_to_parent
from tests.support.processes import is_running, odd_server, pid_in, until


class Output:
    """Collects what a process writes."""

    def __init__(self) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()

    async def until(self, condition: Callable[["Output"], object]) -> None:
        await until(lambda: condition(self))


Spawn = Callable[..., Awaitable[ChildProcess]]


@pytest.fixture
def output() -> Output:
    return Output()


@pytest.fixture
async def spawn(output: Output, tmp_path: Path) -> AsyncIterator[Spawn]:
    children: list[ChildProcess] = []

    async def spawn(*argv: str, cwd: Path | None = tmp_path, **environment: str) -> ChildProcess:
        child = await ChildProcess.spawn(
            LocalLaunch(argv, environment, cwd),
            environment=os.environ,
            on_stdout=output.stdout.extend,
            on_stderr=output.stderr.extend,
        )
        children.append(child)
        return child

    yield spawn
    for child in children:
        await child.stop(grace=0.1)


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-E", "-c", code]


async def test_output_is_there_when_the_exit_is_told(spawn: Spawn, output: Output):
    child = await spawn("sh", "-c", "echo out; echo err >&2; exit 3")
    status = await child.exited
    assert (status, status.sentence()) == (ExitStatus(3, None), "exited with code 3")
    assert (bytes(output.stdout), bytes(output.stderr)) == (b"out\n", b"err\n")


async def test_a_signal_is_told_by_its_name(spawn: Spawn):
    child = await spawn("sh", "-c", "kill -KILL $$")
    status = await child.exited
    assert (status, status.sentence()) == (ExitStatus(None, "SIGKILL"), "ended by SIGKILL")


async def test_arguments_and_environment_arrive_byte_for_byte(spawn: Spawn, output: Output):
    odd = ["", " ", "a b", "$HOME", "`x`", '"', "'", "*", "\\", "ä\udcff", "-x", "--"]
    code = (
        "import os,sys; os.write(1, b'|'.join(map(os.fsencode, sys.argv[1:])) + b'|' + os.fsencode(os.environ['ODD']))"
    )
    child = await spawn(*python(code), *odd, ODD="\udcfe é")
    assert await child.exited == ExitStatus(0, None)
    assert bytes(output.stdout).split(b"|") == [*map(os.fsencode, odd), b"\xfe \xc3\xa9"]


async def test_the_pid_is_that_of_the_program_itself(spawn: Spawn, output: Output):
    child = await spawn(*python("import os; os.write(1, b'%d %d' % (os.getpid(), os.getsid(0)))"))
    await child.exited
    assert bytes(output.stdout) == b"%d %d" % (child.pid, child.pid)


async def test_it_runs_where_it_is_told(spawn: Spawn, output: Output, tmp_path: Path):
    await (await spawn("pwd")).exited
    await (await spawn("pwd", cwd=None)).exited
    assert output.stdout.decode().split() == [str(tmp_path), os.environ["HOME"]]


async def test_commands_are_found_as_the_child_would_find_them(spawn: Spawn, output: Output, tmp_path: Path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    program = tmp_path / "two" / "my-tool"
    program.write_text("#!/bin/sh\necho $0\n")
    program.chmod(0o755)
    await (await spawn("my-tool", PATH=f"{tmp_path}/one:{tmp_path}/two")).exited
    await (await spawn("my-tool", PATH="two")).exited
    await (await spawn("./my-tool", cwd=tmp_path / "two")).exited
    assert output.stdout.decode().split() == [str(program)] * 3


async def refusal(spawn: Spawn, *argv: str, **environment: str) -> CallboardError:
    with pytest.raises(CallboardError) as caught:
        await spawn(*argv, **environment)
    return caught.value


async def test_a_command_that_does_not_exist_says_where_it_was_looked_for(spawn: Spawn, tmp_path: Path):
    error = await refusal(spawn, "no-such-tool", PATH="/usr/bin:/bin")
    assert (error.code, error.data) == ("command-not-found", {"command": "no-such-tool", "path": "/usr/bin:/bin"})
    assert "/usr/bin, /bin" in error.message
    assert (await refusal(spawn, "./nothing")).message == f"There is no program {tmp_path}/nothing."


async def test_a_file_that_is_not_marked_executable(spawn: Spawn, tmp_path: Path):
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    assert (await refusal(spawn, "./tool")).code == "command-not-executable"
    assert (await refusal(spawn, "tool", PATH=str(tmp_path))).code == "command-not-executable"
    assert (await refusal(spawn, str(tmp_path))).code == "command-not-executable"


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("#!/no/such/interpreter -x\n", "command-not-found", "needs /no/such/interpreter,"),
        ("#!/bin/sh\r\necho\r\n", "command-not-found", "carriage return"),
        ("#!/usr/bin/env no-such-node\n", "command-not-found", "needs no-such-node,"),
        ("#!/usr/bin/env -S no-such-node --x\n", "command-not-found", "needs no-such-node,"),
        ("echo hello\n", "command-not-executable", "first line"),
        ("", "command-not-executable", "first line"),
    ],
)
async def test_a_script_that_cannot_run_says_why(spawn: Spawn, tmp_path: Path, text: str, code: str, word: str):
    program = tmp_path / "tool"
    program.write_text(text)
    program.chmod(0o755)
    error = await refusal(spawn, "./tool")
    assert error.code == code
    assert word in error.message


async def test_a_folder_that_is_gone(spawn: Spawn, tmp_path: Path):
    with pytest.raises(CallboardError) as caught:
        await spawn("true", cwd=tmp_path / "gone")
    assert caught.value.code == "cwd-missing"


async def test_what_the_system_refuses(spawn: Spawn):
    error = await refusal(spawn, "true", *["x" * 100_000] * 100)
    assert error.code == "start-refused"
    assert "Argument list too long" in error.message
    assert (await refusal(spawn, "true", "a\0b")).code == "start-refused"


async def test_large_input_and_output_pass_whole(spawn: Spawn, output: Output):
    child = await spawn("cat")
    blocks = [os.urandom(1_500_000) for _ in range(4)]
    for block in blocks:
        child.write(block)
        await child.drain()
    child.close_stdin()
    assert await child.exited == ExitStatus(0, None)
    assert bytes(output.stdout) == b"".join(blocks)


async def test_what_is_written_together_arrives_whole_and_in_order(spawn: Spawn, output: Output):
    child = await spawn("cat")
    lines = [b"%d\n" % number * (number % 7 * 5000 + 1) for number in range(60)]
    for line in lines:
        child.write(line)
    child.close_stdin()
    child.write(b"too late")
    assert await child.exited == ExitStatus(0, None)
    assert bytes(output.stdout) == b"".join(lines)


async def test_drain_waits_until_the_child_reads(spawn: Spawn, tmp_path: Path):
    go = tmp_path / "go"
    child = await spawn("sh", "-c", f"while [ ! -e {go} ]; do sleep 0.01; done; cat >/dev/null")
    child.write(b"x" * 1_000_000)
    draining = asyncio.ensure_future(child.drain())
    await asyncio.wait([draining], timeout=0.05)
    assert not draining.done()
    go.touch()
    await draining
    assert await child.stop() == ExitStatus(0, None)


async def test_a_child_that_closes_its_input_harms_nobody(spawn: Spawn, output: Output):
    child = await spawn("sh", "-c", "exec <&-; echo closed; sleep 60")
    await output.until(lambda output: output.stdout)
    child.write(b"x" * 1_000_000)
    child.write(b"y")
    await child.drain()
    assert (await child.stop(grace=0.1)).signal == "SIGTERM"


async def test_a_paused_child_waits_and_goes_on(spawn: Spawn, output: Output):
    child = await spawn(*python("import os; [os.write(1, b'x' * 65536) for _ in range(160)]; os.write(2, b'done')"))
    child.pause_stdout()
    taken = len(output.stdout)
    await asyncio.sleep(0.1)  # time enough to write all of it, if somebody read
    assert len(output.stdout) == taken
    assert not output.stderr
    child.resume_stdout()
    await child.exited
    assert len(output.stdout) == 160 * 65536


async def test_an_error_in_a_callback_does_not_end_the_reading(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    chunks: list[bytes] = []

    def fails_once(data: bytes) -> None:
        chunks.append(data)
        if len(chunks) == 1:
            raise ValueError("ours")

    child = await ChildProcess.spawn(
        LocalLaunch(("sh", "-c", "echo one; read x; echo two"), cwd=tmp_path),
        environment=os.environ,
        on_stdout=fails_once,
        on_stderr=fails_once,
    )
    await until(lambda: chunks)
    child.write(b"go\n")
    assert await child.exited == ExitStatus(0, None)
    assert b"".join(chunks) == b"one\ntwo\n"
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("close", "stream"), [("exec >&-", "standard output"), ("exec <&-", "standard input")])
async def test_one_that_cannot_be_talked_with_any_more_is_ended(
    spawn: Spawn, output: Output, close: str, stream: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(process, "_MUTE", 0.1)
    monkeypatch.setattr(process, "_GRACE", 0.1)
    child = await spawn("sh", "-c", f"{close}; echo closed >&2; exec sleep 60")
    status = await child.exited
    assert output.stderr
    assert status.sentence() == f"closed its {stream} and was stopped; ended by SIGTERM"


async def test_one_that_closes_its_output_just_before_it_ends_is_not_accused(spawn: Spawn):
    child = await spawn("sh", "-c", "exec >&-; sleep 0.05; exit 5")
    assert await child.exited == ExitStatus(5, None)


async def test_stopping_lets_a_server_end_by_itself_first(spawn: Spawn):
    child = await spawn(*odd_server())
    assert await child.stop() == ExitStatus(0, None)
    assert await child.stop() == ExitStatus(0, None)


async def test_stopping_ends_one_that_ignores_everything(spawn: Spawn, output: Output):
    child = await spawn(*odd_server("--ignore-term", "--noise"))
    await output.until(lambda output: output.stdout)
    stops = await asyncio.gather(child.stop(grace=0.1), child.stop(grace=0.1))
    assert stops == [ExitStatus(None, "SIGKILL")] * 2


async def test_stopping_reaches_one_that_was_paused_in_mid_output(spawn: Spawn):
    child = await spawn(*python("import os\ntry:\n    while True: os.write(1, b'x' * 65536)\nexcept OSError: pass"))
    child.pause_stdout()
    assert (await child.stop(grace=0.2)).signal in ("SIGTERM", "SIGKILL")


@pytest.mark.parametrize("options", [[], ["--setsid"]])
async def test_stopping_ends_grandchildren_wherever_they_moved(spawn: Spawn, tmp_path: Path, options: list[str]):
    pidfile = tmp_path / "pid"
    child = await spawn(*odd_server("--grandchild", pidfile, *options))
    grandchild = await pid_in(pidfile)
    assert is_running(grandchild)
    await child.stop(grace=0.1)
    assert not is_running(grandchild)


async def test_grandchildren_get_the_chance_to_end_in_order(spawn: Spawn, output: Output, tmp_path: Path):
    # The wrapper leaves at once on SIGTERM; what it started needs a moment for its last words.
    inner = "trap 'sleep 0.2; echo saved; exit' TERM; echo ready; while :; do sleep 0.02; done"
    child = await spawn(*python(f"import subprocess; subprocess.Popen(['sh', '-c', {inner!r}]).wait()"))
    await output.until(lambda output: b"ready" in output.stdout)
    await child.stop(grace=0.5)
    assert b"saved" in output.stdout


async def test_a_wrapper_that_dies_does_not_leave_the_server(spawn: Spawn, tmp_path: Path):
    pidfile = tmp_path / "pid"
    child = await spawn(*odd_server("--grandchild", pidfile))
    grandchild = await pid_in(pidfile)
    os.kill(child.pid, signal.SIGKILL)
    assert await child.exited == ExitStatus(None, "SIGKILL")
    assert not is_running(grandchild)


@pytest.mark.timeout(120)
async def test_fifty_rounds_of_a_wrapper_with_a_grandchild_leave_nothing(spawn: Spawn, tmp_path: Path):
    async def one_round(number: int) -> int:
        pidfile = tmp_path / f"pid{number}"
        child = await spawn(*odd_server("--grandchild", pidfile, *(["--setsid"] if number % 2 else [])))
        grandchild = await pid_in(pidfile)
        await child.stop(grace=0.1)
        return grandchild

    grandchildren: list[int] = []
    for start in range(0, 50, 5):
        grandchildren += await asyncio.gather(*(one_round(number) for number in range(start, start + 5)))
    assert len(grandchildren) == 50
    assert [pid for pid in grandchildren if is_running(pid)] == []


async def test_a_cancelled_stop_goes_on(spawn: Spawn):
    child = await spawn(*odd_server("--ignore-term"))
    stopping = asyncio.ensure_future(child.stop(grace=0.1))
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert (await child.exited).signal in ("SIGTERM", "SIGKILL")


async def test_the_end_is_seen_without_the_kernels_help_too(spawn: Spawn, monkeypatch: pytest.MonkeyPatch):
    def unknown(pid: int) -> int:
        raise OSError("not in this kernel")

    monkeypatch.setattr(exit_watch, "_exit_descriptor", unknown)
    child = await spawn("sh", "-c", "exit 4")
    assert await child.exited == ExitStatus(4, None)


def test_it_works_on_the_loop_that_the_engine_prefers(tmp_path: Path):
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        chunks: list[bytes] = []
        launch = LocalLaunch(("sh", "-c", "cat; echo $$ >&2; exit 7"), cwd=tmp_path)
        child = await ChildProcess.spawn(launch, environment=os.environ, on_stdout=chunks.append, on_stderr=len)
        block = os.urandom(3_000_000)
        child.write(block)
        await child.drain()
        child.close_stdin()
        assert await child.exited == ExitStatus(7, None)
        assert b"".join(chunks) == block
        pidfile = tmp_path / "pid"
        launch = LocalLaunch(tuple(odd_server("--grandchild", pidfile)), cwd=tmp_path)
        child = await ChildProcess.spawn(launch, environment=os.environ, on_stdout=len, on_stderr=len)
        grandchild = await pid_in(pidfile)
        assert (await child.stop(grace=0.1)).code == 143
        assert not is_running(grandchild)
        launch = LocalLaunch(("sh", "-c", "exec <&-; sleep 60"), cwd=tmp_path)
        child = await ChildProcess.spawn(launch, environment=os.environ, on_stdout=len, on_stderr=len)
        assert "standard input" in (await child.exited).sentence()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


HOST = """
import asyncio, os, sys
from callboard.core.launch import LocalLaunch
from callboard.engine import process
from callboard.engine.process import ChildProcess

async def main():
    child = await ChildProcess.spawn(
        LocalLaunch(tuple(sys.argv[1:])), environment=os.environ, on_stdout=print, on_stderr=print
    )
    print(child.pid, flush=True)
    await child.exited

asyncio.run(main())
"""


@pytest.mark.skipif(tie_to_parent(["x"]) == ["x"], reason="setpriv is not installed")
async def test_nothing_survives_the_killing_of_the_process_that_owns_it():
    # One that ignores SIGTERM and the end of its input: only the kernel can end it.
    command = [sys.executable, "-c", HOST, *odd_server("--ignore-term")]
    host = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert host.stdout is not None
    pid = int(await asyncio.to_thread(host.stdout.readline))
    # From the moment on that the program itself runs; until then the next engine would have to find it.
    await until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(os.fsencode(sys.executable)))
    host.kill()
    await asyncio.to_thread(host.wait)
    host.stdout.close()
    await until(lambda: not is_running(pid))

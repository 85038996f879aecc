import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from callboard.engine.leftovers import MARK, Leftovers
from tests.support.processes import is_running, odd_server, pid_in, until

# Stands for an engine: starts the server, notes it, and waits to be killed.
HOST = f"""
import asyncio, os, sys
from pathlib import Path
from callboard.core.launch import LocalLaunch
from callboard.engine.leftovers import Leftovers
from callboard.engine.process import ChildProcess
from callboard.system import process_group

async def main():
    if sys.argv[2] != "tied":
        process_group.tie_to_parent = list
    leftovers = Leftovers(Path(sys.argv[1]))
    mark = leftovers.expect("odd")
    child = await ChildProcess.spawn(
        LocalLaunch(tuple(sys.argv[3:]), {{"{MARK}": mark}}),
        environment=os.environ, on_stdout=len, on_stderr=len,
    )
    if sys.argv[2] != "unnoted":
        leftovers.add(mark, child.pid)
    print(child.pid, flush=True)
    await child.exited

asyncio.run(main())
"""


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return tmp_path / "state" / "processes.json"


async def killed_engine(notes: Path, tied: str, *command: str) -> int:
    """Runs an engine with one server and kills it; the pid of the server's process."""
    host = subprocess.Popen([sys.executable, "-c", HOST, str(notes), tied, *command], stdout=subprocess.PIPE)
    assert host.stdout is not None
    pid = int(await asyncio.to_thread(host.stdout.readline))
    if "--grandchild" in command:
        await pid_in(Path(command[command.index("--grandchild") + 1]))
    host.kill()
    await asyncio.to_thread(host.wait)
    host.stdout.close()
    return pid


async def test_a_process_that_the_kernel_did_not_end_is_ended_by_the_next_engine(notes: Path):
    pid = await killed_engine(notes, "untied", *odd_server("--ignore-term"))
    assert is_running(pid)
    assert await Leftovers(notes).end_previous(grace=0.2) == ["odd"]
    await until(lambda: not is_running(pid))
    assert not notes.exists()


@pytest.mark.parametrize("options", [[], ["--setsid"]])
async def test_grandchildren_are_found_though_their_parent_is_gone(notes: Path, tmp_path: Path, options: list[str]):
    pidfile = tmp_path / "pid"
    pid = await killed_engine(notes, "tied", *odd_server("--grandchild", pidfile, *options))
    grandchild = int(pidfile.read_text())
    await until(lambda: not is_running(pid))
    assert is_running(grandchild)
    assert await Leftovers(notes).end_previous(grace=2) == ["odd"]
    await until(lambda: not is_running(grandchild))


async def test_what_was_not_noted_yet_is_found_by_its_mark(
    notes: Path, tmp_path: Path, stranger: "subprocess.Popen[bytes]"
):
    pidfile = tmp_path / "pid"
    pid = await killed_engine(notes, "unnoted", *odd_server("--ignore-term", "--grandchild", pidfile, "--setsid"))
    grandchild = int(pidfile.read_text())
    assert is_running(pid)
    assert is_running(grandchild)
    assert await Leftovers(notes).end_previous(grace=0.2) == ["odd"]
    await until(lambda: not is_running(pid) and not is_running(grandchild))
    assert stranger.poll() is None
    assert not notes.exists()


@pytest.fixture
def stranger() -> Any:
    """A process that is none of ours."""
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


async def test_a_pid_alone_is_no_proof(notes: Path, stranger: "subprocess.Popen[bytes]"):
    before = Leftovers(notes)
    before.add(before.expect("odd"), stranger.pid)
    item = json.loads(notes.read_text())[0]
    item["started"] += "0"  # another process had this number
    notes.write_text(json.dumps([item]))
    assert await Leftovers(notes).end_previous(grace=0.1) == []
    assert stranger.poll() is None
    assert not notes.exists()


async def test_a_stranger_in_the_session_is_spared(notes: Path):
    # Same session and pipes, but without the mark that our children inherit.
    before = Leftovers(notes)
    before.add(before.expect("odd"), os.getpid())
    item = json.loads(notes.read_text())[0]
    item["started"] = "long ago"
    notes.write_text(json.dumps([item | {"pid": os.getsid(0)}]))
    assert await Leftovers(notes).end_previous(grace=0.1) == []


async def test_what_ended_in_order_is_forgotten(notes: Path, stranger: "subprocess.Popen[bytes]"):
    leftovers = Leftovers(notes)
    mark = leftovers.expect("odd")
    leftovers.add(mark, stranger.pid)
    assert [item["server"] for item in json.loads(notes.read_text())] == ["odd"]
    leftovers.remove(mark)
    leftovers.remove(mark)
    leftovers.add(mark, stranger.pid)  # too late
    assert not notes.exists()
    assert await Leftovers(notes).end_previous() == []


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"pid": "x"}]', '[{"server": "x"}]'])
async def test_a_damaged_list_ends_nothing(notes: Path, text: str, caplog: pytest.LogCaptureFixture):
    notes.parent.mkdir()
    notes.write_text(text)
    assert await Leftovers(notes).end_previous() == []
    assert len(caplog.records) == 1


async def test_a_list_that_cannot_be_written_is_told_once(
    tmp_path: Path, stranger: "subprocess.Popen[bytes]", caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    leftovers = Leftovers(tmp_path / "file" / "processes.json")
    mark = leftovers.expect("odd")
    leftovers.add(mark, stranger.pid)
    leftovers.remove(mark)
    assert len(caplog.records) == 1

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from callboard.engine import figures
from callboard.engine.figures import FigureWatch, Sampler

BUSY = "import time\nwhile True: pass"
TREE = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", {BUSY!r}], start_new_session=True)
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def tree() -> Iterator["subprocess.Popen[str]"]:
    """A process that sleeps, with a child in a session of its own that does not."""
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", TREE], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    child = int(process.stdout.readline())
    yield process
    process.kill()
    os.kill(child, 9)
    process.wait()
    process.stdout.close()


def test_a_tree_is_measured_as_a_whole(tree: "subprocess.Popen[str]"):
    sampler = Sampler()
    first = sampler.take({"server": [tree.pid]})["server"]
    assert (first.cpu_percent, first.processes) == (None, 2)
    assert first.memory_bytes > 4 * 1024 * 1024
    time.sleep(0.3)  # the kernel counts in hundredths of a second
    second = sampler.take({"server": [tree.pid]})["server"]
    assert second.cpu_percent is not None
    assert second.cpu_percent > 0
    assert second.memory_bytes > 4 * 1024 * 1024


def test_who_has_ended_is_left_out(tree: "subprocess.Popen[str]"):
    ended = subprocess.Popen([sys.executable, "-S", "-c", ""])
    ended.wait()
    found = Sampler().take({"gone": [ended.pid], "here": [tree.pid], "none": []})
    assert list(found) == ["here"]


def test_two_processes_of_one_server_are_added_up(tree: "subprocess.Popen[str]"):
    other = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], start_new_session=True)
    assert Sampler().take({"server": [tree.pid, other.pid]})["server"].processes == 3
    other.kill()
    other.wait()


async def test_nothing_is_measured_unless_somebody_looks(tree: "subprocess.Popen[str]"):
    asked: list[float] = []

    def roots() -> dict[str, list[int]]:
        asked.append(time.monotonic())
        return {"server": [tree.pid]}

    watch = FigureWatch(roots)
    await asyncio.sleep(0.05)
    assert not asked
    assert watch.of("server") is None
    samples = watch.follow()
    sample = await anext(samples)
    assert sample.servers["server"].cpu_percent is not None
    assert watch.of("server") == sample.servers["server"]
    assert watch.of("other") is None
    await samples.aclose()
    count = len(asked)
    await asyncio.sleep(0.3)
    assert len(asked) == count
    await watch.close()


async def test_many_who_look_share_the_samples(tree: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(figures, "INTERVAL", 0.05)
    watch = FigureWatch(lambda: {"server": [tree.pid]})
    first, second = watch.follow(), watch.follow()
    one, other = await asyncio.gather(anext(first), anext(second))
    assert one is other
    await first.aclose()
    assert (await anext(second)).at > other.at
    await watch.close()
    assert [sample async for sample in second] == []


async def test_a_glance_measures_once(tree: "subprocess.Popen[str]"):
    watch = FigureWatch(lambda: {"server": [tree.pid]})
    await watch.fresh()
    found = watch.of("server")
    assert found is not None
    assert found.cpu_percent is not None
    assert found.processes == 2
    await watch.close()

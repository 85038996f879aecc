"""CPU and memory of what the servers run, measured only while somebody looks."""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Final

from callboard.api.schema import Figures, FiguresView
from callboard.engine import tasks

if TYPE_CHECKING:
    import psutil

INTERVAL: Final = 2.0  # seconds between two samples while somebody looks
GLANCE: Final = 0.2  # seconds between the two samples of one who looks but once
FRESH: Final = 5.0  # seconds for which a sample holds

Roots = Mapping[str, list[int]]


class Sampler:
    """Adds up what the processes below some roots use. Used by one thread at a time."""

    def __init__(self) -> None:
        self._spent: dict[tuple[int, float], float] = {}  # seconds of CPU by pid and time of start
        self._at: float | None = None

    def take(self, roots: Roots) -> dict[str, Figures]:
        """The figures of each name whose roots run. CPU is that since the last sample, None in the first one."""
        trees = _trees(roots)
        now = time.monotonic()
        elapsed = None if self._at is None else now - self._at
        spent: dict[tuple[int, float], float] = {}
        found = {}
        for name, members in trees.items():
            used, memory, count = 0.0, 0, 0
            for process in members:
                measured = _measure(process)
                if measured is None:
                    continue
                key, cpu, resident = measured
                spent[key] = cpu
                used += cpu - self._spent.get(key, 0.0 if self._at is not None else cpu)
                memory += resident
                count += 1
            if count:
                percent = round(max(0.0, used) / elapsed * 100, 1) if elapsed else None
                found[name] = Figures(cpu_percent=percent, memory_bytes=memory, processes=count)
        self._spent, self._at = spent, now
        return found


def _trees(roots: Roots) -> dict[str, list["psutil.Process"]]:
    """The processes of each name: the roots, all below them, and who is in the session of a root."""
    import psutil

    owner = {pid: name for name, pids in roots.items() for pid in pids}
    trees: dict[str, list[psutil.Process]] = {name: [] for name in roots}
    parents: dict[int, int] = {}
    processes: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            parents[process.pid] = process.ppid()
            processes[process.pid] = process
    for pid, process in processes.items():
        name = owner.get(_session(pid)) or _owner_above(pid, parents, owner)
        if name is not None:
            trees[name].append(process)
    return trees


def _owner_above(pid: int, parents: dict[int, int], owner: dict[int, str]) -> str | None:
    seen = set()
    while pid and pid not in seen:
        if pid in owner:
            return owner[pid]
        seen.add(pid)
        pid = parents.get(pid, 0)
    return None


def _session(pid: int) -> int:
    if os.name == "posix":
        with contextlib.suppress(OSError):
            return os.getsid(pid)
    return 0


def _measure(process: "psutil.Process") -> tuple[tuple[int, float], float, int] | None:
    """Who the process is, its seconds of CPU, and its resident bytes; None if it has ended."""
    import psutil

    try:
        with process.oneshot():
            times = process.cpu_times()
            resident = process.memory_info().rss
            return (process.pid, process.create_time()), times.user + times.system, resident
    except psutil.Error:
        return None


class FigureWatch:
    """Samples every two seconds while at least one follows. Engine loop only; the measuring is done in a thread."""

    def __init__(self, roots: Callable[[], Roots]) -> None:
        """``roots`` gives the pids of each server's first processes, asked before each sample."""
        self._roots = roots
        self._sampler = Sampler()
        self._lock = asyncio.Lock()
        self._followers = 0
        self._task: asyncio.Task[None] | None = None
        self._next: asyncio.Event = asyncio.Event()
        self._latest = FiguresView(at=0.0, servers={})
        self._taken = -FRESH
        self._closed = False

    def of(self, server: str) -> Figures | None:
        """A server's figures if they were measured lately."""
        return self._latest.servers.get(server) if time.monotonic() - self._taken < FRESH else None

    async def fresh(self) -> None:
        """Make :meth:`of` answer, for one who looks but once."""
        if time.monotonic() - self._taken < INTERVAL + GLANCE and self._followers:
            return
        await self._sample()
        await asyncio.sleep(GLANCE)
        await self._sample()

    async def follow(self) -> AsyncGenerator[FiguresView, None]:
        """Each sample as it is taken, until the caller stops or the engine does."""
        self._followers += 1
        if self._task is None:
            self._task = tasks.spawn(self._run(), "measure the servers")
        try:
            while not self._closed:
                await self._next.wait()
                if not self._closed:
                    yield self._latest
        finally:
            self._followers -= 1
            if not self._followers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def close(self) -> None:
        """End all followings."""
        self._closed = True
        self._next.set()
        task, self._task = self._task, None
        if task is not None:
            await tasks.cancel_and_wait(task)

    async def _run(self) -> None:
        await self._sample()
        await asyncio.sleep(GLANCE)
        while True:
            await self._sample()
            tick, self._next = self._next, asyncio.Event()
            tick.set()
            await asyncio.sleep(INTERVAL)

    async def _sample(self) -> None:
        async with self._lock:
            servers = await asyncio.to_thread(self._sampler.take, self._roots())
            self._latest = FiguresView(at=time.time(), servers=servers)
            self._taken = time.monotonic()

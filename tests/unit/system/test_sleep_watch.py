import asyncio

import pytest

from callboard.system import sleep_watch
from callboard.system.sleep_watch import SleepWatch


class Clocks:
    """A clock that stands still during sleep, and one that does not."""

    def __init__(self) -> None:
        self.running = 100.0
        self.total = 5000.0
        self.wakes = 0

    def work(self, seconds: float) -> None:
        self.running += seconds
        self.total += seconds

    def sleep(self, seconds: float) -> None:
        self.total += seconds

    def watch(self) -> SleepWatch:
        def woke() -> None:
            self.wakes += 1

        return SleepWatch(woke, running=lambda: self.running, total=lambda: self.total)


async def test_a_sleep_is_noticed_once():
    clocks = Clocks()
    watch = clocks.watch()
    watch.start()
    clocks.work(10)
    watch.look()
    assert clocks.wakes == 0
    clocks.work(3)
    clocks.sleep(3600)
    clocks.work(7)
    watch.look()
    assert clocks.wakes == 1
    clocks.work(10)
    watch.look()
    assert clocks.wakes == 1
    watch.close()
    watch.close()


async def test_a_busy_computer_is_not_asleep():
    clocks = Clocks()
    watch = clocks.watch()
    watch.start()
    clocks.work(120)
    watch.look()
    clocks.sleep(1)
    watch.look()
    assert clocks.wakes == 0
    watch.close()


async def test_it_looks_by_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sleep_watch, "TICK", 0.01)
    woke = asyncio.Event()
    clocks = Clocks()
    watch = SleepWatch(woke.set, running=lambda: clocks.running, total=lambda: clocks.total)
    watch.start()
    clocks.sleep(60)
    await asyncio.wait_for(woke.wait(), 5)
    watch.close()


async def test_the_system_s_own_clocks_tell_of_no_sleep_where_there_is_none():
    woke: list[bool] = []
    watch = SleepWatch(lambda: woke.append(True))
    watch.start()
    watch.look()
    watch.close()
    assert not woke

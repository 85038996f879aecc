"""The window's loop: asyncio's timers on Qt's."""

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication

from callboard.ui.loop import WindowLoop


@pytest.fixture
def loop(qapp: QApplication) -> Iterator[WindowLoop]:
    loop = WindowLoop(qapp)
    yield loop
    loop.close()


def test_timers_fire_in_the_order_of_their_times(loop: WindowLoop) -> None:
    order: list[int] = []

    async def main() -> None:
        done = asyncio.Event()
        loop.call_later(0.03, order.append, 3)
        loop.call_later(0.01, order.append, 1)
        loop.call_later(0.02, order.append, 2)
        loop.call_later(0.04, done.set)
        await done.wait()

    loop.run_until_complete(main())
    assert order == [1, 2, 3]


def test_a_timer_tells_its_time_and_can_be_cancelled(loop: WindowLoop) -> None:
    fired: list[str] = []

    async def main() -> None:
        timer = loop.call_later(0.01, fired.append, "cancelled")
        assert isinstance(timer, asyncio.TimerHandle)
        assert timer.when() > loop.time()
        timer.cancel()
        await asyncio.sleep(0.03)

    loop.run_until_complete(main())
    assert fired == []


def test_cancelled_timers_do_not_pile_up(loop: WindowLoop) -> None:
    async def main() -> None:
        for _ in range(5_000):
            loop.call_later(300, print).cancel()
        assert len(loop._deadlines) < 200
        async with asyncio.timeout(60):
            await asyncio.sleep(0.001)

    loop.run_until_complete(main())


def test_timeouts_work(loop: WindowLoop) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()

    loop.run_until_complete(main())


def test_an_earlier_timer_overtakes_a_later_one(loop: WindowLoop) -> None:
    async def main() -> float:
        late = loop.call_later(60, print)
        start = loop.time()
        await asyncio.sleep(0.005)
        late.cancel()
        return loop.time() - start

    assert loop.run_until_complete(main()) < 30


def test_a_callback_that_fails_does_not_stop_the_others(loop: WindowLoop) -> None:
    failures: list[object] = []
    fired: list[int] = []

    async def main() -> None:
        loop.set_exception_handler(lambda _loop, context: failures.append(context["exception"]))
        loop.call_later(0.001, lambda: 1 / 0)
        loop.call_later(0.001, fired.append, 1)
        await asyncio.sleep(0.01)

    loop.run_until_complete(main())
    assert fired == [1]
    assert isinstance(failures[0], ZeroDivisionError)

import asyncio

import pytest

from callboard.engine.tasks import cancel_and_wait, spawn


async def test_a_task_that_fails_is_logged_with_its_name(caplog: pytest.LogCaptureFixture):
    async def fails() -> None:
        raise ValueError("ours")

    task = spawn(fails(), "the task")
    await asyncio.wait([task])
    await asyncio.sleep(0)
    assert [record.getMessage() for record in caplog.records] == ["The task the task failed"]
    assert caplog.records[0].exc_info is not None


async def test_the_result_is_still_the_callers():
    async def answers() -> int:
        return 42

    assert await spawn(answers(), "answer") == 42


async def test_cancelling_is_no_failure():
    tasks = [spawn(asyncio.Event().wait(), f"wait {number}") for number in range(3)]
    await asyncio.sleep(0)
    await cancel_and_wait(*tasks)
    assert all(task.cancelled() for task in tasks)
    await cancel_and_wait()

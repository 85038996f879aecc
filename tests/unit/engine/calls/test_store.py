"""What happens to the log when the disk is full, locked or damaged, and when calls grow old or many."""

import asyncio
import resource
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from callboard.engine.calls.log import CallLog
from callboard.engine.calls.record import MIB, Limits
from callboard.engine.calls.table import used_bytes
from tests.unit.engine.calls.conftest import OpenLog, plain

SOON = Limits(retry=0.0, busy=0.05)


def call(log: CallLog, size: int = 10) -> int:
    record = log.begin("codex", "files", "tools/call", "read", b'"' + b"x" * size + b'"')
    log.end(record, "completed", b"{}")
    return record.id


def codes(log: CallLog) -> list[str]:
    return [notice.code for notice in log.notices]


@contextmanager
def no_room() -> Iterator[None]:
    """No file of this process may grow beyond a few pages."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.allow_logs
async def test_full_disk_keeps_the_last_calls_in_memory_and_writes_them_later(
    open_log: OpenLog, caplog: pytest.LogCaptureFixture
) -> None:
    told = asyncio.Event()
    async with open_log(limits=SOON, on_notices=told.set) as log:
        call(log)
        slow = log.begin("codex", "files", "tools/call", "slow", b'{"kept":1}')
        await log.flush()
        with no_room():
            for _ in range(20):
                call(log, 20_000)
                await log.flush()
            log.end(slow, "completed", b'{"done":1}')
            await told.wait()
            assert codes(log) == ["call-log-unwritable"]
            assert [c.id for c in (await log.page()).calls][-5:] == [18, 19, 20, 21, 22]
            assert len((await log.detail(22)).arguments) == 20_002
        call(log)
        await log.flush()
        assert codes(log) == []
        assert [c.id for c in (await log.page()).calls] == [*range(1, 24)]
        done = await log.detail(slow.id)
        assert (done.status, done.arguments, done.result) == ("completed", '{"kept":1}', '{"done":1}')
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1
    async with open_log() as log:
        assert (await log.page()).total == 23


@pytest.mark.allow_logs
async def test_memory_keeps_only_the_last_calls_and_the_gap_is_counted_right(open_log: OpenLog) -> None:
    async with open_log(limits=Limits(retry=0.0, busy=0.05, memory_calls=5)) as log:
        call(log)
        await log.flush()
        with no_room():
            for _ in range(40):
                call(log, 20_000)
                await log.flush()
            page = await log.page()
            assert (page.total, page.calls[-1].id) == (5, 41)
            assert await log.count_since(0) == 5
        call(log)
        page = await log.page()
        ids = [c.id for c in page.calls]
        assert page.total == len(ids) < 42
        assert (ids[0], ids[-6:]) == (1, [37, 38, 39, 40, 41, 42])
        assert (await log.page(offset=page.total - 2, limit=5)).calls == page.calls[-2:]
        assert await log.count_since(0) == page.total


@pytest.mark.allow_logs
async def test_file_locked_by_another_program_does_not_stop_the_log(open_log: OpenLog, path: Path) -> None:
    async with open_log(limits=SOON) as log:
        call(log)
        await log.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            call(log)
            await log.flush()
            assert codes(log) == ["call-log-unwritable"]
            assert [c.id for c in (await log.page()).calls] == [2]
            other.execute("ROLLBACK")
        call(log)
        assert [c.id for c in (await log.page()).calls] == [1, 2, 3]
        assert codes(log) == []


@pytest.mark.allow_logs
async def test_place_that_cannot_be_written_is_said_and_left_alone(open_log: OpenLog, path: Path) -> None:
    path.mkdir()
    async with open_log(limits=SOON) as log:
        assert codes(log) == ["call-log-unwritable"]
        assert call(log) == 1
        assert (await log.detail(1)).tool == "read"
    assert list(path.iterdir()) == []


@pytest.mark.allow_logs
@pytest.mark.parametrize("content", [b"this is no database" * 500, b"SQLite format 3\x00" + b"\xff" * 8176])
async def test_damaged_file_is_put_aside_and_a_new_log_begun(open_log: OpenLog, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    async with open_log() as log:
        assert codes(log) == ["call-log-broken"]
        assert call(log) == 1
        assert (await log.page()).total == 1
    assert path.with_name(path.name + ".broken").read_bytes() == content
    async with open_log() as log:
        assert codes(log) == []
        assert (await log.page()).total == 1


@pytest.mark.allow_logs
async def test_file_of_a_newer_version_is_put_aside(open_log: OpenLog, path: Path) -> None:
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 99")
    async with open_log() as log:
        assert codes(log) == ["call-log-broken"]
        assert call(log) == 1
    assert path.with_name(path.name + ".broken").exists()


@pytest.mark.allow_logs
async def test_damage_found_later_is_put_aside_and_ids_go_on(open_log: OpenLog, path: Path) -> None:
    async with open_log() as log:
        for _ in range(1000):
            call(log, 300)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE calls SET started = 0")
        other.commit()
    with path.open("r+b") as file:
        # the middle of the table: its ends, which are read at the opening, stay whole
        file.seek(path.stat().st_size // 3)
        file.write(b"\xff" * (path.stat().st_size // 3))
    async with open_log() as log:
        call(log)
        await log.flush()
        assert call(log) == 1002
        assert [c.id for c in (await log.page()).calls][-1] == 1002
        assert codes(log) == ["call-log-broken"]


async def test_old_calls_go(open_log: OpenLog, path: Path) -> None:
    async with open_log() as log:
        for _ in range(10):
            call(log)
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE calls SET started = ? WHERE id <= 4", (time.time() - 31 * 86400,))
        other.commit()
    async with open_log() as log:
        call(log)
        await log.flush()
        page = await log.page()
        assert [c.id for c in page.calls] == [5, 6, 7, 8, 9, 10, 11]
        assert page.total == 7


async def test_file_stays_under_its_bound_and_keeps_the_newest(open_log: OpenLog, path: Path) -> None:
    limits = Limits(size=2 * MIB)
    async with open_log(limits=limits) as log:
        for _ in range(200):
            call(log, 30_000)
            await log.flush()
        page = await log.page()
        assert page.calls[-1].id == 200
        assert 40 < page.total < 75
        assert [c.id for c in page.calls] == [*range(201 - page.total, 201)]
    assert path.stat().st_size < 3 * MIB


async def test_call_that_ends_after_its_row_was_deleted_does_not_come_back(open_log: OpenLog) -> None:
    async with open_log(limits=Limits(size=1 * MIB)) as log:
        slow = log.begin("codex", "files", "tools/call", "slow", b"{}")
        for _ in range(100):
            call(log, 30_000)
            await log.flush()
        log.end(slow, "completed", b"{}")
        page = await log.page()
        assert page.calls[0].id > slow.id
        assert page.total == page.calls[-1].id - page.calls[0].id + 1


async def test_room_of_many_deleted_calls_is_given_back(open_log: OpenLog, path: Path) -> None:
    async with open_log(limits=Limits(size=64 * MIB)) as log:
        for _ in range(600):
            call(log, 60_000)
    assert path.stat().st_size > 30 * MIB
    async with open_log(limits=Limits(size=4 * MIB)):
        with closing(sqlite3.connect(path)) as other:
            while sum(used_bytes(other)) > 24 * MIB:  # noqa: ASYNC110  # a file sends no event
                await asyncio.sleep(0.01)
    assert path.stat().st_size < 24 * MIB


@pytest.mark.allow_logs
async def test_calls_beyond_what_a_hanging_disk_can_take_are_counted_not_kept(path: Path) -> None:
    limits = Limits(backlog=100_000, backlog_calls=50, batch=10_000, busy=30.0)
    log = CallLog(path, plain, limits)
    await log.open()
    call(log)
    await log.flush()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ids = [call(log, 11_000) for _ in range(100)]
        assert ids[-1] == 0
        assert codes(log) == ["call-log-behind"]
        other.execute("ROLLBACK")
    page = await log.page()
    assert page.total == 1 + len([n for n in ids if n])
    kept = [await log.detail(n) for n in (ids[0], ids[40])]
    assert [(len(k.arguments), k.arguments_cut) for k in kept] == [(11_002, False), (0, True)]
    assert call(log) == page.total + 1
    await log.close()


async def test_a_lower_bound_holds_from_the_next_call_on(open_log: OpenLog, path: Path) -> None:
    async with open_log(limits=Limits(size=64 * MIB)) as log:
        for _ in range(300):
            call(log, 30_000)
        await log.flush()
        log.keep(payload=64 * 1024, age=86400.0, size=2 * MIB)
        call(log, 100)
        await log.flush()
        async with asyncio.timeout(60):
            while (await log.page()).total > 75:
                pass
    with closing(sqlite3.connect(path)) as other:
        assert used_bytes(other)[0] < 3 * MIB


async def test_room_of_calls_that_were_too_old_is_given_back(open_log: OpenLog, path: Path) -> None:
    async with open_log(limits=Limits(size=200 * MIB)) as log:
        for _ in range(600):
            call(log, 60_000)
    assert path.stat().st_size > 30 * MIB
    async with open_log(limits=Limits(size=200 * MIB, age=0.0)):
        with closing(sqlite3.connect(path)) as other:
            while sum(used_bytes(other)) > 24 * MIB:  # noqa: ASYNC110  # a file sends no event
                await asyncio.sleep(0.01)
    assert path.stat().st_size < 24 * MIB

"""The call log in a database that engines share, against a real PostgreSQL."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable

import pytest

from callboard.api.schema import CallPage
from callboard.core.errors import CallboardError
from callboard.engine.storage.tables import SPAN
from tests.support.balancer import Balancer
from tests.support.postgresql import PostgresServer
from tests.support.processes import until
from tests.unit.engine.storage.conftest import MakeEngine, SharingEngine

pytestmark = pytest.mark.timeout(180)  # real databases, and waits for what they tell


async def wait_for_calls(engine: SharingEngine, condition: Callable[[CallPage], bool], **filters: str) -> CallPage:
    """The newest calls, once they are as wanted and the database answers."""
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(CallboardError):  # storage-away
                page = await engine.log.page(**filters)
                if condition(page):
                    return page
            await asyncio.sleep(0.05)


async def test_every_engine_sees_the_calls_of_all(engine: MakeEngine) -> None:
    one, two = await engine("one"), await engine("two")
    one.call("read")
    two.call("write")
    await two.log.flush()
    page = await wait_for_calls(one, lambda page: page.total == 2)
    assert [(call.engine, call.tool, call.status) for call in page.calls] == [
        ("one", "read", "completed"),
        ("two", "write", "completed"),
    ]
    assert len({call.id // SPAN for call in page.calls}) == 2
    detail = await one.log.detail(page.calls[1].id)
    assert (detail.engine, detail.arguments, detail.result) == ("two", '{"a": 1}', "{}")
    with pytest.raises(CallboardError, match="No call 1 is in the log"):
        await one.log.detail(1)


async def test_filters_and_pages(engine: MakeEngine) -> None:
    one, two = await engine("one"), await engine("two")
    for number in range(50):
        (one, two)[number % 2].call(f"tool{number:02}", result=b'{"said": "100%_\\u00e4"}' if number == 7 else b"{}")
        await asyncio.sleep(0.001)
    await two.log.flush()
    assert (await one.log.page(engine="two")).total == 25
    assert [call.tool for call in (await one.log.page(tool="tool09")).calls] == ["tool09"]
    assert [call.tool for call in (await one.log.page(text="100%_ä")).calls] == ["tool07"]
    assert (await one.log.page(text="SAID")).total == 1
    assert (await one.log.page(client="cursor")).calls == []
    whole = await one.log.page(limit=1000)
    assert [call.tool for call in whole.calls] == [f"tool{number:02}" for number in range(50)]
    for offset in (0, 3, 24, 25, 26, 40, 49, 50):
        page = await one.log.page(offset=offset, limit=5)
        assert page == CallPage(calls=whole.calls[offset : offset + 5], offset=offset, total=50)
    assert (await one.log.page(limit=7)).calls == whole.calls[43:]
    assert await one.log.count_since(whole.calls[10].started) == 40


async def test_live_calls_have_the_ids_of_the_log(engine: MakeEngine) -> None:
    one = await engine()
    one.call("slow", result=None)
    one.call("fast")
    await one.log.flush()
    page = await one.log.page()
    logged = {call.id: call.status for call in page.calls}
    await until(lambda: {view.id: view.status for view in one.views} == logged, seconds=30)
    assert {view.engine for view in one.views} == {"one"}


async def test_calls_wait_while_the_database_is_away(
    engine: MakeEngine, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await engine()
    running = one.log.begin("vscode", "files", "tools/call", "across", b'{"kept": true}')
    await one.log.flush()
    await wire.cut()
    for number in range(200):
        one.call(f"tool{number}")
    one.log.end(running, "completed", b"{}")
    async with asyncio.timeout(30):
        while not any("200 calls wait" in n.message or "201 calls wait" in n.message for n in one.log.notices):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert [notice.code for notice in one.log.notices] == ["storage-away"]
    with pytest.raises(CallboardError, match="cannot be read") as failed:
        await one.log.page()
    assert failed.value.code == "storage-away"
    await until(lambda: len({view.id for view in one.views}) == 201, seconds=30)  # the window sees them all the same
    await wire.restore()
    page = await wait_for_calls(one, lambda page: page.total == 201)
    assert {call.status for call in page.calls} == {"completed"}
    assert (await one.log.detail(page.calls[0].id)).arguments == '{"kept": true}'
    assert one.log.notices == []
    warnings = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "is away" in warnings[0]


async def test_what_is_too_much_for_the_queue_is_dropped_and_counted(
    engine: MakeEngine, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await engine(backlog_calls=10)
    await wire.cut()
    for number in range(15):
        one.call(f"tool{number}")
        await one.log.flush()
    assert any("5 calls were not logged" in notice.message for notice in one.log.notices)
    await wire.restore()
    page = await wait_for_calls(one, lambda page: page.total > 0)
    assert [call.tool for call in page.calls] == [f"tool{number}" for number in range(10)]
    assert "further ones are not logged" in caplog.text


async def test_payloads_that_are_too_much_are_left_out(
    engine: MakeEngine, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await engine(backlog=1000)
    await wire.cut()
    for number in range(3):
        one.call(f"tool{number}", result=b'"' + b"x" * 800 + b'"')
        await one.log.flush()
    await wire.restore()
    page = await wait_for_calls(one, lambda page: page.total == 3)
    details = [await one.log.detail(call.id) for call in page.calls]
    assert [(len(detail.result), detail.result_cut) for detail in details] == [(802, False), (802, False), (0, True)]
    assert caplog.text.count("is away") == 1


async def test_an_engine_may_start_before_its_database(
    engine: MakeEngine, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    await wire.cut()
    one = await engine()
    one.call("early")
    await one.log.flush()
    assert [notice.code for notice in one.log.notices] == ["storage-away"]
    await wire.restore()
    page = await wait_for_calls(one, lambda page: page.total == 1)
    assert page.calls[0].tool == "early"
    assert caplog.text.count("is away") == 1


async def test_a_database_that_hangs_holds_nobody_up(engine: MakeEngine, wire: Balancer) -> None:
    one = await engine()
    one.call("before")
    await one.log.flush()
    wire.hang()
    ids = [one.call(f"tool{number}") for number in range(100)]  # nothing here waits
    assert 0 not in ids
    wire.flow()
    page = await wait_for_calls(one, lambda page: page.total == 101)
    assert page.calls[0].tool == "before"


async def test_a_call_that_the_database_does_not_take_keeps_no_other_back(
    engine: MakeEngine, postgresql: PostgresServer, database: str, caplog: pytest.LogCaptureFixture
) -> None:
    one = await engine()
    one.call("first")
    await one.log.flush()
    postgresql.ask("ALTER TABLE callboard_calls ALTER COLUMN tool TYPE varchar(10)", database=database)
    for tool in ("second", "longer than ten", "third\0", "\ud800"):
        one.call(tool)
    page = await wait_for_calls(one, lambda page: page.total == 4)
    assert [call.tool for call in page.calls] == ["first", "second", "third\ufffd", "?"]
    assert any("1 calls were not logged" in notice.message for notice in one.log.notices)
    assert "the database does not take it" in caplog.text


async def test_calls_of_a_dead_engine_end(
    engine: MakeEngine, postgresql: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.storage.calls.CHORE_SECONDS", 0.1)
    one, two = await engine("one"), await engine("two")
    one.call("forever", result=None)
    two.call("mine", result=None)
    await one.log.flush()
    await two.log.flush()
    number = one.storage.database.number
    postgresql.ask(
        "UPDATE callboard_engines SET seen = now() - interval '1 hour' WHERE number = %s", number, database=database
    )
    page = await wait_for_calls(two, lambda page: page.calls[0].status == "failed")
    assert [(call.tool, call.error) for call in page.calls] == [
        ("forever", "The engine ended during the call."),
        ("mine", ""),
    ]


async def test_calls_that_run_end_with_their_engine(engine: MakeEngine) -> None:
    one, two = await engine("one"), await engine("two")
    one.call("interrupted", result=None)
    two.call("mine", result=None)
    await two.log.flush()
    await one.close()
    page = await two.log.page()
    assert [(call.tool, call.status) for call in page.calls] == [("interrupted", "failed"), ("mine", "running")]


async def test_old_calls_go(engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.engine.storage.calls.TRIM_SECONDS", 0.1)
    one = await engine(age=3600.0)
    record = one.log.begin("vscode", "files", "tools/call", "old", b"{}")
    record.started = time.time() - 7200
    one.log.end(record, "completed", b"{}")
    one.call("new")
    page = await wait_for_calls(one, lambda page: page.total == 1)
    assert page.calls[0].tool == "new"


async def test_calls_beyond_the_bound_go(engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.engine.storage.calls.TRIM_SECONDS", 0.1)
    one = await engine(size=20_000)
    for number in range(40):
        one.call(f"tool{number}", result=b'"' + b"x" * 800 + b'"')
        await asyncio.sleep(0.001)
    page = await wait_for_calls(one, lambda page: page.total < 25)
    assert page.calls[-1].tool == "tool39"
    assert page.total > 15


async def test_a_question_that_is_given_up_is_stopped_there(
    engine: MakeEngine, postgresql: PostgresServer, database: str
) -> None:
    one = await engine()
    one.call()
    await one.log.flush()
    asked = asyncio.ensure_future(one.log._ask(lambda: _sleep_there(one)))

    async def sleeping() -> bool:
        found = await asyncio.to_thread(
            postgresql.ask,
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%%' AND state = 'active'"
            " AND datname = %s",
            database,
        )
        return bool(found[0][0])

    await _until(sleeping)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    await _until(lambda: _negated(sleeping))
    assert (await one.log.page()).total == 1


async def _negated(condition: Callable[[], Awaitable[bool]]) -> bool:
    return not await condition()


def _sleep_there(engine: SharingEngine) -> None:
    reader = engine.storage.call_place[1]
    with reader._question() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(600)")


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_an_answer_waits_until_its_call_stands_in_the_log(
    engine: MakeEngine, postgresql: PostgresServer, database: str
) -> None:
    one = await engine(interval=600.0)  # no timer writes it
    record = one.log.begin("vscode", "files", "tools/call", "echo", b"{}")
    one.log.end(record, "completed", b"{}")
    assert record.kept is not None
    async with asyncio.timeout(30):
        await record.kept.wait()
    assert postgresql.ask("SELECT status FROM callboard_calls", database=database) == [("completed",)]


async def test_calls_that_end_together_are_written_together(
    engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await engine()
    store = one.storage.call_place[0]
    batches: list[int] = []
    write = store.write
    monkeypatch.setattr(store, "write", lambda rows: batches.append(len(rows)) or write(rows))

    async def call(number: int) -> None:
        for _ in range(20):
            record = one.log.begin("vscode", "files", "tools/call", f"tool{number}", b"{}")
            await asyncio.sleep(0)
            one.log.end(record, "completed", b"{}")
            assert record.kept is not None
            await record.kept.wait()

    await asyncio.gather(*(call(number) for number in range(50)))
    assert (await one.log.page()).total == 1000
    assert len(batches) < 500


async def test_an_answer_waits_for_a_hanging_database_once_and_not_for_ever(
    engine: MakeEngine, wire: Balancer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.calls.log._KEPT_WAIT", 0.05)
    one = await engine()
    one.call("before")
    await one.log.flush()
    wire.hang()
    first = one.log.begin("vscode", "files", "tools/call", "first", b"{}")
    one.log.end(first, "completed", b"{}")
    assert first.kept is not None
    async with asyncio.timeout(30):
        await first.kept.wait()
    second = one.log.begin("vscode", "files", "tools/call", "second", b"{}")
    one.log.end(second, "completed", b"{}")
    assert second.kept is None
    wire.flow()
    await wait_for_calls(one, lambda page: page.total == 3)
    third = one.log.begin("vscode", "files", "tools/call", "third", b"{}")
    one.log.end(third, "completed", b"{}")
    assert third.kept is not None


async def test_no_answer_waits_for_a_database_that_is_away(
    engine: MakeEngine, wire: Balancer, caplog: pytest.LogCaptureFixture
) -> None:
    one = await engine()
    await wire.cut()
    one.call("first")
    async with asyncio.timeout(30):
        while not one.log.notices:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    record = one.log.begin("vscode", "files", "tools/call", "second", b"{}")
    one.log.end(record, "completed", b"{}")
    assert record.kept is None
    assert "is away" in caplog.text


async def test_whoever_reads_events_hears_of_the_calls_of_other_engines(
    engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callboard.engine.storage.shared.SYNC_SECONDS", 0.02)
    one, two = await engine("one"), await engine("two")
    two.call("before")
    await two.log.flush()
    one.is_read = True
    await until(lambda: one.others, seconds=30)
    assert [call.tool for call in one.others] == ["before"]
    one.others.clear()
    one.call("own")
    slow = two.log.begin("vscode", "files", "tools/call", "slow", b"{}")
    await two.log.flush()
    await until(lambda: one.others, seconds=30)
    two.log.end(slow, "completed", b"{}")
    two.call("last")
    await until(lambda: len(one.others) == 3, seconds=30)
    told = [(call.engine, call.tool, call.status) for call in one.others]
    assert told[0] == ("two", "slow", "running")
    assert sorted(told[1:]) == [("two", "last", "completed"), ("two", "slow", "completed")]
    assert two.others == []
    assert {call.id for call in one.others} == {call.id for call in (await one.log.page(engine="two")).calls[1:]}


async def test_engines_that_are_long_gone_are_forgotten_with_their_calls(
    engine: MakeEngine, postgresql: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = await engine("one"), await engine("two")
    one.call()
    await one.log.flush()
    two.call()
    await two.log.flush()
    gone = one.storage.database.number
    await one.close()
    for number in (gone, (gone or 0) + 1000):
        postgresql.ask(
            "INSERT INTO callboard_engines (number, name, seen) VALUES (%s, 'gone', now() - interval '3 days')"
            " ON CONFLICT (number) DO UPDATE SET seen = excluded.seen",
            number,
            database=database,
        )
    monkeypatch.setattr("callboard.engine.storage.calls.TRIM_SECONDS", 0.1)
    two.storage.call_place[0]._next_trim = 0.0
    two.call()

    async def known() -> bool:
        rows = await asyncio.to_thread(postgresql.ask, "SELECT number FROM callboard_engines", database=database)
        return {row[0] for row in rows} == {gone, two.storage.database.number}

    await _until(known)

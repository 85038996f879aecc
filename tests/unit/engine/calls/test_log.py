"""Calls as they happen: what is kept of them, what is told of them, what they cost the loop."""

import asyncio
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from callboard.api.schema import CallView
from callboard.core.errors import CallboardError
from callboard.engine.calls.log import CallLog
from callboard.engine.calls.record import OVERHANG, Limits
from tests.unit.engine.calls.conftest import OpenLog

ARGUMENTS = b'{"text":"hello"}'
RESULT = b'{"content":[{"type":"text","text":"hello"}]}'


SECRET = b"hunter2-hunter2-hunter2"


def masked(data: bytes) -> bytes:
    """Redaction of a secret."""
    return data.replace(SECRET, b"***")


class SlowThread:
    """Redaction that holds the log's thread up until it is told to go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def redact(self, data: bytes) -> bytes:
        self.go_on.wait(60)
        return data


def echo(log: CallLog, arguments: bytes = ARGUMENTS, result: bytes | memoryview | None = RESULT) -> int:
    record = log.begin("claude-code", "local-tools", "tools/call", "echo", arguments)
    log.end(record, "completed", result)
    return record.id


async def test_finished_call_stands_in_the_log_with_its_payloads(log: CallLog) -> None:
    before = time.time()
    record = log.begin("claude-code", "local-tools", "tools/call", "echo", memoryview(ARGUMENTS))
    log.end(record, "completed", memoryview(RESULT))
    call = await log.detail(record.id)
    assert (call.client, call.server, call.method, call.tool) == ("claude-code", "local-tools", "tools/call", "echo")
    assert before <= call.started <= time.time()
    assert call.status == "completed"
    assert call.duration_ms is not None
    assert call.duration_ms >= 0
    assert (call.arguments, call.result) == (ARGUMENTS.decode(), RESULT.decode())
    assert (call.request_bytes, call.response_bytes) == (len(ARGUMENTS), len(RESULT))
    assert not call.arguments_cut
    assert not call.result_cut


async def test_call_is_seen_running_and_then_failed_and_keeps_its_arguments(log: CallLog) -> None:
    record = log.begin("codex", "github", "tools/call", "search", ARGUMENTS)
    running = await log.detail(record.id)
    assert (running.status, running.duration_ms, running.arguments) == ("running", None, ARGUMENTS.decode())
    log.end(record, "failed", None, "The server ended (status 3).")
    failed = await log.detail(record.id)
    assert (failed.status, failed.error) == ("failed", "The server ended (status 3).")
    assert failed.duration_ms is not None
    assert failed.arguments == ARGUMENTS.decode()
    assert (await log.page()).total == 1


async def test_only_the_first_end_counts(log: CallLog) -> None:
    record = log.begin("codex", "github", "tools/call", "search", ARGUMENTS)
    log.end(record, "cancelled")
    log.end(record, "completed", RESULT)
    assert (await log.detail(record.id)).status == "cancelled"


async def test_unknown_call_is_not_found(log: CallLog) -> None:
    with pytest.raises(CallboardError) as caught:
        await log.detail(17)
    assert caught.value.code == "not-found"


async def test_ids_go_on_after_a_restart(open_log: OpenLog) -> None:
    async with open_log() as log:
        assert [echo(log), echo(log)] == [1, 2]
    async with open_log() as log:
        assert echo(log) == 3
        assert [call.id for call in await log.recent(2)] == [2, 3]


async def test_long_payload_is_cut_at_a_character_and_flagged(open_log: OpenLog) -> None:
    limits = Limits(payload=1000)
    result = json.dumps({"text": "äöü€😀" * 2000}, ensure_ascii=False).encode()
    async with open_log(limits=limits) as log:
        call = await log.detail(echo(log, b'"' + b"x" * 999 + b'"', memoryview(result)))
    assert call.arguments_cut
    assert call.arguments == '"' + "x" * 999
    assert call.result_cut
    assert result.decode().startswith(call.result)
    assert 996 < len(call.result.encode()) <= 1000
    assert call.response_bytes == len(result)


@pytest.mark.parametrize("at", [0, 500, 990, 1000, 1000 + OVERHANG - 10, 1000 + OVERHANG])
async def test_secret_is_masked_wherever_the_cut_falls(open_log: OpenLog, at: int) -> None:
    payload = b"x" * at + SECRET + b"y" * 9000
    async with open_log(masked, limits=Limits(payload=1000)) as log:
        call = await log.detail(echo(log, payload, payload))
    for kept in (call.arguments, call.result):
        assert "hunter2" not in kept
        assert len(kept) <= 1000


@pytest.mark.parametrize("bound", [500, 100_000])
async def test_secret_at_the_end_of_a_copy_is_masked_when_the_bound_changes_meanwhile(
    open_log: OpenLog, bound: int
) -> None:
    payload = b"x" * (1000 + OVERHANG - 10) + SECRET + b"y" * 9000
    async with open_log(masked, limits=Limits(payload=1000)) as log:
        number = echo(log, payload, payload)
        log.keep(payload=bound, age=1e6, size=10_000_000)
        call = await log.detail(number)
    for kept in (call.arguments, call.result):
        assert 0 < len(kept) <= bound
        assert "hunter2" not in kept
    assert call.arguments_cut
    assert call.result_cut


async def test_call_that_ended_before_its_beginning_was_written_keeps_its_result(open_log: OpenLog) -> None:
    told: list[CallView] = []
    slow = SlowThread()
    async with open_log(slow.redact, limits=Limits(batch=1), on_calls=told.extend) as log:  # each change is a batch
        echo(log)
        late = echo(log)
        slow.go_on.set()
        call = await log.detail(late)
    assert (call.status, call.arguments, call.result) == ("completed", ARGUMENTS.decode(), RESULT.decode())
    assert [(view.id, view.status) for view in told if view.id == late] == [(late, "completed")]


async def test_large_results_wait_for_a_slow_thread_as_what_is_kept_of_them(open_log: OpenLog) -> None:
    slow = SlowThread()
    async with open_log(slow.redact, limits=Limits(payload=1000, batch=10_000, backlog=100_000)) as log:
        calls = [echo(log, result=memoryview(b"x" * 500_000)) for _ in range(10)]
        slow.go_on.set()
        details = [await log.detail(call) for call in calls]
    assert [len(call.result) for call in details] == [1000] * 10
    assert all(call.result_cut for call in details)


async def test_error_and_uri_are_redacted_and_told_redacted(open_log: OpenLog) -> None:
    told: list[CallView] = []
    async with open_log(lambda data: data.replace(b"hunter2", b"***"), on_calls=told.extend) as log:
        record = log.begin("codex", "files", "resources/read", "https://me:hunter2@host/x", b"{}")
        log.end(record, "failed", None, "401 for hunter2")
        kept = await log.detail(record.id)
    for call in (kept, told[-1]):
        assert call.tool == "https://me:***@host/x"
        assert call.error == "401 for ***"


async def test_payload_that_is_not_utf8_is_kept_readable(log: CallLog) -> None:
    call = await log.detail(echo(log, b'{"a":"\xff\xfe"}', b'{"b":"\x00"}'))
    assert call.arguments == '{"a":"\ufffd\ufffd"}'
    assert call.result == '{"b":"\x00"}'


async def test_redaction_runs_off_the_loop(open_log: OpenLog) -> None:
    threads = set()

    def redact(data: bytes) -> bytes:
        threads.add(threading.current_thread())
        return data

    async with open_log(redact) as log:
        echo(log)
        await log.flush()
    assert threads
    assert threading.main_thread() not in threads


async def test_changes_are_told_in_batches_on_the_loop(open_log: OpenLog) -> None:
    batches: list[list[CallView]] = []
    arrived = asyncio.Event()

    def hear(calls: list[CallView]) -> None:
        assert threading.current_thread() is threading.main_thread()
        batches.append(calls)
        arrived.set()

    async with open_log(on_calls=hear) as log:
        running = log.begin("codex", "github", "tools/call", "search", ARGUMENTS)
        for _ in range(10):
            echo(log)
        await arrived.wait()
        assert [[call.status for call in batch] for batch in batches] == [["running"] + ["completed"] * 10]
        arrived.clear()
        log.end(running, "completed", RESULT)
        await arrived.wait()
        assert [(call.id, call.status) for call in batches[1]] == [(running.id, "completed")]


async def test_only_the_newest_changes_of_a_flood_are_told(open_log: OpenLog) -> None:
    told: list[CallView] = []
    async with open_log(limits=Limits(views=5), on_calls=told.extend) as log:
        for _ in range(20):
            echo(log)
        await log.flush()
    assert [call.id for call in told] == [16, 17, 18, 19, 20]


async def test_nothing_is_told_while_nobody_listens(open_log: OpenLog) -> None:
    told: list[CallView] = []
    async with open_log(on_calls=told.extend) as log:
        log.wanted = False
        echo(log)
        await log.flush()
        assert told == []
        log.wanted = True
        echo(log)
        await log.flush()
        assert [call.id for call in told] == [2]


async def test_quiet_log_has_no_timer_and_no_work(log: CallLog) -> None:
    echo(log)
    await log.flush()
    loop = asyncio.get_running_loop()
    assert [handle for handle in loop._scheduled if not handle.cancelled()] == []  # type: ignore[attr-defined]


KILLED = """
import asyncio, os, sys
from pathlib import Path
from callboard.engine.calls.log import CallLog

async def live_and_die():
    log = CallLog(Path(sys.argv[1]), lambda data: data)
    await log.open()
    log.begin("codex", "github", "tools/call", "search", b"{}")
    await log.flush()
    os.kill(os.getpid(), 9)

asyncio.run(live_and_die())
"""


async def test_calls_that_a_killed_engine_left_running_are_failed(path: Path, open_log: OpenLog) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED, path], check=False).returncode == -9
    async with open_log() as log:
        call = await log.detail(1)
        assert (call.status, call.error) == ("failed", "The engine ended during the call.")
        assert echo(log) == 2


async def test_close_writes_what_is_left_and_fails_what_runs(open_log: OpenLog) -> None:
    async with open_log() as log:
        echo(log)
        log.begin("codex", "github", "tools/call", "search", ARGUMENTS)
    await log.close()
    async with open_log() as log:
        assert [(call.id, call.status) for call in await log.recent(5)] == [(1, "completed"), (2, "failed")]


async def test_closed_log_takes_calls_and_keeps_none(open_log: OpenLog) -> None:
    async with open_log() as log:
        pass
    assert echo(log) == 0
    with pytest.raises(CallboardError):
        await log.page()


async def test_file_is_readable_by_its_owner_alone(log: CallLog, path: Path) -> None:
    echo(log)
    await log.flush()
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


async def test_cancelled_question_leaves_the_log_usable(log: CallLog) -> None:
    echo(log)
    await log.flush()
    questions = [asyncio.ensure_future(log.page(text=str(n))) for n in range(20)]
    await asyncio.sleep(0)
    for question in questions[:-1]:
        question.cancel()
    assert (await questions[-1]).total == 0
    await asyncio.gather(*questions[:-1], return_exceptions=True)
    assert (await log.page()).total == 1


async def test_last_call_of_a_server_is_known(log: CallLog) -> None:
    assert log.last_call("local-tools") is None
    echo(log)
    newest = log.last_call("local-tools")
    assert newest == (await log.detail(1)).started


async def test_count_since(log: CallLog) -> None:
    for _ in range(5):
        echo(log)
    await log.flush()
    third = (await log.detail(3)).started
    assert await log.count_since(0) == 5
    assert await log.count_since(third) == 3
    assert await log.count_since(time.time() + 1) == 0


async def test_call_whose_beginning_was_written_before_its_end_keeps_its_arguments(open_log: OpenLog) -> None:
    async with open_log() as log:
        record = log.begin("codex", "files", "tools/call", "echo", ARGUMENTS)
        await log.flush()
        assert (await log.detail(record.id)).status == "running"
        log.end(record, "completed", RESULT)
        call = await log.detail(record.id)
    assert (call.status, call.arguments, call.result) == ("completed", ARGUMENTS.decode(), RESULT.decode())


async def test_many_calls_of_one_batch_all_stand_in_the_log(open_log: OpenLog) -> None:
    async with open_log(limits=Limits(interval=60)) as log:
        calls = [echo(log, b'{"n":%d}' % number) for number in range(700)]
        page = await log.page(0, 1000)
        assert [call.id for call in page.calls] == calls
        for call in (calls[0], calls[255], calls[256], calls[-1]):
            assert (await log.detail(call)).arguments == f'{{"n":{call - calls[0]}}}'


@pytest.mark.allow_logs
async def test_redaction_that_fails_fails_no_call(open_log: OpenLog) -> None:
    def redact(_data: bytes) -> bytes:
        raise ValueError("a fault in redaction")

    async with open_log(redact) as log:
        record = log.begin("codex", "files", "tools/call", "echo", ARGUMENTS)
        log.end(record, "completed", RESULT)
        await log.flush()
        assert record.status == "completed"
        assert (await log.page()).total == 0, "nothing is kept that might show a secret"

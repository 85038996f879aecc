"""Questions to the log: pages, filters, text, and that they agree with a plain list whatever happens in between."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.api.schema import CallStatus
from callboard.engine.calls.backing import Filter
from callboard.engine.calls.log import CallLog
from callboard.engine.calls.reader import Reader
from callboard.engine.calls.record import Limits, Row
from callboard.engine.calls.store import Store
from tests.unit.engine.calls.conftest import OpenLog

STATUSES: tuple[CallStatus, ...] = ("running", "completed", "failed", "cancelled")


async def fill(log: CallLog, count: int) -> None:
    for n in range(count):
        record = log.begin("codex" if n % 3 else "cursor", f"s{n % 2}", "tools/call", f"t{n % 5}", b'{"n":%d}' % n)
        log.end(record, "failed" if n % 10 == 0 else "completed", b'{"r":%d}' % n)


async def test_pages_go_from_the_oldest_on(log: CallLog) -> None:
    await fill(log, 25)
    page = await log.page(offset=0, limit=10)
    assert ([call.id for call in page.calls], page.offset, page.total) == ([*range(1, 11)], 0, 25)
    page = await log.page(offset=20, limit=10)
    assert ([call.id for call in page.calls], page.offset, page.total) == ([*range(21, 26)], 20, 25)
    page = await log.page(offset=-1, limit=10)
    assert ([call.id for call in page.calls], page.offset, page.total) == ([*range(16, 26)], 15, 25)
    page = await log.page(offset=99, limit=10)
    assert (page.calls, page.offset, page.total) == ([], 25, 25)
    assert (await log.page(limit=0)).calls == []


async def test_empty_log_has_an_empty_page(log: CallLog) -> None:
    for server in ("", "nobody"):
        page = await log.page(server=server)
        assert (page.calls, page.offset, page.total) == ([], 0, 0)


async def test_filters_join(log: CallLog) -> None:
    await fill(log, 60)
    page = await log.page(server="s0", tool="t0", client="codex", status="failed")
    assert [call.id for call in page.calls] == [n + 1 for n in range(60) if n % 10 == 0 and n % 3]
    assert page.total == len(page.calls)
    page = await log.page(offset=1, limit=2, server="s0", tool="t0", client="codex", status="failed")
    assert ([call.id for call in page.calls], page.offset, page.total) == ([21, 41], 1, 4)


async def test_filter_follows_new_calls_and_outcomes(log: CallLog) -> None:
    await fill(log, 10)
    slow = log.begin("codex", "s0", "tools/call", "slow", b"{}")
    await fill(log, 10)
    assert (await log.page(status="failed")).total == 2
    assert (await log.page(status="running")).total == 1
    log.end(slow, "failed", None, "too late")
    failed = await log.page(status="failed")
    assert [call.id for call in failed.calls] == [1, slow.id, 12]
    assert (await log.page(status="running")).total == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("NEEDLE", [1, 2, 3, 4]),
        ("100%", [5]),
        ("a_b", [6]),
        ("back\\slash", [7]),
        ("Grüße", [8, 9]),
        ("😀", [10]),
        ('say "hi"', [11]),
        ("%", [5]),
        ("x" * 60_000, []),
    ],
)
async def test_text_is_found_in_tool_error_and_payloads_and_taken_literally(
    log: CallLog, text: str, found: list[int]
) -> None:
    def call(tool: str = "t", arguments: bytes = b"{}", result: bytes = b"{}", error: str = "") -> None:
        log.end(log.begin("c", "s", "tools/call", tool, arguments), "completed", result, error)

    call(tool="needle")
    call(arguments=b'{"a":"a needle"}')
    call(result=b'{"a":"Needles"}')
    call(error="no needle")
    call(arguments=b'{"p":"100% sure"}')
    call(arguments=b'{"p":"a_b"}')
    call(arguments=rb'{"p":"back\\slash"}')
    call(arguments='{"p":"Grüße"}'.encode())
    call(arguments=rb'{"p":"Gr\u00fc\u00dfe"}')
    call(arguments=rb'{"p":"\ud83d\ude00"}')
    call(arguments=rb'{"p":"say \"hi\""}')
    assert [each.id for each in (await log.page(text=text)).calls] == found


async def test_pages_stay_whole_while_old_calls_are_deleted(open_log: OpenLog, path: Path) -> None:
    async with open_log() as log:
        await fill(log, 100)
        assert (await log.page(server="s0")).total == 50
        with sqlite3.connect(path) as other:
            other.execute("DELETE FROM calls WHERE id <= 50")
        other.close()
        page = await log.page(server="s0", offset=0, limit=3)
        assert ([call.id for call in page.calls], page.total) == ([51, 53, 55], 25)
        page = await log.page(offset=0, limit=3)
        assert ([call.id for call in page.calls], page.total) == ([51, 52, 53], 50)


@dataclass
class Step:
    """What happens to the log between two questions."""

    server: str
    status: CallStatus
    ends: int  # which of the running calls ends, if any


STEPS = st.lists(
    st.builds(Step, st.sampled_from(["a", "b"]), st.sampled_from(STATUSES), st.integers(0, 3)), max_size=30
)
FILTERS = st.builds(
    Filter, st.sampled_from(["", "a"]), status=st.sampled_from(["", *STATUSES]), text=st.sampled_from(["", "7"])
)


@settings(max_examples=60, deadline=None)
@given(STEPS, FILTERS, st.integers(-1, 12), st.integers(0, 8))
def test_answers_agree_with_a_plain_list(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], wanted: Filter, offset: int, limit: int
) -> None:
    store = Store(tmp_path_factory.mktemp("log") / "calls.sqlite3", Limits(), lambda: None)
    store.open()
    reader = Reader(store)
    rows: list[Row] = []
    try:
        for n, step in enumerate(steps, start=1):
            new = Row(
                n,
                float(n),
                "c",
                step.server,
                "tools/call",
                "t",
                step.status,
                1.0,
                0,
                0,
                "",
                b"%d" % n,
                b"",
                False,
                False,
            )
            running = [row for row in rows if row.status == "running"]
            changed = [new]
            if step.ends < len(running):
                changed.append(running[step.ends]._replace(status="failed", arguments=None, result=b"7"))
            store.write(changed)
            for row in changed:
                if row.arguments is None:
                    rows[row.id - 1] = rows[row.id - 1]._replace(status=row.status, result=row.result)
                else:
                    rows.append(row)
            expected = [row.id for row in rows if _matches(row, wanted)]
            start = max(0, len(expected) - limit) if offset < 0 else min(offset, len(expected))
            page = reader.page(wanted, offset, limit)
            assert [call.id for call in page.calls] == expected[start : start + limit]
            assert (page.offset, page.total) == (start, len(expected))
    finally:
        reader.close()
        store.close()


def _matches(row: Row, wanted: Filter) -> bool:
    return (
        wanted.server in ("", row.server)
        and wanted.status in ("", row.status)
        and wanted.text.encode() in (row.arguments or b"") + (row.result or b"")
    )

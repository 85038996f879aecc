import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.api.schema import LogLine
from callboard.engine import output, output_files
from callboard.engine.output import MAX_BYTES, MAX_LINES, OutputLog
from callboard.engine.output_files import LogFiles
from callboard.engine.output_text import MAX_LINE, LineReader, neutralise
from tests.support.processes import until


def lines_of(*chunks: bytes, redact: Callable[[str], str] | None = None) -> list[str]:
    reader = LineReader()
    if redact is not None:
        reader.redact = redact
    lines: list[str] = []
    for chunk in chunks:
        reader.add(chunk)
        first, skipped, last = reader.take()
        assert not skipped
        lines += [*first, *last]
    return lines


class Heard:
    """Keeps what it hears of new lines."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[LogLine]]] = []
        self.changed = asyncio.Event()

    def __call__(self, server: str, lines: list[LogLine]) -> None:
        self.batches.append((server, lines))
        self.changed.set()

    def texts(self) -> list[str]:
        return [line.text for _, lines in self.batches for line in lines]

    async def until(self, count: int) -> list[str]:
        async with asyncio.timeout(60):
            while len(self.texts()) < count:
                self.changed.clear()
                await self.changed.wait()
        return self.texts()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def log(tmp_path: Path, heard: Heard) -> Iterator[OutputLog]:
    log = OutputLog(tmp_path / "logs", heard)
    yield log
    log.close()


def test_lines_end_at_lf_cr_and_crlf_wherever_the_chunks_do():
    assert lines_of(b"a\nb\r", b"\nc\r\n", b"\r\nd") == ["a", "b", "c", ""]


def test_each_state_of_a_progress_display_is_a_line():
    assert lines_of(b"\r10%", b"\r20%\r", b"\r30%\n", b"done\n") == ["10%", "20%", "30%", "done"]


def test_blank_lines_stay():
    assert lines_of(b"a\n\nb\n") == ["a", "", "b"]


def test_a_long_line_comes_in_pieces():
    assert [len(piece) for piece in lines_of(b"x" * (2 * MAX_LINE + 5) + b"\n")] == [MAX_LINE, MAX_LINE, 5]


def test_a_line_without_end_does_not_grow_for_ever():
    reader = LineReader()
    total = 0
    for _ in range(40):
        reader.add("ä".encode() * 15_000)
        first, skipped, last = reader.take()
        assert not skipped
        assert set("".join(first + last)) <= {"ä"}
        total += sum(map(len, first + last))
    assert total >= 40 * 15_000 - 64 * 1024


def test_bytes_that_are_not_utf8_are_replaced():
    assert lines_of(b"caf\xe9 \xed\xa0\x80 \xff\n") == ["caf\ufffd \ufffd\ufffd\ufffd \ufffd"]


def test_a_character_cut_by_the_chunks_is_whole():
    start, end = "größe\n".encode()[:3], "größe\n".encode()[3:]
    assert lines_of(start, end) == ["größe"]


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bplain\x1b7", "plain"),
        ("bell\x07 null\x00 back\x08", "bell\u2407 null\u2400 back\u2408"),
        ("a\u202eb\u2066c", "a\ufffdb\ufffdc"),
        ("line\u2028separator\x85", "line\ufffdseparator\ufffd"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b", ""),
        ("\x1b]0;left open\nnext line", "\nnext line"),
    ],
)
def test_control_sequences_are_neutralised(raw: str, clean: str):
    assert neutralise(raw) == clean


@given(st.text())
def test_nothing_that_steers_a_terminal_is_left(text: str):
    for character in neutralise(text):
        assert character in "\t\n\r" or ord(character) >= 0x20
        assert not 0x7F <= ord(character) <= 0x9F


@given(st.lists(st.binary(max_size=40), max_size=12))
@example([b"\x1b]", b"\n\x00"])
@example([b"\x1b]0;title", b"\rnext\n", b"\x1bPq\nlast\n"])
def test_where_chunks_are_cut_does_not_matter(chunks: list[bytes]):
    whole, parts = LineReader(), LineReader()
    whole.add(b"".join(chunks))
    expected, _, _ = whole.take(ended=True)
    lines: list[str] = []
    for number, chunk in enumerate([*chunks, b""]):
        parts.add(chunk)
        first, _, _ = parts.take(ended=number == len(chunks))
        lines += first
    # A CR that ends one chunk says nothing yet about an LF in the next: only such blank lines may differ.
    assert [line for line in lines if line] == [line for line in expected if line]


def test_a_flood_is_shown_as_its_beginning_and_its_end():
    reader = LineReader()
    for start in range(0, 100_000, 1000):
        reader.add(b"".join(b"line %d\n" % number for number in range(start, start + 1000)))
    first, skipped, last = reader.take()
    assert first[0] == "line 0"
    assert last[-1] == "line 99999"
    assert len(first) + skipped + len(last) == 100_000
    assert len(first) + len(last) <= 4_000


def test_a_flood_of_blank_lines_is_bounded_too():
    reader = LineReader()
    reader.add(b"\n" * 60_000)
    first, skipped, last = reader.take()
    assert len(first) + skipped + len(last) == 60_000
    assert len(first) + len(last) <= 2_000


async def test_lines_are_numbered_told_and_written(log: OutputLog, heard: Heard, tmp_path: Path):
    log.mark("one", "started, pid 12")
    log.append("one", "stderr", b"hello\nwor")
    log.append("one", "stderr", b"ld\n")
    log.append("one", "stdout", b"not json")
    assert await heard.until(4) == ["started, pid 12", "hello", "world", "not json"]
    assert [(line.n, line.stream) for line in heard.batches[0][1]] == [
        (1, "mark"),
        (2, "stderr"),
        (3, "stderr"),
        (4, "stdout"),
    ]
    log.close()
    written = (tmp_path / "logs" / "one.log").read_text().splitlines()
    assert [line.split(" ", 2)[1:] for line in written] == [
        ["---", "started, pid 12"],
        ["err", "hello"],
        ["err", "world"],
        ["out", "not json"],
    ]


async def test_many_lines_come_in_few_batches(log: OutputLog, heard: Heard):
    for number in range(1000):
        log.append("one", "stderr", b"line %d\n" % number)
        if number % 100 == 0:
            await asyncio.sleep(0)
    await heard.until(1000)
    assert len(heard.batches) <= 3


async def test_pages_go_on_where_the_last_one_ended(log: OutputLog):
    log.append("one", "stderr", b"".join(b"%d\n" % number for number in range(1, 11)))
    page = log.page("one", 0, 4)
    assert ([line.text for line in page.lines], page.first, page.next, page.dropped) == (["1", "2", "3", "4"], 1, 4, 0)
    page = log.page("one", page.next, 100)
    assert ([line.n for line in page.lines], page.next) == ([5, 6, 7, 8, 9, 10], 10)
    page = log.page("one", page.next, 100)
    assert (page.lines, page.next) == ([], 10)
    assert [line.text for line in log.page("one", -1, 2).lines] == ["9", "10"]
    assert log.page("nobody", 0, 10).lines == []


async def test_memory_is_bounded_by_lines_and_by_bytes(log: OutputLog):
    for _ in range(30):
        log.append("many", "stderr", b"x\n" * 400)
        log.append("large", "stderr", (b"y" * 8000 + b"\n") * 8)
        log.page("many", 0, 0)
        log.page("large", 0, 0)
    many, large = log.page("many", 100, 10_000), log.page("large", 0, 10_000)
    assert len(many.lines) == MAX_LINES
    assert many.dropped == many.first - 101
    assert sum(len(line.text) for line in large.lines) <= MAX_BYTES
    assert large.lines[-1].n == 240


async def test_all_servers_together_are_bounded(log: OutputLog, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output, "MAX_TOTAL", 100_000)
    for number in range(5):
        for _ in range(10):
            log.append(f"s{number}", "stderr", b"z" * 3999 + b"\n")
        log.page(f"s{number}", 0, 0)
    kept = [len(log.page(f"s{number}", 0, 100).lines) for number in range(5)]
    assert sum(kept) * 4063 <= 100_000
    assert all(kept)


async def test_the_tail_is_that_of_the_present_run_and_shows_the_open_line(log: OutputLog):
    log.begin_run("one")
    log.append("one", "stderr", b"old\n")
    log.begin_run("one")
    log.mark("one", "started, pid 2")
    assert log.silent_for("one") == float("inf")
    log.append("one", "stderr", b"Traceback\n\nKeyError: 'X'\nbye")
    log.append("one", "stdout", b"noise")
    assert log.tail("one") == "Traceback\nKeyError: 'X'\nbye"
    assert log.tail("one", 3) == "bye"
    assert log.last_lines("one", 2) == ["KeyError: 'X'", "bye"]
    assert log.silent_for("one") < 60
    log.mark("one", "exited with code 1")
    assert log.last_lines("one", 1) == ["bye"]


async def test_secrets_are_masked_before_anything_is_kept(log: OutputLog, heard: Heard, tmp_path: Path):
    log.set_redact("one", lambda text: text.replace("hunter2", "***"))
    log.append("one", "stderr", b"password hun")
    log.append("one", "stderr", b"ter2\n")
    log.append("one", "stdout", b"\x1b[1mhun\x1b[0mter2")
    log.append("two", "stderr", b"hunter2\n")
    await heard.until(3)
    assert [line.text for line in log.page("one", 0, 9).lines] == ["password ***", "***"]
    log.close()
    assert "hunter2" not in (tmp_path / "logs" / "one.log").read_text()


async def test_a_flood_is_counted_and_marked(log: OutputLog, heard: Heard):
    for _ in range(100):
        log.append("one", "stderr", b"flood\n" * 10_000)
    await heard.until(100)
    marks = [line.text for line in log.page("one", 0, 10_000).lines if line.stream == "mark"]
    assert len(marks) == 1
    dropped = re.fullmatch(r"([\d,]+) lines dropped: they came too fast; ([\d,]+) in all", marks[0])
    assert dropped is not None
    assert dropped[1] == dropped[2]
    assert len(heard.texts()) <= 8_000


async def test_one_that_floods_its_log_is_told_of_less_often(
    log: OutputLog, heard: Heard, monkeypatch: pytest.MonkeyPatch
):
    now = 1_000.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)

    def told(server: str) -> int:
        log._flush()
        return sum(name == server for name, _ in heard.batches)

    log.append("loud", "stderr", b"flood\n" * 100_000)
    assert told("loud") == 1
    log.append("loud", "stderr", b"more\n")
    log.append("calm", "stderr", b"hello\n")
    assert (told("loud"), told("calm")) == (1, 1)
    now += 0.3
    assert told("loud") == 2
    log.append("loud", "stderr", b"at the usual pace again\n")
    assert told("loud") == 3


async def test_what_cannot_be_written_is_still_shown(tmp_path: Path, heard: Heard, caplog: pytest.LogCaptureFixture):
    (tmp_path / "logs").write_text("a file where the folder should be")
    log = OutputLog(tmp_path / "logs", heard)
    log.append("one", "stderr", b"hello\n")
    assert await heard.until(1) == ["hello"]
    log.append("one", "stderr", b"again\n")
    log.close()
    assert log.files.problem
    assert len(caplog.records) == 1


async def test_that_the_files_cannot_be_written_is_told_and_taken_back(
    tmp_path: Path, heard: Heard, caplog: pytest.LogCaptureFixture
):
    told: list[list[str]] = []
    in_the_way = tmp_path / "logs"
    in_the_way.write_text("a file where the folder should be")
    log = OutputLog(in_the_way, heard, on_problem=lambda: told.append([notice.code for notice in log.notices]))
    log.append("one", "stderr", b"hello\n")
    await until(lambda: told)
    in_the_way.unlink()
    log.append("one", "stderr", b"again\n")
    await until(lambda: len(told) == 2)
    log.close()
    assert told == [["logs-unwritable"], []]
    assert len(caplog.records) == 1
    assert "again" in (in_the_way / "one.log").read_text()


def test_what_a_slow_disk_does_not_take_is_counted_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(output_files, "_MAX_QUEUED", 10)
    files = LogFiles(tmp_path)
    append, slow = files._append, threading.Event()
    monkeypatch.setattr(files, "_append", lambda path, data: (slow.wait(), append(path, data)))
    for text in ("taken\n", "waits\n", "1\n2\n3\n4\n5\n6\n", "7\n8\n9\n"):
        files.write("one", text)
        while text == "taken\n" and files._queued:
            time.sleep(0.01)
    slow.set()
    files.close()
    files.write("one", "goes on\n")
    files.close()
    lines = (tmp_path / "one.log").read_text().splitlines()
    assert lines[:2] + lines[3:] == ["taken", "waits", "goes on"]
    assert lines[2].endswith(" --- 9 lines left out: the disk is too slow")


def test_files_are_rotated_and_only_three_are_kept(tmp_path: Path):
    files = LogFiles(tmp_path)
    for number in range(40):
        files.write("one", f"{number}".ljust(128 * 1024, "x"))
        if number % 8 == 7:
            files.close()
    files.close()
    kept = {path.name: path.read_text().partition("x")[0] for path in tmp_path.iterdir()}
    assert kept == {"one.log": "32", "one.log.1": "24", "one.log.2": "16"}, "the newest has the name, full or not"
    files.write("one", "\ud800 lone surrogate\n")
    files.close()
    assert (tmp_path / "one.log").read_text() == "? lone surrogate\n"
    assert (tmp_path / "one.log.1").read_text().startswith("32x")


async def test_lines_have_a_guessed_level_and_separators_have_none(log: OutputLog, heard: Heard):
    log.append("a", "stderr", b"ERROR: boom\n[warn] careful\nlistening\n")
    log.append("a", "stdout", b"INFO ready")
    log.mark("a", "exited with an ERROR")
    await heard.until(5)
    levels = [(line.stream, line.level) for _, lines in heard.batches for line in lines]
    assert levels == [("stderr", "error"), ("stderr", "warning"), ("stderr", ""), ("stdout", "info"), ("mark", "")]

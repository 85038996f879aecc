"""Lines through file descriptors of every kind."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from callboard.connect import stdio
from callboard.connect.stdio import Input, Output


@contextmanager
def opened(*descriptors: int) -> Iterator[None]:
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


async def read(content: bytes, tmp_path: Path) -> list[bytes | None]:
    file = tmp_path / "input"
    file.write_bytes(content)
    descriptor = os.open(file, os.O_RDONLY)
    with opened(descriptor):
        return [line async for line in Input(descriptor).lines()]


async def test_lines_come_whole_and_the_last_one_needs_no_end(tmp_path: Path) -> None:
    long = b"x" * 3_000_000
    assert await read(b"one\n\n  \n" + long + b"\r\ntwo\nlast", tmp_path) == [b"one", long + b"\r", b"two", b"last"]


async def test_empty_input_has_no_lines(tmp_path: Path) -> None:
    assert await read(b"", tmp_path) == []


async def test_line_that_is_too_long_is_told_and_the_next_one_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE", 2_000_000)
    assert await read(b"a\n" + b"x" * 5_000_000 + b"\nb\n" + b"y" * 2_000_000, tmp_path) == [
        b"a",
        None,
        b"b",
        b"y" * 2_000_000,
    ]
    assert await read(b"y" * 2_000_001, tmp_path) == []


async def test_writer_waits_for_a_slow_reader_and_the_loop_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_BACKLOG", 200_000)
    reading, writing = os.pipe()
    with opened(reading, writing):
        output = Output(writing, lambda: None)
        line = b"x" * 150_000
        await output.write(line)
        second = asyncio.create_task(output.write(line))
        await asyncio.sleep(0)
        assert not second.done()
        read = 0
        while read < 2 * len(line) + 2:
            read += len(await asyncio.to_thread(os.read, reading, 1_000_000))
        await second
        await output.close()


async def test_reader_that_has_gone_is_noticed() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with opened(writing):
        broken = asyncio.Event()
        output = Output(writing, broken.set)
        await output.write(b"x")
        await broken.wait()
        await output.close()

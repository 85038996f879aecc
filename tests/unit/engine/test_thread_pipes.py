import asyncio
import os
import threading

import pytest

from callboard.engine.thread_pipes import InputPipe, OutputPipe
from tests.support.processes import until


async def test_what_is_written_arrives_whole_and_in_order():
    source, sink = os.pipe()
    taken = bytearray()
    ended = asyncio.Event()
    reader = OutputPipe(source, taken.extend, ended.set)
    writer = InputPipe(sink, lambda: None)
    blocks = [os.urandom(700_000) for _ in range(4)]
    for block in blocks:
        writer.write(block)
        await writer.drain()
    writer.finish()
    writer.write(b"too late")
    await ended.wait()
    assert bytes(taken) == b"".join(blocks)
    assert reader.ended
    writer.close()


async def test_a_paused_pipe_holds_back_and_goes_on():
    source, sink = os.pipe()
    taken = bytearray()
    ended = asyncio.Event()
    reader = OutputPipe(source, taken.extend, ended.set)
    writer = InputPipe(sink, lambda: None)
    reader.pause()
    writer.write(b"x" * 3_000_000)
    writer.finish()
    await asyncio.sleep(0.05)  # long enough for all of it, if somebody took it
    assert not taken
    assert writer.pending
    reader.resume()
    await ended.wait()
    assert len(taken) == 3_000_000


async def test_a_reader_that_is_gone_is_told_once():
    source, sink = os.pipe()
    os.close(source)
    broken: list[bool] = []
    writer = InputPipe(sink, lambda: broken.append(writer.closed))
    writer.write(b"x" * 1_000_000)
    writer.write(b"y")
    await until(lambda: broken)
    await writer.drain()
    assert broken == [True]


async def test_closing_hands_on_nothing_more():
    source, sink = os.pipe()
    taken: list[bytes] = []
    ended: list[bool] = []
    reader = OutputPipe(source, taken.append, lambda: ended.append(True))
    reader.close()
    reader.close()
    os.write(sink, b"late")
    os.close(sink)
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "read a pipe"])
    await asyncio.sleep(0)
    assert (taken, ended) == ([], [True])


async def test_an_error_in_a_callback_does_not_end_the_reading(caplog: pytest.LogCaptureFixture):
    source, sink = os.pipe()
    taken: list[bytes] = []
    ended = asyncio.Event()

    def fails_once(data: bytes) -> None:
        taken.append(data)
        if len(taken) == 1:
            raise ValueError("ours")

    OutputPipe(source, fails_once, ended.set)
    os.write(sink, b"one")
    await until(lambda: taken)
    os.write(sink, b"two")
    os.close(sink)
    await ended.wait()
    assert taken == [b"one", b"two"]
    assert len(caplog.records) == 1

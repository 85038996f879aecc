"""The ring of events as one reader sees it."""

import asyncio
import contextlib

from callboard.engine.bus import KEPT, Bus


async def test_kinds_that_are_not_wanted_neither_come_nor_keep_alive() -> None:
    bus = Bus()
    async with asyncio.timeout(60), contextlib.aclosing(bus.read(0, frozenset({"log"}), pause=0.05)) as batches:
        bus.publish("calls", {})
        bus.publish("log", {"server": "one"})
        (event,) = await anext(batches)
        assert (event.seq, event.kind) == (2, "log")
        loop, until = asyncio.get_running_loop(), asyncio.Event()

        def publish() -> None:
            bus.publish("calls", {})
            if not until.is_set():
                loop.call_later(0.01, publish)

        publish()
        assert await anext(batches) == [], "a quiet stream is kept alive whatever else happens"
        until.set()


async def test_one_who_missed_events_is_told_so_whatever_kinds_it_wants() -> None:
    bus = Bus()
    for _ in range(3):
        bus.publish("calls", {}, weight=KEPT)
    async with contextlib.aclosing(bus.read(0, frozenset({"log"}))) as batches:
        (event,) = await anext(batches)
        assert (event.seq, event.kind) == (3, "reset")
        bus.publish("log", {})
        assert [event.seq for event in await anext(batches)] == [4]

"""What a caller hears while a call runs."""

import asyncio
from collections.abc import Callable
from typing import Any

from callboard.agents.progress import Progress

Heard = list[tuple[float, float | None, str]]


def remark(text: str, **more: Any) -> dict[str, Any]:
    return {"kind": "progress", "text": text, **more}


def delta(text: str) -> dict[str, Any]:
    return {"kind": "delta", "text": text}


async def reported(feed: Callable[[Progress], Any], heartbeat: float = 0.0) -> Heard:
    heard: Heard = []

    async def report(progress: float, total: float | None, message: str) -> None:
        heard.append((progress, total, message))

    progress = Progress(report, heartbeat=heartbeat)
    result = feed(progress)
    if asyncio.iscoroutine(result):
        await result
    await progress.close()
    return heard


async def test_text_is_joined_and_remarks_stand_on_lines_of_their_own() -> None:
    def feed(progress: Progress) -> None:
        for piece in ("Hel", "lo ", "you"):
            progress.take(delta(piece))
        progress.take(remark("→ roll()"))
        progress.take(delta("more"))

    assert await reported(feed) == [(1.0, None, "Hello you\n→ roll()\nmore")]


async def test_a_thousand_pieces_become_a_few_messages() -> None:
    async def feed(progress: Progress) -> None:
        for number in range(1000):
            progress.take(delta(f"{number} "))
            if number % 10 == 0:
                await asyncio.sleep(0)

    heard = await reported(feed)
    assert 1 <= len(heard) <= 4
    assert "".join(message for _, _, message in heard).endswith("998 999 ")


async def test_the_number_always_grows() -> None:
    async def feed(progress: Progress) -> None:
        for message in (
            remark("a"),
            remark("b", current=2, total=10),
            remark("c", current=1, total=10),
            remark("d"),
            remark("e", current=10, total=10),
            remark("f", current=10, total=10),
        ):
            progress.take(message)
            await asyncio.sleep(0.3)

    heard = await reported(feed)
    numbers = [number for number, _, _ in heard]
    assert numbers == sorted(set(numbers))
    assert all(total is None or number <= total for number, total, _ in heard)
    assert [message for _, _, message in heard] == ["a", "b", "c", "d", "e", "f"]


async def test_silence_is_broken_by_a_heartbeat() -> None:
    async def feed(progress: Progress) -> None:
        await asyncio.sleep(0.8)

    heard = await reported(feed, heartbeat=0.2)
    assert heard
    assert all("still working" in message for _, _, message in heard)


async def test_nothing_to_say() -> None:
    assert await reported(lambda progress: None) == []


async def test_a_long_text_keeps_its_end() -> None:
    ((_, _, message),) = await reported(lambda progress: progress.take(delta("x" * 5000 + "end")))
    assert message.startswith("…")
    assert message.endswith("end")
    assert len(message) < 2100

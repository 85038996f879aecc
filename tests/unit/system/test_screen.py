"""Whether there is a screen, found out before Qt would end the process over it, and when it goes away."""

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from callboard.system import screen

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux may lack a screen")


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ({}, False),
        ({"DISPLAY": ""}, False),
        ({"DISPLAY": ":98765"}, False),
        ({"DISPLAY": "somewhere:0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"QT_QPA_PLATFORM": "offscreen"}, True),
        ({"QT_QPA_PLATFORM": "xcb"}, False),
    ],
)
def test_what_the_environment_tells(environment: dict[str, str], there: bool) -> None:
    assert screen.has_screen(environment) is there


def test_a_display_that_somebody_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "X_SOCKETS", str(tmp_path / "X"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "X7"))
        server.listen()
        assert screen.has_screen({"DISPLAY": ":7.0"})


@pytest.mark.parametrize("name", ["DISPLAY", "WAYLAND_DISPLAY"])
async def test_a_screen_is_there_until_nobody_serves_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "X_SOCKETS", str(tmp_path / "X"))
    monkeypatch.setattr(screen, "PAUSE", 0.01)
    environment = {"DISPLAY": ":7"} if name == "DISPLAY" else {name: "X7", "XDG_RUNTIME_DIR": str(tmp_path)}
    guests: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    path = tmp_path / "X7"
    server = await asyncio.start_unix_server(lambda _, writer: guests.put_nowait(writer), path)
    gone = asyncio.create_task(screen.screen_gone(environment))
    async with asyncio.timeout(60):
        (await guests.get()).close()  # the look whether there is one
        for _ in range(3):  # one that says nothing is put out after a while
            (await guests.get()).close()
            assert not gone.done()
        last = await guests.get()
        server.close()
        path.unlink()
        assert not gone.done()
        last.close()
        await gone
        await server.wait_closed()


async def test_a_screen_that_cannot_be_watched_never_goes() -> None:
    watching = [
        asyncio.create_task(screen.screen_gone(each)) for each in ({}, {"DISPLAY": "far:0"}, {"DISPLAY": ":98"})
    ]
    done, _ = await asyncio.wait(watching, timeout=0.2)
    assert not done
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)

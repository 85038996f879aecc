"""One window per person: second starts, two at once, and what a killed window leaves behind."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from pathlib import Path

from callboard.system.paths import find_paths
from callboard.ui.hand_over import LONGEST_PATH, hand_over, socket_address
from callboard.ui.single_instance import SingleInstance
from tests.support.tray_host import TrayHost, wait_for
from tests.support.window import WindowProcess, start_window


async def test_a_second_start_shows_the_first_window_and_ends(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, {}, "--background") as window:
        await host.wait_for_item(60, pid=window.pid)
        engine = await window.engine_pid()
        assert not await window.is_shown()
        second = start_window(callboard_home)
        assert await asyncio.to_thread(second.wait, 10) == 0
        await window.wait_until_shown()
        assert await window.engine_pid() == engine


async def test_what_a_killed_window_left_is_taken_over(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, {}) as window:
        await window.wait_until_shown()
        window.kill()
        assert window.paths.window_socket.exists() or socket_address(window.paths) != str(window.paths.window_socket)
        window.start()
        await window.wait_until_shown()
        second = start_window(callboard_home)
        assert await asyncio.to_thread(second.wait, 10) == 0


async def test_of_two_starts_at_once_one_stays(callboard_home: Path) -> None:
    window = WindowProcess(callboard_home, {})
    starts = [start_window(callboard_home), start_window(callboard_home)]
    try:

        async def one_has_ended() -> bool:
            return any(start.poll() is not None for start in starts)

        await wait_for(one_has_ended, "the end of one of them", 20)
        loser = next(start for start in starts if start.poll() is not None)
        winner = next(start for start in starts if start is not loser)
        assert loser.returncode == 0
        await window.engine_pid()
        assert winner.poll() is None
    finally:
        for start in starts:
            start.terminate()
        for start in starts:
            await asyncio.to_thread(start.wait, 20)
        await window.end_engine()


async def test_a_start_while_the_first_window_ends_becomes_the_next(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, {}) as window:
        await window.wait_until_shown()
        engine = await window.engine_pid()
        first = window.process
        assert first is not None
        first.terminate()
        await window.wait_until_hidden()
        window.start()
        assert await asyncio.to_thread(first.wait, 20) == 0
        await window.wait_until_shown()
        await window.engine_pid(other_than=engine)
        assert window.process is not None
        assert window.process.poll() is None


class TestHandOver:
    """In this process, as the engine is not needed for it."""

    async def test_the_first_is_asked_to_show_itself(self, callboard_home: Path) -> None:
        paths = find_paths()
        paths.create()
        place = SingleInstance(paths)
        assert place.acquire()
        shown: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        place.showRequested.connect(shown.set_result)
        try:
            assert await asyncio.to_thread(hand_over, paths, activation="token")
            assert await asyncio.wait_for(shown, 5) == "token"
        finally:
            place.release()

    async def test_the_first_is_given_a_bundle(self, callboard_home: Path) -> None:
        paths = find_paths()
        paths.create()
        place = SingleInstance(paths)
        assert place.acquire()
        given: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        place.bundleGiven.connect(given.set_result)
        try:
            assert await asyncio.to_thread(hand_over, paths, bundle="/home/me/x.mcpb")
            assert await asyncio.wait_for(given, 30) == "/home/me/x.mcpb"
        finally:
            place.release()

    async def test_nobody_answers_where_no_window_runs(self, callboard_home: Path) -> None:
        paths = find_paths()
        paths.create()
        assert not hand_over(paths)

    async def test_the_socket_is_for_its_owner_alone(self, callboard_home: Path) -> None:
        paths = find_paths()
        paths.create()
        place = SingleInstance(paths)
        assert place.acquire()
        try:
            mode = Path(socket_address(paths)).stat().st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o700
        finally:
            place.release()

    async def test_rubbish_is_not_answered_and_does_no_harm(self, callboard_home: Path) -> None:
        paths = find_paths()
        paths.create()
        place = SingleInstance(paths)
        assert place.acquire()
        shown: list[str] = []
        place.showRequested.connect(shown.append)

        def send(data: bytes) -> bytes:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(5)
                connection.connect(socket_address(paths))
                connection.sendall(data)
                try:
                    return connection.recv(10)
                except ConnectionResetError:
                    return b""

        try:
            for rubbish in (b"GET / HTTP/1.1\r\n\r\n", b"{}\n", b'{"show": 1, "activation": ""}\n', b"x" * 100_000):
                assert await asyncio.to_thread(send, rubbish) == b""
            assert shown == []
            assert await asyncio.to_thread(hand_over, paths)
        finally:
            place.release()

    async def test_a_long_path_is_replaced_by_a_short_one(self, callboard_home: Path) -> None:
        from callboard.system.paths import Paths

        deep = callboard_home / ("x" * 120)
        paths = Paths(deep, deep, deep, deep, deep)
        paths.create()
        address = socket_address(paths)
        assert len(os.fsencode(address)) <= LONGEST_PATH
        place = SingleInstance(paths)
        assert place.acquire()
        try:
            assert await asyncio.to_thread(hand_over, paths)
        finally:
            place.release()


async def test_handing_over_loads_no_qt(callboard_home: Path) -> None:
    code = (
        "import sys, callboard.gui;"
        "sys.exit(any(name.split('.')[0] in ('PySide6', 'shiboken6', 'qasync') for name in sys.modules))"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    assert await process.wait() == 0

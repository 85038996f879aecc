"""The window's process and the engine's: who outlives whom, and what is said about it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import yaml
from PySide6.QtWidgets import QApplication, QLabel

from callboard.api.client import EngineClient
from callboard.system.engine_child import EngineChild
from callboard.system.paths import find_paths
from callboard.ui.shell import Shell
from tests.support.bundles import manifest, write_bundle
from tests.support.engine import EngineProcess
from tests.support.processes import is_running, until
from tests.support.tray_host import TrayHost
from tests.support.window import FIXTURE, WindowProcess, start_window, wait_until_gone

SERVERS: dict[str, dict[str, object]] = {"fixture": {"command": FIXTURE[0], "args": FIXTURE[1:]}}


async def test_the_engine_outlives_a_killed_window_and_the_next_one_attaches(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, SERVERS) as window:
        server = (await window.wait_for_state("fixture", "ready")).pid
        engine = await window.engine_pid()
        await window.wait_until_shown()
        window.kill()
        async with EngineClient.from_file(window.paths.engine_file) as client:
            assert await client.call_tool("fixture", "echo", {"text": "still here"})
        window.start()
        await window.wait_until_shown()
        assert await window.engine_pid() == engine
        assert (await window.wait_for_state("fixture", "ready")).pid == server


async def test_a_bundle_is_opened_over_the_window_by_the_first_and_by_a_second_start(
    callboard_home: Path, tmp_path: Path
) -> None:
    first = write_bundle(tmp_path / "first.mcpb")
    second = write_bundle(tmp_path / "second.mcpb", manifest() | {"name": "second"})
    async with WindowProcess(callboard_home, SERVERS, str(first)) as window:
        folder = window.paths.bundles

        def unpacked(name: str) -> bool:
            return folder.is_dir() and any(each.name.startswith(f"{name}-") for each in folder.iterdir())

        await until(lambda: unpacked("shouter"), seconds=60)
        again = start_window(callboard_home, str(second))
        assert await asyncio.to_thread(again.wait, 30) == 0
        await until(lambda: unpacked("second"), seconds=60)
        assert window.process is not None
        assert window.process.poll() is None
        roster = yaml.safe_load(window.paths.roster.read_text(encoding="utf-8"))
        assert list(roster["servers"]) == ["fixture"]
    assert list(folder.iterdir()) == []


async def test_sigterm_is_the_same_as_quit(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, SERVERS) as window:
        server = (await window.wait_for_state("fixture", "ready")).pid
        engine = await window.engine_pid()
        await window.wait_until_shown()
        os.kill(window.pid, signal.SIGTERM)
        assert await window.wait_for_end() == 0
        assert server is not None
        await wait_until_gone(engine)
        await wait_until_gone(server)
        assert not window.paths.engine_file.exists()


async def test_a_screen_that_goes_away_takes_everything_with_it(
    callboard_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["Xvfb", "-displayfd", "1", "-nolisten", "tcp", "-noreset"]
    screen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert screen.stdout is not None
        number = await asyncio.to_thread(screen.stdout.readline)
        monkeypatch.setenv("DISPLAY", f":{int(number)}")
        async with WindowProcess(callboard_home, SERVERS) as window:
            server = (await window.wait_for_state("fixture", "ready")).pid
            engine = await window.engine_pid()
            await window.wait_until_shown()
            screen.kill()
            assert await window.wait_for_end() == 1  # by Qt's hand, or by that of X's library
            assert server is not None
            await wait_until_gone(engine)
            await wait_until_gone(server)
            assert not window.paths.engine_file.exists()
    finally:
        screen.kill()
        await asyncio.to_thread(screen.communicate)


async def test_quitting_while_the_engine_starts_leaves_nothing(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, SERVERS) as window:
        await window.wait_until_shown()
        os.kill(window.pid, signal.SIGTERM)
        assert await window.wait_for_end() == 0
        assert not window.paths.engine_file.exists()


async def test_quitting_before_there_is_a_window_leaves_nothing(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, SERVERS) as window:
        await until(lambda: engines_of(window.pid), seconds=60)
        os.kill(window.pid, signal.SIGTERM)
        (engine,) = engines_of(window.pid) or [0]
        assert await window.wait_for_end() == 0
        assert not is_running(engine)
        assert not window.paths.engine_file.exists()


async def test_a_window_attaches_to_an_engine_of_the_command_line_and_quit_ends_it(callboard_home: Path) -> None:
    async with EngineProcess(callboard_home, SERVERS) as engine:
        assert engine.process is not None
        await engine.wait_for("fixture", "ready")
        async with TrayHost() as host, WindowProcess(callboard_home) as window:
            item = await host.wait_for_item(60, pid=window.pid)
            assert await window.engine_pid() == engine.process.pid
            await item.wait_for_entry("fixture · Ready")
            await item.click("Quit")
            assert await window.wait_for_end() == 0
            await asyncio.to_thread(engine.process.wait, 20)


async def test_a_killed_engine_comes_back_with_its_servers(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS) as window:
        item = await host.wait_for_item(60, pid=window.pid)
        old_server = (await window.wait_for_state("fixture", "ready")).pid
        old = await window.engine_pid()
        os.kill(old, signal.SIGKILL)
        new = await window.engine_pid(other_than=old)
        assert new != old
        server = (await window.wait_for_state("fixture", "ready")).pid
        assert server != old_server
        await item.wait_for_entry("fixture · Ready")
        assert old_server is not None
        await wait_until_gone(old_server)


def engines_of(window: int) -> list[int]:
    """Processes that the window has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(window).children()]
    return []


async def test_without_a_display_it_says_how_to_go_on(callboard_home: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment["QT_QPA_PLATFORM"] = "xcb"
    for display in (None, ":7653"):
        env = environment if display is None else {**environment, "DISPLAY": display}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "callboard", "run", env=env, stderr=asyncio.subprocess.PIPE
        )
        _, said = await process.communicate()
        assert process.returncode == 2
        assert said.decode().startswith("callboard: There is no screen")
        assert "callboard engine" in said.decode()
    assert not find_paths().engine_file.exists()


@contextlib.asynccontextmanager
async def running_shell(app: QApplication) -> AsyncIterator[Shell]:
    """Window, tray and engine, in the test's own task: qasync turns its loop between fixture and test with none set."""
    paths = find_paths()
    paths.create()
    roster = {"version": 1, "gateway": {"port": 0}, "servers": SERVERS}
    paths.roster.write_text(yaml.safe_dump(roster), encoding="utf-8")
    child = EngineChild(paths)
    child.start()
    palette = app.palette()
    shell = Shell(app, paths, child, background=False, first_start=False)
    running = asyncio.ensure_future(shell.run())
    try:
        yield shell
    finally:
        shell.quit()
        assert await asyncio.wait_for(running, 20) == 0
        assert not child.is_alive()
        shell.deleteLater()
        app.setPalette(palette)


class TestWhatTheWindowSays:
    """The same in this process, where its notices can be read."""

    async def connected(self, shell: Shell) -> int:
        await until(lambda: shell.link.is_connected and shell.link.engine is not None, seconds=60)
        assert shell.link.engine is not None
        return shell.link.engine.pid

    @pytest.mark.allow_logs
    async def test_a_killed_engine_is_started_again_and_that_is_said(
        self, qapp: QApplication, callboard_home: Path
    ) -> None:
        async with running_shell(qapp) as shell:
            first = await self.connected(shell)
            os.kill(first, signal.SIGKILL)
            await until(lambda: not shell.link.is_connected)
            assert shell.window.status_line.text != "1 running"
            await until(lambda: shell.link.is_connected, seconds=60)
            second = await self.connected(shell)
            assert second != first
            notice = shell.window.notices.notice("engine")
            assert notice is not None
            assert "ended unexpectedly (signal 9 (SIGKILL)) and was started again" in notice.text
            said = "\n".join(label.text() for label in shell.window.notices.findChildren(QLabel) if label.isVisible())
            assert notice.text in said

    @pytest.mark.allow_logs
    async def test_one_that_dies_again_and_again_is_started_after_longer_pauses(
        self, qapp: QApplication, callboard_home: Path
    ) -> None:
        async with running_shell(qapp) as shell:
            pauses: list[float] = []
            shell.keeper.restarting.connect(lambda _how, seconds: pauses.append(seconds))
            for _ in range(3):
                os.kill(await self.connected(shell), signal.SIGKILL)
                await until(lambda: not shell.link.is_connected)
                await until(lambda: shell.link.is_connected, seconds=60)
            assert pauses == sorted(pauses)
            assert len(set(pauses)) == 3

    async def test_an_engine_that_a_person_stopped_stays_stopped(
        self, qapp: QApplication, callboard_home: Path
    ) -> None:
        async with running_shell(qapp) as shell:
            first = await self.connected(shell)
            assert shell.link.client is not None
            async with EngineClient(shell.link.client.address) as client:
                await client.quit()
            await until(lambda: shell.window.notices.notice("engine") is not None, seconds=60)
            notice = shell.window.notices.notice("engine")
            assert notice is not None
            assert notice.text == "The engine was stopped."
            assert not is_running(first)
            notice.actions[0].run()
            await until(lambda: shell.link.is_connected, seconds=60)
            assert await self.connected(shell) != first
            assert shell.window.notices.notice("engine") is None

    async def test_a_roster_that_cannot_be_read_is_told_with_its_place(
        self, qapp: QApplication, callboard_home: Path
    ) -> None:
        async with running_shell(qapp) as shell:
            await self.connected(shell)
            path = find_paths().roster
            good = path.read_text(encoding="utf-8")
            path.write_text("version: 1\nservers: [\n", encoding="utf-8")
            await until(lambda: shell.window.notices.notice("roster") is not None, seconds=60)
            notice = shell.window.notices.notice("roster")
            assert notice is not None
            assert "line " in notice.text
            assert [action.label for action in notice.actions] == ["Open the file"]
            path.write_text(good, encoding="utf-8")
            await until(lambda: shell.window.notices.notice("roster") is None, seconds=60)

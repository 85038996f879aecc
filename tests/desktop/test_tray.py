"""The tray of the real program: read and clicked over D-Bus as a desktop does it, with a real engine behind it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication, QSystemTrayIcon

from callboard.api.client import EngineClient
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.theme import Theme
from callboard.ui.tray import Tray
from callboard.ui.tray_icons import TrayIcons
from tests.support.tray_host import TrayHost, XEmbedTray, wait_for
from tests.support.window import FIXTURE, WindowProcess, wait_until_gone

READY = re.compile("fixture · Ready")
STOPPED = re.compile("fixture · Stopped")
SERVERS: dict[str, dict[str, object]] = {"fixture": {"command": FIXTURE[0], "args": FIXTURE[1:]}}


async def test_a_server_is_stopped_and_started_from_the_menu(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS) as window:
        item = await host.wait_for_item(60, pid=window.pid)
        await item.wait_for_entry(READY, "Stop")
        first = await window.wait_for_state("fixture", "ready")
        assert first.pid is not None
        await item.click(READY, "Stop")
        await window.wait_for_state("fixture", "stopped")
        await wait_until_gone(first.pid)
        await item.wait_for_entry(STOPPED, "Start")
        await item.click(STOPPED, "Start")
        again = await window.wait_for_state("fixture", "ready")
        assert again.pid != first.pid
        await item.wait_for_entry(READY, "Restart")
        await item.click(READY, "Restart")
        third = (await window.wait_for_state("fixture", "ready")).pid
        while third == again.pid:
            third = (await window.wait_for_state("fixture", "ready")).pid


async def test_summary_tooltip_and_trouble(callboard_home: Path) -> None:
    servers = {**SERVERS, "broken": {"command": "callboard-no-such-program"}}
    async with TrayHost() as host, WindowProcess(callboard_home, servers) as window:
        item = await host.wait_for_item(60, pid=window.pid)
        await window.wait_for_state("fixture", "ready")
        trouble = await item.wait_for_entry(re.compile("^broken: "))
        assert trouble.enabled
        await item.wait_for_entry(re.compile(r"1 running · 1 (failed|needs attention)"))
        menu = await item.menu()
        assert "1 running" in menu.labels()[0]
        assert "Quit" in menu.labels()
        state = await item.wait_for_state(lambda state: "1 running" in state.tooltip_title)
        assert state.tooltip_title.startswith("Callboard: ")


async def test_calls_appear_in_the_menu_and_open_the_window(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS, "--background") as window:
        item = await host.wait_for_item(60, pid=window.pid)
        await window.wait_for_state("fixture", "ready")
        async with EngineClient.from_file(window.paths.engine_file) as client:
            await client.call_tool("fixture", "echo", {"text": "hello"})
        call = re.compile(r"^fixture\.echo · Completed · ")
        await item.wait_for_entry("Recent calls", call)
        assert not await window.is_shown()
        await item.click("Recent calls", call)
        await window.wait_until_shown()


async def test_the_icon_comes_when_the_tray_comes_later(callboard_home: Path) -> None:
    async with TrayHost(started=False) as host, WindowProcess(callboard_home, SERVERS) as window:
        await window.wait_until_shown()
        await window.engine_pid()
        await host.start()
        item = await host.wait_for_item(60, pid=window.pid)
        await item.wait_for_entry("Quit")
        await host.stop()
        await host.start()
        item = await host.wait_for_item(60, pid=window.pid)
        await item.wait_for_entry("Quit")


async def test_quit_ends_window_engine_and_servers(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS) as window:
        item = await host.wait_for_item(60, pid=window.pid)
        server = (await window.wait_for_state("fixture", "ready")).pid
        engine = await window.engine_pid()
        assert server is not None
        await item.click("Quit")
        assert await window.wait_for_end() == 0
        await wait_until_gone(engine)
        await wait_until_gone(server)
        await host.wait_for_no_item()


async def test_started_in_the_background_it_is_only_in_the_tray(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS, "--background") as window:
        item = await host.wait_for_item(60, pid=window.pid)
        await window.wait_for_state("fixture", "ready")
        assert not await window.is_shown()
        await item.activate()
        await window.wait_until_shown()


async def test_without_a_tray_the_window_shows_itself(callboard_home: Path) -> None:
    async with WindowProcess(callboard_home, SERVERS, "--background") as window:
        await window.wait_until_shown()


async def test_the_menu_can_start_a_stopped_engine(callboard_home: Path) -> None:
    async with TrayHost() as host, WindowProcess(callboard_home, SERVERS) as window:
        item = await host.wait_for_item(60, pid=window.pid)
        await window.wait_for_state("fixture", "ready")
        first = await window.engine_pid()
        async with EngineClient.from_file(window.paths.engine_file) as client:
            await client.quit()
        await wait_until_gone(first)
        await item.wait_for_entry("The engine is stopped")
        await item.click("Start the engine")
        await window.engine_pid(other_than=first)
        await item.wait_for_entry(READY)


class TestXEmbed:
    @pytest.fixture
    def tray(self, qapp: QApplication, tmp_path: Path) -> Tray:
        link = EngineLink(tmp_path / "engine.json", qapp)
        theme = Theme(qapp, QSettings(str(tmp_path / "window.ini"), QSettings.Format.IniFormat), link)
        glyph = TrayIcons(resource("app-icon", "callboard-symbolic.svg"))
        return Tray(link, ServerActions(link, link), theme, glyph, link)

    async def test_an_icon_that_comes_when_the_tray_does_and_can_be_clicked(self, tray: Tray) -> None:
        tray.start()
        assert not tray.available
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tray.openRequested.connect(lambda: opened.done() or opened.set_result(None))
        try:
            async with XEmbedTray() as host:

                async def there() -> bool:
                    return tray.available

                await wait_for(there, "the icon", 15)
                icon = tray.findChild(QSystemTrayIcon)
                assert icon is not None
                place = await host.settled(icon.geometry)
                await host.click(place.center().x(), place.center().y())
                await asyncio.wait_for(opened, 5)
                tray.stop()
        finally:
            tray.stop()
            tray.parent().deleteLater()

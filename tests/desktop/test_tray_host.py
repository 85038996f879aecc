"""The trays of tests/support/tray_host.py, tried on a plain Qt icon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
import qasync
from PySide6.QtGui import QAction, QIcon, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from tests.support.tray_host import TrayHost, XEmbedTray, wait_for


class Icon:
    """A green tray icon with a menu that notes what was clicked; the submenu is filled when it is about to show."""

    def __init__(self) -> None:
        pixmap = QPixmap(22, 22)
        pixmap.fill("#00ff00")
        self.clicked: list[str] = []
        self.menu = QMenu()
        self.first = self.add(self.menu, "&Restart all__now")  # one underscore would mark an access key
        self.menu.addSeparator()
        self.add(self.menu, "Not now").setEnabled(False)
        self.add(self.menu, "Hidden").setVisible(False)
        self.submenu = self.menu.addMenu("Servers")
        self.add(self.submenu, "placeholder")
        self.submenu.aboutToShow.connect(self.fill)
        self.tray = QSystemTrayIcon(QIcon(pixmap))
        self.tray.setToolTip("two of three")
        self.tray.setContextMenu(self.menu)
        self.tray.activated.connect(lambda reason: self.clicked.append(reason.name))
        self.tray.show()

    def add(self, menu: QMenu, text: str) -> QAction:
        action = menu.addAction(text)
        action.triggered.connect(lambda: self.clicked.append(action.text()))
        return action

    def fill(self) -> None:
        self.submenu.clear()
        self.add(self.submenu, "Stop").setCheckable(True)

    def close(self) -> None:
        self.tray.hide()
        self.tray.deleteLater()
        self.menu.deleteLater()


@pytest.fixture
def show_icon() -> Iterator[Callable[[], Icon]]:
    """Puts an icon into the tray; at the end takes all away."""
    shown: list[Icon] = []

    def show() -> Icon:
        shown.append(Icon())
        return shown[-1]

    yield show
    for icon in shown:
        icon.close()


async def test_runs_on_qt_loop() -> None:
    assert isinstance(asyncio.get_running_loop(), qasync.QEventLoop)


async def test_reads_icon_tooltip_and_menu(show_icon: Callable[[], Icon]) -> None:
    async with TrayHost() as host:
        assert await host.items() == []
        icon = show_icon()
        item = await host.wait_for_item(pid=os.getpid())

        state = await item.state()
        assert state.tooltip_title == "two of three"
        assert state.status == "Active"
        pixmap = next(pixmap for pixmap in state.icons if pixmap.width == 22)
        assert pixmap.pixel(11, 11) == (255, 0, 255, 0)
        assert pixmap.visible_pixels() == 22 * 22

        menu = await item.menu()
        assert menu.labels() == ["Restart all_now", "Not now", "Servers"]
        assert menu.find("Servers").labels() == ["Stop"]
        assert menu.find("Servers", "Stop").checked is False
        icon.tray.hide()
        await host.wait_for_no_item()


async def test_clicks_entries(show_icon: Callable[[], Icon]) -> None:
    async with TrayHost() as host:
        icon = show_icon()
        item = await host.wait_for_item()
        await item.click("Restart all_now")
        await item.click("Servers", "Stop")
        await item.activate()
        with pytest.raises(LookupError, match="is disabled"):
            await item.click("Not now")
        with pytest.raises(LookupError, match="no menu entry 'Hidden' among"):
            await item.click("Hidden")

        assert icon.clicked == ["&Restart all__now", "Stop", "Trigger"]


async def test_waits_for_what_changes_later(show_icon: Callable[[], Icon]) -> None:
    async with TrayHost() as host:
        icon = show_icon()
        item = await host.wait_for_item()
        loop = asyncio.get_running_loop()
        loop.call_later(0.1, icon.tray.setToolTip, "three of three")
        loop.call_later(0.1, icon.first.setText, "Start all")

        await item.wait_for_state(lambda state: state.tooltip_title == "three of three")
        await item.wait_for_entry("Start all")
        with pytest.raises(TimeoutError, match="last seen: ItemState"):
            await item.wait_for_state(lambda state: state.status == "Passive", timeout=0.1)


async def test_tray_may_come_late_and_go(show_icon: Callable[[], Icon]) -> None:
    async with TrayHost(started=False) as host:
        assert not QSystemTrayIcon.isSystemTrayAvailable()
        await host.start()
        show_icon()
        await host.wait_for_item()
        await host.stop()
        await host.start()

        await host.wait_for_item()  # Qt registers again with the new one


async def test_second_tray_is_refused() -> None:
    async with TrayHost():
        with pytest.raises(RuntimeError, match="the tray did not start"):
            await TrayHost().__aenter__()


async def test_old_kind_of_tray(show_icon: Callable[[], Icon]) -> None:
    async with XEmbedTray() as tray:
        icon = show_icon()
        middle = (await tray.settled(icon.tray.geometry)).center()
        await tray.click(middle.x(), middle.y())

        async def clicked() -> list[str]:
            return icon.clicked

        assert await wait_for(clicked, "the click") == ["Trigger"]

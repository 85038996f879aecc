"""A tray for tests: sees the icons that programs put there as a desktop does, over D-Bus, and clicks in their menus.

    async with TrayHost() as tray:
        icon = await tray.wait_for_item()
        assert (await icon.state()).tooltip_title == "Callboard"
        await icon.click("local-tools", "Stop")

Works on asyncio's and on Qt's event loop, with the program under test in this process or in another.
Needs a session bus; `XEmbedTray` below is the tray of the old kind and needs an X display.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from jeepney import DBusAddress, DBusErrorResponse, MessageType, Properties, message_bus, new_method_call
from jeepney.io.asyncio import DBusRouter, open_dbus_connection

WATCHER = DBusAddress("/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher", "org.kde.StatusNotifierWatcher")
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
T = TypeVar("T")
CALL_LIMIT = 5.0  # seconds for one answer over the bus


async def wait_for(look: Callable[[], Awaitable[T]], what: str, timeout: float = 60.0) -> T:
    """Calls `look` until its answer is true, and returns that. Raises TimeoutError, with the last answer."""
    deadline = time.monotonic() + timeout
    while not (answer := await look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout} s for {what}; last seen: {answer!r}")
        await asyncio.sleep(0.02)
    return answer


@dataclass(frozen=True)
class Pixmap:
    """One size of an icon: rows of pixels, each of 4 bytes, alpha first."""

    width: int
    height: int
    argb: bytes = field(repr=False)

    def pixel(self, x: int, y: int) -> tuple[int, int, int, int]:
        """Alpha, red, green and blue of one pixel, each 0 to 255."""
        start = 4 * (y * self.width + x)
        alpha, red, green, blue = self.argb[start : start + 4]
        return alpha, red, green, blue

    def visible_pixels(self) -> int:
        """How many pixels are not fully transparent."""
        return sum(1 for alpha in self.argb[::4] if alpha)


@dataclass(frozen=True)
class ItemState:
    """What a desktop knows of a tray icon."""

    id: str
    title: str
    status: str  # Passive, Active or NeedsAttention
    category: str
    tooltip_title: str
    tooltip_text: str
    icon_name: str
    icons: list[Pixmap]
    menu_path: str


@dataclass(frozen=True)
class MenuEntry:
    """An entry of a menu, with those beneath it."""

    id: int
    label: str  # as a desktop shows it: a single underscore marks an access key and vanishes, a double one stays as one
    separator: bool
    enabled: bool
    visible: bool
    checked: bool | None  # None for what cannot be checked
    children: list[MenuEntry]

    def labels(self) -> list[str]:
        """The labels of the visible entries directly beneath, separators left out."""
        return [child.label for child in self.children if child.visible and not child.separator]

    def find(self, *path: str | re.Pattern[str]) -> MenuEntry:
        """The visible entry at this path of labels: text compared whole, a pattern searched. Raises LookupError."""
        entry = self
        for step in path:
            for child in entry.children:
                matches = step.search(child.label) if isinstance(step, re.Pattern) else step == child.label
                if matches and child.visible and not child.separator:
                    entry = child
                    break
            else:
                raise LookupError(f"no menu entry {step!r} among {entry.labels()}")
        return entry

    def walk(self) -> Iterator[MenuEntry]:
        """All entries beneath, from top to bottom."""
        for child in self.children:
            yield child
            yield from child.walk()


class TrayItem:
    """One program's icon in the tray."""

    def __init__(self, host: TrayHost, bus_name: str, path: str) -> None:
        self.bus_name = bus_name
        self.path = path
        self._host = host

    def __repr__(self) -> str:
        return f"TrayItem({self.bus_name!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TrayItem) and (self.bus_name, self.path) == (other.bus_name, other.path)

    def __hash__(self) -> int:
        return hash((self.bus_name, self.path))

    async def state(self) -> ItemState:
        (values,) = await self._host.call(Properties(DBusAddress(self.path, self.bus_name, ITEM)).get_all())

        def value(name: str, default: Any) -> Any:
            return values[name][1] if name in values else default

        _icon_name, _icons, title, text = value("ToolTip", ("", [], "", ""))
        return ItemState(
            id=value("Id", ""),
            title=value("Title", ""),
            status=value("Status", ""),
            category=value("Category", ""),
            tooltip_title=title,
            tooltip_text=text,
            icon_name=value("IconName", ""),
            icons=[Pixmap(width, height, bytes(argb)) for width, height, argb in value("IconPixmap", [])],
            menu_path=value("Menu", ""),
        )

    async def pid(self) -> int:
        """The process that the icon belongs to."""
        (pid,) = await self._host.call(message_bus.GetConnectionUnixProcessID(self.bus_name))
        return pid

    async def wait_for_state(
        self, condition: Callable[[ItemState], bool], what: str = "the icon's state", timeout: float = 60.0
    ) -> ItemState:
        """Waits until the state is as `condition` wants it, and returns it."""
        last: ItemState | None = None

        async def look() -> ItemState | None:
            nonlocal last
            last = await self.state()
            return last if condition(last) else None

        try:
            found = await wait_for(look, what, timeout)
        except TimeoutError:
            raise TimeoutError(f"waited {timeout} s for {what}; last seen: {last}") from None
        assert found is not None
        return found

    async def menu(self) -> MenuEntry:
        """The whole menu, each part asked for as a desktop does that is about to show it. The root has no label."""
        address = await self._menu_address()
        await self._about_to_show(address, 0)
        root = await self._layout(address)
        submenus = [entry.id for entry in root.walk() if entry.children]
        for entry_id in submenus:
            await self._about_to_show(address, entry_id)
        return await self._layout(address) if submenus else root

    async def wait_for_entry(self, *path: str | re.Pattern[str], timeout: float = 60.0) -> MenuEntry:
        """Waits until the menu has an entry at this path of labels, and returns it."""
        missing: LookupError | None = None

        async def look() -> MenuEntry | None:
            nonlocal missing
            try:
                return (await self.menu()).find(*path)
            except LookupError as error:
                missing = error
                return None

        try:
            entry = await wait_for(look, f"the menu entry {path}", timeout)
        except TimeoutError:
            raise TimeoutError(f"waited {timeout} s: {missing}") from None
        assert entry is not None
        return entry

    async def click(self, *path: str | re.Pattern[str]) -> None:
        """Clicks the entry at this path of labels. Raises LookupError if it is not there, or cannot be clicked."""
        entry = (await self.menu()).find(*path)
        if not entry.enabled:
            raise LookupError(f"the menu entry {entry.label!r} is disabled")
        body = (entry.id, "clicked", ("s", ""), int(time.time()) & 0xFFFFFFFF)
        await self._host.call(new_method_call(await self._menu_address(), "Event", "isvu", body))

    async def activate(self) -> None:
        """A click on the icon itself."""
        await self._host.call(new_method_call(DBusAddress(self.path, self.bus_name, ITEM), "Activate", "ii", (0, 0)))

    async def _menu_address(self) -> DBusAddress:
        return DBusAddress((await self.state()).menu_path, self.bus_name, MENU)

    async def _about_to_show(self, address: DBusAddress, entry_id: int) -> None:
        await self._host.call(new_method_call(address, "AboutToShow", "i", (entry_id,)))

    async def _layout(self, address: DBusAddress) -> MenuEntry:
        _revision, root = await self._host.call(new_method_call(address, "GetLayout", "iias", (0, -1, [])))
        return _entry(root)


def _entry(node: tuple[int, dict[str, tuple[str, Any]], list[tuple[str, Any]]]) -> MenuEntry:
    entry_id, properties, children = node
    values = {name: value for name, (_signature, value) in properties.items()}
    return MenuEntry(
        id=entry_id,
        label=re.sub("_(.)", r"\1", values.get("label", "")),
        separator=values.get("type") == "separator",
        enabled=values.get("enabled", True),
        visible=values.get("visible", True),
        checked=values.get("toggle-state") == 1 if values.get("toggle-type") else None,
        children=[_entry(child) for _signature, child in children],
    )


class TrayHost:
    """The tray of a desktop that speaks StatusNotifierItem, in a process of its own.

    `start` and `stop` may be called again and again, for programs that were there before their desktop, or that
    outlive it. As a context manager it starts at once; `TrayHost(started=False)` does not.
    """

    def __init__(self, *, started: bool = True) -> None:
        self._start_at_once = started
        self._watcher: subprocess.Popen[str] | None = None
        self._router: DBusRouter | None = None
        self._exit = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        connection = await open_dbus_connection("SESSION")
        self._exit.push_async_callback(connection.close)
        self._router = await self._exit.enter_async_context(DBusRouter(connection))
        self._exit.push_async_callback(self.stop)
        if self._start_at_once:
            try:
                await self.start()
            except BaseException:
                await self._exit.aclose()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._exit.aclose()

    async def start(self) -> None:
        """Lets the tray appear; returns when programs can see it."""
        assert self._watcher is None
        self._watcher = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("sni_host.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._watcher.stdout is not None
        if (await asyncio.to_thread(self._watcher.stdout.readline)).strip() != "ready":
            await self.stop()
            raise RuntimeError("the tray did not start")

    async def stop(self) -> None:
        """Lets the tray vanish; returns when its process has ended."""
        if self._watcher is not None:
            watcher, self._watcher = self._watcher, None
            await asyncio.to_thread(watcher.communicate, "")

    async def call(self, message: Any) -> Any:
        """Makes a call over the bus and returns the answer's body. Raises jeepney's DBusErrorResponse."""
        assert self._router is not None
        reply = await asyncio.wait_for(self._router.send_and_get_reply(message), CALL_LIMIT)
        if reply.header.message_type is MessageType.error:
            raise DBusErrorResponse(reply)
        return reply.body

    async def items(self) -> list[TrayItem]:
        """The icons that are there, oldest first."""
        ((_signature, names),) = await self.call(Properties(WATCHER).get("RegisteredStatusNotifierItems"))
        found = []
        for name in names:
            bus_name, slash, path = name.partition("/")
            found.append(TrayItem(self, bus_name, slash + path))
        return found

    async def wait_for_item(self, timeout: float = 60.0, *, pid: int | None = None) -> TrayItem:
        """Waits for an icon (of this process, if given) and returns it."""

        async def look() -> TrayItem | None:
            for item in await self.items():
                with contextlib.suppress(DBusErrorResponse):  # the icon may go as we look at it
                    if pid is None or await item.pid() == pid:
                        return item
            return None

        item = await wait_for(look, "an icon in the tray", timeout)
        assert item is not None
        return item

    async def wait_for_no_item(self, timeout: float = 60.0) -> None:
        """Waits until the tray is empty."""

        async def look() -> bool:
            return not await self.items()

        await wait_for(look, "an empty tray", timeout)


class XEmbedTray:
    """A tray of the old kind (trayer) on the X display. Use as an async context manager."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        options = "--edge top --align right --widthtype request --height 28 --transparent false --expand true"
        self._process = subprocess.Popen(["trayer", *options.split()], stderr=subprocess.DEVNULL)
        try:
            await wait_for(self._is_up, "trayer's window")
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 5)

    async def _is_up(self) -> bool:
        return bool(await _xdotool("search", "--onlyvisible", "--class", "trayer", allowed=(0, 1)))

    async def settled(self, geometry: Callable[[], T], timeout: float = 60.0) -> T:
        """The place of an icon, such as QSystemTrayIcon.geometry tells, once it has one and the tray moves no more."""
        deadline = time.monotonic() + timeout
        before, same = geometry(), 0
        while same < 10:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the icon has no fixed place after {timeout} s; last seen: {before}")
            await asyncio.sleep(0.03)
            now = geometry()
            same = same + 1 if now == before and now else 0
            before = now
        return before

    async def click(self, x: int, y: int, *, button: int = 1) -> None:
        """A click at this place of the screen, such as the middle of QSystemTrayIcon.geometry()."""
        await _xdotool("mousemove", str(x), str(y), "click", str(button))

    async def press(self, *keys: str) -> None:
        """Presses keys one after the other, by their X names."""
        await _xdotool("key", "--delay", "50", *keys)


async def _xdotool(*arguments: str, allowed: tuple[int, ...] = (0,)) -> str:
    run = await asyncio.to_thread(
        subprocess.run, ["xdotool", *arguments], capture_output=True, text=True, timeout=CALL_LIMIT, check=False
    )
    if run.returncode not in allowed:
        raise RuntimeError(f"xdotool {' '.join(arguments)}: {run.stderr.strip()}")
    return run.stdout

"""The tray's icon: there when the desktop has a tray, also when that comes later."""

import os
import sys

import shiboken6
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSystemTrayIcon

from callboard.core.health import Severity
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.summary import summarize
from callboard.ui.theme import Theme
from callboard.ui.tray_icons import TrayIcons, TrayState
from callboard.ui.tray_menu import TrayMenu

WATCHER = "org.kde.StatusNotifierWatcher"
POLL_MS = 4_000  # on X11, and only while there is no tray
SETTLE_MS = (0, 200, 800, 2_500)  # a watcher that just came may say only a little later that it has a host
REFRESH_MS = 120
DARK_PANELS = ("GNOME", "UNITY", "PANTHEON")  # desktops whose panel is dark in both colour schemes
_BY_SEVERITY = {
    Severity.FAILED: TrayState.FAILED,
    Severity.ATTENTION: TrayState.ATTENTION,
    Severity.BUSY: TrayState.STARTING,
    Severity.FINE: TrayState.FINE,
    Severity.OFF: TrayState.FINE,
}


class Tray(QObject):
    """Icon, tooltip and menu in the system tray. Belongs to Qt's thread.

    Qt chooses the tray's protocol when the icon is made; so it is made anew when a StatusNotifier host appears
    later, as it does at log-in.
    """

    openRequested = Signal()
    quitRequested = Signal()
    startEngineRequested = Signal()
    questionRequested = Signal()
    availableChanged = Signal(bool)

    def __init__(
        self, link: EngineLink, actions: ServerActions, theme: Theme, icons: TrayIcons, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._theme = theme
        self._icons = icons
        self._icon: QSystemTrayIcon | None = None
        self._menu: TrayMenu | None = None
        self._with_watcher = False  # the icon was made while a StatusNotifier host was there
        self._shown: tuple[TrayState, bool] | None = None
        self._down: TrayState = TrayState.STARTING
        self._waiting = self.tr("Starting the engine…")
        self._settling = 0
        self._refresh_timer = self._timer(REFRESH_MS, self.refresh)
        self._settle_timer = self._timer(0, self._settle)
        self._poll_timer = self._timer(POLL_MS, self._look)
        self._bus: _WatcherWatch | None = None
        for signal in (
            link.connected,
            link.disconnected,
            link.serversReset,
            link.serverChanged,
            link.serverRemoved,
            link.callsChanged,
            link.engineChanged,
            link.rosterChanged,
            link.questionsChanged,
        ):
            signal.connect(self._refresh_soon)
        theme.changed.connect(self.refresh)

    @property
    def available(self) -> bool:
        """Whether our icon can be seen at the moment."""
        return self._icon is not None and QSystemTrayIcon.isSystemTrayAvailable()

    def start(self) -> None:
        """Show the icon, and watch for trays that come later."""
        if sys.platform.startswith("linux"):
            self._bus = _WatcherWatch(self)
            self._bus.changed.connect(self._watcher_changed)
        self._look()

    def stop(self) -> None:
        """Take the icon away."""
        for timer in (self._refresh_timer, self._settle_timer, self._poll_timer):
            timer.stop()
        self._remove()
        self._bus = None

    def say_down(self, text: str, *, starting: bool) -> None:
        """What to show while no engine answers: whether one is being started, and in which words."""
        self._waiting = text
        self._down = TrayState.STARTING if starting else TrayState.OFF
        self.refresh()

    def refresh(self) -> None:
        """Bring icon, tooltip and menu up to what the link knows."""
        self._refresh_timer.stop()
        if self._icon is None or self._menu is None:
            return
        look = (self._state(), self._dark_panel())
        if look != self._shown:
            self._shown = look
            self._icon.setIcon(self._icons.icon(look[0], dark_panel=look[1]))
        self._icon.setToolTip(self._tooltip())
        self._menu.waiting = self._waiting
        self._menu.refresh()

    # the icon's life

    def _look(self) -> None:
        """Make the icon if there is a tray for it now."""
        there = QSystemTrayIcon.isSystemTrayAvailable()
        stale = self._bus is not None and self._bus.present and not self._with_watcher
        if there and (self._icon is None or stale):
            self._remove()
            self._make()
        if there:
            self._poll_timer.stop()
        elif QGuiApplication.platformName() == "xcb":
            self._poll_timer.start()
        self.availableChanged.emit(self.available)

    def _make(self) -> None:
        self._with_watcher = self._bus is not None and self._bus.present
        self._menu = TrayMenu(self._link, self._actions, self._theme, self)
        self._menu.openRequested.connect(self.openRequested)
        self._menu.quitRequested.connect(self.quitRequested)
        self._menu.startEngineRequested.connect(self.startEngineRequested)
        self._menu.questionRequested.connect(self.questionRequested)
        self._icon = QSystemTrayIcon(self)
        self._icon.setContextMenu(self._menu.menu)
        self._icon.activated.connect(self._activated)
        self._shown = None
        self.refresh()
        self._icon.show()

    def _remove(self) -> None:
        icon, self._icon = self._icon, None
        menu, self._menu = self._menu, None
        if icon is not None:
            icon.hide()
            shiboken6.delete(icon)  # at once: a second icon must not meet the first
        if menu is not None:
            menu.close()

    def _watcher_changed(self, present: bool) -> None:
        self._settling = 0
        if present:
            self._settle_timer.start(SETTLE_MS[0])
        else:
            self._look()

    def _settle(self) -> None:
        self._look()
        self._settling += 1
        if not self.available and self._settling < len(SETTLE_MS):
            self._settle_timer.start(SETTLE_MS[self._settling])

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason != QSystemTrayIcon.ActivationReason.Context:
            self.openRequested.emit()

    # what it shows

    def _state(self) -> TrayState:
        if not self._link.is_connected:
            return self._down
        state = _BY_SEVERITY[summarize(self._link.servers.values()).severity]
        roster, engine = self._link.roster, self._link.engine
        troubled = (roster is not None and roster.problem is not None) or (engine is not None and bool(engine.notices))
        if self._link.questions:
            return TrayState.ATTENTION
        return TrayState.ATTENTION if troubled and state is not TrayState.FAILED else state

    def _tooltip(self) -> str:
        what = summarize(self._link.servers.values()).line() if self._link.is_connected else self._waiting
        if self._link.questions:
            count = len(self._link.questions)
            one = self.tr("a call waits for your permission")
            what = one if count == 1 else self.tr("%n calls wait for your permission", "", count)
        return self.tr("Callboard: {state}").format(state=what)

    def _dark_panel(self) -> bool:
        desktop = os.environ.get("XDG_CURRENT_DESKTOP", "").upper()
        return self._theme.system_dark or any(name in desktop for name in DARK_PANELS)

    def _refresh_soon(self, *_change: object) -> None:
        if self._icon is not None and not self._refresh_timer.isActive():
            self._refresh_timer.start()

    def _timer(self, interval: int, run: object) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.setInterval(interval)
        timer.timeout.connect(run)
        return timer


class _WatcherWatch(QObject):
    """Whether the session bus has a StatusNotifier watcher, and when that changes."""

    changed = Signal(bool)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        from PySide6.QtDBus import QDBusConnection, QDBusServiceWatcher  # after the first paint, and on Linux only

        self._bus = QDBusConnection.sessionBus()
        if not self._bus.isConnected():
            return
        self._watch = QDBusServiceWatcher(
            WATCHER, self._bus, QDBusServiceWatcher.WatchModeFlag.WatchForOwnerChange, self
        )
        self._watch.serviceOwnerChanged.connect(lambda _name, _old, new: self.changed.emit(bool(new)))

    @property
    def present(self) -> bool:
        """Whether a watcher runs now."""
        return self._bus.isConnected() and bool(self._bus.interface().isServiceRegistered(WATCHER).value())

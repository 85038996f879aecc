"""What can be done with a server: as a menu and as keys."""

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from callboard.api.schema import ServerView
from callboard.core.health import State
from callboard.ui.actions import STARTABLE, STOPPABLE, ServerActions

translate = QCoreApplication.translate


def can_start(view: ServerView) -> bool:
    """Whether starting makes sense now."""
    return view.enabled and view.state in STARTABLE


def can_stop(view: ServerView) -> bool:
    """Whether there is something to stop."""
    return view.state in STOPPABLE


def build_menu(view: ServerView, actions: ServerActions, enabled: bool, parent: QWidget) -> QMenu:
    """A menu of everything that can be done with a server; ``enabled`` is false while no engine answers."""
    menu = QMenu(parent)
    name = view.name

    def add(text: str, key: str, usable: bool, run: object) -> None:
        action = menu.addAction(text)
        if key:
            # shown, not bound: the list answers the keys itself
            action.setShortcut(QKeySequence(key))
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.setShortcutVisibleInContextMenu(True)
        action.setEnabled(enabled and usable)
        action.triggered.connect(run)

    if can_stop(view):
        add(translate("ServerMenu", "Stop"), "S", True, lambda: actions.stop(name))
    else:
        add(translate("ServerMenu", "Start"), "S", can_start(view), lambda: actions.start(name))
    anew = translate("ServerMenu", "Reconnect") if view.kind == "remote" else translate("ServerMenu", "Restart")
    add(anew, "R", can_stop(view), lambda: actions.restart(name))
    add(translate("ServerMenu", "Reset restart counter"), "", view.attempt > 0, lambda: actions.reset(name))
    if view.kind == "agent":
        usable = view.state in (State.READY, State.DEGRADED) and name not in actions.reloading
        add(translate("ServerMenu", "Reload agent"), "", usable, lambda: actions.reload(name))
    if view.enabled:
        add(translate("ServerMenu", "Disable"), "", True, lambda: actions.disable(name))
    else:
        add(translate("ServerMenu", "Enable"), "", True, lambda: actions.enable(name))
    menu.addSeparator()
    looks = view.enabled and name not in actions.looking
    add(translate("ServerMenu", "Check health"), "", looks, lambda: actions.check_health(name))
    add(translate("ServerMenu", "Refresh"), "", looks, lambda: actions.refresh(name))
    add(translate("ServerMenu", "Show log"), "L", True, lambda: actions.show_log(name))
    if view.sign_in:
        add(translate("ServerMenu", "Sign-in…"), "", True, lambda: actions.show_sign_in(name))
    add(translate("ServerMenu", "Edit…"), "", True, lambda: actions.edit(name))
    add(translate("ServerMenu", "Duplicate…"), "", True, lambda: actions.duplicate(name))
    copy = translate("ServerMenu", "Copy VS Code config for this server")
    add(copy, "", True, lambda: actions.copy_vscode_config(name))
    menu.addSeparator()
    add(translate("ServerMenu", "Remove"), "Del", True, lambda: actions.remove(name))
    return menu


def press_key(event: QKeyEvent, view: ServerView, actions: ServerActions) -> bool:
    """Do what S, R, L or Delete means for a server; false for any other key. A key held down acts once."""
    key = Qt.Key(event.key())
    if key not in (Qt.Key.Key_S, Qt.Key.Key_R, Qt.Key.Key_L, Qt.Key.Key_Delete):
        return False
    if event.isAutoRepeat():
        return True
    match key:
        case Qt.Key.Key_S if view.state is State.DISABLED:
            actions.enable(view.name)
        case Qt.Key.Key_S if can_stop(view):
            actions.stop(view.name)
        case Qt.Key.Key_S if can_start(view):
            actions.start(view.name)
        case Qt.Key.Key_R if can_stop(view):
            actions.restart(view.name)
        case Qt.Key.Key_L:
            actions.show_log(view.name)
        case Qt.Key.Key_Delete:
            actions.remove(view.name)
        case _:
            pass
    return True

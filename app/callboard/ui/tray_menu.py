"""The tray's menu: built from memory, changed in place, never rebuilt while somebody looks at it."""

import time
from collections.abc import Callable

from PySide6.QtCore import QElapsedTimer, QObject, QRectF, Qt, Signal
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu

from callboard.api.schema import CallView, ServerView
from callboard.core.health import Action, Severity, State
from callboard.ui import formats, words
from callboard.ui.actions import STOPPABLE, ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.severity import paint_mark
from callboard.ui.summary import needing_attention, summarize
from callboard.ui.theme import Theme, Token

ATTENTION_SLOTS = 6
RECENT_SLOTS = 5
DIRECT_SERVERS = 12  # further ones stand in a menu of their own
OPEN_LIMIT_MS = 30_000  # a tray that never tells of closing counts as closed after this


class TrayMenu(QObject):
    """Everything that one can do without the window.

    :meth:`refresh` may be called at any time. While the menu is open, texts change in place and entries are neither
    added, removed nor moved; the rest follows when it closes.
    """

    openRequested = Signal()
    quitRequested = Signal()
    startEngineRequested = Signal()
    questionRequested = Signal()

    def __init__(self, link: EngineLink, actions: ServerActions, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._actions = actions
        self._marks = _Marks(theme)
        self._open_since: QElapsedTimer | None = None
        self._servers: dict[str, _ServerMenu] = {}
        self.waiting = self.tr("Starting the engine…")  # the summary while no engine answers
        self.menu = QMenu()
        self._more = QMenu(self.tr("More servers"), self.menu)
        self._recent = QMenu(self.tr("Recent calls"), self.menu)
        self._build()
        self.menu.aboutToShow.connect(self._opened)
        self.menu.aboutToHide.connect(self._closed)
        self.refresh()

    def close(self) -> None:
        """Take the menu apart; the object must not be used afterwards."""
        self.menu.deleteLater()
        self.deleteLater()

    def refresh(self) -> None:
        """Bring the menu up to what the link knows."""
        connected = self._link.is_connected
        _set_text(self._summary, summarize(self._link.servers.values()).line() if connected else self.waiting)
        self._start_engine.setVisible(not connected)
        self._refresh_question()
        for action in (self._copy_config, self._copy_url):
            action.setEnabled(connected)
        now = time.time()
        for name, entry in self._servers.items():
            if name in self._link.servers:
                entry.show_view(self._link.servers[name], self._marks, now, connected=connected)
        self._refresh_recent(now)
        if not self._is_open():
            self._refresh_attention(connected)
            self._refresh_server_menus(now, connected)

    # building

    def _build(self) -> None:
        menu = self.menu
        self._summary = menu.addAction("")
        self._summary.setEnabled(False)
        self._start_engine = self._add(self.tr("Start the engine"), self.startEngineRequested.emit)
        self._question = self._add("", self.questionRequested.emit)
        self._question.setVisible(False)
        self._attention = [_AttentionSlot(menu, self._actions, self._link) for _ in range(ATTENTION_SLOTS)]
        menu.addSeparator()
        self._after_servers = menu.addMenu(self._more)
        self._more.menuAction().setVisible(False)
        menu.addSeparator()
        menu.addMenu(self._recent)
        self._no_calls = self._recent.addAction(self.tr("No calls yet"))
        self._no_calls.setEnabled(False)
        self._calls = [_CallSlot(self._recent, self._actions) for _ in range(RECENT_SLOTS)]
        menu.addSeparator()
        self._copy_config = self._add(self.tr("Copy VS Code config"), self._actions.copy_vscode_config)
        self._copy_url = self._add(self.tr("Copy gateway URL"), self._actions.copy_gateway_url)
        menu.addSeparator()
        self._add(self.tr("Open Callboard"), self.openRequested.emit)
        self._add(self.tr("Quit"), self.quitRequested.emit)

    def _add(self, text: str, run: Callable[[], object]) -> QAction:
        action = self.menu.addAction(text)
        action.triggered.connect(lambda _checked=False: run())
        return action

    # state

    def _refresh_question(self) -> None:
        """Also while the menu is open: the call does not wait for long."""
        questions = self._link.questions
        self._question.setVisible(bool(questions))
        if questions:
            first = questions[0]
            text = self.tr("May {client} use {item}? Answer…")
            _set_text(self._question, text.format(client=first.client_name, item=f"{first.server}.{first.name}"))
            self._marks.set_on(self._question, Severity.ATTENTION)

    def _refresh_attention(self, connected: bool) -> None:
        views = needing_attention(self._link.servers.values()) if connected else []
        for place, slot in enumerate(self._attention):
            slot.show_view(views[place] if place < len(views) else None, self._marks)

    def _refresh_server_menus(self, now: float, connected: bool) -> None:
        wanted = list(self._link.servers)
        if wanted != list(self._servers):
            for entry in self._servers.values():
                entry.menu.menuAction().setVisible(False)
                entry.menu.deleteLater()
            self._servers = {}
            for place, name in enumerate(wanted):
                entry = _ServerMenu(name, self._actions, self.menu)
                if place < DIRECT_SERVERS:
                    self.menu.insertMenu(self._after_servers, entry.menu)
                else:
                    self._more.addMenu(entry.menu)
                entry.show_view(self._link.servers[name], self._marks, now, connected=connected)
                self._servers[name] = entry
        self._more.menuAction().setVisible(len(wanted) > DIRECT_SERVERS)

    def _refresh_recent(self, now: float) -> None:
        calls = self._link.recent_calls[-RECENT_SLOTS:][::-1]
        self._no_calls.setVisible(not calls)
        for place, slot in enumerate(self._calls):
            slot.show_call(calls[place] if place < len(calls) else None, self._marks, now)

    def _is_open(self) -> bool:
        since = self._open_since
        return self.menu.isVisible() or (since is not None and not since.hasExpired(OPEN_LIMIT_MS))

    def _opened(self) -> None:
        self._open_since = None
        self.refresh()
        self._open_since = QElapsedTimer()
        self._open_since.start()

    def _closed(self) -> None:
        self._open_since = None
        self.refresh()


class _ServerMenu:
    """One server: its state, and what can be done with it."""

    def __init__(self, name: str, actions: ServerActions, parent: QMenu) -> None:
        self._name = name
        self._actions = actions
        self._toggle_action = Action.START
        tr = parent.tr
        self.menu = QMenu(parent)
        self._state = self.menu.addAction("")
        self._state.setEnabled(False)
        self.menu.addSeparator()
        self._toggle = self.menu.addAction("")
        self._toggle.triggered.connect(lambda _checked=False: actions.run(name, self._toggle_action))
        self._restart = self.menu.addAction(tr("Restart"))
        self._restart.triggered.connect(lambda _checked=False: actions.restart(name))
        self._log = self.menu.addAction(tr("Show log"))
        self._log.triggered.connect(lambda _checked=False: actions.show_log(name))

    def show_view(self, view: ServerView, marks: "_Marks", now: float, *, connected: bool) -> None:
        """Show a state."""
        title = f"{view.display_name or view.name} · {words.state_word(view.state)}"
        if self.menu.title() != _escaped(title):
            self.menu.setTitle(_escaped(title))
        marks.set_on(self.menu.menuAction(), view.severity)
        _set_text(self._state, words.state_line(view, now))
        if view.state is State.DISABLED:
            self._toggle_action = Action.ENABLE
        else:
            self._toggle_action = Action.STOP if view.state in STOPPABLE else Action.START
        _set_text(self._toggle, words.action_verb(self._toggle_action))
        self._toggle.setEnabled(connected and view.state is not State.STOPPING)
        self._restart.setEnabled(connected and view.state in STOPPABLE)


class _AttentionSlot:
    """An entry whose click mends what is wrong with a server."""

    def __init__(self, menu: QMenu, actions: ServerActions, link: EngineLink) -> None:
        self._name = ""
        self._actions = actions
        self._link = link
        self._action = menu.addAction("")
        self._action.setVisible(False)
        self._action.triggered.connect(self._clicked)

    def show_view(self, view: ServerView | None, marks: "_Marks") -> None:
        """Show a server's trouble, or nothing."""
        self._action.setVisible(view is not None)
        if view is None:
            return
        self._name = view.name
        what = formats.first_clause(view.reason) or words.state_word(view.state)
        text = f"{view.display_name or view.name}: {what}"
        verb = words.action_verb(view.action)
        _set_text(self._action, f"{text} – {verb}" if verb else text)  # noqa: RUF001
        marks.set_on(self._action, view.severity)

    def _clicked(self) -> None:
        view = self._link.servers.get(self._name)
        if view is None:
            return
        if view.action is Action.NONE:
            self._actions.open(view.name)
        else:
            self._actions.run_primary(view)


class _CallSlot:
    """One of the last calls."""

    def __init__(self, menu: QMenu, actions: ServerActions) -> None:
        self._id = 0
        self._action = menu.addAction("")
        self._action.setVisible(False)
        self._action.triggered.connect(lambda _checked=False: actions.show_call(self._id))

    def show_call(self, call: CallView | None, marks: "_Marks", now: float) -> None:
        """Show a call, or nothing."""
        self._action.setVisible(call is not None)
        if call is None:
            return
        self._id = call.id
        status = words.call_status_word(call.status)
        parts = [words.call_title(call), status, formats.relative_time(call.started, now)]
        _set_text(self._action, " · ".join(parts))
        marks.set_on(self._action, words.call_severity(call.status))


class _Marks:
    """The severities' shapes as icons of menu entries."""

    def __init__(self, theme: Theme) -> None:
        self._theme = theme
        self._icons: dict[tuple[Severity, bool], QIcon] = {}

    def set_on(self, action: QAction, severity: Severity) -> None:
        """Give an entry the icon of a severity, unless it has it."""
        key = (severity, self._theme.dark)
        if action.property("mark") != f"{severity}{self._theme.dark}":
            action.setProperty("mark", f"{severity}{self._theme.dark}")
            action.setIcon(self._icon(key))

    def _icon(self, key: tuple[Severity, bool]) -> QIcon:
        if key not in self._icons:
            icon = QIcon()
            for side in (16, 32):
                icon.addPixmap(_mark(key[0], self._theme.severity(key[0])[0], side))
                icon.addPixmap(_mark(key[0], self._theme.color(Token.ON_ACCENT), side), QIcon.Mode.Active)
            self._icons[key] = icon
        return self._icons[key]


def _mark(severity: Severity, color: QColor, side: int) -> QPixmap:
    pixmap = QPixmap(side, side)
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    inset = side * 0.18
    paint_mark(painter, QRectF(inset, inset, side - 2 * inset, side - 2 * inset), severity, color)
    painter.end()
    return pixmap


def _set_text(action: QAction, text: str) -> None:
    """Change an entry's text, if it is another one: each change is a message to the tray."""
    if action.text() != _escaped(text):
        action.setText(_escaped(text))


def _escaped(text: str) -> str:
    """Keep Qt from taking an ampersand for the mark of a shortcut."""
    return text.replace("&", "&&")

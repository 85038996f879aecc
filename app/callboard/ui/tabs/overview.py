"""What a server is and how it fares."""

import shlex
from time import time

from PySide6.QtCore import QCoreApplication, Qt, QTimer
from PySide6.QtGui import QFontDatabase, QHideEvent, QPalette, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from callboard.api.schema import Figures, LastExit, ServerView
from callboard.core.health import State
from callboard.ui import formats, words
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.figures_reader import FiguresReader
from callboard.ui.icons import Icons
from callboard.ui.models.servers import tools_text
from callboard.ui.tabs.agent_box import AgentBox
from callboard.ui.tabs.health_box import HealthBox
from callboard.ui.theme import Theme
from callboard.ui.widgets.column_area import ColumnArea
from callboard.ui.widgets.facts import Facts

_WIDEST = 780  # pixels; a copy button must not stand far from what it copies


class OverviewTab(ColumnArea):
    """State, process, last exit, command and addresses of one server. Times tick while the tab can be seen."""

    def __init__(
        self, link: EngineLink, actions: ServerActions, theme: Theme, icons: Icons, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent=parent)
        self._link = link
        self._actions = actions
        self._view: ServerView | None = None
        self._figures = FiguresReader(link, self)
        self._figures.changed.connect(self._show_figures)
        self._state = Facts(theme, icons)
        self._identity = Facts(theme, icons)
        self._health = HealthBox(link, actions, theme)
        self._exit = _ExitBox(actions)
        self._agent = AgentBox(link, actions)
        self._add_facts()
        self._state.align_with(self._identity)
        inside = QWidget()
        inside.setMaximumWidth(_WIDEST)
        layout = QVBoxLayout(inside)
        layout.setContentsMargins(16, 14, 16, 16)
        layout.setSpacing(14)
        layout.addWidget(self._state)
        layout.addWidget(self._health)
        layout.addWidget(self._exit)
        layout.addWidget(self._agent)
        layout.addWidget(self._identity)
        layout.addStretch(1)
        self.setWidget(inside)
        link.rosterChanged.connect(self._show_agent)
        self._clock = QTimer(self, interval=1000)
        self._clock.timeout.connect(self._tick)

    def _add_facts(self) -> None:
        self._state.add("state", self.tr("State"))
        self._state.add("uptime", self.tr("Running for"))
        self._state.add("retry", self.tr("Next attempt"))
        self._state.add("offers", self.tr("Offers"))
        self._state.add("pid", self.tr("Process"))
        self._state.add("cpu", self.tr("CPU"))
        self._state.add("memory", self.tr("Memory"))
        self._state.add("restarts", self.tr("Restarts"))
        add = self._identity.add
        add("description", self.tr("Description"))
        add("agent", self.tr("Agent"), copy=self.tr("Copy agent"), fixed=True)
        add("command", self.tr("Command"), copy=self.tr("Copy command"), fixed=True)
        add("cwd", self.tr("Working folder"), copy=self.tr("Copy working folder"), fixed=True)
        add("url", self.tr("Address"), copy=self.tr("Copy address"), fixed=True)
        add("endpoint", self.tr("Endpoint"), copy=self.tr("Copy endpoint address"), fixed=True)
        add("protocol", self.tr("Protocol"))
        add("version", self.tr("Version"))
        add("start", self.tr("Starts"))

    def show_server(self, view: ServerView) -> None:
        """Show a server, or its new state."""
        self._view = view
        self._tick()
        state = self._state
        state.set("offers", offers_text(view))
        state.set("pid", self.tr("PID {pid}").format(pid=view.pid) if view.pid is not None else "")
        state.set("restarts", restarts_text(view))
        self._show_figures()
        self._health.show_server(view)
        self._exit.show_exit(view)
        self._agent.show_server(view)
        identity = self._identity
        identity.set("description", view.description)
        self._show_agent()
        identity.set("command", shlex.join(view.command))
        identity.set("cwd", view.cwd)
        identity.set("url", view.url)
        identity.set("endpoint", view.endpoint)
        identity.set("protocol", view.protocol)
        identity.set("version", view.server_version)
        identity.set("start", start_text(view.start))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tick()
        self._clock.start()
        self._figures.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._clock.stop()
        self._figures.stop()

    def _show_agent(self, *_roster: object) -> None:
        """Which agent it is: the command, one and the same for all, does not tell."""
        view, roster = self._view, self._link.roster
        if view is not None:
            entry = roster.servers.get(view.name, {}) if roster is not None else {}
            self._identity.set("agent", str(entry.get("agent", "")))

    def _show_figures(self) -> None:
        view = self._view
        figures = self._figures.of(view.name) if view is not None and view.pid is not None else None
        self._state.set("cpu", cpu_text(figures), self.tr("of one core, all its processes together"))
        self._state.set("memory", memory_text(figures), self.tr("resident, all its processes together"))

    def _tick(self) -> None:
        view, now = self._view, time()
        if view is None:
            return
        text = self.tr("{state} for {time}")
        text = text.format(state=words.state_word(view.state), time=formats.uptime(now - view.since))
        self._state.set("state", text, self.tr("since {time}").format(time=formats.exact_time(view.since)))
        self._state.set("uptime", _uptime(view, now))
        self._state.set("retry", self._retry(view, now))
        self._health.tick(now)
        self._exit.tick(now)
        self._agent.tick()

    def _retry(self, view: ServerView, now: float) -> str:
        if view.next_retry is None:
            return ""
        wait = words.wait_text(view, now)
        when = self.tr("in {time}").format(time=wait) if wait else self.tr("now")
        if view.state is not State.RESTARTING or not view.max_attempts:
            return when
        return self.tr("{when} ({attempt} of {limit})").format(when=when, attempt=view.attempt, limit=view.max_attempts)


class _ExitBox(QFrame):
    """How the process ended last, with its last lines."""

    def __init__(self, actions: ServerActions) -> None:
        super().__init__()
        self._actions = actions
        self._view: ServerView | None = None
        self._title = QLabel(wordWrap=True)
        self._title.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._lines = QPlainTextEdit(readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self._lines.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self._lines.setAccessibleName(self.tr("Last lines before the exit"))
        self._lines.setTabChangesFocus(True)
        copy = QPushButton(self.tr("Copy details"))
        copy.clicked.connect(self._copy)
        log = QPushButton(self.tr("Show log"))
        log.clicked.connect(self._show_log)
        top = QHBoxLayout()
        top.addWidget(self._title, 1)
        top.addWidget(copy)
        top.addWidget(log)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 10, 12, 12)
        layout.addLayout(top)
        layout.addWidget(self._lines)
        self.setFrameStyle(QFrame.Shape.Box | QFrame.Shadow.Plain)
        self.setForegroundRole(QPalette.ColorRole.Mid)
        self.hide()

    def show_exit(self, view: ServerView) -> None:
        self._view = view
        self.setVisible(view.last_exit is not None)
        if view.last_exit is None:
            return
        text = "\n".join(view.last_exit.stderr)
        if text != self._lines.toPlainText():
            self._lines.setPlainText(text)
        shown = min(max(len(view.last_exit.stderr), 1), 8)
        self._lines.setFixedHeight(self._lines.fontMetrics().lineSpacing() * shown + 26)
        self._lines.setVisible(bool(text))
        self.tick(time())

    def tick(self, now: float) -> None:
        last = self._view.last_exit if self._view else None
        if last is not None:
            text = self.tr("Last exit: {how}, {when}")
            self._title.setText(text.format(how=exit_text(last), when=formats.relative_time(last.at, now)))
            self._title.setToolTip(formats.exact_time(last.at))

    def _copy(self) -> None:
        if self._view is not None:
            self._actions.copy_text(details(self._view), self.tr("Details copied"))

    def _show_log(self) -> None:
        if self._view is not None:
            self._actions.show_log(self._view.name)


def _uptime(view: ServerView, now: float) -> str:
    """How long a server runs without a break, where the state's own age does not tell."""
    if view.ready_since is None or view.ready_since == view.since:
        return ""
    return formats.uptime(now - view.ready_since)


def exit_text(last: LastExit) -> str:
    """How a process ended: "exit code 1" or "killed by SIGKILL"."""
    tr = QCoreApplication.translate
    if last.signal:
        return tr("Overview", "killed by {signal}").format(signal=last.signal)
    return tr("Overview", "exit code {code}").format(code=last.code)


def offers_text(view: ServerView) -> str:
    """What a server has for its clients: "3 tools, 2 resources"."""
    tr = QCoreApplication.translate
    parts = [tools_text(view)]
    if view.resources:
        parts.append(
            tr("Overview", "1 resource")
            if view.resources == 1
            else tr("Overview", "{n} resources").format(n=view.resources)
        )
    if view.prompts:
        parts.append(
            tr("Overview", "1 prompt") if view.prompts == 1 else tr("Overview", "{n} prompts").format(n=view.prompts)
        )
    return ", ".join(part for part in parts if part)


def cpu_text(figures: Figures | None) -> str:
    """CPU time used: "12 %"."""
    if figures is None or figures.cpu_percent is None:
        return ""
    return QCoreApplication.translate("Overview", "{n} %").format(n=round(figures.cpu_percent))


def memory_text(figures: Figures | None) -> str:
    """Memory in use: "48.2 MB", and by how many processes if it is not one."""
    if figures is None:
        return ""
    size = formats.size(figures.memory_bytes)
    if figures.processes == 1:
        return size
    text = QCoreApplication.translate("Overview", "{size} in {n} processes")
    return text.format(size=size, n=figures.processes)


def restarts_text(view: ServerView) -> str:
    """How often the server was started again by itself."""
    if not view.restarts:
        return ""
    text = QCoreApplication.translate("Overview", "{n}, {today} of them today")
    return text.format(n=view.restarts, today=view.restarts_today)


def start_text(start: str) -> str:
    """When a server is started."""
    tr = QCoreApplication.translate
    match start:
        case "at-launch":
            return tr("Overview", "when Callboard starts")
        case "on-demand":
            return tr("Overview", "when a client needs it")
        case "manual":
            return tr("Overview", "by hand")
        case _:
            return start


def details(view: ServerView) -> str:
    """What somebody who is asked for help needs to know about a failure. Everything in it is redacted already."""
    lines = [f"{view.name}: {view.state} ({view.error_code})" if view.error_code else f"{view.name}: {view.state}"]
    lines += [text for text in (view.reason, view.fix) if text]
    lines += [shlex.join(view.command)] if view.command else []
    lines += [view.url] if view.url else []
    if view.last_exit is not None:
        lines += ["", f"{exit_text(view.last_exit)}, {formats.exact_time(view.last_exit.at)}", *view.last_exit.stderr]
    return "\n".join(lines)

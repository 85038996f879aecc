"""Turns what the engine says about itself into notices of the window, and takes them away when it is over."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices

import callboard
from callboard.api.schema import EngineView, RosterView, SecretsView
from callboard.core.health import Severity
from callboard.ui.engine_keeper import EngineKeeper
from callboard.ui.engine_link import EngineLink
from callboard.ui.notice_bar import Notice, NoticeAction, NoticeBar

ENGINE, ROSTER, SECRETS, VERSION = "engine", "roster", "secrets", "version"


class StandingNotices(QObject):
    """Keeps the bar true to the engine. A notice that the person closed stays closed until it says something new."""

    def __init__(self, link: EngineLink, keeper: EngineKeeper, bar: NoticeBar, show_logs: Callable[[], object]) -> None:
        super().__init__(bar)
        self._link = link
        self._keeper = keeper
        self._bar = bar
        self._show_logs = show_logs
        self._standing: dict[str, Notice] = {}
        link.engineChanged.connect(self._engine)
        link.rosterChanged.connect(self._roster)
        link.secretsChanged.connect(self._secrets)
        keeper.restarting.connect(self._restarting)
        keeper.restarted.connect(self._restarted)
        keeper.attached.connect(lambda: self._drop(ENGINE))
        keeper.stopped.connect(self._stopped)

    def _restarting(self, how: str, seconds: float) -> None:
        self._drop_what_it_said()
        text = self.tr("The engine ended unexpectedly{how}. It is being started again.")
        actions = [NoticeAction(self.tr("Show logs"), self._show_logs)]
        if seconds > 1:
            text = self.tr("The engine ended unexpectedly{how}. It is started again in {seconds} s.")
            actions.insert(0, NoticeAction(self.tr("Start now"), self._keeper.start_now))
        self._put(ENGINE, Severity.FAILED, text.format(how=_aside(how), seconds=round(seconds)), actions=tuple(actions))

    def _restarted(self, how: str) -> None:
        text = self.tr("The engine ended unexpectedly{how} and was started again.").format(how=_aside(how))
        fix = self.tr("Servers that start at launch are coming back; calls that were running have failed.")
        self._put(ENGINE, Severity.ATTENTION, text, fix, (NoticeAction(self.tr("Show logs"), self._show_logs),))

    def _stopped(self) -> None:
        self._drop_what_it_said()
        start = NoticeAction(self.tr("Start the engine"), self._keeper.start_now)
        fix = self.tr("No server runs and no client is served until it is started again.")
        self._put(ENGINE, Severity.OFF, self.tr("The engine was stopped."), fix, (start,))

    def _engine(self, view: EngineView) -> None:
        wanted = {f"notice:{notice.code}": notice for notice in view.notices}
        for key in [key for key in self._standing if key.startswith("notice:") and key not in wanted]:
            self._drop(key)
        for key, notice in wanted.items():
            self._put(key, Severity.ATTENTION, notice.message, notice.fix)
        if view.version == callboard.__version__:
            self._drop(VERSION)
            return
        text = self.tr("The engine that runs is of version {engine}, this window of {window}.")
        text = text.format(engine=view.version, window=callboard.__version__)
        self._put(VERSION, Severity.OFF, text, self.tr("Quit and open Callboard again to bring them together."))

    def _drop_what_it_said(self) -> None:
        """What an engine said of itself does not hold without it. The roster's problem does."""
        for key in [key for key in self._standing if key.startswith("notice:")] + [SECRETS, VERSION]:
            self._drop(key)

    def _roster(self, view: RosterView) -> None:
        problem = view.problem
        if problem is None:
            self._drop(ROSTER)
            return
        where = ""
        if problem.line:
            where = self.tr(" (line {line}, column {column})").format(line=problem.line, column=problem.column)
        text = self.tr("The roster could not be read{where}: {message}").format(where=where, message=problem.message)
        path = view.path
        action = NoticeAction(self.tr("Open the file"), lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(path)))
        self._put(ROSTER, Severity.FAILED, text, problem.fix, (action,))

    def _secrets(self, view: SecretsView) -> None:
        engine = self._link.engine
        told = engine is not None and any(notice.code.startswith("secrets-") for notice in engine.notices)
        if view.waiting:
            text = self.tr("Waiting for your keyring: answer the question that your system asks.")
            self._put(SECRETS, Severity.BUSY, text)
        elif view.problem and not told:
            self._put(SECRETS, Severity.ATTENTION, view.problem, view.fix)
        else:
            self._drop(SECRETS)

    def _put(
        self, key: str, severity: Severity, text: str, fix: str = "", actions: tuple[NoticeAction, ...] = ()
    ) -> None:
        known = self._standing.get(key)
        notice = Notice(key, severity, text, fix, actions)
        if known is not None and (known.severity, known.text, known.fix) == (severity, text, fix):
            return
        self._standing[key] = notice
        self._bar.put(notice)

    def _drop(self, key: str) -> None:
        if self._standing.pop(key, None) is not None:
            self._bar.drop(key)


def _aside(how: str) -> str:
    return f" ({how})" if how else ""

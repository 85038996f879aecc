"""Notices about the engine: they come, stay closed when closed, and go when it is over."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import callboard
from callboard.api.schema import Notice as EngineNotice
from callboard.api.schema import RosterProblem, SecretsView
from callboard.core.health import Severity
from callboard.system.engine_child import EngineChild
from callboard.system.paths import Paths
from callboard.ui.engine_keeper import EngineKeeper
from callboard.ui.icons import Icons
from callboard.ui.notice_bar import NoticeBar
from callboard.ui.standing_notices import StandingNotices
from callboard.ui.theme import Theme
from tests.ui.conftest import HandLink, engine_view, roster_view

PORT = EngineNotice(code="port-in-use", message="Port 4470 is taken.", fix="Use the address shown.")


def running_engine(**fields: object) -> object:
    return engine_view(version=callboard.__version__, **fields)


@pytest.fixture
def keeper(link: HandLink, tmp_path: Path) -> EngineKeeper:
    return EngineKeeper(link, EngineChild(Paths(tmp_path, tmp_path, tmp_path, tmp_path, tmp_path)))


@pytest.fixture
def bar(link: HandLink, keeper: EngineKeeper, theme: Theme, icons: Icons) -> Iterator[NoticeBar]:
    bar = NoticeBar(theme, icons)
    StandingNotices(link, keeper, bar, lambda: None)
    yield bar
    bar.hide()
    bar.deleteLater()


async def test_what_the_engine_says_stands_until_it_no_longer_holds(link: HandLink, bar: NoticeBar) -> None:
    link.connect_by_hand(engine=running_engine(notices=[PORT]))
    notice = bar.notice("notice:port-in-use")
    assert notice is not None
    assert (notice.severity, notice.text) == (Severity.ATTENTION, "Port 4470 is taken.")
    link.say("engine", running_engine())
    assert bar.keys == []


async def test_a_closed_notice_stays_closed_until_it_says_something_new(link: HandLink, bar: NoticeBar) -> None:
    link.connect_by_hand(engine=running_engine(notices=[PORT]))
    bar.drop("notice:port-in-use")
    link.say("engine", running_engine(notices=[PORT], calls_last_hour=1))
    assert bar.keys == []
    other = EngineNotice(code="port-in-use", message="Port 4471 is taken too.", fix="")
    link.say("engine", running_engine(notices=[other]))
    assert bar.keys == ["notice:port-in-use"]


async def test_what_the_engine_said_does_not_hold_once_it_has_ended(
    link: HandLink, keeper: EngineKeeper, bar: NoticeBar
) -> None:
    waiting = SecretsView(kind="keyring", backend="", waiting=True)
    link.connect_by_hand(engine=running_engine(notices=[PORT]), secrets=waiting)
    link.disconnect_by_hand()
    keeper.stopped.emit()
    assert bar.keys == ["engine"]


async def test_a_roster_problem_has_its_place(link: HandLink, bar: NoticeBar) -> None:
    problem = RosterProblem(code="roster-unreadable", message="A bracket is open.", fix="Close it.", line=3, column=7)
    link.connect_by_hand(engine=running_engine(), roster=roster_view([], problem=problem))
    notice = bar.notice("roster")
    assert notice is not None
    assert notice.text == "The roster could not be read (line 3, column 7): A bracket is open."
    link.say("roster", roster_view([]))
    assert bar.keys == []


async def test_an_open_keyring_prompt_and_a_missing_keyring(link: HandLink, bar: NoticeBar) -> None:
    waiting = SecretsView(kind="keyring", backend="", waiting=True)
    link.connect_by_hand(engine=running_engine(), secrets=waiting)
    notice = bar.notice("secrets")
    assert notice is not None
    assert notice.severity is Severity.BUSY
    link.say("secrets", SecretsView(kind="session", backend="", problem="No keyring was found.", fix="Install one."))
    notice = bar.notice("secrets")
    assert notice is not None
    assert (notice.severity, notice.fix) == (Severity.ATTENTION, "Install one.")
    link.say("secrets", SecretsView(kind="keyring", backend="x"))
    assert bar.keys == []


async def test_the_engine_is_not_told_twice_of_one_keyring(link: HandLink, bar: NoticeBar) -> None:
    told = EngineNotice(code="secrets-unavailable", message="No keyring was found.", fix="")
    secrets = SecretsView(kind="session", backend="", problem="No keyring was found.")
    link.connect_by_hand(engine=running_engine(notices=[told]), secrets=secrets)
    assert bar.keys == ["notice:secrets-unavailable"]


async def test_an_engine_of_another_version_is_pointed_out(link: HandLink, bar: NoticeBar) -> None:
    link.connect_by_hand(engine=engine_view(version="0.0.1"))
    notice = bar.notice("version")
    assert notice is not None
    assert "0.0.1" in notice.text


async def test_a_restart_that_waits_can_be_hurried(bar: NoticeBar, keeper: EngineKeeper) -> None:
    keeper.restarting.emit("exit code 1", 8.0)
    notice = bar.notice("engine")
    assert notice is not None
    assert notice.text == "The engine ended unexpectedly (exit code 1). It is started again in 8 s."
    assert [action.label for action in notice.actions] == ["Start now", "Show logs"]
    keeper.attached.emit()
    assert bar.keys == []

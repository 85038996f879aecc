"""Calling tools, reading resources, getting prompts and looking at health by hand, over a real engine."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from callboard.core.health import State
from callboard.ui.actions import ServerActions
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.server_detail import ServerDetail
from callboard.ui.servers_page import ServersPage
from callboard.ui.tabs.offer_tab import OfferTab
from callboard.ui.tabs.try_box import TryBox
from callboard.ui.theme import Theme
from tests.support.engine import EngineProcess, entry, fixture_entry
from tests.ui.conftest import until

LIMIT = 25.0

pytestmark = pytest.mark.timeout(90)


class Stage:
    """A page over an engine with servers, from the first line of a test to its last: Qt's loop runs no longer."""

    def __init__(self, home: Path, theme: Theme, icons: Icons, settings: QSettings) -> None:
        self._home, self._theme, self._icons, self._settings = home, theme, icons, settings

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[ServersPage, EngineProcess]]:
        servers = {
            "files": fixture_entry("files"),
            "plain": entry("${python}", "-m", "callboard.servers.local_tools"),
            "gone": entry("no-such-program-4711", restart={"max": 0}),
        }
        async with EngineProcess(self._home, servers) as engine:
            link = EngineLink(engine.paths.engine_file)
            following = asyncio.ensure_future(link.run())
            await until(lambda: all(name in link.servers for name in servers), "the connection", seconds=LIMIT)
            for name in ("files", "plain"):
                await until(lambda name=name: link.servers[name].tools > 0, f"{name}'s tools", seconds=LIMIT)
            await until(lambda: link.servers["gone"].state is State.FAILED, "a failure", seconds=LIMIT)
            actions = ServerActions(link)
            page = ServersPage(link, actions, self._theme, self._icons, self._settings, lambda name: QLabel(name))
            page.resize(1000, 700)
            page.show()
            try:
                yield page, engine
            finally:
                page.hide()
                await until(
                    lambda: "figures" not in {task.get_name() for task in asyncio.all_tasks()},
                    "no figures",
                    seconds=LIMIT,
                )
                page.deleteLater()
                actions.deleteLater()
                following.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await following
                await link.close()
                link.deleteLater()


@pytest.fixture
def stage(callboard_home: Path, theme: Theme, icons: Icons, settings: QSettings) -> Stage:
    return Stage(callboard_home, theme, icons, settings)


def press(widget: QWidget, text: str) -> None:
    button = next(each for each in widget.findChildren(QPushButton) if each.text() == text and each.isVisible())
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def choose(tab: OfferTab, name: str) -> TryBox:
    """Make an offer of a tab current; the box that tries it."""

    def row() -> int:
        model = tab.list.model()
        return next((row for row in range(model.rowCount()) if model.index(row, 0).data() == name), -1)

    await until(lambda: row() >= 0, name, seconds=LIMIT)
    tab.list.setCurrentIndex(tab.list.model().index(row(), 0))
    assert isinstance(tab.page, QWidget)
    return tab.page.findChildren(TryBox)[0]


async def test_a_tool_is_called_with_a_form(stage: Stage) -> None:
    async with stage.opened() as (page, engine):
        page.show_server("files", ServerDetail.TOOLS)
        box = await choose(page.detail.tools, "echo")
        press(page.detail.tools, "Call…")
        box.form._fields["text"].set_text("hello")
        press(box, "Call")
        await until(lambda: box.result.shown == "hello", "the answer", seconds=LIMIT)
        assert (await engine.wait_for_call("echo", "completed")).client == "callboard"

        await choose(page.detail.tools, "fail")
        assert box.result.shown == "", "another tool, another result"
        box.form._fields["text"].set_text("it broke")
        press(box, "Call")
        await until(lambda: "it broke" in box.result.shown, "the failure", seconds=LIMIT)
        assert "failed after" in box.result._note.text()

        await choose(page.detail.tools, "refuse")
        press(box, "Call")
        await until(lambda: box.result._note.text() == "failed", "the refusal", seconds=LIMIT)

        await choose(page.detail.tools, "echo")
        assert box.form._fields["text"].text == "hello", "what was entered is kept"
        press(box, "Arguments as JSON")
        box.form._raw.setPlainText('{"text": "as JSON"}')
        press(box, "Call")
        await until(lambda: box.result.shown == "as JSON", "the answer", seconds=LIMIT)


async def test_a_call_that_takes_too_long_is_cancelled(stage: Stage) -> None:
    async with stage.opened() as (page, engine):
        page.show_server("files", ServerDetail.TOOLS)
        box = await choose(page.detail.tools, "slow")
        press(page.detail.tools, "Call…")
        box.form._fields["ms"].set_text("60000")
        press(box, "Call")
        await engine.wait_for_call("slow", "running")
        press(box, "Cancel")
        await engine.wait_for_call("slow", "cancelled")
        assert box.result._note.text() == "cancelled"
        assert next(each for each in box.findChildren(QPushButton) if each.text() == "Call").isEnabled()


async def test_resources_are_read(stage: Stage) -> None:
    async with stage.opened() as (page, _):
        page.show_server("files", ServerDetail.RESOURCES)
        box = await choose(page.detail.resources, "readme")
        press(box, "Read")
        await until(lambda: box.result.shown == "doc://files/readme read at files", "its text", seconds=LIMIT)
        await choose(page.detail.resources, "page")
        box.form._fields["n"].set_text("a b")
        press(box, "Read")
        await until(lambda: box.result.shown == "doc://files/page/a%20b read at files", "the page", seconds=LIMIT)


async def test_prompts_are_got(stage: Stage) -> None:
    async with stage.opened() as (page, _):
        page.show_server("files", ServerDetail.PROMPTS)
        box = await choose(page.detail.prompts, "greet")
        press(box, "Get")
        assert box.form._fields["who"].has_problem
        box.form._fields["who"].set_text("Ann")
        press(box, "Get")
        await until(lambda: box.result.shown == "user: hello Ann from files", "the message", seconds=LIMIT)


async def test_tabs_are_there_for_what_a_server_offers(stage: Stage) -> None:
    async with stage.opened() as (page, _):
        detail = page.detail
        page.show_server("files")
        assert [detail.tabs.isTabVisible(tab) for tab in (ServerDetail.RESOURCES, ServerDetail.PROMPTS)] == [True, True]
        page.show_server("plain")
        assert [detail.tabs.isTabVisible(tab) for tab in (ServerDetail.RESOURCES, ServerDetail.PROMPTS)] == [
            False,
            False,
        ]


async def test_health_is_looked_at_and_has_an_age(stage: Stage) -> None:
    async with stage.opened() as (page, engine):

        def words() -> str:
            return "\n".join(each.text() for each in page.detail.overview.findChildren(QLabel) if each.isVisible())

        page.show_server("files", ServerDetail.OVERVIEW)
        assert "not looked at yet" in words()
        press(page.detail.overview, "Check health")
        await until(lambda: "It answers within" in words(), "what was found", seconds=LIMIT)
        assert "just now" in words()
        looked = (await engine.client.server("files")).health
        assert looked is not None
        assert looked.status == "ok"
        press(page.detail.overview, "Refresh")
        await until(
            lambda: any(each.text() == "Check health" for each in page.detail.findChildren(QPushButton)), seconds=LIMIT
        )

        page.show_server("gone")
        await engine.wait_for("gone", "failed")
        press(page.detail.overview, "Check health")
        await until(
            lambda: (view := page._link.servers["gone"].health) is not None and view.status == "fail", seconds=LIMIT
        )

"""The pages over a real engine and real servers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PySide6.QtCore import QSettings, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from callboard.core.health import State
from callboard.ui.actions import ServerActions
from callboard.ui.calls_page import CallsPage
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.models.calls import CallFilter
from callboard.ui.models.roles import Role
from callboard.ui.server_detail import ServerDetail
from callboard.ui.servers_page import ServersPage
from callboard.ui.theme import Theme
from tests.support.engine import EngineProcess
from tests.ui.conftest import until

LIMIT = 25.0
COMPLAINS = "import sys, time; print('I need a key', file=sys.stderr, flush=True); sys.exit(3)"

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
async def engine(callboard_home: Path) -> AsyncIterator[EngineProcess]:
    servers: dict[str, dict[str, object]] = {
        "local-tools": {"command": "${python}", "args": ["-m", "callboard.servers.local_tools"]},
        "complains": {"command": "${python}", "args": ["-c", COMPLAINS], "start": "manual"},
    }
    async with EngineProcess(callboard_home, servers) as engine:
        yield engine


@pytest.fixture
async def real_link(engine: EngineProcess) -> AsyncIterator[EngineLink]:
    link = EngineLink(engine.paths.engine_file)
    following = asyncio.ensure_future(link.run())
    await until(lambda: "local-tools" in link.servers, "the connection", seconds=LIMIT)
    yield link
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following
    await link.close()
    link.deleteLater()


async def test_servers_are_started_stopped_and_read(
    real_link: EngineLink, theme: Theme, icons: Icons, settings: QSettings
) -> None:
    actions = ServerActions(real_link)
    page = ServersPage(real_link, actions, theme, icons, settings, lambda name: QLabel(name))
    page.resize(1000, 700)
    page.show()
    page.show_server("local-tools", ServerDetail.TOOLS)
    await until(lambda: real_link.servers["local-tools"].state is State.READY, "ready", seconds=LIMIT)
    tools = page.detail.tools.list.model()
    await until(lambda: tools.rowCount() == 3, "tools", seconds=LIMIT)
    assert {tools.index(row, 0).data(Role.VIEW).name for row in range(3)} == {"current_time", "echo", "word_count"}

    page.show_log("complains")
    QTest.keyClick(page.list.view, Qt.Key.Key_S)
    await until(lambda: "I need a key" in page.detail.log.view.toPlainText(), "its complaint", seconds=LIMIT)
    assert any(line.stream == "mark" for line in page.detail.log.view.lines), "runs are set apart"
    page.detail.show_tab(ServerDetail.OVERVIEW)
    words = lambda: "\n".join(each.text() for each in page.detail.findChildren(QLabel) if each.isVisible())  # noqa: E731
    await until(lambda: "exit code 3" in words(), "how it ended", seconds=LIMIT)

    page.show_server("local-tools")
    QTest.keyClick(page.list.view, Qt.Key.Key_S)
    await until(lambda: real_link.servers["local-tools"].state is State.STOPPED, "stopped", seconds=LIMIT)
    page.hide()
    await until(lambda: "figures" not in {task.get_name() for task in asyncio.all_tasks()}, "no look at the figures")
    page.deleteLater()
    actions.deleteLater()


async def test_calls_appear_while_they_are_made(
    engine: EngineProcess, real_link: EngineLink, theme: Theme, icons: Icons, settings: QSettings
) -> None:
    actions = ServerActions(real_link)
    page = CallsPage(real_link, actions, theme, icons, settings)
    page.resize(1000, 700)
    page.show()
    await engine.wait_for("local-tools", "ready")
    for number in range(5):
        await engine.client.call_tool("local-tools", "echo", {"text": f"number {number}"})
    await until(lambda: page.model.total == 5, "the calls", seconds=LIMIT)
    await until(lambda: page.model.call_at(4).status == "completed", "their end", seconds=LIMIT)  # type: ignore[union-attr]
    await engine.client.call_tool("local-tools", "no_such_tool", {})
    await until(lambda: page.model.total == 6, "one more", seconds=LIMIT)

    page.table.choose_row(4)
    await until(lambda: page.drawer.result.shown == "number 4", "the result", seconds=LIMIT)
    assert '"text": "number 4"' in page.drawer.arguments.shown

    page.filters.show_filter(CallFilter(status="failed"))
    await until(lambda: page.model.is_loaded and page.model.total == 1, "the failed one", seconds=LIMIT)
    page.filters.show_filter(CallFilter(text="number 3"))
    await until(lambda: page.model.is_loaded and page.model.total == 1, "the one with that text", seconds=LIMIT)
    page.hide()
    page.deleteLater()
    actions.deleteLater()

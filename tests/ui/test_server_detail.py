"""The chosen server: head, overview, tools, configuration."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QLabel, QPushButton, QTableView, QTextBrowser, QToolButton, QWidget

from callboard.api.agent_schema import ConversationsView, ConversationView
from callboard.api.schema import Figures, FiguresView, LastExit, ServerView, ToolView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.actions import ServerActions
from callboard.ui.icons import Icons
from callboard.ui.models.roles import Role
from callboard.ui.server_detail import ServerDetail
from callboard.ui.server_menu import build_menu
from callboard.ui.tabs.overview import details
from callboard.ui.tabs.tool_page import tool_html
from callboard.ui.theme import Theme, ThemeChoice
from callboard.ui.widgets.facts import Facts
from callboard.ui.widgets.json_view import JsonView
from tests.ui.conftest import HandLink, call_view, roster_view, server_view, until
from tests.ui.pages_kit import FakeEngine

LEFT = Qt.MouseButton.LeftButton


class Forms:
    """Makes labels in place of forms and counts them."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, name: str) -> QWidget:
        self.made.append(name)
        return QLabel(f"form of {name}")


@pytest.fixture
def engine(link: HandLink) -> FakeEngine:
    engine = FakeEngine()
    link.hand = engine
    return engine


@pytest.fixture
def forms() -> Forms:
    return Forms()


@pytest.fixture
async def detail(
    link: HandLink, engine: FakeEngine, actions: ServerActions, theme: Theme, icons: Icons, forms: Forms
) -> AsyncIterator[ServerDetail]:
    link.connect_by_hand(server_view("files"), server_view("hub", State.STOPPED))
    detail = ServerDetail(link, actions, theme, icons, forms)
    detail.resize(600, 600)
    detail.show_server(link.servers["files"])
    detail.show()
    yield detail
    detail.hide()
    detail.deleteLater()
    await link.close()


def visible_text(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def button(widget: QWidget, text: str) -> QPushButton:
    return next(each for each in widget.findChildren(QPushButton) if each.text() == text)


def facts(detail: ServerDetail) -> dict[str, str]:
    """All facts of the overview that can be seen."""
    found: dict[str, str] = {}
    for table in detail.overview.findChildren(Facts):
        found |= {key: table.value(key) for key in table._values if table._values[key].isVisible()}
    return found


class TestHead:
    async def test_what_is_wrong_stands_above_every_tab(self, detail: ServerDetail) -> None:
        detail.show_server(server_view("files", State.FAILED, reason="npx was not found.", fix="Install it."))
        for tab in range(6):
            detail.show_tab(tab)
            assert "npx was not found.\nInstall it." in visible_text(detail)
        assert button(detail, "Retry now").isVisible()
        assert not any(each.text() == "Restart" and each.isVisible() for each in detail.findChildren(QPushButton))
        detail.show_server(server_view("files"))
        assert "npx was not found." not in visible_text(detail)
        assert button(detail, "Stop").isVisible()
        assert button(detail, "Restart").isVisible()

    async def test_a_long_name_leaves_room_for_state_and_buttons(self, detail: ServerDetail) -> None:
        detail.show_server(server_view("files", State.FAILED, display_name="a very long name " * 20))
        await until(lambda: button(detail, "Retry now").isVisible())
        assert detail.width() == 600
        assert detail._pill.width() >= detail._pill.sizeHint().width()

    async def test_an_endless_reason_leaves_room_for_the_rest(self, detail: ServerDetail) -> None:
        detail.show_server(server_view("files", State.FAILED, reason="searched /usr/bin, " * 500))
        await until(lambda: "searched" in visible_text(detail))
        assert detail.overview.height() > 250

    async def test_news_of_other_servers_change_nothing(self, detail: ServerDetail, link: HandLink) -> None:
        link.say("server", server_view("hub", State.FAILED, reason="Gone."))
        assert detail.server == "files"
        assert "Gone." not in visible_text(detail)
        link.say("server", server_view("files", State.FAILED, reason="Gone too."))
        assert "Gone too." in visible_text(detail)

    async def test_restart_asks_the_engine(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.answers["/servers/files/restart"] = server_view("files", State.STOPPING)
        QTest.mouseClick(button(detail, "Restart"), LEFT)
        await until(lambda: engine.asked == [("POST", "/servers/files/restart", None)])

    async def test_what_waits_for_its_next_attempt_can_be_stopped(
        self, detail: ServerDetail, engine: FakeEngine
    ) -> None:
        engine.answers["/servers/files/stop"] = server_view("files", State.STOPPED)
        detail.show_server(server_view("files", State.RESTARTING))
        assert button(detail, "Retry now").isVisible()
        QTest.mouseClick(button(detail, "Stop"), LEFT)
        await until(lambda: engine.asked == [("POST", "/servers/files/stop", None)])


class TestOverview:
    async def test_facts(self, detail: ServerDetail) -> None:
        detail.show_server(
            server_view(
                "files",
                since=time.time() - 3700,
                pid=77,
                restarts=2,
                restarts_today=1,
                tools=3,
                resources=1,
                command=["npx", "-y", "server files"],
                cwd="/src",
                endpoint="http://127.0.0.1:4470/servers/files/mcp",
                protocol="2025-11-25",
                server_version="files 1.0",
            )
        )
        assert facts(detail) == {
            "state": "Ready for 1 h 1 min",
            "offers": "3 tools, 1 resource",
            "pid": "PID 77",
            "restarts": "2, 1 of them today",
            "command": "npx -y 'server files'",
            "cwd": "/src",
            "endpoint": "http://127.0.0.1:4470/servers/files/mcp",
            "protocol": "2025-11-25",
            "version": "files 1.0",
            "start": "when Callboard starts",
        }
        detail.show_server(server_view("files", State.STOPPED, url="https://example.com/mcp"))
        assert set(facts(detail)) == {"state", "url", "start"}, "what is not known is not there"

    async def test_cpu_and_memory_are_asked_for_while_they_can_be_seen(
        self, detail: ServerDetail, engine: FakeEngine, link: HandLink
    ) -> None:
        await until(lambda: engine.looking == 1)
        detail.show_server(server_view("files", pid=77))
        assert not {"cpu", "memory"} & set(facts(detail))
        used = {"files": Figures(cpu_percent=12.4, memory_bytes=3 * 1024 * 1024, processes=2)}
        engine.samples.put_nowait(FiguresView(at=1.0, servers=used))
        await until(lambda: "cpu" in facts(detail))
        assert (facts(detail)["cpu"], facts(detail)["memory"]) == ("12 %", "3.0 MB in 2 processes")
        detail.show_server(server_view("files", State.STOPPED))
        assert not {"cpu", "memory"} & set(facts(detail))
        detail.show_server(server_view("files", pid=78))
        detail.show_tab(ServerDetail.LOG)
        await until(lambda: engine.looking == 0)
        detail.show_tab(ServerDetail.OVERVIEW)
        assert not {"cpu", "memory"} & set(facts(detail))
        await until(lambda: engine.looking == 1)
        link.disconnect_by_hand()
        link.connect_by_hand(server_view("files"))
        await until(lambda: engine.looking == 1)

    async def test_values_are_copied(self, detail: ServerDetail) -> None:
        detail.show_server(server_view("files", command=["npx", "server files"]))
        copy = next(b for b in detail.overview.findChildren(QToolButton) if b.accessibleName() == "Copy command")
        QTest.mouseClick(copy, LEFT)
        assert QGuiApplication.clipboard().text() == "npx 'server files'"
        assert copy.toolTip() == "Copied"

    async def test_it_says_which_agent_a_server_runs(self, detail: ServerDetail, link: HandLink) -> None:
        roster = roster_view(["files"])
        link.say("roster", msgspec.structs.replace(roster, servers={"files": {"agent": "dice.py:Dice"}}))
        detail.show_server(agent_view())
        assert facts(detail)["agent"] == "dice.py:Dice"
        link.say("roster", msgspec.structs.replace(roster, servers={"files": {"agent": "dice.py:Loaded"}}))
        assert facts(detail)["agent"] == "dice.py:Loaded"
        link.say("roster", roster)
        assert "agent" not in facts(detail)

    async def test_a_long_command_is_shown_whole(self, detail: ServerDetail) -> None:
        detail.show_server(server_view("files", command=["x" * 400]))
        value = next(table for table in detail.overview.findChildren(Facts) if "command" in table._values)
        text = value._values["command"]
        await until(lambda: text.height() > 3 * text.fontMetrics().height())
        assert text.document().size().height() <= text.height() + 1
        assert detail.width() == 600

    async def test_the_next_attempt_counts_down_while_it_can_be_seen(self, detail: ServerDetail) -> None:
        view = server_view("files", State.RESTARTING, next_retry=time.time() + 100, attempt=2, max_attempts=5)
        detail.show_server(view)
        before = facts(detail)["retry"]
        assert before.endswith("(2 of 5)")
        await until(lambda: facts(detail)["retry"] != before)
        given_up = server_view("files", State.FAILED, next_retry=time.time() + 200, attempt=7, max_attempts=5)
        detail.show_server(given_up)
        assert facts(detail)["retry"].startswith("in 3 min ")
        assert "of 5" not in facts(detail)["retry"]
        detail.show_tab(ServerDetail.LOG)
        assert not [timer for timer in detail.overview.findChildren(QTimer) if timer.isActive()]

    async def test_what_became_odd_while_it_ran_tells_how_long_it_runs(self, detail: ServerDetail) -> None:
        now = time.time()
        detail.show_server(server_view("files", State.DEGRADED, since=now - 5, ready_since=now - 7300))
        assert facts(detail)["state"].startswith("Degraded for ")
        assert facts(detail)["uptime"] == "2 h 1 min"
        detail.show_server(server_view("files", since=now - 5, ready_since=now - 5))
        assert "uptime" not in facts(detail)

    async def test_the_last_exit_with_its_lines(self, detail: ServerDetail, actions: ServerActions) -> None:
        last = LastExit(at=time.time() - 60, code=1, stderr=["Traceback", "KeyError: 'x'"])
        view = server_view("files", State.FAILED, reason="It ended.", error_code="exited", last_exit=last)
        detail.show_server(view)
        assert "Last exit: exit code 1, 1 min ago" in visible_text(detail)
        QTest.mouseClick(button(detail, "Copy details"), LEFT)
        copied = QGuiApplication.clipboard().text()
        assert copied == details(view)
        assert copied.startswith("files: failed (exited)\nIt ended.")
        assert copied.endswith("Traceback\nKeyError: 'x'")
        spy = QSignalSpy(actions.logRequested)
        QTest.mouseClick(button(detail, "Show log"), LEFT)
        assert spy.count() == 1
        detail.show_server(server_view("files", State.FAILED, last_exit=LastExit(at=time.time(), signal="SIGKILL")))
        assert "Last exit: killed by SIGKILL" in visible_text(detail)


class TestTools:
    TOOLS = (
        ToolView(name="read", wire_name="files__read", description="Reads a file", input_schema={"type": "object"}),
        ToolView(
            name="write",
            wire_name="files__write",
            description="Writes <b>",
            problem="The schema is odd.",
            input_schema={"properties": {"path": {"type": "string"}}, "required": ["path"]},
        ),
    )

    def names(self, detail: ServerDetail) -> list[str]:
        model = detail.tools.list.model()
        return [model.index(row, 0).data(Role.VIEW).name for row in range(model.rowCount())]

    async def test_they_are_read_when_looked_at(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        assert engine.questions == []
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: self.names(detail) == ["read", "write"])
        page = detail.tools.page.findChild(QTextBrowser)
        assert page is not None
        assert "Reads a file" in page.toPlainText()
        assert "Takes no parameters." in page.toPlainText()
        detail.tools.list.setCurrentIndex(detail.tools.list.model().index(1, 0))
        assert "The schema is odd." in page.toPlainText()
        assert "Writes <b>" in page.toPlainText(), "what a server says is text, never markup"
        assert "path\nrequired" in page.toPlainText()

    async def test_json_and_wire_name(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: self.names(detail))
        QTest.mouseClick(button(detail.tools, "JSON"), LEFT)
        json = detail.tools.page.findChild(JsonView)
        assert json is not None
        assert json.isVisible()
        assert '"inputSchema"' in json.toPlainText()
        copy = next(b for b in detail.tools.findChildren(QToolButton) if b.accessibleName() == "Copy wire name")
        QTest.mouseClick(copy, LEFT)
        assert QGuiApplication.clipboard().text() == "files__read"

    async def test_search(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: self.names(detail))
        detail.activateWindow()
        assert detail.focus_search()
        await until(lambda: detail.tools._search.hasFocus())
        QTest.keyClicks(detail.tools._search, "WRIT")
        assert self.names(detail) == ["write"]
        QTest.keyClicks(detail.tools._search, "zz")
        assert "No tool has" in visible_text(detail.tools)
        QTest.keyClick(detail.tools._search, Qt.Key.Key_Escape)
        assert self.names(detail) == ["read", "write"]

    async def test_changed_tools_are_read_again_and_the_chosen_one_stays(
        self, detail: ServerDetail, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: self.names(detail))
        detail.tools.list.setCurrentIndex(detail.tools.list.model().index(1, 0))
        engine.tool_lists["files"] = [ToolView(name="new", wire_name="n"), *self.TOOLS]
        link.say("tools", {"server": "hub"})
        link.say("tools", {"server": "files"})
        await until(lambda: self.names(detail) == ["new", "read", "write"])
        assert detail.tools.list.currentIndex().data() == "write"

    async def test_an_answer_for_another_server_is_ignored(
        self, detail: ServerDetail, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        engine.hold = asyncio.Event()
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: ("tools", "files") in engine.questions)
        detail.show_server(link.servers["hub"])
        await until(lambda: ("tools", "hub") in engine.questions)
        engine.hold.set()
        await until(lambda: not link.tasks._tasks)
        assert self.names(detail) == []
        assert "Tools are not known yet" in visible_text(detail.tools)

    async def test_a_failure_is_said_and_can_be_tried_again(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.error = CallboardError("internal", "It is broken.")
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: "It is broken." in visible_text(detail.tools))
        engine.error = None
        engine.tool_lists["files"] = list(self.TOOLS)
        QTest.mouseClick(button(detail.tools, "Try again"), LEFT)
        await until(lambda: self.names(detail) == ["read", "write"])

    async def test_many_parameters_are_not_all_laid_out(self, theme: Theme) -> None:
        schema = {"properties": {f"p{number}": {"type": "string"} for number in range(400)}}
        html = tool_html(ToolView(name="t", wire_name="t", input_schema=schema), theme)
        assert "p149" in html
        assert "p150" not in html
        assert "and 250 more" in html

    async def test_colours_follow_the_theme(self, detail: ServerDetail, engine: FakeEngine, theme: Theme) -> None:
        engine.tool_lists["files"] = list(self.TOOLS)
        detail.show_tab(ServerDetail.TOOLS)
        await until(lambda: self.names(detail))
        page = detail.tools.page.findChild(QTextBrowser)
        assert page is not None
        theme.set_choice(ThemeChoice.LIGHT)
        light = page.toHtml()
        theme.set_choice(ThemeChoice.DARK)
        assert page.toHtml() != light


class TestConfiguration:
    async def test_a_form_is_made_when_looked_at_and_kept(
        self, detail: ServerDetail, forms: Forms, link: HandLink
    ) -> None:
        assert forms.made == []
        detail.show_tab(ServerDetail.CONFIGURATION)
        assert "form of files" in visible_text(detail)
        detail.show_server(link.servers["hub"])
        assert "form of hub" in visible_text(detail)
        detail.show_server(link.servers["files"])
        assert "form of files" in visible_text(detail)
        assert forms.made == ["files", "hub"], "what was entered survives a look at another server"

    async def test_the_form_of_a_removed_server_goes(self, detail: ServerDetail, forms: Forms, link: HandLink) -> None:
        detail.show_tab(ServerDetail.CONFIGURATION)
        detail.show_server(link.servers["hub"])
        link.say("server-removed", {"name": "files"})
        assert detail.configuration.count() == 1
        link.connect_by_hand(server_view("files"))
        assert detail.configuration.count() == 0


def agent_view(**fields: object) -> ServerView:
    return server_view("files", kind="agent", transport="agent", pid=77, **fields)


def held(*clients: str, agent: str = "counter", **fields: int) -> ConversationsView:
    told = [
        ConversationView(id=f"c_{number}", agent=agent, client=client, turns=number + 1, used=time.time() - 90)
        for number, client in enumerate(clients)
    ]
    return ConversationsView(running=True, conversations=told, **({"held": len(told), "limit": 500} | fields))


def cells(detail: ServerDetail) -> list[list[str]]:
    """What the table of conversations shows."""
    table = detail.overview.findChild(QTableView)
    assert table is not None
    model = table.model()
    columns = [column for column in range(model.columnCount()) if not table.isColumnHidden(column)]
    return [[model.index(row, column).data() for column in columns] for row in range(model.rowCount())]


class TestAgent:
    async def test_its_conversations_are_shown_as_they_are_now(
        self, detail: ServerDetail, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.conversation_views["files"] = held("vscode", "cursor", stored=12)
        detail.show_server(agent_view())
        await until(lambda: "2 conversations of at most 500, 12 stored" in visible_text(detail))
        assert cells(detail) == [["vscode", "1", "1 min ago", "c_0"], ["cursor", "2", "1 min ago", "c_1"]]
        engine.conversation_views["files"] = held("vscode")
        link.say("calls", {"calls": [call_view(1, server="files")]})
        await until(lambda: "1 conversation of at most 500" in visible_text(detail))
        engine.conversation_views["files"] = ConversationsView(running=True, limit=500)
        link.say("calls", {"calls": [call_view(2, server="other")]})
        link.say("calls", {"calls": [call_view(3, server="files")]})
        await until(lambda: "No conversations" in visible_text(detail))
        detail.show_tab(ServerDetail.TOOLS)
        asked = len(engine.questions)
        link.say("calls", {"calls": [call_view(4, server="files")]})
        detail.show_tab(ServerDetail.OVERVIEW)
        await until(lambda: ("conversations", "files") in engine.questions[asked:])

    async def test_several_agents_of_a_server_are_told_apart(self, detail: ServerDetail, engine: FakeEngine) -> None:
        both = [*held("vscode").conversations, *held("vscode", agent="dice").conversations]
        engine.conversation_views["files"] = ConversationsView(running=True, held=2, limit=0, conversations=both)
        detail.show_server(agent_view())
        await until(lambda: "2 conversations" in visible_text(detail))
        assert [row[1] for row in cells(detail)] == ["counter", "dice"]

    async def test_other_servers_and_stopped_agents_have_none(self, detail: ServerDetail, engine: FakeEngine) -> None:
        engine.conversation_views["files"] = held("vscode")
        detail.show_server(agent_view())
        await until(lambda: button(detail.overview, "Reload").isVisible())
        for view in (server_view("files"), server_view("files", State.STOPPED, kind="agent")):
            detail.show_server(view)
            assert not button(detail.overview, "Reload").isVisible()

    async def test_reload_asks_the_engine_and_says_how_it_went(
        self, detail: ServerDetail, engine: FakeEngine, actions: ServerActions
    ) -> None:
        said, failed = QSignalSpy(actions.said), QSignalSpy(actions.failed)
        engine.conversation_views["files"] = held("vscode")
        detail.show_server(agent_view())
        reload = button(detail.overview, "Reload")
        engine.hold = asyncio.Event()
        QTest.mouseClick(reload, LEFT)
        assert (reload.text(), reload.isEnabled()) == ("Reloading …", False)
        actions.reload("files")
        engine.conversation_views["files"] = held("vscode", "cursor")
        engine.hold.set()
        await until(lambda: said.count() == 1)
        assert said.at(0) == ["files was loaded anew"]
        assert engine.questions.count(("reload", "files")) == 1
        assert (reload.text(), reload.isEnabled()) == ("Reload", True)
        await until(lambda: "2 conversations" in visible_text(detail))
        engine.hold, engine.error = None, CallboardError("agent-load", "Line 3 is wrong.")
        QTest.mouseClick(reload, LEFT)
        await until(lambda: failed.count() == 1)
        assert failed.at(0)[0].message == "Line 3 is wrong."
        assert reload.isEnabled()

    async def test_the_menu_has_it_for_agents_that_run(self, detail: ServerDetail, actions: ServerActions) -> None:
        for view, shown in (
            (server_view("files"), None),
            (agent_view(), True),
            (server_view("files", State.STOPPED, kind="agent"), False),
        ):
            menu = build_menu(view, actions, True, detail)
            found = {action.text(): action.isEnabled() for action in menu.actions()}
            menu.deleteLater()
            assert found.get("Reload agent") == shown

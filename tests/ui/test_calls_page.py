"""The call log in the window."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtGui import QAccessible, QContextMenuEvent, QGuiApplication
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu, QPushButton, QToolButton, QWidget

from callboard.core.errors import CallboardError
from callboard.ui.actions import ServerActions
from callboard.ui.call_filters import ChoiceBox
from callboard.ui.calls_page import CallsPage
from callboard.ui.icons import Icons
from callboard.ui.models.calls import CallFilter, CallsModel
from callboard.ui.theme import Theme
from callboard.ui.widgets.jump_button import JumpButton
from tests.ui.conftest import HandLink, server_view, until
from tests.ui.pages_kit import FakeEngine

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def engine(link: HandLink) -> FakeEngine:
    engine = FakeEngine(calls=600)
    link.hand = engine
    return engine


@pytest.fixture
async def page(
    link: HandLink, engine: FakeEngine, actions: ServerActions, theme: Theme, icons: Icons, settings: QSettings
) -> AsyncIterator[CallsPage]:
    link.connect_by_hand(server_view("local-tools"), server_view("files"))
    page = CallsPage(link, actions, theme, icons, settings)
    page.resize(1100, 600)
    page.show()
    await until(lambda: page.model.is_loaded)
    yield page
    page.hide()
    page.deleteLater()
    await link.close()


def visible_text(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def button(widget: QWidget, text: str) -> QPushButton:
    return next(each for each in widget.findChildren(QPushButton) if each.text() == text)


def at_end(page: CallsPage) -> bool:
    bar = page.table.verticalScrollBar()
    return bar.value() == bar.maximum() > 0


class TestTable:
    async def test_the_newest_is_at_the_end_and_followed(
        self, page: CallsPage, engine: FakeEngine, link: HandLink
    ) -> None:
        assert "600 calls" in visible_text(page)
        await until(lambda: at_end(page))
        link.callsChanged.emit(engine.add(20))
        await until(lambda: page.model.total == 620)
        await until(lambda: at_end(page))

    async def test_what_is_being_read_stays_where_it_is(
        self, page: CallsPage, engine: FakeEngine, link: HandLink
    ) -> None:
        await until(lambda: at_end(page))
        bar = page.table.verticalScrollBar()
        bar.setValue(1000)
        jump = page.table.findChild(JumpButton)
        assert jump is not None
        assert jump.isVisible()
        link.callsChanged.emit(engine.add(20))
        await until(lambda: page.model.total == 620)
        assert bar.value() == 1000
        QTest.mouseClick(jump, LEFT)
        assert at_end(page)
        assert not jump.isVisible()

    async def test_rows_have_one_height_and_are_not_measured(self, page: CallsPage) -> None:
        header = page.table.verticalHeader()
        assert header.sectionResizeMode(0) == header.ResizeMode.Fixed
        assert page.table.rowHeight(0) == page.table.rowHeight(599)

    async def test_pause_holds_rows_back_and_counts_them(
        self, page: CallsPage, engine: FakeEngine, link: HandLink
    ) -> None:
        QTest.mouseClick(button(page, "Pause"), LEFT)
        link.callsChanged.emit(engine.add(3))
        await until(lambda: any(each.text() == "Resume (3 new)" for each in page.findChildren(QPushButton)))
        assert page.model.total == 600
        QTest.mouseClick(button(page, "Resume (3 new)"), LEFT)
        await until(lambda: page.model.total == 603)
        await until(lambda: at_end(page))
        assert button(page, "Pause").isVisible()

    async def test_menu_narrows_to_what_was_clicked(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        requests: list[int] = []
        page.table.menuRequested.connect(lambda row, _at: requests.append(row))
        page.table.menuRequested.disconnect(page._open_menu)
        page.table.choose_row(599)
        rect = page.table.visualRect(page.table.currentIndex())
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, rect.center(), page.mapToGlobal(rect.center()))
        page.table.contextMenuEvent(event)
        assert requests == [599]

    @pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard", extend=True)
    async def test_the_menu_of_a_call(self, page: CallsPage, actions: ServerActions) -> None:
        opened = QSignalSpy(actions.openRequested)
        page._open_menu(599, page.pos())
        menu = page.findChildren(QMenu)[-1]
        texts = {action.text(): action for action in menu.actions() if action.text()}
        assert list(texts) == [
            "Only server local-tools",
            "Only tool echo",
            "Only client vscode",
            "Show server",
            "Show log of server",
        ]
        texts["Show server"].trigger()
        assert opened.at(0) == ["local-tools"]
        texts["Only tool echo"].trigger()
        assert page.filters.filter == CallFilter(server="local-tools", tool="echo")
        menu.close()

    async def test_columns_come_back_and_size_gives_way(
        self,
        page: CallsPage,
        link: HandLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
    ) -> None:
        page.table.horizontalHeader().resizeSection(CallsModel.CLIENT, 222)
        again = CallsPage(link, actions, theme, icons, settings)
        again.resize(1100, 600)
        again.show()
        assert again.table.columnWidth(CallsModel.CLIENT) == 222
        assert not again.table.isColumnHidden(CallsModel.SIZE)
        again.table.setColumnWidth(CallsModel.CLIENT, 60)
        again.resize(600, 600)
        await until(lambda: again.table.isColumnHidden(CallsModel.SIZE))
        assert again.table.isColumnHidden(CallsModel.ERROR)
        assert again.table.horizontalHeader().length() == again.table.viewport().width(), "no strip is left empty"
        again.resize(1100, 600)
        await until(lambda: not again.table.isColumnHidden(CallsModel.ERROR))
        assert again.table.horizontalHeader().length() == again.table.viewport().width()
        assert again.table.columnWidth(CallsModel.TOOL) < again.table.columnWidth(CallsModel.ERROR)
        again.hide()
        again.deleteLater()

    async def test_nothing_ticks_while_nobody_looks(self, page: CallsPage) -> None:
        page.hide()
        assert [timer for timer in page.findChildren(QTimer) if timer.isActive() and not timer.isSingleShot()] == []

    async def test_a_screen_reader_finds_its_way(self, page: CallsPage) -> None:
        assert QAccessible.queryAccessibleInterface(page.table).text(QAccessible.Text.Name) == "Calls"
        for widget in page.findChildren(QToolButton) + page.findChildren(QLineEdit):
            if widget.isVisible() and widget.focusPolicy() != Qt.FocusPolicy.NoFocus:
                name = QAccessible.queryAccessibleInterface(widget).text(QAccessible.Text.Name)
                assert name, widget


class TestFilters:
    async def test_text_is_asked_for_once_a_person_has_typed_it(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.change(engine.rows[10], tool="word_count")
        field = next(each for each in page.findChildren(QLineEdit) if each.accessibleName() == "Search calls")
        before = engine.tails
        QTest.keyClicks(field, "word")
        await until(lambda: page.model.is_loaded and page.model.filter.text == "word")
        assert "1 call matches" in visible_text(page)
        assert engine.tails == before + 1
        QTest.mouseClick(button(page, "Clear filters"), LEFT)
        await until(lambda: page.model.is_loaded and page.model.total == 600)
        assert field.text() == ""
        assert not button(page, "Clear filters").isVisible()

    async def test_boxes_offer_what_there_is(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        link.callsChanged.emit(engine.add(1, client="cursor", server="files", tool="read"))
        await until(lambda: page.model.total == 601)
        filters = page.filters
        offered = {}
        for box in (filters._server, filters._tool, filters._status, filters._client):
            box.setFocus()
            box._refresh()
            offered[box.accessibleName()] = [box.itemText(place) for place in range(box.count())]
        assert offered == {
            "Server": ["All servers", "local-tools", "files"],
            "Tool": ["All tools", "echo", "read"],
            "Status": ["Any status", "Running", "Completed", "Failed", "Cancelled"],
            "Client": ["All clients", "cursor", "vscode"],
        }
        filters._client.setCurrentIndex(1)
        await until(lambda: page.model.is_loaded and page.model.total == 1)
        assert page.model.filter == CallFilter(client="cursor")

    async def test_filter_server(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.add(2, server="gone-server")
        page.filter_server("gone-server")
        await until(lambda: page.model.is_loaded and page.model.total == 2)
        assert page.filters._server.currentText() == "gone-server"
        assert "2 calls match" in visible_text(page)

    async def test_nothing_matches(self, page: CallsPage) -> None:
        page.filter_server("files")
        await until(lambda: "No call matches" in visible_text(page))
        clear = [each for each in page.findChildren(QPushButton) if each.text() == "Clear filters" and each.isVisible()]
        QTest.mouseClick(clear[-1], LEFT)
        await until(lambda: page.model.total == 600)

    async def test_no_calls_yet(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        rows, engine.rows = engine.rows, []
        link.resynced.emit()
        await until(lambda: "No calls yet" in visible_text(page))
        assert button(page, "Copy VS Code config").isVisible()
        engine.rows = rows[:1]
        link.callsChanged.emit(engine.rows)
        await until(lambda: page.table.isVisible() and page.model.total == 1)

    async def test_an_error_stands_above_the_rows(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        engine.error = CallboardError("internal", "The call log is broken.")
        link.resynced.emit()
        await until(lambda: "The call log is broken." in visible_text(page))
        assert page.model.total == 600
        engine.error = None
        link.connect_by_hand(server_view("files"))
        await until(lambda: "The call log is broken." not in visible_text(page))


class TestDrawer:
    RESULT = '{"content": [{"type": "text", "text": "12:00\\nUTC"}], "isError": false}'

    async def open(self, page: CallsPage, row: int) -> None:
        page.table.choose_row(row)
        await until(lambda: page.drawer.isVisible() and page.drawer.arguments.shown)

    async def test_a_chosen_call_is_shown_with_what_it_sent_and_got(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.payloads[600] = {"arguments": '{"zone":"UTC"}', "result": self.RESULT}
        await self.open(page, 599)
        drawer = page.drawer
        assert "local-tools.echo" in visible_text(drawer)
        assert "vscode" in visible_text(drawer)
        assert "took 12 ms" in visible_text(drawer)
        assert drawer.arguments.shown == '{\n  "zone": "UTC"\n}'
        assert drawer.result.shown == "12:00\nUTC"
        QTest.mouseClick(button(drawer.result, "JSON"), LEFT)
        assert '"isError": false' in drawer.result.shown
        copy = next(each for each in drawer.findChildren(QToolButton) if each.accessibleName() == "Copy result")
        QTest.mouseClick(copy, LEFT)
        assert QGuiApplication.clipboard().text() == self.RESULT

    async def test_what_was_cut_is_marked(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.change(engine.rows[599], response_bytes=1_000_000)
        page.model.reload()
        engine.payloads[600] = {"arguments": "{}", "result": '{"content": [{"te', "result_cut": True}
        await self.open(page, 599)
        assert "cut: the first 17 bytes of 976.6 kB" in visible_text(page.drawer).replace("KB", "kB")
        assert page.drawer.result.shown == '{"content": [{"te'

    async def test_a_failure_is_said(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        link.callsChanged.emit(engine.add(1, status="failed", error="No such file."))
        engine.payloads[601] = {"arguments": "{}"}
        await until(lambda: page.model.total == 601)
        await self.open(page, 600)
        assert "No such file." in visible_text(page.drawer)
        assert "none" in visible_text(page.drawer.result)

    async def test_a_running_call_is_completed_in_place(
        self, page: CallsPage, engine: FakeEngine, link: HandLink
    ) -> None:
        running = engine.add(1, status="running", duration_ms=None)[0]
        link.callsChanged.emit([running])
        engine.payloads[601] = {"arguments": '{"a": 1}'}
        await until(lambda: page.model.total == 601)
        await self.open(page, 600)
        assert "the call still runs" in visible_text(page.drawer)
        engine.payloads[601] = {"arguments": '{"a": 1}', "result": self.RESULT}
        link.callsChanged.emit([engine.change(running, status="completed", duration_ms=77.0)])
        await until(lambda: page.drawer.result.shown == "12:00\nUTC")
        assert "took 77 ms" in visible_text(page.drawer)

    async def test_the_answer_for_another_call_is_ignored(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.payloads = {599: {"arguments": "[599]"}, 600: {"arguments": "[600]"}}
        engine.hold = asyncio.Event()
        page.table.choose_row(598)
        await until(lambda: ("call", 599) in engine.questions)
        page.table.choose_row(599)
        await until(lambda: ("call", 600) in engine.questions)
        engine.hold.set()
        await until(lambda: page.drawer.arguments.shown)
        assert "600" in page.drawer.arguments.shown

    async def test_show_call_also_shows_one_that_is_not_in_the_table(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.payloads[5] = {"arguments": '{"five": 5}'}
        page.filter_server("files")
        await until(lambda: page.model.is_loaded)
        page.show_call(5)
        await until(lambda: "five" in page.drawer.arguments.shown)
        assert page.drawer.call_id == 5
        page.show_call(5000)
        await until(lambda: "No call 5000 is in the log." in visible_text(page.drawer))
        page.clear_filters()
        await until(lambda: page.model.total == 600)
        page.show_call(600)
        await until(lambda: page.drawer.call_id == 600)
        assert page.table.currentIndex().row() == 599

    async def test_the_chosen_call_stays_chosen_when_rows_move(
        self, page: CallsPage, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.payloads[590] = {"arguments": '{"a": 1}'}
        await self.open(page, 589)
        del engine.rows[:100]
        link.callsChanged.emit(engine.add(1))
        await until(lambda: page.model.total == 501)
        assert page.drawer.call_id == 590
        assert [index.row() for index in page.table.selectionModel().selectedRows()] == [489]

    async def test_enter_opens_and_escape_closes(self, page: CallsPage, engine: FakeEngine) -> None:
        engine.payloads[600] = {"arguments": '{"a": 1}'}
        await self.open(page, 599)
        QTest.keyClick(page.table, Qt.Key.Key_Escape)
        assert not page.drawer.isVisible()
        assert not page.table.selectionModel().hasSelection()
        QTest.keyClick(page.table, Qt.Key.Key_Return)
        assert page.drawer.isVisible()
        close = next(each for each in page.drawer.findChildren(QToolButton) if each.accessibleName() == "Close")
        QTest.mouseClick(close, LEFT)
        assert not page.drawer.isVisible()

    async def test_it_stands_below_the_table_where_there_is_no_room_beside_it(self, page: CallsPage) -> None:
        assert page._split.orientation() == Qt.Orientation.Horizontal
        page.resize(800, 600)
        await until(lambda: page._split.orientation() == Qt.Orientation.Vertical)


class TestEngines:
    """Where several engines keep their calls in one log."""

    async def test_one_engine_has_no_filter_for_it(self, page: CallsPage) -> None:
        assert [box for box in page.filters.findChildren(ChoiceBox) if box.accessibleName() == "Engine"]
        assert not any(
            box.isVisible() for box in page.filters.findChildren(ChoiceBox) if box.accessibleName() == "Engine"
        )

    async def test_the_calls_of_one_of_them(self, page: CallsPage, engine: FakeEngine, link: HandLink) -> None:
        (box,) = [box for box in page.filters.findChildren(ChoiceBox) if box.accessibleName() == "Engine"]
        engine.rows = [
            msgspec.structs.replace(row, engine="left" if row.id % 3 else "right") for row in engine.rows[:30]
        ]
        page.model.reload()
        await until(lambda: page.model.total == 30)
        await until(box.isVisible)
        page.filters.show_filter(CallFilter(engine="right"))
        await until(lambda: page.model.total == 10)
        assert box.choice == "right"
        page.table.choose_row(0)
        await until(lambda: "engine right" in visible_text(page.drawer))
        page.clear_filters()
        await until(lambda: page.model.total == 30)
        assert box.isVisible()

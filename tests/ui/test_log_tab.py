"""A server's log in the window."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QTextBlock
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QWidget

from callboard.api.schema import LogLine
from callboard.core.errors import CallboardError
from callboard.ui.icons import Icons
from callboard.ui.tabs.log import LogTab
from callboard.ui.theme import Theme, ThemeChoice, Token
from callboard.ui.widgets.jump_button import JumpButton
from callboard.ui.widgets.log_view import LogView
from tests.ui.conftest import HandLink, engine_view, server_view, until
from tests.ui.pages_kit import FakeEngine, log_lines

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def engine(link: HandLink) -> FakeEngine:
    engine = FakeEngine()
    link.hand = engine
    return engine


@pytest.fixture
async def tab(link: HandLink, engine: FakeEngine, theme: Theme, icons: Icons) -> AsyncIterator[LogTab]:
    link.connect_by_hand(server_view("files"), server_view("hub"))
    tab = LogTab(link, theme, icons)
    tab.resize(600, 400)
    tab.show_server("files")
    yield tab
    tab.hide()
    tab.deleteLater()
    await link.close()


def shown(tab: LogTab) -> list[str]:
    text = tab.view.toPlainText()
    return text.split("\n") if text else []


def numbers(tab: LogTab) -> list[int]:
    return [line.n for line in tab.view.lines]


def visible_text(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def block(tab: LogTab, text: str) -> QTextBlock:
    found = tab.view.document().begin()
    while found.isValid() and found.text() != text:
        found = found.next()
    return found


class TestReading:
    async def test_nothing_is_read_until_it_is_looked_at(self, tab: LogTab, engine: FakeEngine) -> None:
        engine.log_pages["files"] = log_lines(1, 3)
        assert engine.questions == []
        tab.show()
        await until(lambda: shown(tab) == ["line 1", "line 2", "line 3"])
        assert engine.questions == [("log", "files", 0)]

    async def test_lines_that_come_while_it_is_read_are_neither_lost_nor_doubled(
        self, tab: LogTab, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.log_pages["files"] = log_lines(1, 5)
        engine.hold = asyncio.Event()
        tab.show()
        await until(lambda: engine.questions)
        link.logLines.emit("files", log_lines(4, 8))
        link.logLines.emit("hub", log_lines(1, 2))
        engine.hold.set()
        await until(lambda: numbers(tab) == [1, 2, 3, 4, 5, 6, 7, 8])

    async def test_only_what_was_missed_is_read_when_it_is_shown_again(
        self, tab: LogTab, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.log_pages["files"] = log_lines(1, 5)
        tab.show()
        await until(lambda: len(numbers(tab)) == 5)
        tab.hide()
        link.logLines.emit("files", log_lines(6, 6))
        engine.log_pages["files"] = log_lines(1, 9)
        tab.show()
        await until(lambda: numbers(tab) == list(range(1, 10)))
        assert engine.questions[-1] == ("log", "files", 5)

    async def test_another_server_has_its_own_log(self, tab: LogTab, engine: FakeEngine) -> None:
        engine.log_pages = {"files": log_lines(1, 5), "hub": log_lines(1, 2, text="hub's")}
        engine.hold = asyncio.Event()
        tab.show()
        await until(lambda: engine.questions)
        tab.show_server("hub")
        await until(lambda: len(engine.questions) == 2)
        engine.hold.set()
        await until(lambda: shown(tab) == ["hub's", "hub's"])

    async def test_another_engine_counts_anew(self, tab: LogTab, engine: FakeEngine, link: HandLink) -> None:
        engine.log_pages["files"] = log_lines(1, 5, text="old")
        tab.show()
        await until(lambda: len(numbers(tab)) == 5)
        link.disconnect_by_hand()
        assert shown(tab) == ["old"] * 5, "what was there stays readable"
        engine.log_pages["files"] = log_lines(1, 2, text="new")
        link.connect_by_hand(server_view("files"), engine=engine_view(pid=99))
        await until(lambda: shown(tab) == ["new", "new"])

    async def test_a_server_that_was_removed_and_added_again_counts_anew(
        self, tab: LogTab, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.log_pages["files"] = log_lines(1, 5, text="old")
        tab.show()
        await until(lambda: len(numbers(tab)) == 5)
        link.say("server-removed", {"name": "files"})
        link.logLines.emit("files", log_lines(1, 1, text="new"))
        await until(lambda: shown(tab) == ["new"])

    async def test_what_the_engine_has_dropped_is_said(self, tab: LogTab, engine: FakeEngine) -> None:
        engine.log_pages["files"] = log_lines(8, 9)
        engine.dropped = 7
        tab.show()
        await until(lambda: len(shown(tab)) == 3)
        assert shown(tab)[0] == "── 7 earlier lines are only in the log's file ──"

    async def test_empty_failed_and_waiting(self, tab: LogTab, engine: FakeEngine, link: HandLink) -> None:
        tab.show()
        await until(lambda: "No output yet" in visible_text(tab))
        engine.error = CallboardError("internal", "It is broken.")
        link.resynced.emit()
        await until(lambda: "It is broken." in visible_text(tab))
        engine.error = None
        engine.log_pages["files"] = log_lines(1, 1)
        again = next(button for button in tab.findChildren(QPushButton) if button.text() == "Try again")
        QTest.mouseClick(again, LEFT)
        await until(lambda: shown(tab) == ["line 1"])


class TestView:
    async def fill(self, tab: LogTab, engine: FakeEngine, count: int) -> None:
        engine.log_pages["files"] = log_lines(1, count)
        tab.show()
        await until(lambda: tab.view.blockCount() == min(count, LogView.KEPT) and not tab.view._waiting)

    async def test_the_newest_5000_are_kept(self, tab: LogTab, engine: FakeEngine, link: HandLink) -> None:
        await self.fill(tab, engine, 5000)
        link.logLines.emit("files", log_lines(5001, 5300))
        await until(lambda: shown(tab)[-1] == "line 5300")
        assert len(shown(tab)) == 5000
        assert numbers(tab) == list(range(301, 5301))
        assert shown(tab)[0] == "line 301"

    async def test_a_flood_shows_its_end_and_takes_little_memory(
        self, tab: LogTab, engine: FakeEngine, link: HandLink
    ) -> None:
        await self.fill(tab, engine, 10)
        for start in range(11, 40_011, 1000):
            link.logLines.emit("files", log_lines(start, start + 999))
        assert len(tab.view.lines) <= 5010
        await until(lambda: shown(tab)[-1] == "line 40010")
        assert numbers(tab) == list(range(35_011, 40_011))

    async def test_it_follows_only_at_the_end(self, tab: LogTab, engine: FakeEngine, link: HandLink) -> None:
        await self.fill(tab, engine, 5000)
        bar = tab.view.verticalScrollBar()
        jump = tab.findChild(JumpButton)
        assert jump is not None
        assert bar.value() == bar.maximum()
        link.logLines.emit("files", log_lines(5001, 5100))
        await until(lambda: numbers(tab)[-1] == 5100 and not tab.view._waiting)
        assert bar.value() == bar.maximum()
        assert not jump.isVisible()

        bar.setValue(1000)
        first = tab.view.firstVisibleBlock().text()
        link.logLines.emit("files", log_lines(5101, 5400))
        await until(lambda: numbers(tab)[-1] == 5400 and not tab.view._waiting)
        assert tab.view.firstVisibleBlock().text() == first, "what is being read stays where it is"
        assert jump.isVisible()

        QTest.mouseClick(jump, LEFT)
        assert bar.value() == bar.maximum()
        assert not jump.isVisible()
        link.logLines.emit("files", log_lines(5401, 5402))
        await until(lambda: numbers(tab)[-1] == 5402 and not tab.view._waiting)
        assert bar.value() == bar.maximum()

    async def test_runs_and_stdout_stand_out_in_either_theme(
        self, tab: LogTab, engine: FakeEngine, theme: Theme
    ) -> None:
        theme.set_choice(ThemeChoice.LIGHT)
        engine.log_pages["files"] = [
            *log_lines(1, 1),
            LogLine(n=2, at=1.0, stream="mark", text="started"),
            LogLine(n=3, at=1.0, stream="stdout", text="rubbish"),
            *log_lines(4, 4),
        ]
        tab.show()
        await until(lambda: len(shown(tab)) == 4)
        for choice in (ThemeChoice.LIGHT, ThemeChoice.DARK):
            theme.set_choice(choice)
            mark, rubbish, plain = block(tab, "── started ──"), block(tab, "rubbish"), block(tab, "line 4")
            assert mark.blockFormat().background().color() == theme.color(Token.OFF_SOFT)
            assert mark.begin().fragment().charFormat().fontWeight() > 400
            assert rubbish.blockFormat().background().color() == theme.color(Token.ATTENTION_SOFT)
            assert rubbish.begin().fragment().charFormat().fontItalic()
            assert plain.blockFormat().background().style() == Qt.BrushStyle.NoBrush
        assert shown(tab) == ["line 1", "── started ──", "rubbish", "line 4"]

    async def test_line_breaks_and_endless_lines_do_no_harm(self, tab: LogTab, engine: FakeEngine) -> None:
        engine.log_pages["files"] = [
            LogLine(n=1, at=1.0, stream="stderr", text="a\u2029b\nc\rd"),
            LogLine(n=2, at=1.0, stream="stderr", text="x" * 10_000),
            LogLine(n=3, at=1.0, stream="stderr", text=""),
        ]
        tab.show()
        await until(lambda: tab.view.blockCount() == 3)
        assert shown(tab)[0] == "a b c d"
        assert shown(tab)[1].endswith("x … (+6000)")

    async def test_times_are_painted_beside_the_lines_and_not_copied(self, tab: LogTab, engine: FakeEngine) -> None:
        await self.fill(tab, engine, 50)
        assert not tab.grab().isNull()
        tab.view.selectAll()
        tab.view.copy()
        assert QGuiApplication.clipboard().text().startswith("line 1\nline 2")
        copy = next(button for button in tab.findChildren(QPushButton) if button.text() == "Copy all")
        QTest.mouseClick(copy, LEFT)
        first = QGuiApplication.clipboard().text().split("\n")[0]
        assert first.endswith(" line 1")
        assert first.count(":") == 2

    async def test_long_lines_are_broken_on_demand(self, tab: LogTab, engine: FakeEngine) -> None:
        await self.fill(tab, engine, 1)
        wrap = next(button for button in tab.findChildren(QPushButton) if button.text() == "Wrap")
        assert tab.view.lineWrapMode() == QPlainTextEdit.LineWrapMode.NoWrap
        QTest.mouseClick(wrap, LEFT)
        assert tab.view.lineWrapMode() == QPlainTextEdit.LineWrapMode.WidgetWidth


class TestSearch:
    async def test_matches_are_counted_marked_and_walked_through(
        self, tab: LogTab, engine: FakeEngine, link: HandLink
    ) -> None:
        engine.log_pages["files"] = [*log_lines(1, 30), LogLine(n=31, at=1.0, stream="stderr", text="an Error, error")]
        tab.show()
        await until(lambda: tab.view.blockCount() == 31)
        tab._search.setText("ERROR")
        assert "1 line" in visible_text(tab)
        assert len(tab.view.extraSelections()) == 2
        QTest.keyClick(tab._search, Qt.Key.Key_Return)
        assert tab.view.textCursor().selectedText() == "Error"
        QTest.keyClick(tab._search, Qt.Key.Key_Return)
        assert tab.view.textCursor().selectedText() == "error"
        QTest.keyClick(tab._search, Qt.Key.Key_Return)
        assert tab.view.textCursor().selectedText() == "Error", "after the last match comes the first"
        link.logLines.emit("files", log_lines(32, 32, text="one more error"))
        await until(lambda: "2 lines" in visible_text(tab))
        tab._search.setText("nothing like it")
        assert "no match" in visible_text(tab)
        QTest.keyClick(tab._search, Qt.Key.Key_Escape)
        assert tab._search.text() == ""
        assert tab.view.extraSelections() == []

"""The window's frame: pages, menus, notices, toasts, the line at its foot."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, QSettings, Qt, QUrl
from PySide6.QtGui import QAccessible, QAction, QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from callboard.core.errors import CallboardError
from callboard.core.health import Severity, State
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.icons import Icons
from callboard.ui.main_window import MainWindow, Page
from callboard.ui.notice_bar import MOST_ROWS, Notice, NoticeAction
from callboard.ui.theme import Theme, ThemeChoice
from callboard.ui.welcome import WelcomePage
from tests.ui.conftest import HandLink, engine_view, server_view, until


def make_window(link: HandLink, actions: ServerActions, theme: Theme, icons: Icons, settings: QSettings) -> MainWindow:
    picture = resource("app-icon", "callboard.svg")
    pages = [
        Page("servers", "Servers", lambda: QLabel("the servers"), "servers"),
        Page("calls", "Calls", lambda: QLabel("the calls"), "calls"),
        Page("welcome", "Welcome", lambda: WelcomePage(link, actions, theme, icons, picture)),
    ]
    window = MainWindow(link, actions, theme, icons, settings, pages)
    window.open_last_page()
    return window


@pytest.fixture
def window(
    link: HandLink, actions: ServerActions, theme: Theme, icons: Icons, settings: QSettings
) -> Iterator[MainWindow]:
    window = make_window(link, actions, theme, icons, settings)
    window.show()
    yield window
    window.hide()
    window.deleteLater()


def action(window: MainWindow, text: str) -> QAction:
    return next(each for each in window.findChildren(QAction) if each.text().replace("&", "") == text)


def texts(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        (["/home/me/one.mcpb"], ["/home/me/one.mcpb"]),
        (["/home/me/ONE.MCPB"], ["/home/me/ONE.MCPB"]),
        (["/home/me/one.zip"], []),
        (["/home/me/one.mcpb", "/home/me/two.mcpb"], []),
        ([], []),
    ],
)
def test_a_bundle_may_be_dropped_anywhere(window: MainWindow, files: list[str], taken: list[str]) -> None:
    dropped: list[str] = []
    window.bundleDropped.connect(dropped.append)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(file) for file in files])
    buttons, keys, copy = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier, Qt.DropAction.CopyAction
    entering = QDragEnterEvent(QPoint(5, 5), copy, mime, buttons, keys)
    entering.ignore()
    window.dragEnterEvent(entering)
    assert entering.isAccepted() == bool(taken)
    window.dropEvent(QDropEvent(QPointF(5, 5), copy, mime, buttons, keys))
    assert dropped == taken


class TestPages:
    async def test_the_rail_opens_pages_and_shows_which_is_open(self, window: MainWindow) -> None:
        assert window.page == "servers"
        calls = next(button for button in window.findChildren(QAbstractButton) if button.text() == "Calls")
        QTest.mouseClick(calls, Qt.MouseButton.LeftButton)
        assert window.page == "calls"
        assert calls.isChecked()

    async def test_pages_have_shortcuts(self, window: MainWindow) -> None:
        assert action(window, "Calls").shortcut().toString() == "Ctrl+2"
        action(window, "Calls").trigger()
        assert window.page == "calls"

    async def test_a_page_without_a_button_marks_none(self, window: MainWindow) -> None:
        window.open_page("welcome")
        rail = [button for button in window.findChildren(QAbstractButton) if button.isCheckable()]
        assert not any(button.isChecked() for button in rail)
        window.open_page("servers")
        assert any(button.isChecked() for button in rail)

    async def test_page_and_geometry_come_back_at_the_next_start(
        self,
        window: MainWindow,
        link: HandLink,
        actions: ServerActions,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
        qtbot: QtBot,
    ) -> None:
        window.resize(781, 502)
        window.open_page("calls")
        window.save_state()
        again = make_window(link, actions, theme, icons, settings)
        qtbot.addWidget(again)
        assert again.page == "calls"
        assert (again.width(), again.height()) == (781, 502)

    async def test_the_badge_counts_servers_that_need_someone(self, window: MainWindow, link: HandLink) -> None:
        link.connect_by_hand(server_view("a"), server_view("b", State.FAILED), server_view("c", State.NEEDS_CONFIG))
        servers = next(button for button in window.findChildren(QAbstractButton) if button.text() == "Servers")
        assert "1 failed" in servers.accessibleDescription()
        link.say("server", server_view("b"))
        link.say("server", server_view("c"))
        assert servers.accessibleDescription() == ""


class TestLineAtTheFoot:
    async def test_says_that_the_engine_is_starting(self, window: MainWindow) -> None:
        assert window.status_line.text == "Starting the engine…"

    async def test_counts_and_shows_the_address(self, window: MainWindow, link: HandLink) -> None:
        link.connect_by_hand(
            server_view("a"),
            server_view("b", State.NEEDS_SIGN_IN),
            server_view("c", State.FAILED),
            engine=engine_view(calls_last_hour=12),
        )
        assert window.status_line.text == "1 running · 1 needs attention · 1 failed"
        assert "12 calls in the last hour" in texts(window.status_line)
        url = window.status_line.findChild(QAbstractButton)
        assert url is not None
        assert url.text() == "http://127.0.0.1:4470/mcp"

    async def test_copies_the_address(self, window: MainWindow, link: HandLink) -> None:
        link.connect_by_hand()
        url = window.status_line.findChild(QAbstractButton)
        assert url is not None
        QTest.mouseClick(url, Qt.MouseButton.LeftButton)
        assert QGuiApplication.clipboard().text() == "http://127.0.0.1:4470/mcp"
        assert "http://127.0.0.1:4470/mcp" in window.toast.text
        assert window.toast.isVisible()

    async def test_says_that_there_are_no_servers(self, window: MainWindow, link: HandLink) -> None:
        link.connect_by_hand()
        assert window.status_line.text == "No servers yet"


class TestNotices:
    async def test_an_error_stands_with_its_fix_until_closed(self, window: MainWindow, actions: ServerActions) -> None:
        actions.failed.emit(CallboardError("name-taken", "There is a server of that name."))
        assert "There is a server of that name." in texts(window.notices)
        assert "Choose another name." in texts(window.notices)
        close = next(b for b in window.notices.findChildren(QAbstractButton) if b.accessibleName())
        QTest.mouseClick(close, Qt.MouseButton.LeftButton)
        assert not window.notices.isVisible()

    async def test_the_worst_come_first_and_only_so_many(self, window: MainWindow) -> None:
        for number in range(MOST_ROWS + 1):
            window.notices.put(Notice(f"n{number}", Severity.ATTENTION, f"notice {number}"))
        window.notices.put(Notice("bad", Severity.FAILED, "the bad one"))
        shown = texts(window.notices).splitlines()
        assert "the bad one" in shown
        assert sum("notice" in line for line in shown) == MOST_ROWS - 1
        window.notices.drop("bad")
        assert sum("notice" in line for line in texts(window.notices).splitlines()) == MOST_ROWS

    async def test_one_of_the_same_key_takes_the_place(self, window: MainWindow) -> None:
        window.notices.put(Notice("k", Severity.BUSY, "before"))
        window.notices.put(Notice("k", Severity.BUSY, "after"))
        assert window.notices.keys == ["k"]
        assert "after" in texts(window.notices)
        assert "before" not in texts(window.notices)

    async def test_buttons_do_what_they_say(self, window: MainWindow) -> None:
        pressed: list[str] = []
        offer = NoticeAction("Start it", lambda: pressed.append("start"))
        window.notices.put(Notice("k", Severity.OFF, "stopped", actions=(offer,)))
        button = next(b for b in window.notices.findChildren(QPushButton) if b.text() == "Start it")
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        assert pressed == ["start"]


class TestToast:
    async def test_what_can_be_undone_has_a_button(self, window: MainWindow) -> None:
        pressed: list[str] = []
        window.toast.say("Removed github", NoticeAction("Undo", lambda: pressed.append("undo")))
        assert window.toast.text == "Removed github"
        undo = window.toast.findChild(QPushButton)
        assert undo is not None
        QTest.mouseClick(undo, Qt.MouseButton.LeftButton)
        assert pressed == ["undo"]
        assert not window.toast.isVisible()

    async def test_a_plain_toast_has_no_button(self, window: MainWindow, actions: ServerActions) -> None:
        window.toast.say("Removed github", NoticeAction("Undo", lambda: None))
        actions.said.emit("Copied")
        button = window.toast.findChild(QPushButton)
        assert button is not None
        assert not button.isVisible()

    async def test_it_stays_in_the_middle(self, window: MainWindow, actions: ServerActions) -> None:
        actions.said.emit("Copied")
        window.resize(1300, 700)
        body = window.centralWidget()
        assert body is not None
        await until(lambda: body.width() > 1200)
        assert abs(window.toast.geometry().center().x() - body.width() // 2) <= 1


class TestWindowItself:
    async def test_closing_and_quitting_are_asked_for_and_not_done(self, window: MainWindow) -> None:
        asked: list[str] = []
        window.closeRequested.connect(lambda: asked.append("close"))
        window.quitRequested.connect(lambda: asked.append("quit"))
        window.close()
        action(window, "Quit").trigger()
        assert asked == ["close", "quit"]
        assert window.isVisible()

    async def test_themes_are_chosen_in_the_menu(self, window: MainWindow, theme: Theme) -> None:
        action(window, "Dark").trigger()
        assert theme.choice is ThemeChoice.DARK
        assert action(window, "Dark").isChecked()
        assert not action(window, "Light").isChecked()

    async def test_every_button_has_a_name_for_screen_readers(self, window: MainWindow, link: HandLink) -> None:
        link.connect_by_hand(server_view("a"))
        window.notices.put(Notice("k", Severity.OFF, "stopped"))
        for button in window.findChildren(QAbstractButton):
            if button.isVisible():
                interface = QAccessible.queryAccessibleInterface(button)
                assert interface.text(QAccessible.Text.Name), button

    async def test_unique_shortcuts(self, window: MainWindow) -> None:
        keys = [each.shortcut().toString() for each in window.findChildren(QAction) if not each.shortcut().isEmpty()]
        assert len(keys) == len(set(keys))


class TestWelcome:
    @pytest.fixture
    def page(self, window: MainWindow) -> WelcomePage:
        window.open_page("welcome")
        page = window.findChild(WelcomePage)
        assert page is not None
        return page

    async def test_says_what_this_is_and_that_it_is_starting(self, page: WelcomePage) -> None:
        said = texts(page)
        assert "runs your MCP servers" in said
        assert "every AI client" in said
        assert "every tool call" in said
        assert "Starting the engine…" in said

    async def test_shows_the_first_server_and_offers_the_config(self, page: WelcomePage, link: HandLink) -> None:
        copy = next(button for button in page.findChildren(QPushButton) if button.text() == "Copy VS Code config")
        assert not copy.isEnabled()
        link.connect_by_hand(server_view("local-tools", tools=3))
        assert copy.isEnabled()
        assert "Tools ready to be called: 3." in texts(page)

    async def test_a_first_server_that_fails_says_why_and_offers_the_fix(
        self, page: WelcomePage, link: HandLink, actions: ServerActions
    ) -> None:
        link.connect_by_hand(server_view("local-tools", State.NEEDS_CONFIG, reason="The secret TOKEN is missing."))
        assert "The secret TOKEN is missing." in texts(page)
        edited: list[str] = []
        actions.editRequested.connect(edited.append)
        fix = next(button for button in page.findChildren(QPushButton) if button.text() == "Fill in…")
        QTest.mouseClick(fix, Qt.MouseButton.LeftButton)
        assert edited == ["local-tools"]

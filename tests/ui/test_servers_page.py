"""The list of servers, and how the page follows it."""

from collections.abc import AsyncIterator, Iterator

import pytest
from PySide6.QtCore import QPoint, QSettings, Qt, QTimer
from PySide6.QtGui import QAccessible, QContextMenuEvent
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QMenu, QPushButton, QWidget

from callboard.core.health import State
from callboard.ui.actions import ServerActions
from callboard.ui.icons import Icons
from callboard.ui.models.roles import Role
from callboard.ui.server_detail import ServerDetail
from callboard.ui.servers_page import ServersPage
from callboard.ui.theme import Theme, ThemeChoice
from tests.ui.conftest import HandLink, server_view, until
from tests.ui.pages_kit import FakeEngine

LEFT = Qt.MouseButton.LeftButton


class Recorder(ServerActions):
    """Writes down what the engine would be asked to do."""

    def __init__(self, link: HandLink) -> None:
        super().__init__(link)
        self.asked: list[tuple[str, str]] = []

    def _act(self, name: str, action: str) -> None:
        self.asked.append((name, str(action)))

    def remove(self, name: str) -> None:
        self.asked.append((name, "remove"))


@pytest.fixture
def recorder(link: HandLink) -> Iterator[Recorder]:
    recorder = Recorder(link)
    yield recorder
    recorder.deleteLater()


@pytest.fixture
async def page(
    link: HandLink, recorder: Recorder, theme: Theme, icons: Icons, settings: QSettings
) -> AsyncIterator[ServersPage]:
    link.hand = FakeEngine()
    link.connect_by_hand(
        server_view("files", tools=14),
        server_view("hub", State.NEEDS_SIGN_IN, kind="remote", transport="http"),
        server_view("jira", State.STOPPED, tools=5, cached=True),
    )
    page = ServersPage(link, recorder, theme, icons, settings, lambda name: QLabel(f"form of {name}"))
    page.resize(900, 600)
    page.show()
    await until(page.isVisible)
    yield page
    page.hide()
    page.deleteLater()
    await link.close()


def names(page: ServersPage) -> list[str]:
    model = page.list.view.model()
    return [model.index(row, 0).data(Role.VIEW).name for row in range(model.rowCount())]


def button_of(page: ServersPage, name: str) -> QPoint:
    view = page.list.view
    index = view.model().index(names(page).index(name), 0)
    return view.button_rect(index).center()


def visible_text(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def shown_button(widget: QWidget, text: str) -> QPushButton:
    return next(b for b in widget.findChildren(QPushButton) if b.text() == text and b.isVisible())


async def test_nothing_is_cut_at_the_narrowest_width(page: ServersPage) -> None:
    for tab in range(page.detail.tabs.count()):
        page.detail.show_tab(tab)
        page.resize(1, 480)
        page.layout().activate()
        for button in page.findChildren(QAbstractButton):
            if button.isVisible() and not button.visibleRegion().isEmpty():
                shown = button.visibleRegion().boundingRect()
                assert (shown.left(), shown.right()) == (0, button.width() - 1), (tab, button.text())


class TestList:
    async def test_the_first_server_is_chosen_and_shown(self, page: ServersPage) -> None:
        assert names(page) == ["hub", "files", "jira"]
        assert page.list.current == "hub"
        assert page.detail.server == "hub"

    async def test_a_click_on_the_painted_button_does_what_it_says(self, page: ServersPage, recorder: Recorder) -> None:
        QTest.mouseClick(page.list.view.viewport(), LEFT, pos=button_of(page, "files"))
        assert recorder.asked == [("files", "stop")]
        assert page.list.current == "hub", "the button acts, it does not choose"
        viewport, jira = page.list.view.viewport(), button_of(page, "jira")
        QTest.mouseClick(viewport, LEFT, pos=jira)
        QTest.mouseDClick(viewport, LEFT, pos=jira)
        QTest.mouseRelease(viewport, LEFT, pos=jira)
        assert recorder.asked[1:] == [("jira", "start"), ("jira", "start")], "a fast second click counts"

    async def test_a_press_that_leaves_the_button_does_nothing(self, page: ServersPage, recorder: Recorder) -> None:
        viewport = page.list.view.viewport()
        QTest.mousePress(viewport, LEFT, pos=button_of(page, "files"))
        QTest.mouseRelease(viewport, LEFT, pos=button_of(page, "jira"))
        assert recorder.asked == []
        QTest.mouseClick(viewport, LEFT, pos=button_of(page, "files") - QPoint(150, 0))
        assert recorder.asked == []
        assert page.list.current == "files"

    @pytest.mark.parametrize(
        ("name", "key", "asked"),
        [
            ("files", Qt.Key.Key_Return, ("files", "stop")),
            ("jira", Qt.Key.Key_Space, ("jira", "start")),
            ("files", Qt.Key.Key_S, ("files", "stop")),
            ("jira", Qt.Key.Key_S, ("jira", "start")),
            ("files", Qt.Key.Key_R, ("files", "restart")),
            ("files", Qt.Key.Key_Delete, ("files", "remove")),
            ("jira", Qt.Key.Key_R, None),
        ],
    )
    async def test_keys(
        self, page: ServersPage, recorder: Recorder, name: str, key: Qt.Key, asked: tuple[str, str] | None
    ) -> None:
        page.show_server(name)
        QTest.keyClick(page.list.view, key)
        assert recorder.asked == ([asked] if asked else [])

    async def test_l_asks_for_the_log(self, page: ServersPage, recorder: Recorder) -> None:
        spy = QSignalSpy(recorder.logRequested)
        page.show_server("files")
        QTest.keyClick(page.list.view, Qt.Key.Key_L)
        assert spy.count() == 1
        assert spy.at(0) == ["files"]

    async def test_sign_in_is_asked_for(self, page: ServersPage, recorder: Recorder) -> None:
        spy = QSignalSpy(recorder.signInRequested)
        QTest.mouseClick(page.list.view.viewport(), LEFT, pos=button_of(page, "hub"))
        assert spy.count() == 1

    async def test_the_chosen_server_stays_chosen_when_the_order_changes(
        self, page: ServersPage, link: HandLink
    ) -> None:
        page.show_server("jira")
        link.say("server", server_view("jira", State.FAILED, reason="Gone."))
        await until(lambda: names(page) == ["hub", "jira", "files"])
        assert page.list.current == "jira"
        assert "Gone." in visible_text(page.detail)

    async def test_another_one_is_chosen_when_the_chosen_one_goes(self, page: ServersPage, link: HandLink) -> None:
        page.show_server("files")
        link.say("server-removed", {"name": "files"})
        assert page.list.current in ("hub", "jira")
        assert page.detail.server == page.list.current

    async def test_a_server_that_is_not_there_yet_is_chosen_when_it_comes(
        self, page: ServersPage, link: HandLink
    ) -> None:
        page.show_server("new")
        assert page.list.current == "hub"
        link.say("server", server_view("new", State.STARTING))
        await until(lambda: page.list.current == "new")
        assert page.detail.server == "new"

    @pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard", extend=True)
    async def test_menu(self, page: ServersPage, recorder: Recorder) -> None:
        page.show_server("files")
        event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0))
        page.list.view.contextMenuEvent(event)
        menu = page.list.view.findChildren(QMenu)[-1]
        texts = {action.text(): action for action in menu.actions() if action.text()}
        assert list(texts) == [
            "Stop",
            "Restart",
            "Reset restart counter",
            "Disable",
            "Check health",
            "Refresh",
            "Show log",
            "Edit…",
            "Duplicate…",
            "Copy VS Code config for this server",
            "Remove",
        ]
        assert not texts["Reset restart counter"].isEnabled(), "it has not failed"
        texts["Restart"].trigger()
        assert recorder.asked == [("files", "restart")]
        menu.close()

    @pytest.mark.qt_log_ignore("This plugin does not support grabbing the keyboard", extend=True)
    async def test_failures_are_forgotten_by_hand(self, page: ServersPage, link: HandLink, recorder: Recorder) -> None:
        link.say("server", server_view("files", attempt=3, max_attempts=5))
        page.show_server("files")
        page.list.view.contextMenuEvent(
            QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, QPoint(0, 0), QPoint(0, 0))
        )
        menu = page.list.view.findChildren(QMenu)[-1]
        next(action for action in menu.actions() if action.text() == "Reset restart counter").trigger()
        assert recorder.asked == [("files", "reset")]
        menu.close()


class TestWithoutEngine:
    async def test_buttons_of_rows_are_painted_as_disabled(self, page: ServersPage, link: HandLink) -> None:
        viewport, view = page.list.view.viewport(), page.list.view
        row = view.button_rect(view.model().index(names(page).index("jira"), 0))
        before = viewport.grab(row).toImage()
        link.disconnect_by_hand()
        assert viewport.grab(row).toImage() != before


class TestSearch:
    def search(self, page: ServersPage) -> QLineEdit:
        return next(field for field in page.list.findChildren(QLineEdit) if field.accessibleName() == "Search servers")

    async def test_it_narrows_and_says_when_nothing_is_left(self, page: ServersPage) -> None:
        self.search(page).setText("ji")
        assert names(page) == ["jira"]
        self.search(page).setText("nothing")
        assert "Nothing found" in visible_text(page.list)
        assert page.detail.server == "jira", "what is shown stays"
        QTest.mouseClick(shown_button(page.list, "Clear search"), LEFT)
        assert names(page) == ["hub", "files", "jira"]
        assert page.list.current == "jira"

    @pytest.mark.parametrize("key", ["Ctrl+F", "/"])
    async def test_keys_lead_to_it(self, page: ServersPage, key: str) -> None:
        page.activateWindow()
        page.list.view.setFocus()
        await until(page.list.view.hasFocus)
        if key == "/":
            QTest.keyClick(page.list.view, Qt.Key.Key_Slash)
        else:
            QTest.keyClick(page.list.view, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
        assert self.search(page).hasFocus()
        self.search(page).setText("ji")
        QTest.keyClick(self.search(page), Qt.Key.Key_Escape)
        assert self.search(page).text() == ""

    async def test_asking_for_a_server_clears_a_search_that_hides_it(self, page: ServersPage) -> None:
        self.search(page).setText("ji")
        page.show_server("files", ServerDetail.CONFIGURATION)
        assert page.list.current == "files"
        assert "form of files" in visible_text(page.detail)


class TestStates:
    async def test_no_servers(self, page: ServersPage, link: HandLink, recorder: Recorder) -> None:
        for name in ("files", "hub", "jira"):
            link.say("server-removed", {"name": name})
        assert "No servers yet" in visible_text(page)
        assert not page.detail.isVisible()
        spy = QSignalSpy(recorder.addRequested)
        for button in page.findChildren(QPushButton):
            if button.isVisible() and button.text() == "Add server…":
                QTest.mouseClick(button, LEFT)
        assert spy.count() == 1, "it is offered once"
        link.say("server", server_view("new"))
        await until(page.detail.isVisible)
        assert page.detail.server == "new"

    async def test_without_an_engine_the_last_state_is_shown_and_nothing_can_be_done(
        self, page: ServersPage, link: HandLink, recorder: Recorder
    ) -> None:
        link.disconnect_by_hand()
        assert names(page) == ["hub", "files", "jira"]
        QTest.mouseClick(page.list.view.viewport(), LEFT, pos=button_of(page, "files"))
        page.show_server("files")
        QTest.keyClick(page.list.view, Qt.Key.Key_S)
        assert recorder.asked == []
        assert not shown_button(page.detail, "Stop").isEnabled()
        link.connect_by_hand(*link.servers.values())
        assert shown_button(page.detail, "Stop").isEnabled()

    async def test_before_the_first_connection(
        self, link: HandLink, recorder: Recorder, theme: Theme, icons: Icons, settings: QSettings
    ) -> None:
        page = ServersPage(link, recorder, theme, icons, settings, lambda _name: QWidget())
        page.show()
        await until(page.isVisible)
        assert "Waiting for the engine" in visible_text(page)
        page.hide()
        page.deleteLater()

    async def test_rows_are_painted_in_the_colours_of_the_theme(self, page: ServersPage, theme: Theme) -> None:
        view = page.list.view

        def lightness() -> float:
            picture = view.grab().toImage()
            return picture.pixelColor(picture.width() // 2, picture.height() - 10).lightnessF()

        theme.set_choice(ThemeChoice.LIGHT)
        await until(lambda: lightness() > 0.9)
        theme.set_choice(ThemeChoice.DARK)
        await until(lambda: lightness() < 0.3)

    async def test_a_screen_reader_finds_list_and_rows(self, page: ServersPage) -> None:
        found = QAccessible.queryAccessibleInterface(page.list.view)
        assert found.text(QAccessible.Text.Name) == "Servers"
        rows = [found.child(place).text(QAccessible.Text.Name) for place in range(found.childCount())]
        assert rows == [
            "hub, Needs sign-in, HTTP",
            "files, Ready, stdio, 14 tools",
            "jira, Stopped, stdio, 5 tools (cached)",
        ]

    async def test_the_division_of_the_room_comes_back(
        self,
        page: ServersPage,
        link: HandLink,
        recorder: Recorder,
        theme: Theme,
        icons: Icons,
        settings: QSettings,
    ) -> None:
        page.split.moveSplitter(300, 1)
        again = ServersPage(link, recorder, theme, icons, settings, lambda _name: QWidget())
        again.resize(900, 600)
        again.show()
        await until(again.isVisible)
        assert again.split.sizes() == page.split.sizes()
        again.hide()
        again.deleteLater()


class TestTime:
    async def test_nothing_ticks_while_nobody_looks(self, page: ServersPage) -> None:
        page.hide()
        assert [timer for timer in page.findChildren(QTimer) if timer.isActive() and not timer.isSingleShot()] == []

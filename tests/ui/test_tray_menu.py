"""The tray's menu: what stands in it, what a click does, and that it holds still while it is open."""

from collections.abc import Iterator

import pytest
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QMenu

from callboard.core.health import Severity, State
from callboard.system.resources import resource
from callboard.ui.actions import ServerActions
from callboard.ui.theme import Theme
from callboard.ui.tray_icons import TrayIcons, TrayState
from callboard.ui.tray_menu import DIRECT_SERVERS, RECENT_SLOTS, TrayMenu
from tests.ui.conftest import HandLink, call_view, engine_view, server_view, until


@pytest.fixture
def tray_menu(link: HandLink, actions: ServerActions, theme: Theme) -> Iterator[TrayMenu]:
    tray_menu = TrayMenu(link, actions, theme)
    yield tray_menu
    tray_menu.close()


def entries(menu: QMenu) -> list[str]:
    """The texts one sees, from the top."""
    return [each.text().replace("&&", "&") for each in menu.actions() if each.isVisible() and not each.isSeparator()]


def entry(menu: QMenu, start: str) -> QAction:
    return next(each for each in menu.actions() if each.isVisible() and each.text().startswith(start))


def submenu(menu: QMenu, start: str) -> QMenu:
    found = entry(menu, start).menu()
    assert isinstance(found, QMenu)
    return found


def test_without_an_engine_it_says_so_and_offers_to_start_one(tray_menu: TrayMenu) -> None:
    asked: list[bool] = []
    tray_menu.startEngineRequested.connect(lambda: asked.append(True))
    assert entries(tray_menu.menu)[:2] == ["Starting the engine…", "Start the engine"]
    assert not entry(tray_menu.menu, "Copy VS Code config").isEnabled()
    entry(tray_menu.menu, "Start the engine").trigger()
    assert asked == [True]


def test_everything_is_there(tray_menu: TrayMenu, link: HandLink) -> None:
    link.connect_by_hand(
        server_view("files"),
        server_view("github", State.NEEDS_SIGN_IN, reason="The server answered 401: a token is needed."),
        calls=[call_view(1)],
    )
    tray_menu.refresh()
    assert entries(tray_menu.menu) == [
        "1 running · 1 needs attention",
        "github: The server answered 401: a token is needed – Sign in…",  # noqa: RUF001
        "files · Ready",
        "github · Needs sign-in",
        "Recent calls",
        "Copy VS Code config",
        "Copy gateway URL",
        "Open Callboard",
        "Quit",
    ]
    assert entries(submenu(tray_menu.menu, "files")) == ["Ready", "Stop", "Restart", "Show log"]


def test_states_are_told_by_words_and_shapes(tray_menu: TrayMenu, link: HandLink) -> None:
    states = [State.READY, State.FAILED, State.NEEDS_CONFIG, State.STOPPED, State.STARTING]
    link.connect_by_hand(*(server_view(state, state) for state in states))
    tray_menu.refresh()
    images = []
    for state in states:
        images.append(submenu(tray_menu.menu, f"{state} ·").menuAction().icon().pixmap(16, 16).toImage())
        for x in range(16):
            for y in range(16):  # shapes alone: the colour taken away
                alpha = images[-1].pixelColor(x, y).alpha()
                images[-1].setPixel(x, y, alpha << 24)
    assert all(images[i] != images[j] for i in range(len(images)) for j in range(i))


@pytest.mark.parametrize(
    ("state", "verb", "asked"),
    [
        (State.READY, "Stop", "/servers/a/stop"),
        (State.STOPPED, "Start", "/servers/a/start"),
        (State.FAILED, "Start", "/servers/a/start"),
        (State.DISABLED, "Enable", "/servers/a/enable"),
        (State.RESTARTING, "Stop", "/servers/a/stop"),
    ],
)
async def test_the_first_action_of_a_server_suits_its_state(
    tray_menu: TrayMenu, link: HandLink, state: State, verb: str, asked: str
) -> None:
    link.connect_by_hand(server_view("a", state))
    tray_menu.refresh()
    link.hand.answers[asked] = server_view("a", State.STARTING)
    entry(submenu(tray_menu.menu, "a ·"), verb).trigger()
    await until(lambda: ("POST", asked, None) in link.hand.asked)


async def test_a_click_on_trouble_is_its_fix(tray_menu: TrayMenu, link: HandLink, actions: ServerActions) -> None:
    edited: list[str] = []
    actions.editRequested.connect(edited.append)
    link.connect_by_hand(server_view("bad", State.FAILED, reason="It exited."), server_view("x", State.NEEDS_CONFIG))
    link.hand.answers["/servers/bad/retry"] = server_view("bad", State.STARTING)
    tray_menu.refresh()
    entry(tray_menu.menu, "bad:").trigger()
    await until(lambda: ("POST", "/servers/bad/retry", None) in link.hand.asked)
    entry(tray_menu.menu, "x:").trigger()
    assert edited == ["x"]


def test_a_call_opens_in_the_window(tray_menu: TrayMenu, link: HandLink, actions: ServerActions) -> None:
    opened: list[int] = []
    actions.callRequested.connect(opened.append)
    link.connect_by_hand(calls=[call_view(number, tool=f"tool{number}") for number in range(9)])
    tray_menu.refresh()
    recent = submenu(tray_menu.menu, "Recent calls")
    shown = entries(recent)
    assert len(shown) == RECENT_SLOTS
    assert shown[0].startswith("local-tools.tool8 · Completed · ")
    entry(recent, "local-tools.tool7").trigger()
    assert opened == [7]


def test_no_calls_yet(tray_menu: TrayMenu, link: HandLink) -> None:
    link.connect_by_hand()
    tray_menu.refresh()
    assert entries(submenu(tray_menu.menu, "Recent calls")) == ["No calls yet"]


async def test_the_address_is_copied(tray_menu: TrayMenu, link: HandLink) -> None:
    link.connect_by_hand(engine=engine_view(mcp_url="http://127.0.0.1:4499/mcp"))
    tray_menu.refresh()
    entry(tray_menu.menu, "Copy gateway URL").trigger()
    assert QGuiApplication.clipboard().text() == "http://127.0.0.1:4499/mcp"


def test_names_with_ampersands_keep_them(tray_menu: TrayMenu, link: HandLink) -> None:
    link.connect_by_hand(server_view("a", display_name="Q&A"))
    tray_menu.refresh()
    assert "Q&A · Ready" in entries(tray_menu.menu)


def test_many_servers_overflow_into_a_menu(tray_menu: TrayMenu, link: HandLink) -> None:
    link.connect_by_hand(*(server_view(f"s{number}") for number in range(DIRECT_SERVERS + 3)))
    tray_menu.refresh()
    direct = [text for text in entries(tray_menu.menu) if text.endswith("Ready")]
    assert len(direct) == DIRECT_SERVERS
    more = entries(submenu(tray_menu.menu, "More servers"))
    assert [text.split(" ")[0] for text in more] == [f"s{DIRECT_SERVERS + number}" for number in range(3)]


class TestWhileOpen:
    @pytest.fixture
    def opened(self, tray_menu: TrayMenu, link: HandLink) -> TrayMenu:
        link.connect_by_hand(server_view("a"), server_view("b"))
        tray_menu.refresh()
        tray_menu.menu.aboutToShow.emit()
        return tray_menu

    def test_texts_change_in_place(self, opened: TrayMenu, link: HandLink) -> None:
        before = opened.menu.actions()
        link.say("server", server_view("a", State.STOPPED))
        opened.refresh()
        assert opened.menu.actions() == before
        assert entry(opened.menu, "a ·").text() == "a · Stopped"
        assert entries(opened.menu)[0] == "1 running"

    def test_nothing_appears_under_the_mouse(self, opened: TrayMenu, link: HandLink) -> None:
        count = len(entries(opened.menu))
        link.say("server", server_view("a", State.FAILED, reason="It exited."))
        link.say("server", server_view("new"))
        opened.refresh()
        assert len(entries(opened.menu)) == count
        opened.menu.aboutToHide.emit()
        assert len(entries(opened.menu)) == count + 2

    def test_a_click_after_a_server_is_gone_does_nothing(
        self, opened: TrayMenu, link: HandLink, actions: ServerActions
    ) -> None:
        link.say("server", server_view("a", State.NEEDS_CONFIG))
        opened.menu.aboutToHide.emit()
        trouble = entry(opened.menu, "a: ")
        opened.menu.aboutToShow.emit()
        edited: list[str] = []
        actions.editRequested.connect(edited.append)
        link.say("server-removed", {"name": "a"})
        trouble.trigger()
        assert edited == []


class TestIcons:
    @pytest.mark.parametrize("dark", [False, True])
    def test_every_state_differs_by_shape(self, theme: Theme, dark: bool) -> None:
        icons = TrayIcons(resource("app-icon", "callboard-symbolic.svg"))
        shapes = []
        for state in TrayState:
            image = icons.icon(state, dark_panel=dark).pixmap(22, 22).toImage()
            shapes.append([image.pixelColor(x, y).alpha() > 100 for x in range(22) for y in range(22)])
        for one in range(len(shapes)):
            for other in range(one):
                differing = sum(a != b for a, b in zip(shapes[one], shapes[other], strict=True))
                assert differing > 15

    def test_sizes_that_trays_ask_for_are_drawn_sharply(self, theme: Theme) -> None:
        icon = TrayIcons(resource("app-icon", "callboard-symbolic.svg")).icon(TrayState.FINE, dark_panel=True)
        assert {(size.width(), size.height()) for size in icon.availableSizes()} >= {(16, 16), (22, 22), (24, 24)}


def test_severities_have_a_word_each() -> None:
    from callboard.ui.words import severity_word

    assert len({severity_word(severity) for severity in Severity}) == len(Severity)

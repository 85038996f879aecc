"""The dialog that signs in: what it shows, what it asks, and that it opens no browser by itself."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QUrl
from PySide6.QtGui import QGuiApplication

from callboard.api.sign_in_schema import SignInRequest, SignInStep, SignInView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui.icons import Icons
from callboard.ui.sign_in import SignInDialog
from callboard.ui.theme import Theme, ThemeChoice
from tests.ui.conftest import NOW, HandLink, server_view, until

PATH = "/servers/hub/sign-in"
ASKED = "https://as.example.com/authorize?client_id=c&state=abc"


def request(url: str, **fields: Any) -> SignInRequest:
    known: dict[str, Any] = {"method": "GET", "status": 200, "duration_ms": 12.0}
    return SignInRequest(url=url, **(known | fields))


def sign_in_view(state: Any = "none", **fields: Any) -> SignInView:
    return SignInView(server="hub", state=state, redirect_uri="http://127.0.0.1:4470/oauth/callback", **fields)


WAITING = sign_in_view(
    "waiting",
    url=ASKED,
    issuer="https://as.example.com",
    client_id="client-1",
    steps=[
        SignInStep(
            name="discovery",
            state="done",
            note="https://as.example.com",
            requests=[
                request("https://hub.example.com/mcp", method="POST", status=401),
                request("https://hub.example.com/.well-known/x", received='{\n  "resource": "r"\n}'),
            ],
        ),
        SignInStep(name="registration", state="done", note="registered as client-1"),
        SignInStep(name="authorisation", state="running"),
        SignInStep(name="token"),
    ],
)
DONE = sign_in_view("signed-in", scopes=["read", "write"], expires_at=NOW, renewable=True, shared_with=["two"])


class Desk:
    """The dialog, and the addresses that it opened."""

    def __init__(self, link: HandLink, theme: Theme, icons: Icons) -> None:
        self.opened: list[str] = []
        self.opens = True
        self.link = link
        link.hand.answers[PATH] = sign_in_view()
        link.connect_by_hand(server_view("hub", State.NEEDS_SIGN_IN, kind="remote", sign_in="none"))
        self.dialog = SignInDialog(link, theme, icons, "hub", self._open)
        self.dialog.show()

    def _open(self, url: QUrl) -> bool:
        self.opened.append(url.toString())
        return self.opens

    def engine_says(self, view: SignInView | CallboardError) -> None:
        """From now on the engine answers this, and tells that something changed."""
        self.link.hand.answers[PATH] = view
        self.link.say("server", server_view("hub", State.NEEDS_SIGN_IN, kind="remote"))

    async def begin(self) -> None:
        self.link.hand.answers[PATH] = WAITING
        self.dialog.primary.click()
        await until(lambda: self.dialog.view.state == "waiting")

    def rows(self) -> list[list[str]]:
        """Each step and what stands below it."""
        tree, found = self.dialog.steps.tree, []
        for place in range(tree.topLevelItemCount()):
            item = tree.topLevelItem(place)
            assert item is not None
            found.append(
                [f"{item.text(0)}: {item.text(1)}"] + [item.child(n).text(0) for n in range(item.childCount())]
            )
        return found


@pytest.fixture
async def desk(link: HandLink, theme: Theme, icons: Icons) -> AsyncIterator[Desk]:
    made = Desk(link, theme, icons)
    yield made
    made.dialog.close()
    QCoreApplication.sendPostedEvents(made.dialog, QEvent.Type.DeferredDelete)  # here, and not in another thread


async def test_it_opens_no_browser_until_the_button_is_pressed(desk: Desk) -> None:
    await until(lambda: ("GET", PATH, None) in desk.link.hand.asked)
    desk.engine_says(WAITING)
    await until(lambda: desk.dialog.view.state == "waiting")
    assert desk.opened == []
    assert [verb for verb, *_ in desk.link.hand.asked if verb != "GET"] == []


async def test_the_button_signs_in_and_opens_what_the_engine_names(desk: Desk) -> None:
    assert desk.dialog.primary.text() == "Sign in"
    await desk.begin()
    assert ("POST", PATH, None) in desk.link.hand.asked
    assert desk.opened == [ASKED]
    assert desk.dialog.primary.text() == "Cancel sign-in"
    assert desk.dialog.facts.value("redirect") == "http://127.0.0.1:4470/oauth/callback"
    desk.dialog.again.click()
    assert desk.opened == [ASKED, ASKED]
    desk.dialog.copy.click()
    assert QGuiApplication.clipboard().text() == ASKED


async def test_the_steps_and_their_requests_are_shown(desk: Desk) -> None:
    await desk.begin()
    assert desk.rows() == [
        [
            "Find the sign-in server: done",
            "https://as.example.com",
            "POST https://hub.example.com/mcp",
            "GET https://hub.example.com/.well-known/x",
        ],
        ["Say who we are: done", "registered as client-1"],
        ["Ask you in the browser: at work"],
        ["Get the token: not yet"],
    ]
    tree = desk.dialog.steps.tree
    first = tree.topLevelItem(0)
    assert first is not None
    tree.setCurrentItem(first.child(2))
    assert desk.dialog.steps.details.toPlainText() == (
        'GET https://hub.example.com/.well-known/x\n\nReceived (200):\n\n{\n  "resource": "r"\n}'
    )
    desk.engine_says(sign_in_view("running", steps=WAITING.steps))
    await until(lambda: desk.dialog.view.state == "running")
    assert desk.dialog.steps.details.isVisible()  # what was chosen stays chosen


async def test_when_it_is_done_the_dialog_says_what_there_is(desk: Desk) -> None:
    await desk.begin()
    desk.engine_says(DONE)
    await until(lambda: desk.dialog.view.state == "signed-in")
    assert desk.dialog.pill.accessibleName() == "Signed in"
    assert desk.dialog.facts.value("scopes") == "read write"
    assert desk.dialog.facts.value("expires").endswith("renewed by itself")
    assert desk.dialog.facts.value("shared") == "two"
    assert desk.dialog.out.isVisible()
    desk.link.hand.answers["/servers/hub/sign-out"] = sign_in_view()
    desk.dialog.out.click()
    await until(lambda: desk.dialog.view.state == "none")


async def test_it_can_be_cancelled(desk: Desk) -> None:
    await desk.begin()
    desk.link.hand.answers[PATH] = sign_in_view("failed", message="The sign-in was cancelled.", fix="Sign in again.")
    desk.dialog.primary.click()
    await until(lambda: desk.dialog.view.state == "failed")
    assert ("DELETE", PATH, None) in desk.link.hand.asked
    assert desk.dialog.reason.isVisible()
    assert desk.dialog.reason.accessibleName() == "The sign-in was cancelled. Sign in again."
    assert desk.dialog.primary.text() == "Sign in"


async def test_an_address_from_another_computer_is_handed_over(desk: Desk) -> None:
    assert not desk.dialog.pasted.isVisible()
    await desk.begin()
    desk.link.hand.answers[f"{PATH}/answer"] = sign_in_view("running")
    assert not desk.dialog.use.isEnabled()
    desk.dialog.pasted.setText("  http://127.0.0.1:4470/oauth/callback?code=x&state=y ")
    desk.dialog.use.click()
    await until(lambda: desk.dialog.view.state == "running")
    (body,) = [body for _, path, body in desk.link.hand.asked if path.endswith("/answer")]
    assert body.answer == "http://127.0.0.1:4470/oauth/callback?code=x&state=y"
    assert desk.dialog.pasted.text() == ""


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", ""])
async def test_only_addresses_of_the_web_are_opened(desk: Desk, url: str) -> None:
    desk.link.hand.answers[PATH] = sign_in_view("waiting", url=url)
    desk.dialog.sign_in()
    await until(lambda: desk.dialog.view.state == "waiting")
    assert desk.opened == []
    assert desk.dialog.reason.accessibleName().startswith("The browser could not be opened.")


async def test_a_browser_that_cannot_be_opened_is_said(desk: Desk) -> None:
    desk.opens = False
    await desk.begin()
    assert desk.dialog.reason.accessibleName() == (
        "The browser could not be opened. Copy the address, and open it yourself."
    )


async def test_what_the_engine_refuses_is_said(desk: Desk) -> None:
    desk.link.hand.answers[PATH] = CallboardError("sign-in-unavailable", "hub does not sign in with OAuth.")
    desk.dialog.sign_in()
    await until(lambda: desk.dialog.reason.isVisible())
    assert desk.dialog.reason.accessibleName().startswith("hub does not sign in with OAuth.")


async def test_without_an_engine_there_is_nothing_to_press(desk: Desk) -> None:
    desk.link.disconnect_by_hand()
    assert not desk.dialog.primary.isEnabled()
    desk.link.connect_by_hand(server_view("hub", State.NEEDS_SIGN_IN))
    assert desk.dialog.primary.isEnabled()


async def test_the_marks_follow_the_theme(desk: Desk, theme: Theme) -> None:
    await desk.begin()
    item = desk.dialog.steps.tree.topLevelItem(0)
    assert item is not None
    theme.set_choice(ThemeChoice.LIGHT)
    light = item.icon(0).pixmap(14, 14).toImage()
    theme.set_choice(ThemeChoice.DARK)
    assert item.icon(0).pixmap(14, 14).toImage() != light

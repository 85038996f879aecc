"""The page of clients: it shows what the roster says, writes what the person changes, and keeps begun edits."""

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QSettings, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox, QPushButton

from callboard.api.policy_schema import (
    ApprovalView,
    ClientPolicyView,
    ItemEdit,
    PolicyView,
    ProfileView,
    Revoked,
)
from callboard.api.schema import RosterEdit, TokenView
from callboard.core.errors import CallboardError
from callboard.ui.actions import ServerActions
from callboard.ui.clients.fields import ProblemLabel
from callboard.ui.clients.page import CLIENT, PROFILE, ClientsPage
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme, ThemeChoice
from tests.ui.conftest import NOW, HandLink, server_view, until

OWN = {"policy": {"allow": ["github.*"], "ask": ["destructive", "github.merge_*"]}, "profile": "office", "x": 1}
WORK = {"servers": ["files"], "deny": ["files.rm"]}
APPROVALS = [
    ApprovalView(client="vscode", kind="tool", server="github", name="merge", at=NOW),
    ApprovalView(client="other", kind="tool", server="files", name="move", at=NOW),
]


def policy_view(revision: str = "1", **fields: Any) -> PolicyView:
    known: dict[str, Any] = {
        "policy": {"deny": ["*.rm"], "ask_seconds": 30.0},
        "clients": [
            ClientPolicyView(id="vscode", name="VS Code", entry=OWN, has_policy=True, profile="office", approvals=1),
            ClientPolicyView(id="cursor", name="Cursor", last_seen=NOW),
        ],
        "profiles": [
            ProfileView(
                name="office", entry={"servers": ["files"], "deny": ["files.rm"]}, endpoint="http://x", clients=[]
            )
        ],
    }
    return PolicyView(revision=revision, **(known | fields))


@pytest.fixture
async def page(
    link: HandLink, actions: ServerActions, theme: Theme, icons: Icons, settings: QSettings
) -> Iterator[ClientsPage]:
    link.hand.answers |= {
        "/policy": policy_view(),
        "/policy/approvals": APPROVALS,
        **dict.fromkeys(("/clients/vscode", "/clients/cursor", "/profiles/office"), RosterEdit(revision="2", undo="")),
    }
    link.connect_by_hand(server_view("files"), server_view("github"))
    page = ClientsPage(link, actions, theme, icons, settings)
    page.show()
    await until(lambda: page.list.count() > 3, "the list", seconds=30)
    yield page
    page.hide()
    page.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def asked(link: HandLink, method: str) -> list[tuple[str, Any]]:
    return [(path, body) for verb, path, body in link.hand.asked if verb == method]


async def test_it_lists_clients_and_profiles(page: ClientsPage) -> None:
    rows = [page.list.item(row).text() for row in range(page.list.count())]
    assert rows == ["Clients", "Default rules", "VS Code", "Cursor", "Profiles", "office"]
    assert page.chosen == (CLIENT, "")
    assert page.client.rules.deny.patterns() == ["*.rm"]
    assert page.client.rules.allow.patterns() == ["*"]
    assert not page.client.foot.save.isEnabled()
    page.list.setCurrentRow(2)
    assert page.chosen == (CLIENT, "vscode")
    assert page.client.own.isChecked()
    assert page.client.rules.allow.patterns() == ["github.*"]
    assert page.client.rules.ask.patterns() == ["github.merge_*"]
    assert page.client.profile.currentData() == "office"
    page.list.setCurrentRow(5)
    assert page.chosen == (PROFILE, "office")
    checked = {page.profile.servers.item(row).text(): page.profile.servers.item(row).checkState() for row in range(2)}
    assert checked == {"files": Qt.CheckState.Checked, "github": Qt.CheckState.Unchecked}


async def test_what_is_saved_is_what_was_changed_and_the_rest_as_it_was(link: HandLink, page: ClientsPage) -> None:
    page.choose(CLIENT, "vscode")
    page.client.rules.deny.set_patterns(["github.delete_*"])
    page.client.bound.setValue(8000)
    assert page.client.foot.save.isEnabled()
    page.client.foot.save.click()
    await until(lambda: asked(link, "PUT"), seconds=30)
    entry = {
        "policy": {"allow": ["github.*"], "deny": ["github.delete_*"], "ask": ["destructive", "github.merge_*"]},
        "profile": "office",
        "max_result_chars": 8000,
        "x": 1,
    }
    assert asked(link, "PUT") == [("/clients/vscode", ItemEdit(entry=entry, revision="1"))]
    await until(lambda: not page.client.is_changed, seconds=30)
    assert not page.client.foot.save.isEnabled()


async def test_the_default_keeps_what_the_form_does_not_show(link: HandLink, page: ClientsPage) -> None:
    link.hand.answers["/policy"] = policy_view()
    page.client.rules.read_only.setChecked(True)
    page.client.foot.save.click()
    await until(lambda: asked(link, "PUT"), seconds=30)
    ((path, body),) = asked(link, "PUT")
    assert (path, body.entry) == ("/policy", {"ask_seconds": 30.0, "deny": ["*.rm"], "read_only": True})


async def test_own_rules_begin_as_those_that_held_so_far(link: HandLink, page: ClientsPage) -> None:
    page.choose(CLIENT, "cursor")
    assert not page.client.rules.isEnabled()
    page.client.own.setChecked(True)
    assert page.client.rules.isEnabled()
    page.client.foot.save.click()
    await until(lambda: asked(link, "PUT"), seconds=30)
    assert asked(link, "PUT")[0][1].entry == {"policy": {"allow": ["*"], "deny": ["*.rm"]}}


async def test_a_mistake_is_told_below_the_form(link: HandLink, page: ClientsPage) -> None:
    link.hand.answers["/clients/vscode"] = CallboardError("entry-invalid", "policy.allow.0: Must be SERVER.NAME.")
    page.choose(CLIENT, "vscode")
    page.client.rules.allow.set_patterns(["github"])
    page.client.foot.save.click()
    await until(lambda: page.client.foot.problem.text(), seconds=30)
    assert "Must be SERVER.NAME" in page.client.foot.problem.text()
    assert page.client.foot.save.isEnabled()


async def test_a_field_that_is_wrong_is_named_as_on_the_screen_and_marked(link: HandLink, page: ClientsPage) -> None:
    problem = {"field": "policy.deny.1", "message": "Must be SERVER.NAME."}
    link.hand.answers["/clients/vscode"] = CallboardError(
        "entry-invalid", "policy.deny.1: Must be SERVER.NAME.", data={"problems": [problem]}
    )
    page.choose(CLIENT, "vscode")
    page.client.rules.deny.set_patterns(["github.rm", "files"])
    page.client.foot.save.click()
    await until(lambda: page.client.foot.problem.text(), seconds=30)
    assert page.client.foot.problem.text() == "Not saved. Correct: Deny"
    assert page.client.rules.deny.accessibleDescription() == "files: Must be SERVER.NAME."
    assert [each.text() for each in page.client.rules.findChildren(ProblemLabel) if each.isVisible()] == [
        "files: Must be SERVER.NAME."
    ]
    page.client.foot.revert.click()
    await until(lambda: not page.client.foot.problem.text(), seconds=30)
    assert not any(each.isVisible() for each in page.client.rules.findChildren(ProblemLabel))


async def test_a_profile_says_what_is_wrong_with_its_name(link: HandLink, page: ClientsPage) -> None:
    problem = {"field": "name", "message": "Must be 1 to 64 letters (a-z), digits, - and _."}
    link.hand.answers["/profiles/X"] = CallboardError("entry-invalid", "name: …", data={"problems": [problem]})
    page.add.click()
    page.profile.name.setText("X")
    page.profile.foot.save.click()
    await until(lambda: page.profile.foot.problem.text(), seconds=30)
    assert page.profile.foot.problem.text() == "Not saved. Correct: Name"
    assert page.profile.name.accessibleDescription() == problem["message"]


async def test_begun_edits_stay_when_the_rules_change_elsewhere(link: HandLink, page: ClientsPage) -> None:
    page.choose(CLIENT, "vscode")
    page.client.rules.allow.set_patterns(["github.*", "files.*"])
    link.hand.answers["/policy"] = policy_view("2", profiles=[])
    link.say("policy", {})
    await until(lambda: page.list.count() == 5, "the new list", seconds=30)
    assert page.client.rules.allow.patterns() == ["github.*", "files.*"]
    page.client.foot.revert.click()
    await until(lambda: page.client.rules.allow.patterns() == ["github.*"], seconds=30)


async def test_answers_for_good_can_be_taken_back(link: HandLink, page: ClientsPage) -> None:
    link.hand.answers["/policy/approvals"] = APPROVALS
    page.choose(CLIENT, "vscode")

    def buttons() -> list[QPushButton]:
        return [each for each in page.client.approvals.findChildren(QPushButton) if each.isVisible()]

    await until(buttons, seconds=30)
    revoke = buttons()
    assert [each.accessibleName() for each in revoke] == ["Ask again before github.merge"]
    link.hand.answers["/policy/approvals"] = Revoked(count=1)
    revoke[0].click()
    await until(lambda: asked(link, "DELETE"), seconds=30)
    assert asked(link, "DELETE")[0][0] == "/policy/approvals?client=vscode&server=github&name=merge&kind=tool"


async def test_tokens_are_copied_and_replaced_after_a_question(
    link: HandLink, actions: ServerActions, page: ClientsPage
) -> None:
    said: list[str] = []
    actions.said.connect(said.append)
    link.hand.answers |= {"/token/vscode": TokenView(token="cb_1"), "/clients/vscode/rotate": TokenView(token="cb_2")}
    assert not page.client.copy_token.isVisible()
    page.choose(CLIENT, "vscode")
    page.client.copy_token.click()
    await until(lambda: said == ["Token of VS Code copied"], seconds=30)
    assert QGuiApplication.clipboard().text() == "cb_1"
    page.client.new_token.click()
    (box,) = page.client.findChildren(QMessageBox)
    assert asked(link, "POST") == []
    next(each for each in box.buttons() if each.text() == "Replace").click()
    await until(lambda: len(said) == 2, seconds=30)
    assert QGuiApplication.clipboard().text() == "cb_2"
    await until(lambda: not page.client.findChildren(QMessageBox), seconds=30)


async def test_a_profile_is_added_and_removed(link: HandLink, page: ClientsPage) -> None:
    link.hand.answers["/profiles/new"] = RosterEdit(revision="2", undo="")
    page.add.click()
    assert page.chosen == (PROFILE, "")
    page.profile.servers.item(1).setCheckState(Qt.CheckState.Checked)
    page.profile.foot.save.click()
    assert page.profile.foot.problem.text() == "The profile needs a name."
    page.profile.name.setText("new")
    page.profile.tools.set_patterns(["files.read"])
    page.profile.foot.save.click()
    await until(lambda: asked(link, "PUT"), seconds=30)
    entry = {"servers": ["github"], "tools": ["files.read"]}
    assert asked(link, "PUT") == [("/profiles/new", ItemEdit(entry=entry, revision="1"))]
    page.choose(PROFILE, "office")
    page.profile.remove.click()
    await until(lambda: asked(link, "DELETE"), seconds=30)
    assert asked(link, "DELETE")[0][0].startswith("/profiles/office")


async def test_it_waits_for_an_engine_and_follows_the_theme(
    link: HandLink, actions: ServerActions, theme: Theme, icons: Icons, settings: QSettings
) -> None:
    page = ClientsPage(link, actions, theme, icons, settings)
    page.show()
    theme.set_choice(ThemeChoice.DARK)
    assert page.list.count() == 0
    link.hand.answers |= {"/policy": policy_view(), "/policy/approvals": []}
    link.connect_by_hand()
    await until(lambda: page.list.count() > 3, seconds=30)
    page.hide()
    page.deleteLater()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)

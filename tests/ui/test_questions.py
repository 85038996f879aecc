"""The question before a call: it comes up by itself, cannot be allowed by accident, and goes when it is over."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtGui import QKeyEvent

from callboard.api.policy_schema import Answer, QuestionView
from callboard.core.errors import CallboardError
from callboard.ui.actions import ServerActions
from callboard.ui.icons import Icons
from callboard.ui.notice_bar import NoticeBar
from callboard.ui.question_desk import NOTICE, QuestionDesk
from callboard.ui.question_dialog import QuestionDialog
from callboard.ui.theme import Theme
from callboard.ui.tray_menu import TrayMenu
from tests.ui.conftest import HandLink, until


def question(number: int, **fields: Any) -> QuestionView:
    known: dict[str, Any] = {
        "client": "vscode",
        "client_name": "VS Code",
        "program": "Visual Studio Code",
        "kind": "tool",
        "server": "files",
        "name": "delete",
        "reason": "declares that it may destroy something",
        "arguments": '{"path": "/tmp"}',
        "asked": time.time(),
        "expires": time.time() + 120,
    }
    return QuestionView(id=number, **(known | fields))


@pytest.fixture
def bar(theme: Theme, icons: Icons) -> Iterator[NoticeBar]:
    bar = NoticeBar(theme, icons)
    yield bar
    bar.hide()
    bar.deleteLater()


@pytest.fixture
def desk(link: HandLink, bar: NoticeBar, theme: Theme, icons: Icons) -> Iterator[QuestionDesk]:
    desk = QuestionDesk(link, bar, lambda: QuestionDialog(theme, icons))
    link.connect_by_hand()
    yield desk
    desk.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def ask(link: HandLink, *questions: QuestionView) -> None:
    link.say("questions", {"questions": msgspec.to_builtins(list(questions))})


def shown(desk: QuestionDesk) -> QuestionDialog:
    assert desk.dialog is not None
    return desk.dialog


async def test_a_question_comes_up_and_is_answered(link: HandLink, desk: QuestionDesk, bar: NoticeBar) -> None:
    link.hand.answers["/policy/questions/1"] = True
    assert desk.dialog is None
    ask(link, question(1))
    dialog = shown(desk)
    assert dialog.isVisible()
    assert dialog.title.text() == "May VS Code use files.delete?"
    assert "may destroy something" in dialog.reason.text()
    assert "Visual Studio Code" in dialog.who.text()
    assert "/tmp" in dialog.arguments.shown
    assert NOTICE in bar.keys
    assert not dialog.once.isEnabled()
    assert not dialog.always.isEnabled()
    assert dialog.deny.isEnabled()
    await until(dialog.once.isEnabled, "allowing", seconds=30)
    dialog.once.click()
    await until(lambda: link.hand.asked, seconds=30)
    assert link.hand.asked[-1] == ("POST", "/policy/questions/1", Answer(choice="once"))
    ask(link)
    assert not dialog.isVisible()
    assert bar.keys == []


async def test_enter_and_closing_allow_nothing(link: HandLink, desk: QuestionDesk) -> None:
    ask(link, question(1))
    dialog = shown(desk)
    await until(dialog.once.isEnabled, "allowing", seconds=30)
    assert not any(button.isDefault() or button.autoDefault() for button in (dialog.once, dialog.always, dialog.deny))
    dialog.arguments.setFocus()
    dialog.keyPressEvent(QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Return, Qt.KeyboardModifier.NoModifier))
    dialog.close()
    assert link.hand.asked == []
    desk.show()
    assert dialog.isVisible()


async def test_a_closed_question_does_not_come_up_again_but_the_next_one_does(
    link: HandLink, desk: QuestionDesk
) -> None:
    ask(link, question(1))
    dialog = shown(desk)
    dialog.close()
    ask(link, question(1), question(2))
    assert dialog.isVisible()
    assert dialog.question is not None
    assert dialog.question.id == 1
    assert dialog.more.text() == "1 more waiting"
    dialog.close()
    ask(link, question(2))
    assert not dialog.isVisible()


async def test_the_next_question_cannot_be_allowed_by_the_click_that_was_meant_for_the_last(
    link: HandLink, desk: QuestionDesk
) -> None:
    ask(link, question(1), question(2, name="wipe"))
    dialog = shown(desk)
    await until(dialog.once.isEnabled, "allowing", seconds=30)
    ask(link, question(2, name="wipe"))
    assert dialog.title.text() == "May VS Code use files.wipe?"
    assert not dialog.once.isEnabled()


async def test_what_is_not_shown_whole_is_said_and_not_allowed_for_good(link: HandLink, desk: QuestionDesk) -> None:
    ask(
        link,
        question(
            1,
            arguments='{"a": "\n[... 5000 characters are not shown ...]\n"}',
            arguments_cut=True,
            arguments_size=25_000,
        ),
    )
    dialog = shown(desk)
    assert dialog.cut.isVisible()
    assert "its arguments have 25,000 characters" in dialog.cut.accessibleName()
    await until(dialog.once.isEnabled, "allowing", seconds=30)
    assert not dialog.always.isEnabled()
    ask(link, question(2))
    assert not dialog.cut.isVisible()
    await until(dialog.always.isEnabled, "allowing", seconds=30)


async def test_arguments_that_look_like_a_result_are_shown_whole(link: HandLink, desk: QuestionDesk) -> None:
    ask(link, question(1, arguments='{"content": [{"type": "text", "text": "harmless"}], "command": "remove all"}'))
    assert "remove all" in shown(desk).arguments.shown


async def test_hostile_names_stay_text(link: HandLink, desk: QuestionDesk) -> None:
    ask(link, question(1, name="<b>safe</b>", program="<img src=x>" * 50))
    dialog = shown(desk)
    assert dialog.title.textFormat() == dialog.who.textFormat() == Qt.TextFormat.PlainText
    assert "<b>safe</b>" in dialog.title.text()
    assert len(dialog.who.text()) < 200
    ask(link, question(2, kind="resource", name="https://host/" + "x" * 480 + "/the-end"))
    assert len(dialog.title.text()) < 200
    assert "/the-end" in dialog.title.text()
    assert len(dialog.item.text()) > 480


async def test_an_answer_that_comes_too_late_is_no_trouble(link: HandLink, desk: QuestionDesk) -> None:
    failures: list[CallboardError] = []
    desk.failed.connect(failures.append)
    link.hand.answers["/policy/questions/1"] = CallboardError("question-over", "It is over.")
    ask(link, question(1))
    shown(desk).deny.click()
    await until(lambda: link.hand.asked, seconds=30)
    link.hand.answers["/policy/questions/1"] = CallboardError("internal", "It failed.")
    shown(desk).deny.click()
    await until(lambda: failures, seconds=30)
    assert [failure.code for failure in failures] == ["internal"]


async def test_a_lost_engine_takes_its_questions_along(link: HandLink, desk: QuestionDesk, bar: NoticeBar) -> None:
    ask(link, question(7))
    link.disconnect_by_hand()
    assert not shown(desk).isVisible()
    assert bar.keys == []
    link.connect_by_hand()
    ask(link, question(1))
    assert shown(desk).isVisible()


async def test_the_trays_menu_asks_too(link: HandLink, actions: ServerActions, theme: Theme) -> None:
    menu = TrayMenu(link, actions, theme)
    wanted: list[bool] = []
    menu.questionRequested.connect(lambda: wanted.append(True))
    link.connect_by_hand()
    ask(link, question(1))
    menu.refresh()
    entry = next(each for each in menu.menu.actions() if each.isVisible() and each.text().startswith("May VS Code"))
    entry.trigger()
    assert wanted == [True]
    ask(link)
    menu.refresh()
    assert not entry.isVisible()
    menu.close()

"""The question to the person before a call: who waits, what answers do, and what ends the waiting."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import ClientEntry, DefaultPolicy, Rules
from callboard.core.redact import Redactor
from callboard.engine.policy import questions as questions_module
from callboard.engine.policy.approvals import Approvals
from callboard.engine.policy.notify import wording
from callboard.engine.policy.questions import Choice, Question
from callboard.engine.relay.catalogue import Item
from callboard.engine.relay.exchange import Watch
from callboard.engine.upstream.base import Upstream
from tests.support.gateway import (
    FIXTURE,
    LegacyClient,
    ModernClient,
    TestGateway,
    gateway,
    in_background,
    python,
    stdio,
    text_of,
    until,
)


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[TestGateway]:
    """A gateway whose only server declares what its tools do, and a window that shows questions."""
    async with gateway(tmp_path, "one") as made:
        await made.start_fixture("one", "legacy", "--hints")
        with made.relay.questions.listening():
            yield made


@pytest.fixture(params=["legacy", "modern"])
async def client(request: pytest.FixtureRequest, front: TestGateway) -> AsyncIterator[LegacyClient | ModernClient]:
    """A client of either era."""
    made = front.legacy("one") if request.param == "legacy" else front.modern("one")
    async with made:
        if isinstance(made, LegacyClient):
            await made.initialize()
        yield made


async def asked(front: TestGateway, count: int = 1) -> list[Question]:
    """The open questions, once there are so many."""
    return await until(lambda: len(front.relay.questions.open()) >= count and front.relay.questions.open(), 30)


def code(answer: dict[str, Any]) -> str:
    return str(answer["error"]["data"]["code"])


async def test_a_call_waits_for_the_answer(front: TestGateway, client: LegacyClient | ModernClient) -> None:
    async with in_background(client.call("raw", {"path": "/etc"})) as call:
        (question,) = await asked(front)
        assert (question.client, question.program, question.server, question.name) == ("a", client.name, "one", "raw")
        assert question.arguments == '{"path": "/etc"}'
        assert question.reason == "declares that it may destroy something"
        assert question.expires > time.time()
        assert [row.status for row in await front.rows("raw")] == ["running"]
        front.relay.questions.settle(question.id, "once")
        assert "result" in await call
    assert not front.relay.questions.open()
    assert [row.status for row in await front.rows("raw")] == ["completed"]
    async with in_background(client.call("raw")) as call:  # once is once
        (question,) = await asked(front)
        front.relay.questions.settle(question.id, "deny")
        assert code(await call) == "policy-refused"
    assert [row.status for row in await front.rows("raw")] == ["completed", "failed"]
    with pytest.raises(CallboardError) as caught:
        front.relay.questions.settle(question.id, "once")
    assert caught.value.code == "question-over"


async def test_always_is_for_this_client_and_tool(front: TestGateway, client: LegacyClient | ModernClient) -> None:
    async with in_background(client.call("raw")) as first, in_background(client.call("raw")) as second:
        question, _ = await asked(front, 2)
        front.relay.questions.settle(question.id, "always")
        assert "result" in await first
        assert "result" in await second
    assert "result" in await client.call("raw")
    async with in_background(client.call("big", {"size": 1})) as other_tool:
        (question,) = await asked(front)
        assert question.name == "big"
        front.relay.questions.settle(question.id, "deny")
        assert code(await other_tool) == "policy-refused"
    async with front.modern("one", "token-b") as other, in_background(other.call("raw")) as other_client:
        (question,) = await asked(front)
        assert question.client == "b"
        front.relay.questions.settle(question.id, "deny")
        assert code(await other_client) == "policy-refused"
    policies = front.relay.policies
    assert await policies.approvals.revoke("a", "one", "raw") == 1
    policies.forget("a")
    async with in_background(client.call("raw")) as again:
        (question,) = await asked(front)
        front.relay.questions.settle(question.id, "deny")
        assert code(await again) == "policy-refused"


async def test_an_approval_lapses_with_the_tools_definition(front: TestGateway) -> None:
    policies = front.relay.policies
    await policies.approve(("a", "tool", "one", "raw"), policies.mark("tool", "one", "raw"))
    assert policies.caller("a").verdict("tool", "one", "raw").effect == "allow"
    become_another(front, "raw")
    assert policies.caller("a").verdict("tool", "one", "raw").effect == "ask"


async def test_an_approval_lapses_with_the_servers_program(front: TestGateway) -> None:
    policies, programs = front.relay.policies, {"one": "first"}
    policies.program = lambda server: programs.get(server, "")
    policies.configure(DefaultPolicy(ask=["*"]), {}, {})
    items: list[tuple[Any, str]] = [("tool", "raw"), ("tool", "unlisted"), ("prompt", "greet"), ("resource", "doc://x")]
    for kind, name in items:
        await policies.approve(("a", kind, "one", name), policies.mark(kind, "one", name))
        assert policies.caller("a").verdict(kind, "one", name).effect == "allow"
    programs["one"] = "another"
    policies.forget()
    assert [policies.caller("a").verdict(kind, "one", name).effect for kind, name in items] == ["ask"] * 4
    programs["one"] = "first"
    policies.forget()
    assert [policies.caller("a").verdict(kind, "one", name).effect for kind, name in items] == ["allow"] * 4
    await policies.forget_server("one")
    policies.forget()
    assert [policies.caller("a").verdict(kind, "one", name).effect for kind, name in items] == ["ask"] * 4


async def test_always_is_for_the_program_that_was_asked_about(front: TestGateway) -> None:
    programs = {"one": "first"}
    front.relay.policies.program = lambda server: programs[server]
    async with front.modern("one") as client, in_background(client.call("raw")) as call:
        (question,) = await asked(front)
        programs["one"] = "another"
        front.relay.questions.settle(question.id, "always")
        again = await until(
            lambda: next((each for each in front.relay.questions.open() if each is not question), None), 30
        )
        front.relay.questions.settle(again.id, "deny")
        assert code(await call) == "policy-refused"


async def start_on_demand(front: TestGateway, *options: str) -> None:
    """The server is stopped; a call starts it, with these options."""
    await front.servers.ready["one"].close()
    await front.lose("one")
    plainly = front.servers.upstream

    async def upstream(name: str) -> Upstream:
        if name not in front.servers.ready:
            made = stdio(front.relay.links[name])
            await made.open(python(FIXTURE, "--era", "legacy", "--name", name, *options))
            front.servers.ready[name] = made
            front.relay.connected(name, made)
        return await plainly(name)

    front.servers.upstream = upstream  # type: ignore[method-assign]


async def test_what_a_stopped_server_said_of_a_tool_decides_nothing_once_it_runs(tmp_path: Path) -> None:
    """A tool that became destructive while its server was stopped is asked for on the very first call."""
    async with gateway(tmp_path, "one") as made, made.modern("one") as client:
        await made.start_fixture("one", "legacy")
        assert "result" in await client.call("raw")  # it declares nothing
        await start_on_demand(made, "--hints")
        with made.relay.questions.listening():
            async with in_background(client.call("raw")) as call:
                (question,) = await asked(made)
                assert question.reason == "declares that it may destroy something"
                made.relay.questions.settle(question.id, "deny")
                assert code(await call) == "policy-refused"
        made.relay.policies.configure(DefaultPolicy(read_only=True), {}, {})
        assert code(await client.call("raw")) == "policy-denied"
        assert [row.status for row in await made.rows("raw")] == ["completed", "failed", "failed"]


async def test_a_call_of_a_stopped_server_that_stays_as_it_was_is_made(tmp_path: Path) -> None:
    async with gateway(tmp_path, "one") as made, made.modern("one") as client:
        await made.start_fixture("one", "legacy", "--hints")
        await start_on_demand(made, "--hints")
        assert "result" in await client.call("echo", {"text": "x"})
        assert [row.status for row in await made.rows("echo")] == ["completed"]


def become_another(front: TestGateway, tool: str) -> None:
    """The server lists a tool anew, with another definition."""
    catalogue = front.relay.catalogue
    items = catalogue.offer("one").lists["tools"]
    catalogue.offer("one").lists["tools"] = [
        Item(item.key, item.raw.replace(b"as they came", b"to somebody else") if item.key == tool else item.raw)
        for item in items
    ]
    assert catalogue.offer("one").lists["tools"] != items
    catalogue.offer("one").definitions = None
    front.relay.policies.forget()


async def test_a_tool_that_becomes_another_one_meanwhile_is_asked_for_again(
    front: TestGateway, client: LegacyClient | ModernClient
) -> None:
    async with in_background(client.call("raw")) as call:
        (question,) = await asked(front)
        become_another(front, "raw")
        front.relay.questions.settle(question.id, "always")
        again = await until(
            lambda: next((each for each in front.relay.questions.open() if each is not question), None), 30
        )
        assert again.mark != question.mark
        assert front.relay.policies.caller("a").verdict("tool", "one", "raw").effect == "ask"
        front.relay.questions.settle(again.id, "deny")
        assert code(await call) == "policy-refused"
    assert [row.status for row in await front.rows("raw")] == ["failed"]


async def test_always_releases_no_question_about_another_definition(front: TestGateway) -> None:
    async with front.modern("one") as client, in_background(client.call("raw", {"number": 1})) as first:
        (question,) = await asked(front)
        become_another(front, "raw")
        async with in_background(client.call("raw", {"number": 2})) as second:
            _, about_the_new = await asked(front, 2)
            front.relay.questions.settle(about_the_new.id, "always")
            assert "result" in await second
            assert not question.answer.done()
            front.relay.questions.settle(question.id, "once")
            assert "result" in await first  # what it is now was allowed for good


async def test_a_call_whose_tool_is_gone_meanwhile_goes_nowhere_else(front: TestGateway) -> None:
    async with front.modern() as client, in_background(client.call("one__raw")) as call:
        (question,) = await asked(front)
        front.relay.sync([])
        front.relay.questions.settle(question.id, "once")
        assert (await call)["error"]["message"] == "Unknown tool: one__raw"
        front.relay.sync(["one"])
    assert [row.status for row in await front.rows("raw")] == ["failed"]


async def test_a_server_that_is_forgotten_takes_the_verdicts_on_its_tools_along(front: TestGateway) -> None:
    caller = front.relay.policies.caller("a")
    assert caller.verdict("tool", "one", "echo").effect == "allow"
    front.relay.forget("one")
    assert caller.verdict("tool", "one", "echo").effect == "ask"


async def test_nobody_answers_in_time(front: TestGateway, client: LegacyClient | ModernClient) -> None:
    front.relay.policies.configure(DefaultPolicy(ask_seconds=0.2), {}, {})
    assert code(await client.call("raw")) == "policy-unanswered"
    assert not front.relay.questions.open()


async def test_a_client_that_waits_hears_that_its_call_lives(
    front: TestGateway, client: LegacyClient | ModernClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions_module, "PROGRESS_SECONDS", 0.05)
    monkeypatch.setattr(Watch, "STREAM_AFTER", 0.0)
    call = (
        client.call("progress", {"steps": 2, "ms": 1}, _meta={"progressToken": "p"})
        if isinstance(client, LegacyClient)
        else client.call("progress", {"steps": 2, "ms": 1}, progressToken="p")
    )
    front.relay.policies.configure(DefaultPolicy(ask=["one.progress"]), {}, {})
    async with in_background(call) as task:
        (question,) = await asked(front)
        await until(lambda: len(client.of("notifications/progress")) >= 2, 30)
        front.relay.questions.settle(question.id, "once")
        assert "result" in await task
    told = [note["params"]["progress"] for note in client.of("notifications/progress")]
    assert told == sorted(told)
    assert told[0] < 0 < told[-1]
    assert client.of("notifications/progress")[0]["params"]["message"] == "Waiting for permission in Callboard"


async def test_cancelling_takes_the_question_back(front: TestGateway) -> None:
    async with front.legacy("one") as client:
        await client.initialize()
        async with in_background(client.request("tools/call", {"name": "raw", "arguments": {}}, number=77)):
            await asked(front)
            await client.notify("notifications/cancelled", {"requestId": 77})
            await until(lambda: not front.relay.questions.open(), 30)
    assert [row.status for row in await front.rows("raw")] == ["cancelled"]


async def test_a_client_that_goes_away_takes_its_question_back(front: TestGateway) -> None:
    async with front.modern("one") as client:
        async with in_background(client.call("raw")):
            await asked(front)
        await until(lambda: not front.relay.questions.open(), 30)
    assert [row.status for row in await front.rows("raw")] == ["cancelled"]


async def test_rules_that_change_meanwhile_are_kept(front: TestGateway, client: LegacyClient | ModernClient) -> None:
    async with in_background(client.call("raw")) as call:
        (question,) = await asked(front)
        clients = {"a": ClientEntry(policy=Rules(allow=["*"], deny=["one.raw"]))}
        front.relay.policies.configure(DefaultPolicy(), clients, {})
        front.relay.questions.settle(question.id, "once")
        assert code(await call) == "policy-denied"


async def test_a_flood_of_questions_is_bounded(front: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions_module, "MAX_OPEN", 2)
    async with front.modern("one") as client, contextlib.AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(in_background(client.call("raw")))
        await asked(front, 2)
        assert code(await client.call("raw")) == "policy-unanswered"


async def test_a_round_of_questions_of_the_server_asks_the_person_once(front: TestGateway) -> None:
    front.relay.policies.configure(DefaultPolicy(ask=["one.rounds"]), {}, {})
    async with front.modern("one", elicitation={}, sampling={}) as client:
        client.answers = {
            "elicitation/create": lambda params: {"action": "accept", "content": {"name": "x"}},
            "sampling/createMessage": lambda params: {"role": "assistant", "content": {"type": "text", "text": "4"}},
        }
        async with in_background(client.call("rounds")) as call:
            (question,) = await asked(front)
            front.relay.questions.settle(question.id, "once")
            assert text_of(await call)


# ---- where no window is open


async def test_a_notification_asks_where_no_window_does(tmp_path: Path) -> None:
    shown: list[Question] = []
    answers: dict[str, Choice | None] = {"first": "once", "second": "deny", "third": None}

    async def notify(question: Question) -> Choice | None:
        shown.append(question)
        return answers[question.arguments.split('"')[3]]

    async with gateway(tmp_path, "one") as made, made.modern("one") as client:
        await made.start_fixture("one", "modern", "--hints")
        made.relay.questions._notify = notify
        assert "result" in await client.call("raw", {"x": "first"})
        assert code(await client.call("raw", {"x": "second"})) == "policy-refused"
        assert code(await client.call("raw", {"x": "third"})) == "policy-unanswered"
        assert len(shown) == 3


async def test_a_notification_goes_with_its_question(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def notify(question: Question) -> Choice | None:
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()
        return None

    async with gateway(tmp_path, "one") as made, made.modern("one") as client:
        await made.start_fixture("one", "modern", "--hints")
        made.relay.questions._notify = notify
        async with in_background(client.call("raw")) as call:
            (question,) = await asked(made)
            made.relay.questions.settle(question.id, "once")
            assert "result" in await call
        async with asyncio.timeout(30):
            await gone.wait()


# ---- what cannot be shown whole


async def test_what_is_not_shown_whole_says_so_and_cannot_be_allowed_for_good(front: TestGateway) -> None:
    hidden = {"path": "/tmp/harmless", "pad": " " * 100_000, "really": "remove everything"}
    async with front.modern("one") as client, in_background(client.call("raw", hidden)) as call:
        (question,) = await asked(front)
        assert question.arguments_cut
        assert question.arguments_size > 100_000
        assert len(question.arguments) < 21_000
        assert "/tmp/harmless" in question.arguments
        assert "remove everything" in question.arguments
        assert f"{question.arguments_size - 20_000} characters are not shown" in question.arguments
        with pytest.raises(CallboardError) as caught:
            front.relay.questions.settle(question.id, "always")
        assert caught.value.code == "bad-request"
        assert not question.answer.done()
        _, body, choices = wording(question)
        assert f"Not all is shown: the arguments have {question.arguments_size} characters." in body
        assert "remove everything" in body
        assert len(body) < 1000
        assert choices == ("once", "deny")
        front.relay.questions.settle(question.id, "once")
        assert "result" in await call


async def test_a_notification_has_less_room_than_a_window(front: TestGateway) -> None:
    async with front.modern("one") as client:
        for size, choices in ((100, ("once", "always", "deny")), (700, ("once", "deny"))):
            async with in_background(client.call("raw", {"pad": "x" * size})) as call:
                (question,) = await asked(front)
                assert not question.arguments_cut
                _, body, given = wording(question)
                assert given == choices
                assert ("Not all is shown" in body) == (size > 600)
                front.relay.questions.settle(question.id, "deny")
                await call


async def test_names_are_shown_without_their_secrets_and_at_a_bound() -> None:
    questions = questions_module.Questions(mask=Redactor(["k3y-of-mine"]).text, patience=30.0)
    name = "https://host/x?key=k3y-of-mine&" + "y" * 10_000
    with questions.listening():
        asking = asyncio.create_task(
            questions.ask(("a", "resource", "one", name), "p" * 10_000, "asks", b"", seconds=60)
        )
        (question,) = await until(questions.open)
        assert "k3y-of-mine" not in question.shown_name
        assert len(question.shown_name) < 600
        assert len(question.program) < 300
        assert question.item == ("a", "resource", "one", name)
        summary, _, _ = wording(question)
        assert "k3y-of-mine" not in summary
        assert len(summary) < 300
        questions.settle(question.id, "once")
        assert await asking == "once"


# ---- what is remembered


async def test_approvals_outlive_the_engine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "approvals.json"
    approvals = Approvals(path)
    await approvals.remember(("a", "tool", "one", "raw"), "mark")
    await approvals.remember(("a", "resource", "one", "doc://x"), "other")
    await approvals.remember(("b", "tool", "one", "raw"), "mark")
    again = Approvals(path)
    assert again.all() == approvals.all()
    assert again.holds(("a", "tool", "one", "raw"), "mark")
    assert not again.holds(("a", "tool", "one", "raw"), "another")
    assert not again.holds(("c", "tool", "one", "raw"), "mark")
    assert await again.revoke("a", kind="tool") == 1
    assert await again.revoke("a") == 1
    assert [approval.client for approval in Approvals(path).all()] == ["b"]
    path.write_text('{"approvals": [{"client": "a"}]}')
    assert Approvals(path).all() == []
    assert "is damaged" in caplog.text
    assert path.with_suffix(".broken").exists()


async def test_an_approval_that_cannot_be_written_holds_for_the_session(tmp_path: Path) -> None:
    approvals = Approvals(tmp_path / "no such folder" / "approvals.json")
    with pytest.raises(CallboardError) as caught:
        await approvals.remember(("a", "tool", "one", "raw"), "mark")
    assert caught.value.code == "approval-unsaved"
    assert approvals.holds(("a", "tool", "one", "raw"), "mark")


async def test_a_window_that_is_on_its_way_is_waited_for() -> None:
    questions = questions_module.Questions(patience=30.0)
    asking = asyncio.create_task(questions.ask(("a", "tool", "one", "raw"), "a", "asks", b"{}", seconds=60))
    await until(questions.open)
    with questions.listening():
        questions.settle(questions.open()[0].id, "once")
        assert await asking == "once"
    hasty = questions_module.Questions(patience=0.05)
    with pytest.raises(CallboardError) as caught:
        await hasty.ask(("a", "tool", "one", "raw"), "a", "asks", b"{}", seconds=60)
    assert caught.value.code == "policy-unanswered"

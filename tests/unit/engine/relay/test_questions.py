"""What a server asks in the middle of a call reaches the person behind that call, in all four combinations of eras."""

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from callboard.core.policy_shapes import DefaultPolicy
from callboard.engine.relay import parking, seal, sessions
from callboard.engine.relay.envelope import decode_params, raw_json
from tests.support.gateway import (
    LegacyClient,
    ModernClient,
    Refuse,
    TestGateway,
    gateway,
    in_background,
    text_of,
    until,
)
from tests.unit.engine.relay.conftest import ASKED

Client = LegacyClient | ModernClient
ANSWERS: dict[str, Any] = {
    "elicitation/create": lambda params: {"action": "accept", "content": {"name": "Ann"}},
    "sampling/createMessage": lambda params: {
        "role": "assistant",
        "model": "m",
        "content": {"type": "text", "text": "4"},
    },
    "roots/list": lambda params: {"roots": [{"uri": "file:///home/ann"}]},
}


def able(client: Client, **answers: Any) -> Client:
    client.answers = {**ANSWERS, **answers}
    return client


async def test_every_question_is_answered_by_the_client(front: TestGateway, client: Client) -> None:
    able(client)
    modern_server = front.servers.ready["one"].info.modern
    tail = " / state of one" if modern_server else ""
    assert text_of(await client.call("elicit")) == f"hello Ann{tail}"
    assert text_of(await client.call("sample")) == f"model says 4{tail}"
    assert text_of(await client.call("roots")) == f"file:///home/ann{tail}"
    assert text_of(await client.call("both")) == "Ann: 4"


async def test_a_server_may_ask_again_after_an_answer(front: TestGateway, client: Client) -> None:
    names = iter(["Ann", "Bob"])
    able(client, **{"elicitation/create": lambda params: {"action": "accept", "content": {"name": next(names)}}})
    assert text_of(await client.call("rounds")) == "Ann and Bob"


async def test_questions_come_as_the_server_wrote_them(front: TestGateway, client: Client) -> None:
    seen: list[dict[str, Any]] = []
    able(client, **{"elicitation/create": lambda params: seen.append(params) or {"action": "decline"}})
    await client.call("elicit")
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert seen == [{"mode": "form", "message": "Who?", "requestedSchema": schema}]


async def test_a_client_that_cannot_be_asked_is_not_asked(either: TestGateway) -> None:
    async with either.legacy("one") as old, either.modern("one") as new:
        await old.initialize()
        answer = await old.call("elicit")
        if either.servers.ready["one"].info.modern:
            assert "does not offer elicitation/create" in answer["error"]["message"]
        else:
            assert text_of(answer) == "refused: the client does not offer elicitation/create"
            assert "does not offer" in text_of(await new.call("elicit"))
        assert old.heard == []


async def test_only_who_offers_urls_is_asked_to_open_one(legacy: TestGateway) -> None:
    for offered, expected in (({}, "refused"), ({"form": {}}, "refused"), ({"url": {}}, "accept")):
        async with legacy.legacy("one", elicitation=offered) as old, legacy.modern("one", elicitation=offered) as new:
            able(old)
            able(new)
            await old.initialize()
            assert text_of(await old.call("elicit_url")).startswith(expected)
            assert text_of(await new.call("elicit_url")).startswith(expected)


async def test_a_clients_error_reaches_the_server(either: TestGateway) -> None:
    async with either.legacy("one", **ASKED) as client:
        await client.initialize()
        client.answers = {"elicitation/create": lambda params: Refuse(-1, "user rejected")}
        answer = await client.call("elicit")
        if either.servers.ready["one"].info.modern:  # nothing in that era could carry the error to the server
            assert answer["error"] == {"code": -1, "message": "user rejected"}
        else:
            assert text_of(answer) == "refused: user rejected"


# ---- requestState


async def asked(client: ModernClient, tool: str = "elicit") -> dict[str, Any]:
    answer = await client.request("tools/call", {"name": tool, "arguments": {}})
    assert answer["result"]["resultType"] == "input_required"
    result: dict[str, Any] = answer["result"]
    return result


async def test_a_state_is_good_for_its_client_and_its_request_alone(
    either: TestGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with either.modern("one", **ASKED) as mine, either.modern("one", "token-b", **ASKED) as other:
        able(mine)
        able(other)
        result = await asked(mine)
        retry = mine.retry(result)
        params = {"name": "elicit", "arguments": {}, **retry}

        async def refused(client: ModernClient, changed: dict[str, Any]) -> None:
            answer = await client.request("tools/call", changed)
            assert answer["error"]["code"] == -32602, answer

        raw = bytearray(base64.urlsafe_b64decode(retry["requestState"]))
        raw[-1] ^= 1
        await refused(mine, {**params, "requestState": base64.urlsafe_b64encode(raw).decode()})
        await refused(mine, {**params, "requestState": "forged"})
        await refused(mine, {**params, "requestState": 5})
        await refused(mine, {**params, "requestState": "\u00fc"})
        await refused(other, params)
        await refused(mine, {**params, "name": "sample"})
        await refused(mine, {**params, "arguments": {"more": 1}})
        with monkeypatch.context() as patch:
            patch.setattr(seal.time, "time", lambda: 1e11)
            await refused(mine, params)
        # after all that, the right one still is
        assert text_of(await mine.request("tools/call", params)).startswith("hello Ann")


async def test_the_same_request_may_be_spelt_otherwise(either: TestGateway) -> None:
    async with either.modern("one", **ASKED) as client:
        able(client)
        result = await asked(client)
        message = client.message("tools/call", {"arguments": {}, "name": "elicit", **client.retry(result)})
        body = json.dumps(message, indent=1).replace('"elicit"', '"\\u0065licit"').encode()
        answer = await client.post(body, client.headers_for(message))
        assert text_of(answer.json()).startswith("hello Ann")


async def test_a_call_that_waits_is_answered_once(legacy: TestGateway) -> None:
    """A state that comes a second time while its call goes on must not take the call from the first."""
    async with legacy.modern("one", **ASKED) as client:
        able(client)
        call = {"name": "elicit", "arguments": {"ms": 100}}
        result = (await client.request("tools/call", call))["result"]
        params = {**call, **client.retry(result)}
        first, second = await asyncio.gather(client.request("tools/call", params), client.request("tools/call", params))
        refused, answered = sorted((first, second), key=lambda answer: "result" in answer)
        assert refused["error"]["code"] == -32602
        assert text_of(answered) == "hello Ann"
        over = await client.request("tools/call", params)
        assert over["error"]["code"] == -32602


async def test_answers_of_a_wrong_shape_leave_the_call_waiting(legacy: TestGateway) -> None:
    async with legacy.modern("one", **ASKED) as client:
        able(client)
        result = await asked(client)
        params = {"name": "elicit", "arguments": {}, **client.retry(result)}
        wrong = await client.request("tools/call", {**params, "inputResponses": ["?"]})
        assert wrong["error"]["code"] == -32602
        partial = await client.request("tools/call", {**params, "inputResponses": {"other": {}}})
        assert partial["result"]["resultType"] == "input_required"
        assert partial["result"]["inputRequests"] == result["inputRequests"]
        params |= client.retry(partial["result"])
        assert text_of(await client.request("tools/call", params)) == "hello Ann"


async def test_a_client_that_never_comes_back_is_waited_for_in_vain_only_so_long(
    legacy: TestGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "WAIT_SECONDS", 0.05)
    async with legacy.modern("one", **ASKED) as client:
        able(client)
        result = await asked(client)
        await until(lambda: not legacy.relay.links["one"].in_flight)
        over = await client.request("tools/call", {"name": "elicit", "arguments": {}, **client.retry(result)})
        assert over["error"]["code"] == -32602
        assert await client.call("echo", {"text": "on"})
    assert not legacy.relay.parking._waiting
    assert not legacy.relay.parking._by_exchange


async def test_only_so_many_calls_wait(legacy: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "MAX_PER_CALLER", 0)
    async with legacy.modern("one", **ASKED) as client:
        assert text_of(await client.call("elicit")) == "refused: too many calls wait for an answer"


async def test_a_state_is_no_consent_that_was_not_given(tmp_path: Path) -> None:
    """A server that asks nobody's leave hands out states; they open no tool that the person has to be asked for."""
    async with gateway(tmp_path, "one", "two") as front:
        for name in ("one", "two"):
            await front.start_fixture(name, "modern")
        policies = front.relay.policies
        policies.configure(DefaultPolicy(ask=["two.elicit"]), {}, {})
        one, two, both = front.modern("one", **ASKED), front.modern("two", **ASKED), front.modern("", **ASKED)
        async with one, two, both:
            able(one)
            able(two)
            assert (await two.call("elicit"))["error"]["data"]["code"] == "policy-unanswered"
            call = {"name": "elicit", "arguments": {}}
            first, second, third = [{**call, **one.retry(await asked(one))} for _ in range(3)]
            assert (await two.request("tools/call", first))["error"]["code"] == -32602
            shown = {"name": "two__elicit", "arguments": {}}
            raw = decode_params(raw_json(shown))
            foreign = front.relay.seal.make("a", "one", "tools/call", raw, agreed=True)
            answer = await both.request("tools/call", {**shown, "requestState": foreign})
            assert answer["error"]["code"] == -32602
            assert text_of(await one.request("tools/call", second)).startswith("hello Ann")
            policies.configure(DefaultPolicy(ask=["*.elicit"]), {}, {})
            answer = await one.request("tools/call", third)
            assert answer["error"]["data"]["code"] == "policy-unanswered"


async def test_consent_holds_for_one_call(tmp_path: Path) -> None:
    """Through all its rounds, and no further."""
    async with gateway(tmp_path, "one") as front:
        await front.start_fixture("one", "modern")
        front.relay.policies.configure(DefaultPolicy(ask=["*.elicit"]), {}, {})
        questions = front.relay.questions
        async with front.modern("one", **ASKED) as client:
            able(client)
            with questions.listening():
                async with in_background(asked(client)) as call:
                    (question,) = await until(questions.open, 30)
                    questions.settle(question.id, "once")
                    params = {"name": "elicit", "arguments": {}, **client.retry(await call)}
            assert text_of(await client.request("tools/call", params)).startswith("hello Ann")
            assert (await client.request("tools/call", params))["error"]["code"] == -32602


# ---- questions that lose their point


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("withdraw", [True, False])
async def test_a_server_may_answer_without_waiting(
    legacy: TestGateway, era: str, withdraw: bool, tmp_path: Path
) -> None:
    arguments = {"withdraw": withdraw, "ms": 30}
    if era == "legacy":
        async with legacy.legacy("one", **ASKED) as old:
            await old.initialize()  # it leaves questions unanswered
            gate = tmp_path / "asked"
            calling = asyncio.create_task(old.call("abandon", {**arguments, "file": str(gate)}))
            await until(lambda: old.of("elicitation/create"))
            gate.touch()
            assert text_of(await calling) == "never mind"
            question = old.of("elicitation/create")[0]
            withdrawn = [message["params"]["requestId"] for message in old.of("notifications/cancelled")]
            assert withdrawn == [question["id"]]
        await until(lambda: not legacy.relay.sessions._sessions or all(not s._questions for s in legacy.relay.sessions))
        return
    async with legacy.modern("one", **ASKED) as new:
        able(new)
        answer = await new.request("tools/call", {"name": "abandon", "arguments": arguments})
        if answer["result"]["resultType"] == "input_required":
            await until(lambda: not legacy.relay.links["one"].in_flight)
            retry = {"name": "abandon", "arguments": arguments, **new.retry(answer["result"])}
            answer = await new.request("tools/call", retry)
        assert text_of(answer) == "never mind"
    assert not legacy.relay.parking._waiting


async def test_a_question_ends_with_the_call_that_caused_it(legacy: TestGateway) -> None:
    async with legacy.legacy("one", **ASKED) as client:
        await client.initialize()
        session = next(iter(legacy.relay.sessions))
        async with in_background(client.request("tools/call", {"name": "elicit"}, number="q")):
            await until(lambda: session._questions)
            await client.notify("notifications/cancelled", {"requestId": "q"})
            await until(lambda: not session._questions)
        # and a late answer to it is nobody's
        answer = await client.post({"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}})
        assert answer.status_code == 202
        assert text_of(await client.call("echo", {"text": "on"})) == "on"


async def test_a_question_put_on_another_calls_stream_outlives_that_call(legacy: TestGateway) -> None:
    """On stdio nothing tells which of a client's calls a question is of; it is put on the newest one's stream."""
    async with legacy.legacy("one", **ASKED) as client:
        await client.initialize()
        asking = asyncio.create_task(client.call("elicit", {"before": 100}))
        await until(lambda: legacy.relay.links["one"].in_flight)
        assert text_of(await client.call("slow", {"ms": 300})) == "slow"
        question = client.of("elicitation/create")[0]
        assert client.of("notifications/cancelled") == []
        answer = {"action": "accept", "content": {"name": "Ann"}}
        await client.post({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        assert text_of(await asking) == "hello Ann"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_questions_end_with_the_server(legacy: TestGateway, era: str) -> None:
    client: Client = legacy.legacy("one", **ASKED) if era == "legacy" else legacy.modern("one", **ASKED)
    async with client:
        if isinstance(client, LegacyClient):
            await client.initialize()
            task = asyncio.create_task(client.call("elicit"))
            await until(lambda: client.of("elicitation/create"))
        else:
            able(client)
            result = await asked(client)
        process = legacy.servers.ready["one"]._process  # type: ignore[attr-defined]
        process._process.kill()
        await legacy.lose("one")
        if isinstance(client, LegacyClient):
            answer = await task
        else:
            retry = {"name": "elicit", "arguments": {}, **client.retry(result)}
            answer = await client.request("tools/call", retry)
        assert answer["error"]["data"]["signal"] == "SIGKILL"


async def beyond_its_limits(front: TestGateway) -> None:
    """Let the only call's time run out, the hard limit too, while its client thinks."""
    exchange = next(iter(front.relay.links["one"].in_flight))
    end = time.monotonic() + 0.1
    exchange.deadline = exchange.expires = end
    await until(lambda: time.monotonic() > end + 0.1)
    assert not exchange.done


async def test_the_persons_time_is_not_the_servers(legacy: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who thinks longer than the server may work finds the call still there, and its limit begun anew."""
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.02)
    async with legacy.legacy("one", **ASKED) as old, legacy.modern("one", **ASKED) as new:
        able(new)
        await old.initialize()
        task = asyncio.create_task(old.call("elicit", {"ms": 50}))
        question = (await until(lambda: old.of("elicitation/create")))[0]
        await beyond_its_limits(legacy)
        await old.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})
        assert text_of(await task) == "hello None"

        result = await asked(new)
        await beyond_its_limits(legacy)
        retry = {"name": "elicit", "arguments": {}, **new.retry(result)}
        assert text_of(await new.request("tools/call", retry)) == "hello Ann"


async def test_a_person_is_waited_for_only_so_long(legacy: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "ASK_SECONDS", 0.05)
    async with legacy.legacy("one", **ASKED) as client:
        await client.initialize()
        assert text_of(await client.call("elicit")) == "refused: The client did not answer elicitation/create."
        assert client.of("notifications/cancelled")[0]["params"] == {
            "requestId": client.of("elicitation/create")[0]["id"]
        }


async def test_who_takes_no_stream_is_not_asked(legacy: TestGateway) -> None:
    async with legacy.legacy("one", **ASKED) as client:
        client.headers["accept"] = "application/json"
        await client.initialize()
        assert text_of(await client.call("elicit")).startswith("refused")

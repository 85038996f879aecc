"""One server, several clients: nothing that belongs to one reaches another."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.gateway import LegacyClient, ModernClient, TestGateway, in_background, text_of, until
from tests.unit.engine.relay.conftest import ASKED

Client = LegacyClient | ModernClient
IDS: list[Any] = ["7", 7, 0, -1, 2**53 + 1, 2**70, "", "\u00fc\U0001f600", 'a"b\\c', "null"]


# ---- ids


async def test_ids_of_every_kind_come_back_as_they_were(front: TestGateway, client: Client) -> None:
    """All at once, "7" beside 7, each with its own answer."""
    requests = [client.request("tools/call", {"name": "echo", "arguments": {"text": repr(i)}}, number=i) for i in IDS]
    answers = await asyncio.gather(*requests)
    assert [(answer["id"], type(answer["id"])) for answer in answers] == [(number, type(number)) for number in IDS]
    assert [text_of(answer) for answer in answers] == [repr(number) for number in IDS]


async def test_one_id_may_be_used_by_many_and_again(either: TestGateway) -> None:
    async with either.legacy("one") as a, either.legacy("one") as b, either.modern("one", "token-b") as c:
        clients: list[Client] = [a, b, c]
        for old in (a, b):
            await old.initialize()

        async def call(client: Client, text: str) -> str:
            params = {"name": "echo", "arguments": {"text": text}}
            return text_of(await client.request("tools/call", params, number=1))

        for round_ in range(3):
            texts = [f"{round_} {index}" for index in range(len(clients))]
            assert await asyncio.gather(*map(call, clients, texts)) == texts


async def test_cancelling_an_id_cancels_it_in_its_own_session_alone(either: TestGateway) -> None:
    async with either.legacy("one") as a, either.legacy("one") as b:
        await a.initialize()
        await b.initialize()
        call = {"name": "slow", "arguments": {"ms": 300}}
        mine = asyncio.create_task(a.request("tools/call", call, number="same"))
        async with in_background(b.request("tools/call", call, number="same")) as others:
            await until(lambda: len(either.relay.links["one"].in_flight) == 2)
            await b.notify("notifications/cancelled", {"requestId": "same"})
            await b.notify("notifications/cancelled", {"requestId": "unknown"})
            await b.notify("notifications/cancelled", {"requestId": 5.5})
            await b.notify("notifications/cancelled", {})
            await asyncio.wait([others])
        assert text_of(await mine) == "slow"


# ---- progress, logs, questions


async def test_one_token_used_by_two_never_crosses(front: TestGateway) -> None:
    async with front.modern("one") as a, front.modern("one", "token-b") as b, front.legacy("one") as c:
        await c.initialize()

        async def run(client: Client, steps: int) -> None:
            params: dict[str, Any] = {"name": "progress", "arguments": {"steps": steps, "ms": 5}}
            if isinstance(client, LegacyClient):
                await client.request("tools/call", {**params, "_meta": {"progressToken": 1}})
            else:
                await client.request("tools/call", params, progressToken=1)

        await asyncio.gather(run(a, 3), run(b, 5), run(c, 7))
        for client, steps in ((a, 3), (b, 5), (c, 7)):
            told = [message["params"]["progress"] for message in client.of("notifications/progress")]
            assert told == list(range(1, steps + 1))


async def test_logs_of_a_call_go_to_its_client(front: TestGateway) -> None:
    """Over HTTP each call has its stream; on stdio a log that could be of two clients' calls is of neither."""
    level = {"io.modelcontextprotocol/logLevel": "debug"}
    async with front.modern("one") as a, front.modern("one", "token-b") as b, front.legacy("one") as c:
        await c.initialize()
        async with c.listening():
            await a.call("log", {"text": "of a"}, **level)
            assert [message["params"]["data"] for message in a.of("notifications/message")] == ["of a"]
            async with in_background(a.call("slow", {"ms": 20_000}, **level)):
                await until(lambda: front.relay.links["one"].in_flight)
                await b.call("log", {"text": "of b"}, **level)
            heard = [
                message["params"]["data"] for client in (a, b, c) for message in client.of("notifications/message")
            ]
            assert heard in (["of a", "of b"], ["of a"])
            assert [message["params"]["data"] for message in a.of("notifications/message")] == ["of a"]
            assert c.of("notifications/message") == []


async def test_nothing_that_is_nobodys_is_broadcast(legacy: TestGateway) -> None:
    async with legacy.legacy("one") as a, legacy.legacy("one", "token-b") as b, legacy.modern("one") as c:
        await a.initialize()
        await b.initialize()
        async with a.listening(), b.listening(), c.listening(toolsListChanged=True):
            await c.call("shout", {"text": "secret of somebody"})
            await c.call("slow", {"ms": 100})
            heard = a.heard + b.heard + c.heard
            assert [message["method"] for message in heard] == ["notifications/subscriptions/acknowledged"]
        await b.http.delete(b.url, headers=b.headers)
        async with a.listening():  # the only one there is
            await a.call("shout", {"text": "to the only one"})
            await until(lambda: a.of("notifications/message"))


def answer_as(client: Client, name: str) -> None:
    client.answers = {
        "elicitation/create": lambda params: {"action": "accept", "content": {"name": name}},
        "sampling/createMessage": lambda params: {"role": "assistant", "model": name, "content": {"text": name}},
        "roots/list": lambda params: {"roots": [{"uri": f"file:///{name}"}]},
    }


@pytest.mark.parametrize("eras", ["legacy+legacy", "modern+modern", "legacy+modern"])
async def test_two_clients_questions_never_cross(front: TestGateway, eras: str) -> None:
    makers = {"legacy": front.legacy, "modern": front.modern}
    first, second = (
        makers[era]("one", token, **ASKED) for era, token in zip(eras.split("+"), ("token-a", "token-b"), strict=True)
    )
    async with first, second:
        for client, name in ((first, "Ann"), (second, "Bob")):
            answer_as(client, name)
            if isinstance(client, LegacyClient):
                await client.initialize()
        await first.call("elicit")  # from now on it is known as a server that asks
        for tool in ("elicit", "sample", "roots", "rounds"):
            mine, others = await asyncio.gather(
                asyncio.gather(*(first.call(tool) for _ in range(2))),
                asyncio.gather(*(second.call(tool) for _ in range(2))),
            )
            for answers, name, other in ((mine, "Ann", "Bob"), (others, "Bob", "Ann")):
                for answer in answers:
                    assert name in text_of(answer), answer
                    assert other not in text_of(answer)
        assert not front.relay.links["one"].in_flight
        assert not front.relay.links["one"]._queue


async def test_a_question_that_could_be_of_two_clients_is_of_neither(legacy: TestGateway) -> None:
    """The first question of a server that nobody knew to ask: whose call it is of, nothing tells."""
    async with legacy.legacy("one", **ASKED) as a, legacy.legacy("one", "token-b", **ASKED) as b:
        for client, name in ((a, "Ann"), (b, "Bob")):
            answer_as(client, name)
            await client.initialize()
        async with in_background(a.call("slow", {"ms": 20_000})):
            await until(lambda: legacy.relay.links["one"].in_flight)
            answer = await b.call("elicit")
            assert answer["result"]["isError"] is True
            assert "calls of several clients are in flight" in text_of(answer)
        assert a.heard == b.heard == []


async def test_a_server_that_asks_is_served_one_client_at_a_time(legacy: TestGateway) -> None:
    async with legacy.legacy("one", **ASKED) as a, legacy.legacy("one", "token-b", **ASKED) as b:
        for client, name in ((a, "Ann"), (b, "Bob")):
            answer_as(client, name)
            await client.initialize()
        await a.call("elicit")
        link = legacy.relay.links["one"]
        slow = asyncio.create_task(a.call("slow", {"ms": 300}))
        await until(lambda: link.in_flight)
        assert text_of(await a.call("echo", {"text": "same client"})) == "same client"
        waiting = [asyncio.create_task(b.call("elicit")) for _ in range(3)]
        await until(lambda: len(link._queue) == 3)
        waiting[0].cancel()
        assert text_of(await slow) == "slow"
        assert [text_of(answer) for answer in await asyncio.gather(*waiting[1:])] == ["hello Bob"] * 2


async def test_whoever_waits_for_a_turn_hears_when_the_server_ends(legacy: TestGateway) -> None:
    async with legacy.legacy("one", **ASKED) as a, legacy.modern("one", "token-b") as b:
        answer_as(a, "Ann")
        await a.initialize()
        await a.call("elicit")
        link = legacy.relay.links["one"]
        async with in_background(a.call("slow", {"ms": 20_000})):
            await until(lambda: link.in_flight)
            waiting = [asyncio.create_task(b.call("echo")) for _ in range(200)]
            await until(lambda: len(link._queue) == 200)
            legacy.servers.ready["one"]._process._process.kill()  # type: ignore[attr-defined]
            answers = await asyncio.gather(*waiting)
        assert all(answer["error"]["data"]["signal"] == "SIGKILL" for answer in answers)
        assert not link.in_flight
        assert not link._queue


async def test_what_waits_too_long_for_its_turn_is_told(legacy: TestGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callboard.engine.relay.exchange.Watch.TICK", 0.02)
    async with legacy.legacy("one", **ASKED) as a, legacy.modern("one", "token-b") as b:
        answer_as(a, "Ann")
        await a.initialize()
        await a.call("elicit")
        async with in_background(a.call("slow", {"ms": 20_000})):
            await until(lambda: legacy.relay.links["one"].in_flight)
            legacy.servers.limit = 0.1
            answer = await b.call("echo")
            assert answer["error"]["message"] == "The server was not free for this call within 0.1 s."


async def test_sessions_and_states_belong_to_their_token(either: TestGateway) -> None:
    async with either.legacy("one") as mine, either.legacy("one", "token-b") as other:
        await mine.initialize()
        other.headers |= {"mcp-session-id": mine.session, "mcp-protocol-version": "2025-11-25"}
        stolen = await other.http.get(other.url, headers=other.headers)
        assert stolen.status_code == 404
        assert (await other.http.delete(other.url, headers=other.headers)).status_code == 404
        answer = await other.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert answer.status_code == 404
        # and on another endpoint it is unknown, too
        elsewhere = await mine.http.delete(either.endpoint(""), headers=mine.headers)
        assert elsewhere.status_code == 404
        assert (await mine.request("ping"))["result"] == {}


async def test_the_calls_of_two_clients_stand_in_the_log_under_their_names(either: TestGateway) -> None:
    async with either.legacy("one") as old, either.modern("one") as new:
        await old.initialize()
        await old.call("echo", {"text": "1"})
        await new.call("fail", {"text": "2"})
        await new.call("refuse")
        await old.request("resources/read", {"uri": "doc://one/readme"})
        rows = await either.call_log.recent(10)
    found = [(row.client, row.method, row.tool, row.status, row.error) for row in rows]
    assert found == [
        ("legacy-test", "tools/call", "echo", "completed", ""),
        ("modern-test", "tools/call", "fail", "failed", found[1][4]),
        ("modern-test", "tools/call", "refuse", "failed", "refused"),
        ("legacy-test", "resources/read", "doc://one/readme", "completed", ""),
    ]
    assert json.loads((await either.call_log.detail(rows[0].id)).arguments) == {"text": "1"}

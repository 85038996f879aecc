"""Whatever order things happen in, every request gets exactly one answer, and its own.

The channel to the server is in memory here; all else is the relay as it is. Clients of both eras make requests, cancel
them and answer questions; the server answers in any order, late, twice, to nobody, asks, and dies.
"""

import asyncio
import itertools
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.core.policy_shapes import DefaultPolicy
from callboard.core.protocol import META_CAPABILITIES, META_VERSION, MODERN
from callboard.engine.calls.record import CallRecord
from callboard.engine.relay import parking
from callboard.engine.relay.envelope import decode_envelope, decode_params
from callboard.engine.relay.exchange import Exchange
from callboard.engine.relay.legacy import LegacyEra
from callboard.engine.relay.modern import ModernEra
from callboard.engine.relay.relay import Relay
from callboard.engine.relay.sessions import Session
from callboard.engine.tasks import cancel_and_wait
from callboard.engine.upstream.base import Closed, ServerInfo
from callboard.engine.upstream.rpc import RpcConnection
from tests.support.gateway import PlainServers

CAPABLE = {"elicitation": {}}


class Channel(RpcConnection):
    """A server in memory: what it was sent, by id."""

    def __init__(self, peer: Any, *, modern: bool) -> None:
        super().__init__(peer, modern=modern)
        self.info = ServerInfo(MODERN if modern else "2025-11-25", modern, capabilities={"completions": {}})
        self.open: dict[int, str] = {}  # requests not yet answered, with the mark that came with each
        self.over: list[int] = []
        self.answers: dict[str, Any] = {}  # to our own questions
        self.numbers = itertools.count(1)

    def transmit(self, message: bytes) -> None:
        found = json.loads(message)
        if found.get("method") == "tools/call":
            arguments = found["params"]["arguments"]
            assert found["id"] not in self.open
            self.open[found["id"]] = arguments["mark"]
        elif found.get("method") == "notifications/cancelled":
            number = found["params"]["requestId"]
            self.open.pop(number)  # only what is open is ever cancelled, and once
            self.over.append(number)
        elif "method" not in found:
            assert found["id"] not in self.answers
            self.answers[found["id"]] = found.get("result", found.get("error"))

    async def close(self) -> None:
        self.end(Closed("closed"))

    def say(self, **members: Any) -> None:
        assert self.received(json.dumps({"jsonrpc": "2.0", **members}).encode())

    def answer(self, number: int) -> None:
        mark = self.open.pop(number)
        self.over.append(number)
        self.say(id=number, result={"content": [], "mark": mark})

    def ask(self) -> str:
        number = f"s{next(self.numbers)}"
        self.say(id=number, method="elicitation/create", params={"message": number})
        return number


class Log:
    """Stands for the call log: each row is begun and ended once."""

    def __init__(self) -> None:
        self.open: set[CallRecord] = set()
        self.ended = 0

    def begin(self, client: str, server: str, method: str, tool: str, arguments: object) -> CallRecord:
        record = CallRecord(1, client, server, method, tool)
        self.open.add(record)
        return record

    def end(self, record: CallRecord, *_: object, **__: object) -> None:
        self.open.remove(record)
        self.ended += 1


class World:
    """Two clients of each era, one server."""

    def __init__(self, *, modern: bool) -> None:
        self.modern = modern
        self.log = Log()
        self.servers = PlainServers()
        self.servers.limit = 0
        self.relay = Relay(
            self.servers,
            self.log,  # type: ignore[arg-type]  # a double
            None,
            on_catalogue=lambda name: None,
            on_noise=lambda name, line: None,
        )
        self.relay.policies.configure(DefaultPolicy(ask=[]), {}, {})  # the server lists nothing
        self.relay.sync(["one"])
        self.legacy, self.new = LegacyEra(self.relay), ModernEra(self.relay)
        self.sessions: list[Session] = []
        self.requests: list[tuple[Exchange, str, int]] = []  # with its mark and its client
        self.marks = itertools.count(1)
        self.answered = 0
        self.questions: dict[tuple[int, int], bytes] = {}  # put to a legacy client and not yet answered
        self.asked: list[tuple[Channel, str, set[str]]] = []  # with the callers whose requests were open at the server
        self.channel: Channel | None = None

    async def begin(self) -> None:
        for token in ("a", "b"):
            params = {"protocolVersion": "2025-11-25", "capabilities": CAPABLE, "clientInfo": {"name": token}}
            raw = decode_params(json.dumps(params).encode())
            session, _ = await self.legacy.initialize("one", self.relay.policies.caller(token), raw)
            self.sessions.append(session)
        self.connect()

    def connect(self) -> None:
        self.channel = Channel(self.relay.links["one"], modern=self.modern)
        self.servers.ready["one"] = self.channel
        self.relay.connected("one", self.channel)

    # what clients do

    def request(self, client: int, number: int) -> None:
        """Clients 0 and 1 are legacy, 2 and 3 modern. Ids are few, so that they are used again and by several."""
        mark = f"m{next(self.marks)}"
        params: dict[str, Any] = {"name": "t", "arguments": {"mark": mark}}
        if client < 2:
            if any(exchange.request_id == b"%d" % number for exchange in self.sessions[client].exchanges.values()):
                return  # a client must not use an id twice at once
            envelope = decode_envelope(json.dumps({"id": number, "method": "tools/call", "params": params}).encode())
            exchange = self.legacy.request("one", self.sessions[client].caller, self.sessions[client], envelope)
        else:
            exchange = self.send_modern(client, number, params)
        self.requests.append((exchange, mark, client))

    def send_modern(self, client: int, number: int, params: dict[str, Any]) -> Exchange:
        params = {**params, "_meta": {META_VERSION: MODERN, META_CAPABILITIES: CAPABLE}}
        envelope = decode_envelope(json.dumps({"id": number, "method": "tools/call", "params": params}).encode())
        raw = decode_params(envelope.params)
        return self.new.request(
            "one", self.relay.policies.caller("ab"[client - 2]), envelope, raw, decode_params(raw["_meta"])
        )

    def cancel(self, index: int) -> None:
        """A legacy client says so; a modern one's connection closes."""
        pending = [
            (exchange, client) for exchange, _, client in self.requests if not exchange.done and not exchange.interim
        ]
        if pending:
            exchange, client = pending[index % len(pending)]
            if client < 2:
                note = {"method": "notifications/cancelled", "params": {"requestId": json.loads(exchange.request_id)}}
                self.legacy.notification(self.sessions[client], decode_envelope(json.dumps(note).encode()))
            else:
                exchange.cancel("gone")
            assert exchange.done

    def read(self) -> None:
        """Take what was pushed to legacy clients."""
        for exchange, _, client in self.requests:
            while exchange.messages:
                message = json.loads(exchange.messages.popleft())
                if client >= 2:
                    continue
                if message["method"] == "elicitation/create":
                    self.questions[client, message["id"]] = message["params"]["message"].encode()
                elif message["method"] == "notifications/cancelled":
                    self.questions.pop((client, message["params"]["requestId"]), None)

    def reply(self, index: int) -> None:
        """Answer a question with the name of who answers."""
        self.read()
        if self.questions:
            client, number = list(self.questions)[index % len(self.questions)]
            self.questions.pop((client, number))
            answer = {"id": number, "result": {"action": "accept", "content": {"by": client}}}
            self.legacy.answer(self.sessions[client], decode_envelope(json.dumps(answer).encode()))

    def retry(self, index: int) -> None:
        """A modern client that was asked repeats its request with the answers."""
        asked = [item for item in self.requests if item[0].interim and item[0].answer is not None]
        if not asked:
            return
        exchange, mark, client = asked[index % len(asked)]
        result = json.loads(bytes(exchange.answer.result or b""))  # type: ignore[union-attr]  # it is interim
        params = {
            "name": "t",
            "arguments": {"mark": mark},
            "requestState": result["requestState"],
            "inputResponses": {
                name: {"action": "accept", "content": {"by": client}} for name in result.get("inputRequests", {})
            },
        }
        assert self.send_modern(5 - client, 7, params).done  # somebody else's state is of no use
        again = self.send_modern(client, 7, params)
        assert again is exchange

    # what the server does

    def serve(self, index: int) -> None:
        if self.channel is not None and self.channel.open:
            numbers = list(self.channel.open)
            self.channel.answer(numbers[index % len(numbers)])

    def serve_again(self, index: int) -> None:
        """A late answer, a second one, one to nobody; and progress for what is over."""
        if self.channel is not None:
            number = self.channel.over[index % len(self.channel.over)] if self.channel.over else 999
            if number not in self.channel.open:
                self.channel.say(id=number, result={"content": [], "mark": "late"})
                self.channel.say(method="notifications/progress", params={"progressToken": number, "progress": 1})
            self.channel.say(id=str(number), result={"content": [], "mark": "text"})

    def ask(self, _: int) -> None:
        if self.channel is not None and not self.modern:
            marks = set(self.channel.open.values())
            callers = {"ab"[client % 2] for _, mark, client in self.requests if mark in marks}
            self.asked.append((self.channel, self.channel.ask(), callers))

    def die(self, _: int) -> None:
        if self.channel is not None:
            self.channel.end(Closed("exited with code 1", code=1))
            self.relay.disconnected("one")
            self.servers.ready.clear()
            self.channel = None
        else:
            self.connect()

    # the end

    async def settle(self) -> None:
        for _ in range(8):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """The server answers all, the clients answer all."""
        for _ in range(200):
            await self.settle()
            if all(exchange.done and not exchange.interim for exchange, _, _ in self.requests):
                break
            self.reply(0)
            self.retry(0)
            self.serve(0)
            await asyncio.sleep(0.0001)
        self.check()
        link = self.relay.links["one"]
        assert not link.in_flight
        assert not link._queue
        assert not self.relay.parking._waiting
        assert not self.relay.parking._by_exchange
        assert not self.log.open
        assert self.log.ended == len(self.requests)
        for session in self.sessions:
            assert not session.exchanges
            assert not session._questions
        if self.channel is not None:
            assert not self.channel.pending
            assert not self.channel._answering
            await self.channel.close()
        await self.relay.close()
        await cancel_and_wait(*(task for task in asyncio.all_tasks() if task is not asyncio.current_task()))

    def check(self) -> None:
        for channel, question, callers in self.asked:
            answer = channel.answers.get(question)  # none if the server had ended
            assert answer is not None or channel.closed.done()
            if answer is not None and "content" in answer:
                assert callers == {"ab"[answer["content"]["by"] % 2]}
                self.answered += 1
        for exchange, mark, _ in self.requests:
            answer = exchange.last_answer
            assert answer is not None, f"{mark} was never answered"
            assert not exchange.interim
            if exchange.cancelled:
                continue
            if answer.error is not None:
                error = json.loads(bytes(answer.error))
                assert error["data"]["code"] in ("upstream-gone", "server-not-ready"), error
            else:
                assert json.loads(bytes(answer.result or b""))["mark"] == mark


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(0, 3), st.integers(1, 3)),
        st.tuples(
            st.sampled_from(
                ["serve", "serve", "serve_again", "cancel", "ask", "ask", "reply", "retry", "retry", "die"]
            ),
            st.integers(0, 5),
        ),
        st.just(("settle",)),
    ),
    max_size=40,
)


async def play(steps: list[tuple[Any, ...]], *, modern: bool) -> World:
    world = World(modern=modern)
    await world.begin()
    for step, *arguments in steps:
        if step == "settle":
            await world.settle()
            await asyncio.sleep(0.0001)
        else:
            getattr(world, step)(*arguments)
    if world.channel is None:
        world.connect()
    await world.finish()
    return world


@pytest.mark.parametrize("modern", [False, True])
@given(STEPS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_request_gets_one_answer_its_own(modern: bool, steps: list[tuple[Any, ...]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parking, "GATHER_SECONDS", 0)
        asyncio.run(play(steps, modern=modern))

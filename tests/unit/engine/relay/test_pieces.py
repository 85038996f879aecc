"""The relay's small parts, each against what it should be in plain words."""

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.errors import CallboardError
from callboard.engine.relay import bridge, seal
from callboard.engine.relay import catalogue as catalogue_module
from callboard.engine.relay.catalogue import PROMPTS, TOOLS, Catalogue, Kind
from callboard.engine.relay.envelope import (
    Raw,
    answer_bytes,
    answer_of,
    decode_envelope,
    decode_params,
    notification_bytes,
    raw_json,
    request_bytes,
    sse_event,
)
from callboard.engine.relay.seal import Seal
from callboard.engine.relay.views import _fits
from callboard.engine.upstream.base import Answer, Closed, Params, ServerInfo
from tests.support.gateway import until

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(TEXTS, JSON, max_size=4)


# ---- messages


@given(st.integers() | TEXTS, OBJECTS, st.booleans(), st.sampled_from([None, 1]))
def test_what_messages_carry_passes_byte_for_byte(number: Any, body: Any, ascii_only: bool, indent: Any) -> None:
    members = {"jsonrpc": "2.0", "id": number, "params": body, "result": body}
    message = json.dumps(members, ensure_ascii=ascii_only, indent=indent).encode()
    envelope = decode_envelope(message)
    assert bytes(envelope.result) in message
    assert json.loads(bytes(envelope.id)) == number
    assert json.loads(bytes(envelope.params)) == body
    answer = answer_of(envelope)
    assert answer is not None
    assert json.loads(answer_bytes(bytes(envelope.id), answer)) == {"jsonrpc": "2.0", "id": number, "result": body}
    params = decode_params(envelope.params)
    assert json.loads(request_bytes(bytes(envelope.id), "m", params))["params"] == body
    assert json.loads(notification_bytes("m", params))["params"] == body


@given(st.text(st.sampled_from('\ud83d\ude00\udc00ab\\"u'), max_size=8))
def test_half_characters_are_replaced_and_nothing_else(text: str) -> None:
    message = json.dumps({"id": 1, "result": {"text": text}}).encode()
    found = json.loads(bytes(decode_envelope(message).result))["text"]
    expected = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")  # pairs become one
    assert found == re.sub("[\ud800-\udfff]", "\ufffd", expected)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_message_or_are_not(data: bytes) -> None:
    try:
        decode_envelope(data)
    except msgspec.DecodeError:
        return


@given(st.sampled_from(['{"a":\n1}', '{"a":\r\n1}', "{\r}", '{"a":"\\n"}']))
def test_an_event_is_one_event(text: str) -> None:
    event = sse_event(text.encode())
    assert event.startswith(b"event: message\ndata: ")
    assert event.endswith(b"\n\n")
    assert event.count(b"\n") == 3
    assert json.loads(event[len(b"event: message\ndata: ") :]) == json.loads(text)


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ('{"id":1,"result":{},"error":null}', Answer(result=b"{}")),
        ('{"id":1,"result":null,"error":null}', Answer(result=b"null")),
        ('{"id":1,"result":null,"error":{"code":1}}', Answer(error=b'{"code":1}')),
        ('{"id":1,"result":{},"error":{"code":1}}', Answer(error=b'{"code":1}')),
        ('{"id":1}', None),
    ],
)
def test_a_null_error_is_none(message: str, answer: Answer | None) -> None:
    found = answer_of(decode_envelope(message.encode()))
    if answer is None:
        assert found is None
    else:
        assert found is not None
        assert (bytes(found.result or b""), bytes(found.error or b"")) == (answer.result or b"", answer.error or b"")


# ---- across the eras


@pytest.mark.parametrize("text", ["{}", "{ }", '{"a":1}', ' {"a": 1} '.strip(), '{"a":"resultType"}'])
def test_a_legacy_result_gets_what_a_modern_client_needs(text: str) -> None:
    for method in ("tools/call", "resources/read"):
        found = json.loads(bytes(bridge.to_modern_client(method, Answer(result=text.encode())).result or b""))
        assert found.pop("resultType") == "complete"
        assert (found.pop("cacheScope", None), found.pop("ttlMs", None)) == (
            ("private", 0) if method == "resources/read" else (None, None)
        )
        assert found == json.loads(text)


@pytest.mark.parametrize("text", ["null", "[]", '"x"', "5"])
def test_a_result_that_is_no_object_is_an_error_to_a_modern_client(text: str) -> None:
    error = json.loads(bytes(bridge.to_modern_client("tools/call", Answer(result=text.encode())).error or b""))
    assert error == {"code": -32603, "message": "The server's result is no object."}


@pytest.mark.parametrize(
    "error",
    ['{"code":-32002,"message":"m","data":{"uri":"x"}}', '{"code":-1,"message":"m","more":[1e400]}', "5", "null"],
)
def test_errors_pass_but_for_the_code_of_missing_resources(error: str) -> None:
    found = bytes(bridge.to_modern_client("resources/read", Answer(error=error.encode())).error or b"")
    assert json.loads(found.replace(b"-32602", b"-32002")) == json.loads(error)


# ---- states


@given(OBJECTS, OBJECTS, TEXTS, st.binary(max_size=5))
def test_a_state_opens_for_what_it_was_made_for_alone(params: Any, others: Any, inner: str, rubbish: bytes) -> None:
    made = Seal()
    raw, changed = decode_params(raw_json(params)), decode_params(raw_json(others))
    state = made.make("a", "s", "tools/call", raw, agreed=True, parked="key", inner=json.dumps(inner).encode())
    respelt = decode_params(json.dumps(params, indent=2, sort_keys=True).encode())
    rounds = {"_meta": Raw(b"1"), "inputResponses": Raw(b"2"), "requestState": Raw(b"3")}
    opened = made.open(state, "a", "tools/call", {**respelt, **rounds})
    assert opened is not None
    assert (opened.server, opened.agreed, opened.parked) == ("s", True, "key")
    assert json.loads(bytes(opened.inner)) == inner
    assert made.open(state, "b", "tools/call", raw) is None
    assert made.open(state, "a", "prompts/get", raw) is None
    assert Seal().open(state, "a", "tools/call", raw) is None
    assert made.open(state + "A", "a", "tools/call", raw) is None
    assert made.open(state[:-2], "a", "tools/call", raw) is None
    assert made.open(rubbish.decode("latin-1"), "a", "tools/call", raw) is None
    if json.dumps(params, sort_keys=True) != json.dumps(others, sort_keys=True):
        assert made.open(state, "a", "tools/call", changed) is None


def test_a_state_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Seal()
    state, unused = (made.make("a", "s", "m", {}, agreed=False) for _ in range(2))
    assert made.open(state, "a", "m", {}) is not None
    monkeypatch.setattr(seal.time, "time", lambda: 1e11)
    assert made.open(unused, "a", "m", {}) is None


def test_a_state_is_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when more were used than can be remembered: then older ones are refused."""
    monkeypatch.setattr(seal, "MAX_SPENT", 2)
    made, clock = Seal(), [0.0]
    monkeypatch.setattr(seal.time, "time", lambda: clock[0])
    states = []
    for clock[0] in range(5):
        states.append(made.make("a", "s", "m", {}, agreed=True))
    for state in states[1:4]:
        assert made.open(state, "a", "m", {}) is not None
    for state in states[:4]:
        assert made.open(state, "a", "m", {}) is None
    assert made.open(states[4], "a", "m", {}) is not None
    assert len(made._spent) == 2
    clock[0] = 4.5 + seal.STATE_SECONDS
    late = made.make("a", "s", "m", {}, agreed=True)
    assert made.open(late, "a", "m", {}) is not None
    assert len(made._spent) == 1  # what has expired need not be remembered


@pytest.mark.parametrize("value", [b"9" * 10_000, b"[" * 900 + b"]" * 900, b"1e999", b"1E2", b"-0"])
def test_states_of_odd_arguments(value: bytes) -> None:
    made = Seal()
    params = {"arguments": Raw(value)}
    state = made.make("a", "s", "m", params, agreed=False)
    assert made.open(state, "a", "m", params) is not None
    assert made.open(state, "a", "m", {"arguments": Raw(b"1")}) is None


# ---- templates


@given(
    st.lists(st.sampled_from(["a", "b", "/", "{x}", "{+y}", "{"]), max_size=6).map("".join),
    st.text("ab/{}", max_size=8),
)
def test_a_uri_fits_a_template_as_a_pattern_would_have_it(template: str, uri: str) -> None:
    parts = re.split(r"\{[^}]*\}", template)
    assert _fits(template, uri) is (re.fullmatch(".*".join(map(re.escape, parts)), uri, re.DOTALL) is not None)


def test_a_template_of_a_hostile_server_takes_no_time() -> None:
    template = "x://" + "{a}b" * 2000 + "c"
    assert not _fits(template, "x://" + "b" * 100_000)


# ---- the catalogue


class Server:
    """An upstream whose answers are given by hand."""

    def __init__(self, **capabilities: Any) -> None:
        self.info = ServerInfo("2025-11-25", False, capabilities=capabilities)
        self.closed: asyncio.Future[Closed] = asyncio.get_running_loop().create_future()
        self.asked: list[str] = []
        self.gates: list[asyncio.Future[Answer]] = []

    async def request(self, method: str, params: Params | None = None, *, seconds: float = 30) -> Answer:
        self.asked.append(method)
        self.gates.append(asyncio.get_running_loop().create_future())
        return await self.gates[-1]

    def answer(self, *names: str) -> None:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        self.gates[-1].set_result(Answer(result=json.dumps({"tools": tools, "prompts": tools}).encode()))

    def end(self) -> None:
        self.closed.set_result(Closed("gone"))
        self.gates[-1].set_exception(CallboardError("upstream-gone", "gone"))


async def step() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def names(catalogue: Catalogue, kind: Kind = TOOLS) -> list[str]:
    return [item.key for item in catalogue.offer("one").items(kind)]


async def test_what_is_wanted_while_lists_are_read_follows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "AGAIN_SECONDS", 0)
    changed: list[Kind] = []
    catalogue = Catalogue(None, lambda server, kind: changed.append(kind), lambda server: None)
    server: Any = Server(tools={}, prompts={})
    catalogue.read("one", server)
    await step()
    for _ in range(100):
        catalogue.read("one", server, (TOOLS,))
    server.answer("a")
    await step()
    server.answer("p")
    await step()
    server.answer("a", "b")
    await catalogue.settled("one")
    assert server.asked == ["tools/list", "prompts/list", "tools/list"]
    assert names(catalogue) == ["a", "b"]
    assert names(catalogue, PROMPTS) == ["p"]
    assert changed == [TOOLS, PROMPTS, TOOLS]


async def test_a_server_started_anew_while_the_old_one_was_read_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "AGAIN_SECONDS", 0)
    catalogue = Catalogue(None, lambda server, kind: None, lambda server: None)
    old: Any = Server(tools={})
    catalogue.read("one", old)
    await step()
    new: Any = Server(tools={})
    catalogue.read("one", new)  # it is there before the reading of the old one has failed
    old.end()
    await step()
    new.answer("a")
    await catalogue.settled("one")
    assert names(catalogue) == ["a"]
    assert not catalogue.offer("one").cached
    assert catalogue.offer("one").problems == []


async def test_changes_soon_after_a_reading_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "AGAIN_SECONDS", 0.1)
    catalogue = Catalogue(None, lambda server, kind: None, lambda server: None)
    server: Any = Server(tools={})
    catalogue.read("one", server)
    await step()
    server.answer("a")
    await catalogue.settled("one")
    for _ in range(5):
        catalogue.read("one", server)
        await step()
    assert len(server.asked) == 1
    await until(lambda: len(server.asked) == 2)
    server.answer("b")
    await catalogue.settled("one")
    assert names(catalogue) == ["b"]


async def test_a_forgotten_server_is_not_read_on() -> None:
    catalogue = Catalogue(None, lambda server, kind: None, lambda server: None)
    server: Any = Server(tools={})
    catalogue.read("one", server)
    await step()
    catalogue.forget("one")
    await step()
    assert server.gates[-1].cancelled()
    assert names(catalogue) == []

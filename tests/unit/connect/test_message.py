import json

import msgspec
import pytest

from callboard.connect.message import answered, on_one_line, parse

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


def test_request_of_each_era() -> None:
    legacy = parse(b'{"id":"a","method":"tools/call","params":{"name":"x"}}')
    assert (legacy.ids, legacy.method, legacy.modern, legacy.headers) == ((b'"a"',), "tools/call", False, {})
    modern = parse(json.dumps({"id": 1, "method": "server/discover", "params": {"_meta": META}}).encode())
    assert modern.modern
    assert modern.headers == {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}


def test_initialize_is_of_the_legacy_era_whatever_its_meta_says() -> None:
    line = json.dumps({"id": 1, "method": "initialize", "params": {"_meta": META}}).encode()
    assert not parse(line).modern


@pytest.mark.parametrize(
    "params",
    ["[1]", "null", '"x"', '{"_meta":[]}', '{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}', '{"name":{}}'],
)
def test_odd_params_are_left_to_the_gateway(params: str) -> None:
    message = parse(f'{{"id":1,"method":"tools/call","params":{params}}}'.encode())
    assert message.ids == (b"1",)
    assert not message.modern


def test_notification_answer_and_batch() -> None:
    assert parse(b'{"method":"notifications/cancelled","params":{"requestId":"7"}}').target == b'"7"'
    assert parse(b'{"id":1,"result":{}}').ids == ()
    assert parse(b'[{"id":1,"method":"a"},{"method":"b"},{"id":2,"result":{}},{"id":"3","method":"c"}]').ids == (
        b"1",
        b'"3"',
    )


@pytest.mark.parametrize("line", [b"", b"42", b'"x"', b"{", b"[1]"])
def test_what_is_no_message(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        parse(line)


def test_only_answers_answer() -> None:
    assert answered(b'{"id":1,"result":null}') == (b"1",)
    assert answered(b'{"id":"1","error":{}}') == (b'"1"',)
    assert answered(b'[{"id":1,"result":{}},{"id":2,"method":"x"}]') == (b"1",)
    for other in (b'{"id":1,"method":"ping"}', b'{"method":"x"}', b"rubbish", b'{"id":1}'):
        assert answered(other) == ()


def test_line_breaks_between_tokens_go() -> None:
    text = b'{"a":\r\n"b\\n"\n}'
    assert json.loads(on_one_line(text)) == json.loads(text)
    assert b"\n" not in on_one_line(text)

"""No secret gets through, and nothing else is touched."""

import base64
import json
import re
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.redact import MASK, Redactor, mask_addresses

SECRET = '>>?>>?p@ss/wörd+"1\\2" tail'
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQ==\n-----END PRIVATE KEY-----\n"


def spellings(value: str) -> list[str]:
    """Ways in which a server may print a secret."""
    raw = value.encode()
    return [
        value,
        json.dumps(value),
        json.dumps(value, ensure_ascii=False),
        json.dumps({"text": json.dumps({"v": value})}),
        quote(value),
        quote(value, safe=""),
        re.sub("%..", lambda code: code.group().lower(), quote(value, safe="")),
        quote_plus(value),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        base64.b64encode(b"user:" + raw).decode(),
        base64.b64encode(b"me:" + raw + b"!").decode(),
        base64.b64encode(b"x:" + raw).decode(),
    ]


@pytest.mark.parametrize("spelled", spellings(SECRET))
def test_a_known_value_is_masked_however_it_is_spelled(spelled: str) -> None:
    redactor = Redactor([SECRET])
    for masked in (
        redactor.text(f"before {spelled} after"),
        redactor.data(f"before {spelled} after".encode()).decode(),
    ):
        assert MASK in masked
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        assert not any(part in masked for part in ("wörd", "w\\u00f6rd", "tail", "w%C3%B6rd", quote(SECRET)[4:12]))
        assert len(masked) < len("before  after") + 40


@given(st.text(min_size=8, max_size=60), st.binary(max_size=5), st.binary(max_size=5))
def test_any_value_of_some_length_is_found_in_base64(value: str, before: bytes, after: bytes) -> None:
    if not value.strip():
        return
    encoded = base64.b64encode(before + value.encode() + after).decode()
    assert MASK in Redactor([value]).text(encoded)


@given(
    st.text("abcdefghXYZ0189_-+/=. \n\\\"'é漢😀", min_size=8),
    st.text('gh é\n"{}:,'),
    st.text('gh é\n"{}:,'),
)
def test_a_payload_stays_json_and_loses_the_value(value: str, left: str, right: str) -> None:
    payload = json.dumps({"a": left + value + right, "n": 1}, ensure_ascii=False).encode()
    masked = Redactor([value]).data(payload)
    assert isinstance(json.loads(masked), dict)
    if value.strip():
        assert json.dumps(value, ensure_ascii=False)[1:-1].encode() not in masked


def test_lines_of_a_long_secret_are_masked_one_by_one() -> None:
    redactor = Redactor([PEM])
    for line in PEM.splitlines():
        assert redactor.text(line) == MASK


def test_short_values_are_masked_only_where_they_stand_alone() -> None:
    redactor = Redactor(["abcd", "xy"])
    assert redactor.text("pin abcd, xabcdx, xy") == "pin ***, xabcdx, xy"


def test_empty_values_mask_nothing() -> None:
    assert Redactor(["", " ", "    "]).text("a    b") == "a    b"


@pytest.mark.parametrize(
    ("payload", "masked"),
    [
        ('{"password": "hunter2", "user": "me"}', '{"password": "***", "user": "me"}'),
        ('{"Authorization":"Bearer abc","x":{"API_KEY":"a\\"b"}}', '{"Authorization":"***","x":{"API_KEY":"***"}}'),
        ('{"text":"{\\"token\\": \\"a b\\", \\"n\\": 1}"}', '{"text":"{\\"token\\": \\"***\\", \\"n\\": 1}"}'),
        ('{"text":"Authorization: Bearer abc.def\\nok"}', '{"text":"Authorization: Bearer ***\\nok"}'),
        ('{"url":"https://me:pw@host/x?api_key=1234&q=1"}', '{"url":"https://me:***@host/x?api_key=***&q=1"}'),
        ('{"clientSecret":""}', '{"clientSecret":""}'),
    ],
)
def test_what_stands_under_a_secret_name_is_masked(payload: str, masked: str) -> None:
    assert Redactor().data(payload.encode()).decode() == masked
    json.loads(masked)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("connecting with token=abc123 to host", "connecting with token=*** to host"),
        ("DB_PASSWORD='a b' started", "DB_PASSWORD='***' started"),
        ("headers {'x-api-key': 'abc', 'accept': 'json'}", "headers {'x-api-key': '***', 'accept': 'json'}"),
        ("> authorization: Basic dXNlcjpwYXNz", "> authorization: Basic ***"),
        ("got bearer eyJhbGciOiJIUzI1NiJ9.e30.abc", "got bearer ***"),
        ("postgresql://me:pw@db/x", "postgresql://me:***@db/x"),
    ],
)
def test_log_lines(line: str, masked: str) -> None:
    assert Redactor().text(line) == masked


@pytest.mark.parametrize(
    "text",
    [
        "SyntaxError: Unexpected token: < in JSON",
        "invalid password: try again",
        '{"max_tokens": 4096, "token_count": "12", "nextPageToken": "abc", "key": "value", "primary_key": "id"}',
        "the secret of success = work",
        "http://127.0.0.1:4470/mcp and http://[::1]:80/",
        "keyboard=qwertz monkey=banana",
        '{"properties":{"token":{"type":"string"}}}',
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor(["another-secret"]).text(text) == text
    assert Redactor().data(text.encode()) == text.encode()


def test_bytes_that_are_no_text_pass() -> None:
    payload = b'\xff\xfe {"token": "abc\xff"}'
    assert Redactor().data(payload) == b'\xff\xfe {"token": "***"}'


def test_known_values_alone_are_masked_in_large_payloads() -> None:
    redactor = Redactor([SECRET])
    payload = json.dumps({"password": "guess", "seen": SECRET}).encode()
    masked = redactor.known(payload)
    assert json.loads(masked) == {"password": "guess", "seen": MASK}
    assert redactor.known(b'{"password": "guess"}') == b'{"password": "guess"}'


@pytest.mark.parametrize(
    "name",
    ["token", "secret", "passwd", "Passphrase", "db_pwd", "API_KEY", "credential", "Authorization", "cookie"],
)
@pytest.mark.parametrize("padding", ["", "x" * 1000])
def test_every_kind_of_name_is_looked_for_in_payloads(name: str, padding: str) -> None:
    payload = f'{{"{name}": "hunter2hunter2", "text": "{padding}"}}'
    assert Redactor().data(payload.encode()).decode() == payload.replace("hunter2hunter2", MASK)


@pytest.mark.parametrize("padding", ["", "x" * 1000])
def test_bearers_and_known_values_are_looked_for_in_payloads(padding: str) -> None:
    payload = f'{{"text": "curl with Bearer abcdef0123456789 and xyzzy-plugh {padding}"}}'
    masked = Redactor(["xyzzy-plugh"]).data(payload.encode()).decode()
    assert masked == payload.replace("abcdef0123456789", MASK).replace("xyzzy-plugh", MASK)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("GET https://h.example/a/b?x=1&y=2 failed", "GET https://h.example/a/b?*** failed"),
        ("'http://user:pass@h:80/x.mcpb?sig=abc#part'", "'http://***@h:80/x.mcpb?***'"),
        ("at https://token@h/ and wss://h#token", "at https://***@h/ and wss://h#***"),
        ("postgresql+psycopg://u:p%40@h/d", "postgresql+psycopg://***@h/d"),
        ("https://h/a@b?c", "https://h/a@b?***"),
        ("listening on http://127.0.0.1:4470; what? a://b", "listening on http://127.0.0.1:4470; what? a://b"),
    ],
)
def test_of_addresses_only_the_place_is_left(text: str, masked: str) -> None:
    assert mask_addresses(text) == masked

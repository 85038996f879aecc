"""Values of headers that mirror a request's body."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.mcp_headers import annotated, decode_value, encode_value, same_value, text_of, value_at

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXTS | st.sampled_from(["=?base64?x?=", " x", "x ", "\t", "a\tb", "", "=?base64?", "a\r\nX-Evil: 1"]))
def test_what_is_encoded_is_decoded(text: str) -> None:
    encoded = encode_value(text)
    assert re.fullmatch(r"[\x20-\x7e\t]*", encoded)
    assert encoded == encoded.strip()
    assert decode_value(encoded) == text


@given(st.text(max_size=50))
def test_any_header_is_read_or_refused(header: str) -> None:
    decoded = decode_value(header)
    assert decoded is None or isinstance(decoded, str)


@given(st.integers() | st.booleans() | TEXTS)
def test_a_value_is_the_same_as_its_own_text(value: Any) -> None:
    text = text_of(value)
    assert text is not None
    assert same_value(text, value) or abs(value) >= 10**100


@pytest.mark.parametrize(
    ("header", "value", "same"),
    [
        ("42.0", 42, True),
        ("042", 42, True),
        ("4_2", 42, False),
        ("4.2e1", 42, False),
        ("nan", 42, False),
        ("inf", 42, False),
        ("", 42, False),
        ("9223372036854775809", 2**63, False),
        ("1", True, False),
        ("true", True, True),
        ("True", True, False),
        ("null", None, False),
        ("[]", [], False),
    ],
)
def test_integers_compare_as_numbers_and_all_else_as_text(header: str, value: Any, same: bool) -> None:
    assert same_value(header, value) is same


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_annotated_arguments_are_found_with_their_paths() -> None:
    found = annotated(
        schema(
            a={"type": "string", "x-mcp-header": "Region"},
            b=schema(c={"type": "integer", "x-mcp-header": "N"}),
            **{"x-mcp-header": {"type": "string"}},
        )
    )
    assert found == {"region": ("a",), "n": ("b", "c")}
    assert value_at({"b": {"c": 5}}, found["n"]) == 5
    assert value_at({"b": []}, found["n"]) is None
    assert value_at(None, found["n"]) is None


@pytest.mark.parametrize(
    "wrong",
    [
        schema(a={"type": "string", "x-mcp-header": ""}),
        schema(a={"type": "string", "x-mcp-header": "a b"}),
        schema(a={"type": "string", "x-mcp-header": 5}),
        schema(a={"type": "number", "x-mcp-header": "A"}),
        schema(a={"type": "object", "x-mcp-header": "A"}),
        schema(a={"type": ["string", "null"], "x-mcp-header": "A"}),
        schema(a={"type": "string", "x-mcp-header": "A"}, b={"type": "string", "x-mcp-header": "a"}),
        schema(a={"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}),
        {"type": "object", "oneOf": [schema(a={"type": "string", "x-mcp-header": "A"})]},
        {"type": "object", "x-mcp-header": "A"},
    ],
)
def test_wrong_annotations_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="x-mcp-header"):
        annotated(wrong)


def test_schemas_without_end_end() -> None:
    deep: dict[str, Any] = {"type": "string", "x-mcp-header": "A"}
    for _ in range(500):
        deep = schema(a=deep)
    assert annotated(deep) == {}
    assert annotated(True) == annotated(None) == annotated({"properties": []}) == {}

"""How much text of a result a client gets."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard.core.result_bound import bounded_result


def bounded(result: Any, characters: int) -> Any:
    return json.loads(bounded_result(json.dumps(result).encode(), characters))


def text(*texts: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts]}


def test_a_long_text_is_cut_and_says_how_much_is_missing() -> None:
    cut = bounded(text("x" * 9000), 8000)["content"][0]["text"]
    assert cut == "x" * 8000 + "... [1000 characters truncated]"
    assert len(cut) == 8031


def test_characters_are_counted_not_bytes_and_never_torn() -> None:
    assert (
        bounded(text("ü€😀" * 100), 200)["content"][0]["text"] == ("ü€😀" * 67)[:200] + "... [100 characters truncated]"
    )
    whole = text("😀" * 100)
    assert bounded(whole, 100) == whole


def test_all_blocks_share_the_bound_and_pictures_pass() -> None:
    picture = {"type": "image", "data": "A" * 5000, "mimeType": "image/png"}
    result = {"content": [*text("a" * 80)["content"], picture, *text("b" * 80, "c" * 10)["content"]], "isError": False}
    cut = bounded(result, 100)
    assert [block.get("text", "picture") for block in cut["content"]] == [
        "a" * 80,
        "picture",
        "b" * 20 + "... [60 characters truncated]",
        "... [10 characters truncated]",
    ]
    assert cut["content"][1] == picture
    assert cut["isError"] is False


def test_resources_and_prompts_too() -> None:
    assert bounded({"contents": [{"uri": "u", "text": "x" * 200}]}, 100)["contents"][0]["text"].endswith(
        "[100 characters truncated]"
    )
    message = {"role": "user", "content": {"type": "text", "text": "x" * 200}}
    assert bounded({"messages": [message]}, 150)["messages"][0]["content"]["text"].endswith("[50 characters truncated]")
    embedded = {"type": "resource", "resource": {"uri": "u", "text": "x" * 200}}
    assert len(bounded({"content": [embedded]}, 100)["content"][0]["resource"]["text"]) < 140


def test_structured_content_keeps_its_shape() -> None:
    rows = [{"id": number, "text": "y" * 50} for number in range(100)]
    cut = bounded({"content": [], "structuredContent": {"rows": rows, "total": 100}}, 1000)["structuredContent"]
    assert cut["total"] == 100
    assert 0 < len(cut["rows"]) < 30
    assert all(row.keys() == {"id", "text"} for row in cut["rows"])


def test_what_is_not_cut_stays_as_it_was_written() -> None:
    raw = b'{"content":[{"type":"text","text":"%s","n":12345678901234567890123}],"other":[1.50, null]}' % (b"x" * 300)
    cut = bounded_result(raw, 200)
    assert b'"n":12345678901234567890123' in cut
    assert b"[1.50, null]" in cut
    assert bounded_result(b"[1,2]", 100) == b"[1,2]"
    assert bounded_result(b'{"content":7}', 100) == b'{"content":7}'


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=20,
)


@given(
    texts=st.lists(st.text(max_size=200), max_size=5), structured=_json, bound=st.integers(min_value=100, max_value=300)
)
def test_whatever_comes_stays_json_within_the_bound(texts: list[str], structured: Any, bound: int) -> None:
    cut = bounded({**text(*texts), "structuredContent": structured}, bound)
    kept = [block["text"].split("... [")[0] for block in cut["content"]]
    assert sum(map(len, kept)) <= bound
    assert type(cut["structuredContent"]) is type(structured)

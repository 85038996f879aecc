from hypothesis import given
from hypothesis import strategies as st

from callboard.engine.calls.record import cut_utf8, error_said, says_error


@given(st.text(), st.integers(0, 40))
def test_cut_text_is_the_longest_whole_beginning_that_fits(text: str, limit: int) -> None:
    data = text.encode()
    cut = cut_utf8(data, limit)
    assert data.startswith(cut)
    cut.decode()
    assert len(cut) <= limit
    if len(data) > limit:
        assert limit - len(cut) < 4
    else:
        assert cut == data


def test_only_a_true_is_error_says_error() -> None:
    assert says_error(b'{"content":[],"isError":true}')
    assert says_error(memoryview(b'{"isError": true, "content": []}'))
    assert not says_error(b'{"content":[],"isError":false}')
    assert not says_error(memoryview(b'{"content":[]}'))
    assert not says_error(b'{"content":[{"type":"text","text":"{\\"isError\\":true}"}]}')
    assert not says_error(b'{"isError":"true"}')
    assert not says_error(b"[1]")
    assert not says_error(b'"isError"')
    assert not says_error(b"")


def test_what_a_failure_says_is_its_first_text_on_one_line() -> None:
    image = b'{"type":"image","data":"AA==","mimeType":"image/png"}'
    text = b'{"type":"text","text":"no such\\n  file"}'
    assert error_said(b'{"isError":true,"content":[' + image + b"," + text + b"]}") == "no such file"
    assert error_said(memoryview(b'{"isError":true,"content":[{"type":"text","text":" "}]}')) == ""
    assert error_said(b'{"isError":true}') == ""
    assert error_said(b'{"isError":true,"content":"odd"}') == ""
    assert error_said(b"[]") == ""

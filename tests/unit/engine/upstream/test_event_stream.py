"""Server-sent events, in whatever pieces they come."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.engine.upstream import event_stream
from callboard.engine.upstream.event_stream import EventParser, ServerEvent, TooLargeError

LINES = st.sampled_from(
    [
        *(b"data", b"data:", b"data: x", b"data:x", b"data:  x ", b'data: {"a": 1}', b"data: \xff"),
        *(b"event: e", b"event:", b"id: 1", b"id:", b"id: 2\0", b"retry: 50", b"retry: x"),
        *(b": comment", b":", b"", b"", b"unknown: 1", b"data\xc3\xa9: x"),
    ]
)


def model(stream: bytes) -> list[ServerEvent]:
    """The specification's own steps, on the whole stream at once."""
    events, data, name, last = [], b"", "", ""
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    for line in lines[:-1]:
        if not line:
            if data:
                events.append(ServerEvent(name or "message", data[:-1], last))
            data, name = b"", ""
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if field == b"data":
            data += value + b"\n"
        elif field == b"event":
            name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            last = value.decode("utf-8", "replace")
    return events


@given(
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"]))),
    st.lists(st.integers(0, 5)),
    st.booleans(),
)
def test_events_are_cut_as_the_specification_says(
    lines: list[tuple[bytes, bytes]], sizes: list[int], marked: bool
) -> None:
    stream = (b"\xef\xbb\xbf" if marked else b"") + b"".join(line + end for line, end in lines)
    parser = EventParser()
    found, at = [], 0
    for size in sizes:
        found += parser.feed(stream[at : at + size])
        at += size
    found += parser.feed(stream[at:])
    assert found == model(stream)


def feed_all(pieces: list[bytes]) -> None:
    parser = EventParser()
    for piece in pieces:
        parser.feed(piece)


def test_a_stream_says_how_long_to_wait_and_where_it_was() -> None:
    parser = EventParser()
    assert (parser.retry_ms, parser.last_id) == (None, "")
    parser.feed(b"retry: 250\nid: seven\n\nretry: no\n")
    assert (parser.retry_ms, parser.last_id) == (250, "seven")


def test_what_has_no_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT", 1000)
    for pieces in ([b"x" * 100] * 20, [b"data:\n"] * 2000):
        with pytest.raises(TooLargeError):
            feed_all(pieces)
    parser = EventParser()
    for _ in range(100):
        assert len(parser.feed(b"data: " + b"x" * 500 + b"\n\n")) == 1


def test_a_large_event_takes_time_in_proportion() -> None:
    parser = EventParser()
    piece = b"x" * 4096
    parser.feed(b"data: ")
    for _ in range(5000):
        assert parser.feed(piece) == []
    (event,) = parser.feed(b"\n\n")
    assert len(event.data) == 5000 * 4096

import itertools

from hypothesis import given
from hypothesis import strategies as st

from callboard.connect.sse import SseEvent, SseParser

STREAM = (
    b": comment\n\n"
    b"event: message\nid: 1\ndata: one\n\n"
    b"data:two\r\ndata: lines\r\n\r\n"
    b"data: three\r\r"
    b"retry: 10\n\nid: 2\ndata\n\n"
    b"data: unfinished\n"
)
EVENTS = [
    SseEvent(b"one", "1"),
    SseEvent(b"two\nlines", "1"),
    SseEvent(b"three", "1"),
    SseEvent(b"", "2"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_however_the_stream_is_cut(cuts: list[int]) -> None:
    parser = SseParser()
    events = []
    marks = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(marks):
        events += parser.feed(STREAM[start:end])
    assert events == EVENTS


def test_event_in_many_pieces_is_put_together_once() -> None:
    parser = SseParser()
    for _ in range(10_000):
        assert parser.feed(b"") == []
    assert parser.feed(b"data: ") == []
    for _ in range(10_000):
        assert parser.feed(b"x" * 100) == []
    assert parser.feed(b"\n\n") == [SseEvent(b"x" * 1_000_000)]

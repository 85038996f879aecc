"""Reading trace context: what is passed on, and what begins a new trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.trace_context import TraceContext, from_headers, parse_traceparent

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_names_a_span() -> None:
    context = parse_traceparent(GOOD)
    assert context == TraceContext(int(TRACE, 16), int(SPAN, 16), 1)
    assert context.sampled
    assert str(context) == GOOD


def test_one_that_is_not_recorded_says_so() -> None:
    context = parse_traceparent(f"00-{TRACE}-{SPAN}-02")
    assert context is not None
    assert not context.sampled


@pytest.mark.parametrize("text", [f"cc-{TRACE}-{SPAN}-01", f"cc-{TRACE}-{SPAN}-01-what-will-be"])
def test_later_versions_are_read_as_far_as_this_one_goes(text: str) -> None:
    assert parse_traceparent(text) == parse_traceparent(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01-more",
        f"cc-{TRACE}-{SPAN}-01x",
        f" {GOOD}",
        f"{GOOD}\n",
    ],
)
def test_a_malformed_one_is_none(text: str) -> None:
    assert parse_traceparent(text) is None


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 255))
def test_what_is_written_is_read(trace: int, span: int, flags: int) -> None:
    context = TraceContext(trace, span, flags)
    assert parse_traceparent(str(context)) == context


@given(st.text())
def test_anything_can_be_read(text: str) -> None:
    context = parse_traceparent(text)
    assert context is None or (context.trace_id and context.span_id)


def test_headers_become_members() -> None:
    headers = {
        b"traceparent": GOOD.encode(),
        b"tracestate": b"rojo=1,congo=2",
        b"baggage": b"user=alice",
        b"host": b"x",
    }
    assert from_headers(headers) == {"traceparent": GOOD, "tracestate": "rojo=1,congo=2", "baggage": "user=alice"}


def test_a_tracestate_without_its_trace_says_nothing() -> None:
    assert from_headers({b"traceparent": b"00-x", b"tracestate": b"a=1", b"baggage": b"b=2"}) == {"baggage": "b=2"}


@pytest.mark.parametrize("value", [b"a=\xc3\xbc", b"a=\x01", b"a=" + b"x" * 9000])
def test_what_is_no_header_for_passing_on_is_left_out(value: bytes) -> None:
    assert from_headers({b"baggage": value}) == {}

from hypothesis import given
from hypothesis import strategies as st

from callboard.core.backoff import JITTER, LONGEST, delay_before


def test_doubles_up_to_the_longest():
    assert [delay_before(n, first=1.0) for n in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]


def test_a_first_pause_above_the_longest_holds():
    assert delay_before(1, first=60.0) == 60.0
    assert delay_before(9, first=60.0) == 60.0


def test_no_pause_stays_no_pause():
    assert delay_before(5, first=0.0) == 0.0


@given(
    attempt=st.integers(0, 10**6),
    first=st.floats(0, 3600),
    longest=st.floats(1, 3600),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_jitter_only_shortens_and_only_so_much(attempt: int, first: float, longest: float, chance: float):
    full = delay_before(attempt, first=first, longest=longest)
    assert 0 <= full <= max(first, longest)
    assert full * (1 - JITTER) <= delay_before(attempt, first=first, longest=longest, chance=chance) <= full


@given(first=st.floats(0.001, 10), attempt=st.integers(1, 100))
def test_never_shorter_than_the_one_before(first: float, attempt: int):
    assert delay_before(attempt + 1, first=first) >= delay_before(attempt, first=first)
    assert delay_before(attempt, first=first) <= LONGEST

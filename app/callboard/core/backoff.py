"""How long to wait before the next try."""

LONGEST = 30.0  # seconds between the restarts of a server that may come back
LONGEST_WHEN_FAILED = 300.0  # seconds between the tries to reach a remote server that was given up
JITTER = 0.25  # at most this part is taken off, so that many servers do not come back at one moment
_MOST_DOUBLINGS = 32


def delay_before(attempt: int, *, first: float, longest: float = LONGEST, chance: float = 0.0) -> float:
    """Seconds before the ``attempt``-th try (1 is the first): ``first``, doubling each time, at most ``longest``.

    ``chance``, from 0 up to 1, is the luck of the draw for the jitter. A ``first`` above ``longest`` holds.
    """
    full = min(max(longest, first), first * 2.0 ** min(max(attempt - 1, 0), _MOST_DOUBLINGS))
    return full * (1.0 - JITTER * chance)

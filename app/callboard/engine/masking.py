"""Keeps the values of secrets in use out of everything that is stored or shown."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from callboard.core.redact import Redactor, mask_addresses

NEWEST: Final = 32  # values that are kept of a source which changes them again and again
SMALL: Final = 2048  # bytes up to which looking for names costs a few microseconds


class Masking:
    """The values that were ever handed to a server in this engine's life. Any thread may mask; the loop learns."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._passing: dict[str, deque[str]] = {}
        self._redactor = Redactor(())

    def learn(self, values: Iterable[str]) -> None:
        """From now on these values are masked too."""
        more = self._values | {value for value in values if value}
        if more != self._values:
            self._values = more
            self._rebuild()

    def learn_passing(self, source: str, values: Iterable[str]) -> None:
        """Mask these too, until the same ``source`` has named many newer ones: tokens that live for an hour."""
        known = self._passing.setdefault(source, deque(maxlen=NEWEST))
        new = [value for value in dict.fromkeys(values) if value and value not in known]
        if new:
            known.extend(new)
            self._rebuild()

    def _rebuild(self) -> None:
        self._redactor = Redactor(self._values.union(*self._passing.values()))

    def mask_payload(self, data: bytes) -> bytes:
        """A call's payload as it is stored. In large ones only known values are looked for; see :meth:`mask_shown`."""
        return self._redactor.data(data) if len(data) <= SMALL else self._redactor.known(data)

    def mask_shown(self, text: str) -> str:
        """A stored payload as it is shown: also what stands under a name like ``password`` is masked."""
        return self._redactor.text(text)

    def mask_text(self, text: str) -> str:
        """A line with the values masked."""
        return self._redactor.text(text)

    def mask_log(self, text: str) -> str:
        """A record of the engine's own log: as a line, and of addresses only the place is left."""
        return mask_addresses(self._redactor.text(text))

"""Keeps the values of secrets in use out of everything that is stored or shown."""

from collections.abc import Iterable

from callboard.core.redact import Redactor


class Masking:
    """The values that were ever handed to a server in this engine's life. Any thread may mask; the loop learns."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._redactor = Redactor(())

    def learn(self, values: Iterable[str]) -> None:
        """From now on these values are masked too."""
        more = self._values | {value for value in values if value}
        if more != self._values:
            self._values = more
            self._redactor = Redactor(more)

    def mask_bytes(self, data: bytes) -> bytes:
        """JSON or text with the values masked."""
        return self._redactor.data(data)

    def mask_text(self, text: str) -> str:
        """A line with the values masked."""
        return self._redactor.text(text)

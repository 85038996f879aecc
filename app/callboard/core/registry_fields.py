"""Reading values that somebody else wrote: what is not as it should be counts as not given, and nothing raises."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

LONGEST_TEXT: Final = 8192  # characters of one text
MOST_ITEMS: Final = 500  # of one list or mapping

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SNAKE = re.compile(r"(?<!^)(?=[A-Z])")


class Fields:
    """An object of JSON. Names are given in camelCase; snake_case, which older documents have, is found as well."""

    def __init__(self, value: Any) -> None:
        self._data: dict[Any, Any] = value if isinstance(value, dict) else {}

    def __bool__(self) -> bool:
        return bool(self._data)

    def raw(self, name: str) -> Any:
        """The value as it is, None where there is none."""
        value = self._data.get(name)
        return self._data.get(_SNAKE.sub("_", name).lower()) if value is None else value

    def text(self, *names: str) -> str:
        """The first of these fields that is a plain value, as text; "" for none."""
        for name in names:
            if text := as_text(self.raw(name)):
                return text
        return ""

    def line(self, *names: str) -> str:
        """Like :meth:`text`, with all white space made single spaces: for what is shown."""
        return " ".join(self.text(*names).split())

    def has_text(self, name: str) -> bool:
        """Whether the field is a plain value, perhaps an empty text."""
        return isinstance(self.raw(name), str | bool | int | float)

    def flag(self, name: str) -> bool:
        """Whether the field is true."""
        return self.raw(name) is True

    def number(self, name: str) -> float | None:
        """The field's number."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e15 < value < 1e15:
            return None
        return float(value)

    def child(self, name: str) -> "Fields":
        """The object in the field."""
        return Fields(self.raw(name))

    def children(self, name: str) -> "list[Fields]":
        """The objects of the list in the field."""
        value = self.raw(name)
        items = value[:MOST_ITEMS] if isinstance(value, list) else []
        return [Fields(item) for item in items if isinstance(item, dict)]

    def texts(self, name: str) -> list[str]:
        """The plain values of the list in the field; one that stands alone counts as a list of it."""
        value = self.raw(name)
        items = value[:MOST_ITEMS] if isinstance(value, list) else [value]
        return [as_text(item) for item in items if isinstance(item, str | bool | int | float)]

    def members(self, name: str) -> "Iterator[tuple[str, Any]]":
        """Names and values of the object in the field."""
        value = self.raw(name)
        for key, item in list(value.items())[:MOST_ITEMS] if isinstance(value, dict) else ():
            if isinstance(key, str):
                yield as_text(key), item


def as_text(value: Any) -> str:
    """A plain value as text that a roster can hold; "" for anything else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(10**30) < value < 10**30 else ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    if not isinstance(value, str):
        return ""
    text = value[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")  # no half of a surrogate pair
    return _CONTROLS.sub("", text)

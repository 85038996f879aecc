"""What a form began with that was filled in from answers: the secrets to be stored, and what is still needed."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from callboard.core.registry_fill import Filling, OpenNeed
from callboard.ui.editor.entry_model import Entry, Path, owner_of, reference


class Beginning:
    """Knows values of secrets as long as the form; ``placed`` are those that an editor of the form has taken over."""

    def __init__(self, filling: Filling | None = None) -> None:
        self._open = filling.open if filling is not None else []
        given = filling.secrets if filling is not None else {}
        needed = {need.marker[len("${secret:") : -1]: "" for need in self._open if need.input.secret}
        self.values: dict[str, str] = {**needed, **given}
        self.placed: set[str] = set()

    def secrets_of(self, entry: Entry) -> dict[str, str]:
        """Secrets with a value that stand inside other texts of ``entry``, where no editor of the form has them."""
        text = json.dumps(entry)
        rest = {name: value for name, value in self.values.items() if value and name not in self.placed}
        return {name: value for name, value in rest.items() if reference(name) in text}

    def paths(self, rows: Collection[Path]) -> list[Path]:
        """The fields in which something is still needed."""
        owners = (owner_of(need.field, rows)[0] for need in self._open)
        return [path for path in owners if path is not None]

    def missing(self, values: Mapping[Path, Any]) -> dict[Path, dict[str, str]]:
        """What is still needed while the fields hold ``values``, by field and the rest of the path."""
        found: dict[Path, dict[str, str]] = {}
        for need in self._open:
            path, rest = owner_of(need.field, values)
            marker = "" if need.marker[len("${secret:") : -1] in self.placed else need.marker
            if path is not None and (place := _place(need, marker, values[path], rest)) is not None:
                found.setdefault(path, {})[place] = need.message
        return found


def _place(need: OpenNeed, marker: str, value: Any, rest: str) -> str | None:
    """Where inside the field the need is still open, None if it is met or its place was removed."""
    if isinstance(value, list):
        marked = (str(index) for index, text in enumerate(value) if marker and marker in str(text))
        return next(marked, None)
    if isinstance(value, dict):
        if rest not in value:
            return rest if need.field.startswith("auth.") else None
        text = str(value[rest])
        return rest if not text or (marker and marker in text) else None
    return rest if marker and marker in str(value or "") else None

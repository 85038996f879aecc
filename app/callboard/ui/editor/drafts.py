"""Changes to servers that are neither saved nor discarded yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, Signal

from callboard.ui.editor.entry_model import Entry, Path


@dataclass(frozen=True)
class Draft:
    """What a person changed in one entry: the states of the changed fields, and the entry that they changed.

    Held in memory only; states may hold secrets in the clear.
    """

    base: Entry
    states: Mapping[Path, Any] = field(repr=False)


class Drafts(QObject):
    """Drafts by the server's name in the roster. Lives as long as the window; forms come and go."""

    changed = Signal(str)  # a server's draft appeared or went

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._drafts: dict[str, Draft] = {}

    @property
    def names(self) -> list[str]:
        """The servers with unsaved changes."""
        return list(self._drafts)

    def get(self, name: str) -> Draft | None:
        """The draft of a server."""
        return self._drafts.get(name)

    def keep(self, name: str, draft: Draft) -> None:
        """Remember a draft in place of an earlier one."""
        is_new = name not in self._drafts
        self._drafts[name] = draft
        if is_new:
            self.changed.emit(name)

    def drop(self, name: str) -> None:
        """Forget a draft: it was saved or discarded."""
        if self._drafts.pop(name, None) is not None:
            self.changed.emit(name)

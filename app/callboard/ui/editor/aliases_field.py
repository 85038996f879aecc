"""Other names under which clients may give an agent's tools their arguments."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QVBoxLayout

from callboard.core.argument_aliases import PRESETS
from callboard.ui.editor.fields import ChoiceField, Field, LinesField
from callboard.ui.editor.parts import GAP, clear_margins

NONE, OWN = "", "own"


class AliasesField(Field):
    """Edits ``aliases``: none, a set that comes along, or names for all tools. Names for single tools stay."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP)
        sets = [(name, self.tr("{names} of {set}").format(names=_listed(PRESETS[name]), set=name)) for name in PRESETS]
        self.choice = ChoiceField(label, [(NONE, self.tr("None")), *sets, (OWN, self.tr("These, for all tools:"))])
        self.names = LinesField(self.tr("Other names, one per line"), placeholder=self.tr("directory = path"))
        column.addWidget(self.choice)
        column.addWidget(self.names)
        self.choice.changed.connect(self._show_names)
        self.choice.changed.connect(self._touched)
        self.names.changed.connect(self._touched)
        self.setFocusProxy(self.choice)
        self._show_names()

    def state(self) -> Any:
        """The choice and the names."""
        return self.choice.state(), self.names.state()

    def problems(self) -> dict[str, str]:
        """Each line must have both names."""
        if self.choice.state() != OWN:
            return {}
        lines = self._lines()
        if not lines:
            return {"": self.tr("Enter at least one name.")}
        wrong = next((line for line in lines if not all(_pair(line))), "")
        return {"": self.tr("Write it as other = argument: {line}").format(line=wrong)} if wrong else {}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """All stand below the field."""
        self.names.edit.setAccessibleDescription(" ".join(problems.values()))
        return super().show_problems(problems)

    def _can_show(self, raw: Any) -> bool:
        is_flat = isinstance(raw, Mapping) and all(isinstance(name, str) for pair in raw.items() for name in pair)
        return is_flat or (isinstance(raw, str) and raw in PRESETS)

    def _show(self, raw: Any) -> None:
        own = isinstance(raw, Mapping) and bool(raw)
        self.choice.load(OWN if own else raw or None)
        self.names.load([f"{sent} = {known}" for sent, known in raw.items()] if own else None)
        self._show_names()

    def _restore(self, state: Any) -> None:
        choice, names = state
        self.choice.restore(choice)
        self.names.restore(names)
        self._show_names()

    def _read(self) -> Any:
        choice = self.choice.state()
        if choice == OWN:
            return dict(_pair(line) for line in self._lines())
        return choice or None

    def _lines(self) -> list[str]:
        return [line.strip() for line in self.names.state().splitlines() if line.strip()]

    def _show_names(self) -> None:
        self.names.setVisible(self.choice.state() == OWN)


def _pair(line: str) -> tuple[str, str]:
    sent, _, known = line.partition("=")
    return sent.strip(), known.strip()


def _listed(names: Mapping[str, str]) -> str:
    return f"{', '.join(names)} = {', '.join(dict.fromkeys(names.values()))}"

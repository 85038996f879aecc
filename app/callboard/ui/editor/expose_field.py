"""What of an agent its clients see."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtWidgets import QVBoxLayout

from callboard.ui.editor.fields import ChoiceField, Field, LinesField
from callboard.ui.editor.parts import GAP, clear_margins

NAMED = "named"


class ExposeField(Field):
    """Edits ``expose``: as the agent was made, each of its tools, the agent as one tool, or only the tools named."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        column = QVBoxLayout(self)
        clear_margins(column)
        column.setSpacing(GAP)
        self.choice = ChoiceField(
            label,
            [
                ("auto", self.tr("What the agent was made for")),
                ("tools", self.tr("Each of its tools")),
                ("whole", self.tr("The agent as a single tool")),
                (NAMED, self.tr("Only these tools:")),
            ],
        )
        self.names = LinesField(self.tr("Tools, one per line"), placeholder=self.tr("one name on each line"))
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
        """Names must be given where only named functions are exposed."""
        missing = self.choice.state() == NAMED and not self.names.state().strip()
        return {"": self.tr("Enter at least one tool.")} if missing else {}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """All stand below the field."""
        self.names.edit.setAccessibleDescription(" ".join(problems.values()))
        return super().show_problems(problems)

    def _can_show(self, raw: Any) -> bool:
        is_list = isinstance(raw, list) and all(isinstance(item, str) for item in raw)
        return is_list or raw in ("auto", "tools", "whole")

    def _show(self, raw: Any) -> None:
        named = isinstance(raw, list)
        self.choice.load(NAMED if named else raw)
        self.names.load(raw if named else None)
        self._show_names()

    def _restore(self, state: Any) -> None:
        choice, names = state
        self.choice.restore(choice)
        self.names.restore(names)
        self._show_names()

    def _read(self) -> Any:
        choice = self.choice.state()
        if choice == NAMED:
            return [line.strip() for line in self.names.state().splitlines() if line.strip()]
        return None if choice == "auto" and self._raw is None else choice

    def _show_names(self) -> None:
        self.names.setVisible(self.choice.state() == NAMED)

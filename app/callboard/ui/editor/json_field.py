"""A mapping of any depth, written as JSON."""

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from PySide6.QtWidgets import QVBoxLayout

from callboard.core.health import Severity
from callboard.ui.editor.entry_model import JsonProblem, get_at, object_from, reference, set_at
from callboard.ui.editor.fields import Field, plain_text
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import GAP, InlineNotice, clear_margins, put_in, question, take_out
from callboard.ui.editor.secret_desk import SecretDesk


class JsonField(Field):
    """Edits a mapping as JSON text. Values in it that look like credentials can be taken out as secrets."""

    def __init__(self, kit: Kit, desk: SecretDesk, label: str, *, placeholder: str = "", rows: int = 5) -> None:
        super().__init__(label)
        self._kit, self._desk = kit, desk
        self._secrets: dict[str, str] = {}
        self._declined: set[str] = set()
        self._offers: dict[str, InlineNotice] = {}
        self._column = QVBoxLayout(self)
        clear_margins(self._column)
        self._column.setSpacing(GAP)
        self.edit = plain_text(label, rows, self._touched, fixed=True)
        self.edit.setPlaceholderText(placeholder)
        self._column.addWidget(self.edit)
        self.setFocusProxy(self.edit)

    def state(self) -> Any:
        """The text, and the secrets taken out of it."""
        return self.edit.toPlainText(), tuple(self._secrets.items())

    def secrets(self) -> list[tuple[str, str]]:
        """Those that the text still refers to."""
        text = self.edit.toPlainText()
        return [(name, value) for name, value in self._secrets.items() if reference(name) in text]

    def problems(self) -> dict[str, str]:
        """Where the text stops being a JSON object."""
        problem = object_from(self.edit.toPlainText() or "{}")
        if not isinstance(problem, JsonProblem):
            return {}
        if problem.line:
            text = self.tr("Line {line}, column {column}: {message}.")
            return {"": text.format(line=problem.line, column=problem.column, message=problem.message)}
        if problem.message:
            return {"": self.tr("This cannot be read: {message}.").format(message=problem.message)}
        return {"": self.tr('Write a JSON object: {"name": value}.')}

    def show_problems(self, problems: Mapping[str, str]) -> list[str]:
        """Say which value a problem is about."""
        texts = [f"{rest}: {text}" if rest else text for rest, text in problems.items()]
        self.edit.setAccessibleDescription(" ".join(texts))
        return texts

    def show_hints(self, hints: Mapping[str, str]) -> None:
        """Ask below the text, for each value."""
        for rest in [rest for rest in self._offers if rest not in hints]:
            self._withdraw(rest)
        value = object_from(self.edit.toPlainText() or "{}")
        for rest, name in hints.items():
            found = get_at(value, tuple(rest.split("."))) if isinstance(value, dict) else None
            if isinstance(found, str) and found not in self._declined and rest not in self._offers:
                self._offer(rest, name, found)

    def _offer(self, rest: str, name: str, found: str) -> None:
        def accept() -> None:
            self._withdraw(rest)
            self._take_out(rest, name, found)

        def leave() -> None:
            self._declined.add(found)
            self._withdraw(rest)

        text = self.tr("“{name}” looks like a token. Keep it out of the file?").format(name=rest)
        answers = [(self.tr("Keep as a secret"), accept), (self.tr("Leave"), leave)]
        self._offers[rest] = question(self._kit.theme, self._kit.icons, text, answers, severity=Severity.ATTENTION)
        put_in(self._column, self._offers[rest])

    def _take_out(self, rest: str, name: str, found: str) -> None:
        value = object_from(self.edit.toPlainText())
        path = tuple(rest.split("."))
        if isinstance(value, JsonProblem) or get_at(value, path) != found:
            return  # the text was changed meanwhile
        free = self._desk.claim_name((id(self), rest), name)
        self._secrets[free] = found
        set_at(value, path, reference(free))
        self.edit.setPlainText(_dump(value))

    def _withdraw(self, rest: str) -> None:
        if (offer := self._offers.pop(rest, None)) is not None:
            take_out(self._column, offer)

    def _can_show(self, raw: Any) -> bool:
        return isinstance(raw, dict)

    def _show(self, raw: Any) -> None:
        self._secrets.clear()
        for rest in list(self._offers):
            self._withdraw(rest)
        self.edit.setPlainText(_dump(raw) if raw else "")

    def _restore(self, state: Any) -> None:
        text, secrets = state
        self._secrets = dict(secrets)
        self.edit.setPlainText(text)

    def _read(self) -> Any:
        value = object_from(self.edit.toPlainText() or "{}")
        # what is not JSON yet stands in for itself: Save is off meanwhile
        return deepcopy(self._raw) if isinstance(value, JsonProblem) else (value or None)


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)

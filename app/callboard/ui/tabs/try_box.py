"""Calling, reading or getting by hand: the arguments, a button, and what came of it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSplitter, QVBoxLayout, QWidget

from callboard.api.client import EngineClient
from callboard.core.errors import CallboardError
from callboard.ui import formats
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from callboard.ui.widgets.argument_form import ArgumentForm
from callboard.ui.widgets.payload_view import PayloadView

Key = tuple[str, str, str]
_ANY_HEIGHT = 16_777_215  # Qt's own bound for sizes of widgets


@dataclass(frozen=True)
class Try:
    """What can be tried: whose it is (``key``), its arguments' JSON Schema, and how it is asked for."""

    key: Key
    schema: Any
    ask: Callable[[EngineClient, dict[str, Any]], Awaitable[dict[str, Any]]]
    note: str = ""


class TryBox(QWidget):
    """Keeps what was entered for each thing as long as the window lives. One request runs at a time."""

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons, verb: str, *, raw: bool = True) -> None:
        """``verb`` is what the button says; ``raw``: arguments may be entered as JSON too."""
        super().__init__()
        self._link = link
        self._verb = verb
        self._try: Try | None = None
        self._drafts: dict[Key, dict[str, Any]] = {}
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self.form = ArgumentForm(theme)
        self._run = QPushButton(verb)
        self._cancel = QPushButton(self.tr("Cancel"))
        self._raw = QPushButton(self.tr("Arguments as JSON"))
        self._note = QLabel()
        self.result = PayloadView(theme, icons, self.tr("Result"))
        self._lay_out(raw)
        self._run.clicked.connect(self.run)
        self._cancel.clicked.connect(self._give_up)
        self._raw.toggled.connect(self._turn)
        self.form.submitted.connect(self.run)
        link.connected.connect(self._show_buttons)
        link.disconnected.connect(self._show_buttons)
        self._show_buttons()

    def _lay_out(self, raw: bool) -> None:
        self._raw.setCheckable(True)
        self._raw.setVisible(raw)
        self._run.setDefault(False)
        self._run.setToolTip(self.tr("{verb} (Ctrl+Enter)").format(verb=self._verb))
        self._note.setWordWrap(True)
        buttons = self._buttons = QHBoxLayout()
        buttons.setContentsMargins(12, 4, 12, 8)
        buttons.setSpacing(8)
        buttons.addWidget(self._run)
        buttons.addWidget(self._cancel)
        buttons.addWidget(self._note, 1)
        buttons.addWidget(self._raw)
        self._upper = QWidget()
        top = QVBoxLayout(self._upper)
        top.setContentsMargins(0, 0, 0, 0)
        top.setSpacing(0)
        top.addWidget(self.form, 1)
        top.addLayout(self._buttons)
        self._split = QSplitter(Qt.Orientation.Vertical)
        self._split.addWidget(self._upper)
        self._split.addWidget(self.result)
        self._split.setStretchFactor(0, 0)
        self._split.setStretchFactor(1, 1)
        self._split.setChildrenCollapsible(False)
        self._split.setHandleWidth(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._split)

    def show_try(self, what: Try | None) -> None:
        """Show something else, or the same with another schema; nothing: the box is empty."""
        old, self._try = self._try, what
        if old is not None and what is not None and (old.key, old.schema) == (what.key, what.schema):
            return
        if old is not None:
            self._drafts[old.key] = self.form.arguments(whole=False) or self._drafts.get(old.key, {})
        if old is None or what is None or old.key != what.key:
            self._give_up()
            self.result.show_payload("", "")
        self.form.setEnabled(what is not None)
        self.form.show_schema(what.schema if what else None, self._drafts.get(what.key, {}) if what else {})
        self._show_form()
        self._note.setText(what.note if what else "")
        self._show_buttons()

    def focus_form(self) -> None:
        """Put the cursor where one begins."""
        if self.form.has_fields:
            self.form.focus()
        else:
            self._run.setFocus()

    def run(self) -> None:
        """Ask with what was entered."""
        what = self._try
        if what is None or self._task is not None or not self._link.is_connected:
            return
        arguments = self.form.arguments()
        if arguments is None:
            return
        self._drafts[what.key] = arguments
        self._began = time.monotonic()
        self.result.show_payload("", self.tr("Under way …"))
        task = self._link.request(
            lambda client: what.ask(client, arguments),
            lambda result: self._done(task, result),
            lambda error: self._failed(task, error),
            owner=self,
            name=f"{what.key[0]} {what.key[2]}",
        )
        self._task = task
        self._show_buttons()

    def _done(self, task: "asyncio.Task[None]", result: dict[str, Any]) -> None:
        if task is not self._task:
            return
        took = formats.duration((time.monotonic() - self._began) * 1000)
        failed = result.get("isError") is True
        note = self.tr("failed after {time}") if failed else self.tr("after {time}")
        self.result.show_payload(msgspec.json.encode(result).decode(), note.format(time=took))
        self._end()

    def _failed(self, task: "asyncio.Task[None]", error: CallboardError) -> None:
        if task is not self._task:
            return
        self.result.show_payload(f"{error.message}\n{error.fix}", self.tr("failed"))
        self._end()

    def _give_up(self) -> None:
        """The engine tells the server, once the request is gone."""
        if self._task is not None:
            self._task.cancel()
            self.result.show_payload("", self.tr("cancelled"))
        self._end()

    def _end(self) -> None:
        self._task = None
        self._show_buttons()

    def _show_buttons(self) -> None:
        runs = self._task is not None
        self._cancel.setVisible(runs)
        self._run.setEnabled(self._try is not None and not runs and self._link.is_connected)

    def _turn(self, raw: bool) -> None:
        if not self.form.show_raw(raw):
            self._raw.setChecked(not raw)
        self._show_form()

    def _show_form(self) -> None:
        """Give the form the room that it needs, and the result the rest."""
        shown = self.form.has_fields or self.form.is_raw
        self.form.setVisible(shown)
        self._upper.setMaximumHeight(_ANY_HEIGHT if shown else self._buttons.sizeHint().height())
        self._split.setSizes([self.form.wanted_height + self._buttons.sizeHint().height() if shown else 0, 10_000])

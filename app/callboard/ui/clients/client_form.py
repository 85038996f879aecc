"""One client, or the rules of all that have none of their own."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QPushButton,
    QRadioButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from callboard.api.client import EngineClient
from callboard.api.policy_schema import ApprovalView, ClientPolicyView, PolicyView
from callboard.core.errors import CallboardError
from callboard.ui import formats
from callboard.ui.clients.fields import FormFoot, MutedLabel, RulesFields, heading
from callboard.ui.engine_link import EngineLink
from callboard.ui.theme import Theme

EVERYTHING = ["*"]
WITHOUT_TOKEN = ("callboard", "open")  # the person, and whoever comes to an open gateway


class ClientForm(QWidget):
    """Shows what holds for a client ("" for the default) and changes it when the person saves.

    What the person has begun to change stays when the engine tells of other changes.
    """

    said = Signal(str)
    copyRequested = Signal(str, str)  # a text for the clipboard, and what to say then

    def __init__(self, link: EngineLink, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._theme = theme
        self._client: ClientPolicyView | None = None
        self._policy: dict[str, Any] = {}  # the default as written
        self._entry: dict[str, Any] = {}  # what is shown, as written
        self._shown: dict[str, Any] = {}  # the same as this form would write it
        self._revision = ""
        self._filling = False
        self.title = heading("", scale=1.25)
        self.seen = MutedLabel(theme)
        self.copy_token = QPushButton(self.tr("Copy token"))
        self.new_token = QPushButton(self.tr("Replace token…"))
        self.default = QRadioButton(self.tr("The default rules"))
        self.own = QRadioButton(self.tr("Rules of its own: what they do not name is denied"))
        self.rules = RulesFields(theme)
        self.profile = QComboBox()
        self.bound = QSpinBox(maximum=100_000_000, singleStep=1000)
        self.foot = FormFoot(theme)
        self.approvals = ApprovalList(link, theme)
        self._lay_out()
        self._connect()

    # what is shown

    @property
    def is_changed(self) -> bool:
        """Whether there is something to save."""
        return self._written() != self._shown

    def show_client(self, view: PolicyView, client: str, approvals: list[ApprovalView]) -> None:
        """Show a client, or with "" the default."""
        found = next((each for each in view.clients if each.id == client), None)
        same = (found.id if found is not None else "") == (self._client.id if self._client is not None else "")
        if same and self._revision and self.is_changed:
            return  # the person is at it
        self._client, self._policy, self._revision = found, dict(view.policy or {}), view.revision
        self._entry = dict(found.entry or {}) if found is not None else dict(self._policy)
        self._fill(view)
        self._shown = self._written()
        self.approvals.show_approvals([each for each in approvals if found is not None and each.client == found.id])
        self.foot.show_problem("")
        self.rules.marks.clear()
        self._changed()

    def _fill(self, view: PolicyView) -> None:
        self._filling = True
        client = self._client
        self.title.setText(client.name if client is not None else self.tr("Default rules"))
        self.seen.setText(self._seen_text())
        for widget in (self.default, self.own, self._profile_row, self._profile_label, self.approvals):
            widget.setVisible(client is not None)
        for button in (self.copy_token, self.new_token):
            button.setVisible(client is not None and client.id not in WITHOUT_TOKEN)
        own = client is not None and client.has_policy
        self.own.setChecked(own)
        self.default.setChecked(not own)
        rules = self._entry.get("policy") if own else self._policy
        self.rules.show_rules(rules or {}, allow=[] if own else EVERYTHING)
        self.profile.clear()
        self.profile.addItem(self.tr("All servers"), "")
        for profile in view.profiles:
            self.profile.addItem(profile.name, profile.name)
        self.profile.setCurrentIndex(max(0, self.profile.findData(client.profile if client is not None else "")))
        self.bound.setSpecialValueText(self.tr("No bound") if client is None else self.tr("As in the default rules"))
        self.bound.setValue(int(self._entry.get("max_result_chars") or 0))
        self._filling = False

    def _seen_text(self) -> str:
        client = self._client
        if client is None:
            return self.tr("They hold for each client that has no rules of its own.")
        if client.last_seen is None:
            return self.tr("{id} · not seen since the engine started").format(id=client.id)
        when = formats.relative_time(client.last_seen, time.time())
        return self.tr("{id} · last seen {when}").format(id=client.id, when=when)

    def forget(self) -> None:
        """Give up what was changed here; what is shown next comes from the engine."""
        self._revision = ""

    # what is written

    def _written(self) -> dict[str, Any]:
        """What the roster shall say. Fields that this form does not show stay as they are."""
        entry = dict(self._entry)
        rules = self.rules.rules(allow=[] if self.own.isChecked() and self._client is not None else EVERYTHING)
        if self._client is None:
            kept = {key: value for key, value in entry.items() if key not in ("allow", "deny", "ask", "read_only")}
            entry = {**kept, **rules}
        else:
            entry.pop("policy", None)
            if self.own.isChecked():
                entry["policy"] = rules
            entry.pop("profile", None)
            if self.profile.currentData():
                entry["profile"] = self.profile.currentData()
        entry.pop("max_result_chars", None)
        if self.bound.value():
            entry["max_result_chars"] = self.bound.value()
        return entry

    def _changed(self) -> None:
        if not self._filling:
            self.rules.setEnabled(self._client is None or self.own.isChecked())
            self.foot.set_changed(self.is_changed)

    def _save(self) -> None:
        entry, client, revision = self._written(), self._client, self._revision

        async def ask(engine: EngineClient) -> None:
            if client is None:
                await engine.policy.save(entry, revision=revision)
            elif entry or client.entry is None:
                await engine.policy.save_client(client.id, entry, revision=revision)
            else:
                await engine.policy.reset_client(client.id, revision=revision)

        def done(_: None) -> None:
            self._entry = self._shown = entry  # what the engine tells next is shown
            self._changed()
            self.foot.show_problem("")
            self.rules.marks.clear()
            self.said.emit(self.tr("Saved"))

        self.foot.save.setEnabled(False)
        self._link.request(ask, done, lambda error: self._not_saved(error, entry), owner=self, name="save a client")

    def _copy_token(self) -> None:
        client = self._client
        if client is not None:
            said = self.tr("Token of {name} copied").format(name=client.name)
            self._link.request(
                lambda engine: engine.token(client.id),
                lambda token: self.copyRequested.emit(token, said),
                owner=self,
                name="copy a token",
            )

    def _ask_to_replace(self) -> None:
        """The program that has the old token is locked out, so it is asked for."""
        client = self._client
        if client is None:
            return
        icon, title = QMessageBox.Icon.Warning, self.tr("Replace token")
        text = self.tr("Replace the token of {name}?").format(name=client.name)
        box = QMessageBox(icon, title, text, QMessageBox.StandardButton.Cancel, self)
        box.setInformativeText(self.tr("The old one is refused from now on: copy the configuration into it again."))
        replace = box.addButton(self.tr("Replace"), QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        replace.clicked.connect(lambda: self._replace_token(client))
        box.open()

    def _replace_token(self, client: ClientPolicyView) -> None:
        said = self.tr("New token of {name} copied").format(name=client.name)
        self._link.request(
            lambda engine: engine.policy.rotate(client.id),
            lambda token: self.copyRequested.emit(token, said),
            owner=self,
            name="replace a token",
        )

    def _not_saved(self, error: CallboardError, entry: dict[str, Any]) -> None:
        rules = self.rules
        fields = {"allow": rules.allow, "deny": rules.deny, "ask": rules.ask}
        self.foot.show_problem(rules.marks.show_error(error, entry, fields))
        self.foot.set_changed(self.is_changed)

    def _take_own(self, own: bool) -> None:
        """Rules of its own begin as those that held so far."""
        if not self._filling and own and self._client is not None and not self._client.has_policy:
            self.rules.show_rules(self._policy, allow=EVERYTHING)

    # building

    def _lay_out(self) -> None:
        self.bound.setMinimumWidth(180)
        self.bound.setGroupSeparatorShown(True)
        self.bound.setAccessibleName(self.tr("Characters of one result"))
        form = QFormLayout()
        form.setHorizontalSpacing(12)
        self._profile_label = QLabel(self.tr("Profile"))
        self._profile_label.setBuddy(self.profile)
        self._profile_row = QWidget()
        row = QHBoxLayout(self._profile_row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self.profile)
        row.addStretch(1)
        form.addRow(self._profile_label, self._profile_row)
        bound = QHBoxLayout()
        bound.addWidget(self.bound)
        bound.addStretch(1)
        form.addRow(self.tr("Characters of one result"), bound)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(8)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.copy_token)
        head.addWidget(self.new_token)
        column.addLayout(head)
        column.addWidget(self.seen)
        column.addSpacing(4)
        column.addWidget(self.default)
        column.addWidget(self.own)
        column.addWidget(self.rules)
        column.addSpacing(6)
        column.addLayout(form)
        column.addWidget(self.foot)
        column.addSpacing(8)
        column.addWidget(self.approvals)
        column.addStretch(1)

    def _connect(self) -> None:
        self.own.toggled.connect(self._take_own)
        for signal in (self.own.toggled, self.rules.changed, self.profile.currentIndexChanged, self.bound.valueChanged):
            signal.connect(lambda *_: self._changed())
        self.foot.save.clicked.connect(self._save)
        self.copy_token.clicked.connect(self._copy_token)
        self.new_token.clicked.connect(self._ask_to_replace)
        self.approvals.said.connect(self.said)


class ApprovalList(QWidget):
    """What was answered with "always", each with a button that takes it back."""

    said = Signal(str)

    def __init__(self, link: EngineLink, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._theme = theme
        self._rows = QVBoxLayout()
        self._rows.setSpacing(4)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(heading(self.tr("Always allowed")))
        column.addLayout(self._rows)

    def show_approvals(self, approvals: list[ApprovalView]) -> None:
        """Show other ones."""
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for approval in approvals:
            self._rows.addWidget(self._row(approval))
        if not approvals:
            self._rows.addWidget(MutedLabel(self._theme, self.tr("No question was answered with Always yet.")))

    def _row(self, approval: ApprovalView) -> QWidget:
        item = f"{approval.server}.{approval.name}"
        text = self.tr("{item} · since {when}").format(item=item, when=formats.exact_time(approval.at))
        if not approval.holds:
            text = self.tr("{item} · it has changed, so you are asked again").format(item=item)
        revoke = QPushButton(self.tr("Ask again") if approval.holds else self.tr("Forget"))
        revoke.setAccessibleName(self.tr("Ask again before {item}").format(item=item))
        revoke.clicked.connect(lambda: self._revoke(approval))
        widget = QWidget()
        row = QHBoxLayout(widget)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(MutedLabel(self._theme, text), 1)
        row.addWidget(revoke)
        return widget

    def _revoke(self, approval: ApprovalView) -> None:
        def ask(engine: EngineClient) -> Awaitable[int]:
            policy = engine.policy
            return policy.revoke(approval.client, server=approval.server, name=approval.name, kind=approval.kind)

        done: Callable[[int], None] = lambda _: self.said.emit(self.tr("You are asked again"))  # noqa: E731
        self._link.request(ask, done, owner=self, name="revoke an answer")

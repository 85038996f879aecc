"""One profile: which servers and tools it selects."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from callboard.api.client import EngineClient
from callboard.api.policy_schema import PolicyView, ProfileView
from callboard.core.errors import CallboardError
from callboard.ui.clients.fields import FormFoot, Marks, MutedLabel, PatternList, heading
from callboard.ui.engine_link import EngineLink
from callboard.ui.icons import Icons
from callboard.ui.theme import Theme
from callboard.ui.widgets.copy_button import CopyButton


class ProfileForm(QWidget):
    """Shows a profile, or with no name a new one, and changes it when the person saves."""

    said = Signal(str)
    saved = Signal(str)  # the profile's name
    removed = Signal()

    def __init__(self, link: EngineLink, theme: Theme, icons: Icons, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._link = link
        self._profile: ProfileView | None = None
        self._entry: dict[str, Any] = {}
        self._shown: dict[str, Any] = {}  # the same as this form would write it
        self._revision = ""
        self._filling = False
        self.title = heading("", scale=1.25)
        self.endpoint = MutedLabel(theme)
        self.endpoint.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.copy = CopyButton(icons, self.tr("Copy the endpoint"), lambda: self.endpoint.text())
        self.clients = MutedLabel(theme)
        self.name = QLineEdit()
        self.description = QLineEdit()
        self.servers = QListWidget()
        self.tools = PatternList(self.tr("And these"), self.tr("One pattern a line, like time.now or resource:docs.*"))
        self.deny = PatternList(self.tr("But not these"), self.tr("One pattern a line, like *.delete_*"))
        self._marks = Marks(theme)
        self.foot = FormFoot(theme)
        self.remove = QPushButton(self.tr("Remove profile"))
        self._lay_out()
        self._connect()

    @property
    def is_changed(self) -> bool:
        """Whether there is something to save."""
        return self._written() != self._shown or (self._profile is None and bool(self.name.text()))

    def show_profile(self, view: PolicyView, name: str) -> None:
        """Show a profile; "" begins a new one."""
        found = next((each for each in view.profiles if each.name == name), None)
        same = (found.name if found is not None else "") == (self._profile.name if self._profile is not None else "")
        if same and self._revision and self.is_changed:
            return  # the person is at it
        self._profile, self._revision = found, view.revision
        self._entry = dict(found.entry) if found is not None else {}
        self._fill()
        self._shown = self._written()
        self.foot.show_problem("")
        self._marks.clear()
        self._changed()

    def _fill(self) -> None:
        self._filling = True
        profile = self._profile
        self.title.setText(profile.name if profile is not None else self.tr("New profile"))
        self.endpoint.setText(profile.endpoint if profile is not None else "")
        for widget in (self.endpoint, self.copy, self.clients, self.remove):
            widget.setVisible(profile is not None)
        names = ", ".join(profile.clients) if profile is not None else ""
        bound = self.tr("Bound to it: {names}").format(names=names)
        self.clients.setText(bound if names else self.tr("No client is bound to it."))
        self._name_label.setVisible(profile is None)
        self.name.setVisible(profile is None)
        self.name.setText("")
        self.description.setText(str(self._entry.get("description", "")))
        chosen = list(self._entry.get("servers", []))
        self.servers.clear()
        for server in dict.fromkeys([*self._link.servers, *chosen]):
            item = QListWidgetItem(server)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if server in chosen else Qt.CheckState.Unchecked)
            self.servers.addItem(item)
        self.servers.setFixedHeight(min(max(self.servers.count(), 3), 8) * (self.fontMetrics().height() + 8) + 8)
        self.tools.set_patterns(list(self._entry.get("tools", [])))
        self.deny.set_patterns(list(self._entry.get("deny", [])))
        self._filling = False

    def forget(self) -> None:
        """Give up what was changed here; what is shown next comes from the engine."""
        self._revision = ""

    def _written(self) -> dict[str, Any]:
        items = [self.servers.item(row) for row in range(self.servers.count())]
        checked = [item.text() for item in items if item.checkState() is Qt.CheckState.Checked]
        kept = [server for server in self._entry.get("servers", []) if server in checked]  # in the order of the file
        entry = {
            "description": self.description.text().strip(),
            "servers": kept + [server for server in checked if server not in kept],
            "tools": self.tools.patterns(),
            "deny": self.deny.patterns(),
        }
        return {key: value for key, value in entry.items() if value}

    def _changed(self) -> None:
        if not self._filling:
            self.foot.set_changed(self.is_changed)

    def _save(self) -> None:
        entry, revision = self._written(), self._revision
        name = self._profile.name if self._profile is not None else self.name.text().strip()
        if not name:
            self.foot.show_problem(self.tr("The profile needs a name."))
            self.name.setFocus()
            return

        async def ask(engine: EngineClient) -> None:
            await engine.policy.save_profile(name, entry, revision=revision)

        def done(_: None) -> None:
            self._entry = self._shown = entry
            self.name.setText("")
            self._changed()
            self.foot.show_problem("")
            self._marks.clear()
            self.said.emit(self.tr("Saved"))
            self.saved.emit(name)

        self.foot.save.setEnabled(False)
        self._link.request(ask, done, lambda error: self._failed(error, entry), owner=self, name="save a profile")

    def _remove(self) -> None:
        profile = self._profile
        if profile is None:
            return

        async def ask(engine: EngineClient) -> None:
            await engine.policy.remove_profile(profile.name)

        self._link.request(
            ask, lambda _: self.removed.emit(), lambda error: self._failed(error, {}), owner=self, name="remove"
        )

    def _failed(self, error: CallboardError, entry: dict[str, Any]) -> None:
        fields = {"name": self.name, "servers": self.servers, "tools": self.tools, "deny": self.deny}
        self.foot.show_problem(self._marks.show_error(error, entry, fields))
        self.foot.set_changed(self.is_changed)

    # building

    def _lay_out(self) -> None:
        self.servers.setAccessibleName(self.tr("All of these servers"))
        form = QFormLayout()
        form.setHorizontalSpacing(12)
        self._name_label = QLabel(self.tr("Name"))
        self._name_label.setBuddy(self.name)
        self.name.setAccessibleName(self._name_label.text())
        form.addRow(self._name_label, self.name)
        form.addRow("", self._marks.below(self.name))
        form.addRow(self.tr("Description"), self.description)
        address = QHBoxLayout()
        address.addWidget(self.endpoint, 1)
        address.addWidget(self.copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(8)
        column.addWidget(self.title)
        column.addLayout(address)
        column.addWidget(self.clients)
        column.addLayout(form)
        for field in (self.servers, self.tools, self.deny):
            label = QLabel(field.accessibleName())
            label.setBuddy(field)
            column.addWidget(label)
            column.addWidget(field)
            column.addWidget(self._marks.below(field))
        column.addWidget(self.foot)
        column.addWidget(self.remove, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)

    def _connect(self) -> None:
        for signal in (
            self.name.textChanged,
            self.description.textChanged,
            self.servers.itemChanged,
            self.tools.changed,
            self.deny.changed,
        ):
            signal.connect(lambda *_: self._changed())
        self.foot.save.clicked.connect(self._save)
        self.remove.clicked.connect(self._remove)

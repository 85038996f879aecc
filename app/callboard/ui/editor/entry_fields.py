"""All fields of one kind of server, in a page that scrolls."""

from collections.abc import Iterable, Mapping
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QVBoxLayout, QWidget

from callboard.api.schema import EntryKind, FieldProblem, SecretHint
from callboard.core.registry_fill import Filling
from callboard.ui.editor.beginning import Beginning
from callboard.ui.editor.entry_model import KIND_FIELD, Entry, Path, get_at, owner_of, place_problems, with_changes
from callboard.ui.editor.field_row import FieldRow
from callboard.ui.editor.fields import NumberField
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.name_field import NameField
from callboard.ui.editor.parts import Disclosure, clear_margins
from callboard.ui.editor.saver import Filled
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.sections import build_sections

NAME: Path = ("name",)  # no field of the entry: what it is called in the roster
Placed = dict[Path, dict[str, str]]  # problems by field and the rest of their path
WIDEST = 720  # pixels; longer lines of fields are hard to read


class EntryFields(QScrollArea):
    """Shows an entry and holds what a person makes of it. Knows nothing of saving."""

    changed = Signal()  # something was entered

    def __init__(self, kit: Kit, desk: SecretDesk, kind: EntryKind) -> None:
        super().__init__()
        self.kind = kind
        self._kit, self._desk = kit, desk
        self._base: Entry = {}
        self._name = ""
        self._begun = Beginning()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        sections = build_sections(kit, desk, kind)
        self.name_field = NameField(self.tr("Name"), self._other_names)
        name_row = FieldRow(kit, NAME, self.name_field)
        self.rows: dict[Path, FieldRow] = {row.path: row for row in [name_row, *sections.rows]}
        self._advanced_rows = sections.advanced
        self.advanced = Disclosure(kit.theme, kit.icons, self.tr("Advanced"))
        self._arrange([name_row, *sections.main], sections.advanced)
        for row in self.rows.values():
            row.changed.connect(self._changed)
        self.name_field.edit.editingFinished.connect(self._rename_secrets)

    # in and out

    def load(self, name: str, entry: Entry) -> None:
        """Show an entry as it stands in the roster."""
        self._name, self._base, self._begun = name, entry, Beginning()
        self._desk.server = name
        for path, row in self.rows.items():
            row.field.load(name if path == NAME else get_at(entry, path))
            row.was_touched = False
            row.refresh_help()
        self._summarize()

    def expect(self, filling: Filling) -> None:
        """What is shown was filled in: its secrets are to be stored, and what is still needed is marked."""
        self._begun = begun = Beginning(filling)
        for row in self.rows.values():
            for editor in row.field.value_editors():
                if (name := editor.state.stored) in begun.values and editor.expect(begun.values[name]):
                    begun.placed.add(name)
        for path in begun.paths(self.rows):
            self.rows[path].was_touched = True

    @property
    def name(self) -> str:
        """The name as it is entered."""
        return self.name_field.state()

    def filled(self) -> Filled:
        """What is entered: unknown and untouched fields of the entry stand in it as they were."""
        entry = with_changes(self._base, self.changes())
        entry.setdefault(KIND_FIELD[self.kind], "")  # so that the engine knows the kind
        return Filled(self.name, entry, {**self._begun.secrets_of(entry), **dict(self._secrets())})

    def changes(self) -> dict[Path, Any]:
        """New values by path, None for what shall go."""
        return {path: row.field.value() for path, row in self._changed_rows() if path != NAME}

    def states(self) -> dict[Path, Any]:
        """What the changed fields show, for :meth:`restore`."""
        return {path: row.field.state() for path, row in self._changed_rows()}

    def restore(self, states: Mapping[Path, Any]) -> None:
        """Show what :meth:`states` returned, over what was loaded."""
        for path, state in states.items():
            if (row := self.rows.get(path)) is not None:
                row.field.restore(state)
                row.was_touched = True
        self._desk.server = self.name
        self._summarize()

    @property
    def is_changed(self) -> bool:
        """Whether anything was entered, complete or not."""
        return any(True for _ in self._changed_rows())

    @property
    def holds_secrets(self) -> bool:
        """Whether a value is a secret, or may become one."""
        editors = (editor for row in self.rows.values() for editor in row.field.value_editors())
        return any(editor.is_secret or editor.remarks.offer is not None for editor in editors)

    # problems

    def local_problems(self) -> Placed:
        """What is wrong as far as can be told without the engine."""
        found = {path: row.field.problems() for path, row in self.rows.items() if not row.field.opaque}
        values: dict[str, str] = {}
        for name, value in self._secrets():
            if values.setdefault(name, value) != value:
                text = self.tr("Two different values are entered for the secret {name}.").format(name=name)
                found[NAME] = {**found.get(NAME, {}), "secrets": text}
        values_now = {path: row.field.value() for path, row in self.rows.items() if not row.field.opaque}
        for path, missing in self._begun.missing(values_now).items():
            found[path] = {**found.get(path, {}), **missing}
        return {path: problems for path, problems in found.items() if problems}

    def show_problems(self, problems: Placed, *, only_touched: bool) -> list[tuple[Path, str]]:
        """Show problems at their fields; returns the place and text of each that is shown, in order."""
        shown: list[tuple[Path, str]] = []
        for path, row in self.rows.items():
            own = problems.get(path, {}) if row.was_touched or not only_touched else {}
            row.show_problems(own)
            shown += [(path, text) for text in own.values()]
        if any(path in {row.path for row in self._advanced_rows} for path, _ in shown):
            self.advanced.set_open(True)
        return shown

    def show_hints(self, hints: Iterable[SecretHint]) -> None:
        """Offer to keep values as secrets."""
        placed: Placed = {}
        for hint in hints:
            owner, rest = owner_of(hint.field, self.rows)
            if owner is not None:
                placed.setdefault(owner, {})[rest] = hint.secret
        for path, row in self.rows.items():
            row.field.show_hints(placed.get(path, {}))

    def place(self, problems: Iterable[FieldProblem]) -> tuple[Placed, list[FieldProblem]]:
        """The engine's problems by field, and those that belong to none of the fields."""
        return place_problems(problems, self.rows)

    def label(self, path: Path) -> str:
        """What the field at ``path`` is called."""
        return self.rows[path].field.label

    def touch_all(self) -> None:
        """From now on every problem is shown, also of fields where nothing was entered."""
        for row in self.rows.values():
            row.was_touched = True

    def focus_on(self, path: Path, rest: str = "") -> None:
        """Bring a field into view and give it the keyboard."""
        row = self.rows[path]
        if row in self._advanced_rows:
            self.advanced.set_open(True)
        row.field.focus_on(rest)
        self.ensureWidgetVisible(row, 0, 60)

    def focus_first(self) -> None:
        """Begin with the name."""
        self.name_field.setFocus(Qt.FocusReason.OtherFocusReason)

    def focus_missing(self) -> bool:
        """Go to the first secret without a value; false if there is none."""
        for row in self.rows.values():
            for editor in row.field.value_editors():
                if editor.is_missing:
                    editor.setFocus(Qt.FocusReason.OtherFocusReason)
                    self.ensureWidgetVisible(editor, 0, 60)
                    return True
        return False

    # inside

    def _arrange(self, main: list[FieldRow], advanced: list[FieldRow]) -> None:
        page = QWidget()
        outer = QVBoxLayout(page)
        outer.setContentsMargins(16, 14, 16, 18)
        column = QWidget()
        column.setMaximumWidth(WIDEST)
        inner = QVBoxLayout(column)
        clear_margins(inner)
        inner.setSpacing(14)
        for row in main:
            inner.addWidget(row)
        inner.addWidget(self.advanced)
        below = QGridLayout(self.advanced.body)
        clear_margins(below)
        below.setVerticalSpacing(14)
        below.setHorizontalSpacing(16)
        for row in advanced:
            _put_below(below, row)
        outer.addWidget(column)
        outer.addStretch(1)
        self.setWidget(page)

    def _changed_rows(self) -> Iterable[tuple[Path, FieldRow]]:
        return ((path, row) for path, row in self.rows.items() if row.field.is_changed)

    def _secrets(self) -> list[tuple[str, str]]:
        return [pair for row in self.rows.values() for pair in row.field.secrets()]

    def _other_names(self) -> list[str]:
        roster = self._kit.link.roster
        return [name for name in roster.servers if name != self._desk.original] if roster is not None else []

    def _changed(self) -> None:
        self._desk.server = self.name
        self._summarize()
        self.changed.emit()

    def _rename_secrets(self) -> None:
        for row in self.rows.values():
            for editor in row.field.value_editors():
                editor.rename_secret()

    def _summarize(self) -> None:
        given = [row.field.label for row in self._advanced_rows if row.field.value() is not None]
        self.advanced.head.set_summary(", ".join(given))


def _put_below(grid: QGridLayout, row: FieldRow) -> None:
    """Numbers stand in pairs, everything else has a line of its own."""
    line = grid.rowCount()
    if not isinstance(row.field, NumberField):
        grid.addWidget(row, line, 0, 1, 2)
    elif grid.itemAtPosition(line - 1, 0) is None or grid.itemAtPosition(line - 1, 1) is not None:
        grid.addWidget(row, line, 0, Qt.AlignmentFlag.AlignTop)
    else:
        grid.addWidget(row, line - 1, 1, Qt.AlignmentFlag.AlignTop)

"""The form for one entry of the roster."""

from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QVBoxLayout

from callboard.api.schema import EntryKind, FieldProblem, RosterView, Validation
from callboard.core.errors import CallboardError
from callboard.core.health import Severity
from callboard.core.registry_fill import Filling
from callboard.ui.editor.checker import EntryChecker
from callboard.ui.editor.drafts import Draft
from callboard.ui.editor.entry_fields import NAME, EntryFields, Placed
from callboard.ui.editor.entry_model import Entry, Path, conflicts, kind_of
from callboard.ui.editor.footer import FormFooter
from callboard.ui.editor.form_notices import FormNotices
from callboard.ui.editor.kit import Kit
from callboard.ui.editor.parts import clear_margins, take_out
from callboard.ui.editor.saver import EntrySaver, Saved
from callboard.ui.editor.secret_desk import SecretDesk
from callboard.ui.editor.tab_order import OrderedTabs
from callboard.ui.notice_bar import announce


class EntryForm(OrderedTabs):
    """Edits the entry ``name`` of the roster, or a new one of ``kind`` where ``name`` is None.

    Follows the roster: a form that was not touched shows what stands in the file now; what was entered is never lost
    by a change from outside, a failed save or a look at another server (see :class:`~.drafts.Drafts`). A new entry may
    begin with the values of ``start``, or with a ``filling``, whose secrets are stored with it. Lives on the window's
    loop.
    """

    saved = Signal(object)  # Saved
    left = Signal()  # the second button of a form for a new entry
    changed = Signal()  # something was entered, saved or discarded

    def __init__(
        self,
        kit: Kit,
        name: str | None,
        kind: EntryKind = "local",
        *,
        start_name: str = "",
        start: Entry | None = None,
        filling: Filling | None = None,
        closes: bool = False,
    ) -> None:
        """``closes``: what holds the form of an entry goes away when its button Close is pressed (:attr:`left`)."""
        super().__init__()
        self._kit = kit
        self._original = name or ""
        self._is_new = name is None
        self._closes = closes
        self._seeks = False  # the first problem is to be gone to, once the engine has judged the entry
        self._gone = False  # the entry is not in the roster any more
        self._base: Entry = {}
        self._revision = ""
        self._theirs: RosterView | None = None  # a version that my changes clash with
        self._aside: dict[Path, Any] = {}  # what was entered, while another version is shown
        self._engine_problems: Placed = {}
        self._homeless: list[FieldProblem] = []
        self._first_problem: Path | None = None
        self._was_saved = False
        self._late: RosterView | None = None  # a roster that came while saving
        self._desk = SecretDesk(kit.link, self)
        self._desk.original = self._original
        self._checker = EntryChecker(kit.link, self)
        self._saver = EntrySaver(kit.link, self)
        self.notices = FormNotices(kit)
        self.footer = FormFooter(
            kit,
            self.tr("Add server") if self._is_new else self.tr("Save"),
            self.tr("Cancel") if self._is_new else self.tr("Discard"),
        )
        self._column = QVBoxLayout(self)
        clear_margins(self._column)
        self._column.setSpacing(0)
        self._column.addWidget(self.notices)
        self._column.addWidget(self.footer)
        roster = kit.link.roster
        entry = roster.servers.get(self._original) if roster is not None and name else None
        self.fields = self._make_fields(kind if entry is None else kind_of(entry))
        self._connect()
        if self._is_new:
            self.fields.load(start_name, filling.entry if filling is not None else start or {})
            if filling is not None:
                self.fields.expect(filling)
            self._follow()
        else:
            self._begin(roster)

    # for others

    @property
    def name(self) -> str:
        """The entry's name in the roster, "" for a new one."""
        return self._original

    @property
    def is_dirty(self) -> bool:
        """Whether something was entered that is not saved."""
        return self.fields.is_changed

    @property
    def is_saving(self) -> bool:
        """Whether the engine is at it."""
        return self._saver.is_busy

    @property
    def is_checking(self) -> bool:
        """Whether the engine has yet to judge what is entered."""
        return self._checker.is_busy

    def save(self) -> None:
        """Save, or go to the first problem."""
        if self._saver.is_busy or not self._kit.link.is_connected:
            return
        if self._problems() or self._homeless:
            self.fields.touch_all()
            self._refresh()
            self.focus_problem()
        elif self._theirs is None and self._is_different():
            self.notices.drop("error")
            original = "" if self._gone else self._original
            self._saver.save(self.fields.filled(), original=original, revision=self._revision)

    def stop_saving(self) -> None:
        """Wait no longer for the engine; everything that was entered stays."""
        self._saver.cancel()
        self.notices.put("error", self.tr("Not saved. What you entered is still here."), Severity.BUSY)

    def forget_draft(self) -> None:
        """What was entered shall not come back."""
        self._kit.drafts.drop(self._original)

    def discard(self) -> None:
        """Show the entry as it stands in the roster; what was entered can be brought back."""
        if self._theirs is not None:
            self._load_theirs()
            return
        states = self.fields.states()
        self._show_entry()
        if states:
            self._set_aside(states, self.tr("Your changes are discarded."))

    def focus_problem(self) -> None:
        """Give the keyboard to the first field that needs mending."""
        if self._first_problem is not None:
            rest = next(iter(self._problems().get(self._first_problem, {"": ""})))
            self.fields.focus_on(self._first_problem, rest)

    def focus_missing(self) -> None:
        """Go to the first secret without a value or to what is still needed, or begin at the top."""
        if self.fields.focus_missing():
            return
        first = self._first_problem
        if first is not None and (not self._is_new or self.fields.rows[first].was_touched):
            self.focus_problem()
        else:
            self.focus_first()
            self._seeks = not self._is_new

    def focus_first(self) -> None:
        """Begin at the top."""
        self.fields.focus_first()

    # building

    def _make_fields(self, kind: EntryKind) -> EntryFields:
        fields = EntryFields(self._kit, self._desk, kind)
        fields.changed.connect(self._entered)
        self._column.insertWidget(1, fields, 1)
        return fields

    def _connect(self) -> None:
        link = self._kit.link
        self._checker.checked.connect(self._checked)
        self._saver.changed.connect(self._refresh)
        self._saver.saved.connect(self._after_save)
        self._saver.failed.connect(self._after_failure)
        self._saver.outdated.connect(self._after_outdated)
        self.footer.save_pressed.connect(self.save)
        self.footer.leave_pressed.connect(self._leave)
        self.footer.show_pressed.connect(self.focus_problem)
        link.rosterChanged.connect(self._roster_changed)
        link.secretsChanged.connect(self._refresh)
        link.connected.connect(self._refresh)
        link.disconnected.connect(self._refresh)
        keys = QShortcut(QKeySequence(QKeySequence.StandardKey.Save), self)
        keys.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        keys.activated.connect(self.save)

    def _begin(self, roster: RosterView | None) -> None:
        draft = self._kit.drafts.get(self._original)
        self._base = draft.base if draft is not None else {}
        self._show_entry()
        if draft is not None:
            self.fields.restore(draft.states)
        if roster is not None:
            self._take(roster)
        self._follow()

    def _show_entry(self) -> None:
        if self.fields.kind != kind_of(self._base) and self._base:
            take_out(self._column, self.fields)
            self.fields = self._make_fields(kind_of(self._base))
        self.fields.load(self._original, self._base)

    # what the person does

    def _entered(self) -> None:
        self._was_saved = False
        self._follow()
        self.changed.emit()

    def _follow(self) -> None:
        """What is shown is another: remember it, have it checked, tell how it stands."""
        if self._original:
            if self.fields.is_changed:
                self._kit.drafts.keep(self._original, Draft(self._base, self.fields.states()))
            else:
                self._kit.drafts.drop(self._original)
        filled = self.fields.filled()
        self._checker.check(filled.name, filled.entry, self._original)
        self._refresh()

    def _leave(self) -> None:
        if self._saver.is_busy:
            self.stop_saving()
        elif self._is_new or not self.fields.is_changed:
            self.left.emit()
        else:
            self.discard()

    # how it stands

    def _checked(self, validation: Validation) -> None:
        self._engine_problems, self._homeless = self.fields.place(validation.problems)
        self.fields.show_hints(validation.hints)
        self._refresh()
        if self._seeks and not self.fields.is_changed:
            self.focus_problem()
        self._seeks = False

    def _problems(self) -> Placed:
        local = self.fields.local_problems()
        paths = {*local, *self._engine_problems}
        return {path: {**self._engine_problems.get(path, {}), **local.get(path, {})} for path in paths}

    def _is_different(self) -> bool:
        filled = self.fields.filled()
        shown, stored = (filled.name, filled.entry), (self._original, self._base)
        return self._is_new or self._gone or shown != stored or bool(filled.secrets)

    def _refresh(self, *_change: object) -> None:
        busy = self._saver.is_busy
        problems = self._problems()
        self._first_problem = next((path for path in self.fields.rows if path in problems), None)
        shown = self.fields.show_problems(problems, only_touched=self._is_new)
        self.fields.setEnabled(not busy)
        link = self._kit.link
        self.notices.say_standing(link.secrets, link.roster, self._homeless, holds_secrets=self.fields.holds_secrets)
        blocked = bool(problems or self._homeless) or self._theirs is not None or not link.is_connected
        self.footer.save_button.setEnabled(not busy and not blocked and self._is_different())
        self.footer.offer_leave(self._leave_text())
        self._say(problems, shown)

    def _leave_text(self) -> str:
        if self._saver.is_busy or self._is_new:
            return self.tr("Cancel")
        if self.fields.is_changed:
            return self.tr("Discard")
        return self.tr("Close") if self._closes else ""

    def _say(self, problems: Placed, shown: list[tuple[Path, str]]) -> None:
        if self._saver.is_busy:
            waits = self._saver.waits_for_keyring
            self.footer.say(self.tr("Waiting for your keyring…") if waits else self.tr("Saving…"))
        elif not self._kit.link.is_connected:
            self.footer.say(self.tr("The engine is not running; you can save when it is back."))
        elif self._theirs is not None:
            self.footer.say(self.tr("Look at the new version first."), problem=True)
        elif shown:
            names = list(dict.fromkeys(self.fields.label(path) for path, _ in shown))
            text = self.tr("To mend: {fields}.") if len(names) < 4 else self.tr("To mend: {fields} and {count} more.")
            text = text.format(fields=", ".join(names[:3]), count=len(names) - 3)
            self.footer.say(text, problem=True, can_show=True)
        elif problems:
            missing = [self.fields.label(path) for path in self.fields.rows if path in problems]
            self.footer.say(self.tr("Still needed: {fields}.").format(fields=", ".join(missing)))
        elif self._is_new:
            self.footer.say("")
        elif self._is_different():
            self.footer.say(self.tr("Not saved yet."))
        else:
            self.footer.say(self.tr("Saved.") if self._was_saved else "")

    # saving

    def _after_save(self, saved: Saved) -> None:
        late, self._late = self._late, None
        self._kit.drafts.drop(self._original)
        self._original = self._desk.original = saved.filled.name
        self._base, self._revision = saved.filled.entry, saved.edit.revision
        self._is_new = self._gone = False
        self._was_saved = True
        self._aside = {}
        for key in ("error", "version"):
            self.notices.drop(key)
        self._show_entry()
        if late is not None:
            self._take(late)
        self._follow()
        announce(self, self.tr("Saved."))
        self.changed.emit()
        self.saved.emit(saved)

    def _after_failure(self, error: CallboardError) -> None:
        self._take_late()
        problems = [FieldProblem(**item) for item in error.data.get("problems", [])]
        if error.code == "entry-invalid" and problems:
            self._engine_problems, self._homeless = self.fields.place(problems)
            self.fields.touch_all()
            self._refresh()
            self.focus_problem()
        elif error.code == "name-taken":
            self._engine_problems[NAME] = {"": error.message}
            self.fields.rows[NAME].was_touched = True
            self._refresh()
            self.fields.focus_on(NAME)
        else:
            self.notices.put_error("error", error)

    def _after_outdated(self, view: RosterView) -> None:
        self._late = None
        self._take(view)
        if self._theirs is None:  # what was changed is elsewhere in the file
            self.save()

    # changes from outside

    def _roster_changed(self, view: RosterView) -> None:
        if self._saver.is_busy:
            self._late = view
        else:
            self._take(view)

    def _take_late(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            self._take(late)

    def _take(self, view: RosterView) -> None:
        """Follow the roster, with everything kept that was entered."""
        entry = None if self._is_new else view.servers.get(self._original)
        self._gone = entry is None and not self._is_new
        if entry is None:
            if self._gone and self.fields.is_changed:
                text = self.tr("This server is no longer in the roster. Save adds it again.")
                self.notices.put("version", text, Severity.ATTENTION)
            self._refresh()
            return
        clashes = self._clashes(entry)
        if clashes:
            self._theirs = view
            text = self.tr(
                "This server was changed in the roster meanwhile: {fields}. What you entered is still here: "
                "look at the new version, then bring your changes back if they should stay."
            ).format(fields=", ".join(clashes))
            self.notices.put(
                "version", text, Severity.ATTENTION, [(self.tr("Load the new version"), self._load_theirs)]
            )
            self._refresh()
            return
        if self._theirs is not None:
            self.notices.drop("version")
        self._theirs, self._revision = None, view.revision
        if entry != self._base:
            states = self.fields.states()
            self._base = entry
            self._show_entry()
            self.fields.restore(states)
        self._follow()

    def _clashes(self, entry: Entry) -> list[str]:
        """Labels of fields that were changed here and there, differently."""
        if entry == self._base or not self.fields.is_changed:
            return []
        if kind_of(entry) != self.fields.kind:
            return [self.tr("what sort of server it is")]
        return [self.fields.label(path) for path in conflicts(self.fields.changes(), self._base, entry)]

    def _load_theirs(self) -> None:
        view, self._theirs = self._theirs, None
        if view is None:
            return
        states = self.fields.states()
        self._base, self._revision = view.servers.get(self._original, {}), view.revision
        self._show_entry()
        self._set_aside(states, self.tr("This is the new version. What you entered is kept."))

    def _set_aside(self, states: dict[Path, Any], text: str) -> None:
        """Keep what was entered while the roster's version is shown."""
        self._aside = states

        def forget() -> None:
            self._aside = {}
            self.notices.drop("version")

        answers = [(self.tr("Bring my changes back"), self._bring_back), (self.tr("Forget them"), forget)]
        self.notices.put("version", text, Severity.BUSY, answers)
        self._follow()
        self.changed.emit()

    def _bring_back(self) -> None:
        states, self._aside = self._aside, {}
        self.notices.drop("version")
        self.fields.restore(states)
        self._entered()

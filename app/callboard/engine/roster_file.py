"""The roster's file: read, watched, edited, and never damaged."""

import asyncio
import codecs
import hashlib
import logging
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from callboard.api.schema import RosterEdit, RosterProblem, RosterView
from callboard.core.errors import CallboardError
from callboard.core.policy_shapes import SELECTION_NAME, ClientEntry, DefaultPolicy, Profile, reserved_client
from callboard.core.roster import Roster
from callboard.core.roster_parse import check_entry, check_shape, name_problem, parse_roster
from callboard.core.roster_render import plain_entry, without_empty
from callboard.core.roster_text import SERVERS, remove_entry, rename_entry, set_entry
from callboard.core.roster_yaml import MAX_CHARS, RosterError
from callboard.core.shape import Model
from callboard.engine.file_watch import FolderWatch
from callboard.system.safe_file import keep_backup, write_atomically

log = logging.getLogger(__name__)

UNDO_STEPS = 50


@dataclass(frozen=True)
class _State:
    """One entry as a person sees it: its name and what stands under it, both None where it does not exist.

    ``section`` is where it stands: "servers", "clients", "profiles", or "" for the policy.
    """

    name: str | None
    entry: dict[str, Any] | None
    section: str = SERVERS


@dataclass(frozen=True)
class _Step:
    """An edit that can be taken back: exactly if the file is as the edit left it, else for its entry alone."""

    text_before: str
    revision_after: str
    before: _State
    after: _State


class RosterFile:
    """The roster in force and the file it comes from. Belongs to the engine's loop.

    ``on_change`` is called on the loop, synchronously, whenever :attr:`roster`, :attr:`problem` or :attr:`revision`
    have changed, by an edit from here or from outside. The file is read and written in a worker thread.
    """

    def __init__(self, path: Path, starter: Path, on_change: Callable[[], None] = lambda: None) -> None:
        self.path = path
        self.roster = Roster()  # the last good one
        self.problem: CallboardError | None = None  # why the file as it is now is not in force
        self.revision = ""  # names the content of the file as it is now
        self._starter = starter.read_text(encoding="utf-8")
        self._on_change = on_change
        self._text = ""  # the last good text
        self._signature: object = None
        self._lock = asyncio.Lock()
        self._undo: OrderedDict[str, _Step] = OrderedDict()

    @property
    def starter(self) -> bool:
        """The file is the one that the first start made, not edited since."""
        return self.revision == _revision(self._starter.encode())

    def view(self) -> RosterView:
        """What the API answers."""
        return RosterView(
            path=str(self.path),
            revision=self.revision,
            servers=self.roster.written,
            problem=_problem_view(self.problem) if self.problem else None,
            starter=self.starter,
        )

    def remembered(self) -> list[dict[str, Any]] | None:
        """Every entry of the roster, and those that taking an edit back could bring there again.

        None where the file as it is now is not in force: it may hold others.
        """
        if self.problem is not None:
            return None
        states = (state for step in self._undo.values() for state in (step.before, step.after))
        return [*self.roster.written.values(), *(state.entry for state in states if state.entry is not None)]

    def forget_edits(self) -> None:
        """No edit can be taken back any more."""
        self._undo.clear()

    async def load(self) -> None:
        """Read the file for the first time; where there is none, write the starter roster. Never raises for what the
        file holds: see :attr:`problem`.
        """
        async with self._lock:
            if await asyncio.to_thread(_missing, self.path):
                try:
                    await asyncio.to_thread(self._write, self._starter, "")
                except CallboardError as error:
                    self._take(self._starter.encode())
                    self.revision, self.problem = "", error
                    return
            await self._read()

    async def refresh(self) -> bool:
        """Read the file again if it was touched; True if its content changed."""
        async with self._lock:
            if await asyncio.to_thread(_signature, self.path) == self._signature:
                return False
            changed = await self._read()
        if changed:
            self._on_change()
        return changed

    async def watch(self) -> None:
        """Follow changes from outside until cancelled. Causes no wake-ups where the system tells of changes."""
        folders = {self.path.parent, await asyncio.to_thread(lambda: self.path.resolve().parent)}
        watch = FolderWatch(folders)
        try:
            while True:
                await self.refresh()
                await watch.wait()
        finally:
            watch.close()

    async def save_entry(
        self, name: str, entry: dict[str, Any], *, revision: str = "", rename: str = "", create: bool = False
    ) -> RosterEdit:
        """Add or change an entry. ``revision`` is the one the person looked at ("": whatever stands there now).

        Raises ``entry-invalid`` (``data["problems"]``: field and message of each), ``name-taken``, ``server-unknown``,
        ``roster-changed``, ``roster-uneditable``, ``roster-unwritable``, or the file's own problem.
        """
        async with self._lock:
            await self._ready_to_edit(revision)
            servers = self.roster.written
            if create and name in servers:
                raise CallboardError("name-taken", f"A server named {name} exists already.")
            if rename and name not in servers:
                raise CallboardError("server-unknown", f"There is no server named {name}.")
            new_name = rename or name
            _check(new_name, entry, [other for other in servers if other != name])
            before = _State(name, servers[name]) if name in servers else _State(None, None)
            text = self._text
            if new_name != name:
                text = rename_entry(text, name, new_name)
            text = set_entry(text, new_name, entry)
            edit = await self._commit(text, before, _State(new_name, plain_entry(entry)))
        self._on_change()
        return edit

    async def remove_entry(self, name: str, *, revision: str = "") -> RosterEdit:
        """Take an entry out. Raises ``server-unknown`` and what :meth:`save_entry` raises."""
        async with self._lock:
            await self._ready_to_edit(revision)
            if name not in self.roster.written:
                raise CallboardError("server-unknown", f"There is no server named {name}.")
            before = _State(name, self.roster.written[name])
            edit = await self._commit(remove_entry(self._text, name), before, _State(None, None))
        self._on_change()
        return edit

    async def save_item(
        self, section: str, name: str, item: dict[str, Any] | None, *, revision: str = ""
    ) -> RosterEdit:
        """Give a client, a profile or (in section "") the policy what it says; None takes it out.

        Raises ``not-found`` for one that is not there to be taken out, ``name-taken`` for a client's name that means
        something else, ``entry-invalid``, and what :meth:`save_entry` raises.
        """
        async with self._lock:
            await self._ready_to_edit(revision)
            known = self.roster.sections.get(section, {})
            before = _State(name, known[name], section) if name in known else _State(None, None, section)
            if item is None:
                if name not in known:
                    raise CallboardError("not-found", f"The roster says nothing of {name}.")
                text, after = remove_entry(self._text, name, section), _State(None, None, section)
            else:
                _check_item(section, name, item)
                text = set_entry(self._text, name, item, section)
                after = _State(name, without_empty(item), section)
            try:
                edit = await self._commit(text, before, after)
            except RosterError as error:
                field = error.data["field"].removeprefix(f"{section}.{name}.")
                said = error.message.removeprefix(f"Line {error.line}, column {error.column}: ")  # of no file yet
                said = said.removeprefix(f"{section}.{name}.")
                said = said[:1].upper() + said[1:]
                problem = {"field": field, "message": said}
                raise CallboardError("entry-invalid", said, data={"problems": [problem]}) from error
        self._on_change()
        return edit

    async def undo(self, token: str) -> RosterEdit:
        """Take back the edit that returned ``token``; the answer's ``undo`` does it again.

        If the file was changed since, only the entry is put back, and only if it still is as the edit left it
        (``roster-changed``). A token works once; the last fifty are kept.
        """
        async with self._lock:
            step = self._undo.get(token)
            if step is None:
                raise CallboardError("not-found", "This change cannot be taken back any more.")
            await self._ready_to_edit("")
            exact = self.revision == step.revision_after
            text = step.text_before if exact else self._inverse(step)
            edit = await self._commit(text, step.after, step.before)
            self._undo.pop(token, None)
        self._on_change()
        return edit

    def _inverse(self, step: _Step) -> str:
        """The text as it is now, with one entry as it was before ``step``."""
        now, was, section = step.after, step.before, step.before.section
        servers = self.roster.written if section == SERVERS else self.roster.sections.get(section, {})
        current = servers.get(now.name) if now.name is not None else None
        taken = was.name is not None and was.name != now.name and was.name in servers
        if current != now.entry or taken:
            name = now.name or was.name
            raise CallboardError("roster-changed", f"The entry {name} was changed since.")
        text = self._text
        if was.name is None:
            return remove_entry(text, str(now.name), section)
        if now.name is not None and now.name != was.name:
            text = rename_entry(text, now.name, was.name, section)
        return set_entry(text, was.name, was.entry or {}, section)

    async def _ready_to_edit(self, revision: str) -> None:
        if await asyncio.to_thread(_signature, self.path) != self._signature and await self._read():
            self._on_change()
        if self.problem is not None and not await asyncio.to_thread(_missing, self.path):
            raise self.problem
        if revision and revision != self.revision:
            raise CallboardError("roster-changed", "The roster was changed meanwhile.")

    async def _commit(self, text: str, before: _State, after: _State) -> RosterEdit:
        """Write ``text``, take it into force and remember how to go back."""
        parse_roster(text)  # nothing is written that could not be read
        text_before = self._text
        await asyncio.to_thread(self._write, text, self.revision)
        await self._read()
        token = uuid.uuid4().hex
        self._undo[token] = _Step(text_before, _revision(text.encode()), before, after)
        while len(self._undo) > UNDO_STEPS:
            self._undo.popitem(last=False)
        return RosterEdit(revision=self.revision, undo=token)

    async def _read(self) -> bool:
        """Take in the file as it is now; True if anything changed."""
        old = (self.revision, self.problem and str(self.problem))
        try:
            self._signature, data = await asyncio.to_thread(_read_file, self.path)
        except OSError as error:
            self._signature = None
            what = "is gone" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
            self.revision = ""
            self.problem = CallboardError("roster-unreadable", f"The roster {self.path} {what}.")
        else:
            self._take(data)
        return (self.revision, self.problem and str(self.problem)) != old

    def _take(self, data: bytes) -> None:
        self.revision = _revision(data)
        try:
            text = _decode(data)
            self.roster = parse_roster(text)
        except RosterError as error:
            self.problem = error
            log.info("The roster is not in force: %s", error)
        else:
            self._text = text
            self.problem = None

    def _write(self, text: str, expected: str) -> None:
        """In a worker thread: replace the file if it still is the one that ``expected`` names ("": none)."""
        try:
            old = None if _missing(self.path) else self.path.read_bytes()
            if ("" if old is None else _revision(old)) != expected:
                raise CallboardError("roster-changed", "The roster was changed meanwhile.")
            if old is not None:
                keep_backup(self.path, old)
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomically(self.path, text.encode())
        except OSError as error:
            raise CallboardError("roster-unwritable", f"{self.path} cannot be written: {error.strerror}.") from error


def _check(name: str, entry: dict[str, Any], others: list[str]) -> None:
    why = name_problem(name, others)
    if why is not None and "must" not in why:
        raise CallboardError("name-taken", f"The name {name} {why}.")
    _, problems = check_entry(entry)
    found = [{"field": problem.field, "message": problem.text} for problem in problems]
    if why is not None:
        found.insert(0, {"field": "name", "message": why[:1].upper() + why[1:] + "."})
    if found:
        first = found[0]
        raise CallboardError("entry-invalid", f"{first['field'] or name}: {first['message']}", data={"problems": found})


_SHAPES: Final[dict[str, type[Model]]] = {"clients": ClientEntry, "profiles": Profile, "": DefaultPolicy}


def _check_item(section: str, name: str, item: dict[str, Any]) -> None:
    if section == "clients" and (why := reserved_client(name)):
        raise CallboardError("name-taken", f"{name} {why}.")
    problems = [{"field": problem.field, "message": problem.text} for problem in check_shape(_SHAPES[section], item)]
    if section and not SELECTION_NAME.fullmatch(name):
        problems.insert(0, {"field": "name", "message": "Must be 1 to 64 letters (a-z), digits, - and _."})
    if problems:
        first = problems[0]
        raise CallboardError(
            "entry-invalid", f"{first['field'] or name}: {first['message']}", data={"problems": problems}
        )


def _decode(data: bytes) -> str:
    encoding = "utf-8-sig"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"  # what Windows' own tools write when nobody asks
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        message = f"Line {line}, column {column}: this is not valid {encoding.upper().removesuffix('-SIG')} text."
        raise RosterError("roster-unreadable", message, line, column) from error


def _read_file(path: Path) -> tuple[object, bytes]:
    signature = _signature(path)
    with path.open("rb") as file:
        return signature, file.read(4 * MAX_CHARS + 1)


def _signature(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _missing(path: Path) -> bool:
    return not path.exists()


def _revision(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _problem_view(error: CallboardError) -> RosterProblem:
    return RosterProblem(
        code=error.code,
        message=error.message,
        fix=error.fix,
        line=int(error.data.get("line", 0)),
        column=int(error.data.get("column", 0)),
    )

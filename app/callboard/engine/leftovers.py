"""Processes that an engine left behind because it was killed: found by the next one, and ended if proven ours.

The kernel ends a server's first process with the engine (Linux); what that process had started in turn lives on. So
the engine notes each process, first that it is about to be started, then who it is. Proof is the pid together with its
time of start, or the session (or the pipes) of such a process together with the mark that only its children inherit;
for one that was killed before it was known, the mark alone.
"""

import asyncio
import json
import logging
import signal
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callboard.system import process_group
from callboard.system.process_identity import Identity, has_variable, identify

MARK = "CALLBOARD_RUN"  # environment variable of every server; its value names this one start
_POLL = 0.05

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Note:
    """``identity`` is None until the process is there."""

    server: str
    mark: str
    identity: Identity | None = None


class Leftovers:
    """The notes of this run and those that an earlier one left. Engine loop only.

    A file that cannot be written is told once in the log and otherwise does no harm.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._notes: dict[str, _Note] = {}
        self._unwritable = False

    async def end_previous(self, *, grace: float = 2.0) -> list[str]:
        """End what earlier engines left behind; returns the names of the servers concerned.

        Call it before :meth:`expect`. Asks with SIGTERM and waits ``grace`` seconds before SIGKILL.
        """
        notes = await asyncio.to_thread(_read, self._file)
        if not notes:
            return []
        found = await asyncio.to_thread(_proven, notes)
        names = sorted({note.server for _, note in found})
        if found:
            _logger.info("Ending what an earlier engine left of: %s", ", ".join(names))
            await self._end(notes, grace)
        self._write()
        return names

    def expect(self, server: str) -> str:
        """A process is about to be started for ``server``; what it must have in its environment as :data:`MARK`."""
        mark = uuid.uuid4().hex
        if sys.platform != "win32":  # there its job ends with the engine
            self._notes[mark] = _Note(server, mark)
            self._write()
        return mark

    def add(self, mark: str, pid: int) -> None:
        """The process with this mark is there."""
        note, identity = self._notes.get(mark), identify(pid)
        if note is not None and identity is not None:
            self._notes[mark] = _Note(note.server, mark, identity)
            self._write()

    def remove(self, mark: str) -> None:
        """The process and all that belonged to it are gone, or it was not started."""
        if self._notes.pop(mark, None) is not None:
            self._write()

    async def _end(self, notes: list[_Note], grace: float) -> None:
        limit = asyncio.get_running_loop().time() + grace
        process_group.signal_all([pid for pid, _ in _proven(notes)], signal.SIGTERM)
        while found := await asyncio.to_thread(_proven, notes):
            if asyncio.get_running_loop().time() > limit:
                process_group.signal_all([pid for pid, _ in found], signal.SIGKILL)
                return
            await asyncio.sleep(_POLL)

    def _write(self) -> None:
        try:
            if not self._notes:
                self._file.unlink(missing_ok=True)
                return
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self._file.with_suffix(".tmp")
            temporary.write_text(json.dumps([_to_json(note) for note in self._notes.values()]), encoding="utf-8")
            temporary.replace(self._file)
        except OSError as error:
            if not self._unwritable:
                self._unwritable = True
                _logger.warning("The list of processes cannot be written: %s", error)


def _proven(notes: Iterable[_Note]) -> list[tuple[int, _Note]]:
    """Running processes that are surely ours, with the note that proves it."""
    found: dict[int, _Note] = {}
    for note in notes:
        own = identify(note.identity.pid) if note.identity is not None else None
        if own is not None and note.identity is not None and own.started == note.identity.started:
            found[own.pid] = note
        for pid in _perhaps(note, own):
            if has_variable(pid, MARK, note.mark):
                found.setdefault(pid, note)
    return list(found.items())


def _perhaps(note: _Note, own: Identity | None) -> list[int]:
    """Processes that are ours if they bear the mark. ``own``: who has the noted pid now."""
    if note.identity is None:
        return process_group.all_pids()
    pids = process_group.holders(note.identity.pipes)
    if own is None or own.started == note.identity.started:
        pids += process_group.session_members(note.identity.pid)
    return pids


def _read(file: Path) -> list[_Note]:
    try:
        return [_from_json(item) for item in json.loads(file.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        _logger.warning("The list of processes of the last run cannot be read: %s", error)
        return []


def _to_json(note: _Note) -> dict[str, Any]:
    members: dict[str, Any] = {"server": note.server, "mark": note.mark}
    if note.identity is not None:
        found = note.identity
        members |= {"pid": found.pid, "started": found.started, "pipes": list(found.pipes)}
    return members


def _from_json(item: dict[str, Any]) -> _Note:
    identity = None
    if "pid" in item:
        identity = Identity(int(item["pid"]), str(item["started"]), tuple(map(int, item["pipes"])))
    return _Note(str(item["server"]), str(item["mark"]), identity)

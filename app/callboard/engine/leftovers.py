"""Processes that an engine left behind because it was killed: found by the next one, and ended if proven ours.

The kernel ends a server's first process with the engine (Linux); what that process had started in turn lives on. So
the engine notes each process that it starts. Proof is the pid together with its time of start, or the session (or the
pipes) of such a process together with the mark that only its children inherit.
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

MARK = "CALLBOARD_RUN"  # environment variable of every child; its value names the engine's run
_POLL = 0.05

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Note:
    server: str
    run: str
    identity: Identity


class Leftovers:
    """The notes of this run and those that an earlier one left. Engine loop only.

    ``run`` belongs as :data:`MARK` into the environment of all children. A file that cannot be written is told once
    in the log and otherwise does no harm.
    """

    def __init__(self, file: Path) -> None:
        self.run = uuid.uuid4().hex
        self._file = file
        self._notes: dict[int, _Note] = {}
        self._unwritable = False

    async def end_previous(self, *, grace: float = 2.0) -> list[str]:
        """End what earlier engines left behind; returns the names of the servers concerned. Call it before :meth:`add`.

        Asks with SIGTERM and waits ``grace`` seconds before SIGKILL.
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

    def add(self, server: str, pid: int) -> None:
        """A process was started for ``server``."""
        if sys.platform == "win32":
            return  # its job ends with the engine
        identity = identify(pid)
        if identity is not None:
            self._notes[pid] = _Note(server, self.run, identity)
            self._write()

    def remove(self, pid: int) -> None:
        """The process and all that belonged to it are gone."""
        if self._notes.pop(pid, None) is not None:
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
        own = identify(note.identity.pid)
        if own is not None and own.started == note.identity.started:
            found[own.pid] = note
        if own is None or own.started == note.identity.started:
            for pid in process_group.session_members(note.identity.pid):
                if has_variable(pid, MARK, note.run):
                    found.setdefault(pid, note)
        for pid in process_group.holders(note.identity.pipes):
            if has_variable(pid, MARK, note.run):
                found.setdefault(pid, note)
    return list(found.items())


def _read(file: Path) -> list[_Note]:
    try:
        return [_from_json(item) for item in json.loads(file.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        _logger.warning("The list of processes of the last run cannot be read: %s", error)
        return []


def _to_json(note: _Note) -> dict[str, Any]:
    identity = note.identity
    return {
        "server": note.server,
        "run": note.run,
        "pid": identity.pid,
        "started": identity.started,
        "pipes": list(identity.pipes),
    }


def _from_json(item: dict[str, Any]) -> _Note:
    identity = Identity(int(item["pid"]), str(item["started"]), tuple(map(int, item["pipes"])))
    return _Note(str(item["server"]), str(item["run"]), identity)

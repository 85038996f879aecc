"""Containers that a server's command runs: stopped and removed with it.

A container is no child of the program that asks for it, so ending ``docker run`` by force leaves it behind. The
program is told to write the container's id into a file of ours; while that file is there, the container is ours.
"""

import asyncio
import contextlib
import json
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Final

from callboard.core.errors import CallboardError
from callboard.core.launch import LocalLaunch
from callboard.engine.command import find_program
from callboard.engine.process import ChildProcess

_PROGRAMS: Final = frozenset({"docker", "podman", "nerdctl"})
# Options before "run" that take a value of their own.
_WITH_VALUE: Final = frozenset(
    {"--config", "-c", "--context", "-H", "--host", "-l", "--log-level", "--tlscacert", "--tlscert", "--tlskey"}
    | {"--url", "--connection", "--identity", "--root", "--runroot", "-n", "--namespace", "-a", "--address"}
)
# What of the environment decides which daemon is asked; the rest may hold secrets and is not written down.
_OF_THE_DAEMON: Final = re.compile(
    r"DOCKER_(HOST|CONTEXT|CONFIG|CERT_PATH|TLS_VERIFY)|CONTAINER_(HOST|CONNECTION)|HOME"
)
_ID: Final = re.compile(r"[0-9a-f]{12,64}")
_LIMIT: Final = 3.0  # seconds for the removal
_GONE: Final = re.compile(r"no such container", re.IGNORECASE)

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Run:
    """The place of "run" in a command: ``before`` is the program with its own options."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    words: tuple[str, ...]  # "run" or "container run"

    @property
    def id_file(self) -> str:
        """The file that the person has chosen for the id, empty if none."""
        for number, word in enumerate(self.after):
            if word.startswith("--cidfile="):
                return word.partition("=")[2]
            if word == "--cidfile":
                return "".join(self.after[number + 1 : number + 2])
        return ""


class Claim:
    """A container that is about to be run. ``launch`` is what to start instead. Engine loop only."""

    def __init__(self, launch: LocalLaunch, id_file: Path, note: Path, remove: tuple[str, ...]) -> None:
        self.launch = launch
        self._id_file = id_file
        self._note = note
        self._remove = remove

    async def release(self, environment: Mapping[str, str]) -> None:
        """Remove the container, if one was made; the program that ran it has ended. Never raises."""
        await _remove_all(self._note, self._id_file, self._remove, environment)


class Containers:
    """Knows the containers that run, and those of an engine that was killed. Engine loop only."""

    def __init__(self, folder: Path) -> None:
        """``folder`` holds the notes; only this person may write there."""
        self._folder = folder

    def claim(self, server: str, launch: LocalLaunch, environment: Mapping[str, str]) -> Claim | None:
        """What to start instead of a command that runs a container; None for any other command."""
        run = _find_run(launch.argv)
        if run is None:
            return None
        try:
            program = find_program(run.before[0], path=environment.get("PATH", ""), cwd=launch.cwd or Path.home())
        except CallboardError:
            return None  # the start fails, and says why
        if PurePath(program).is_relative_to("/snap"):
            return None  # it may not write into our folder
        note = self._folder / f"{server}-{uuid.uuid4().hex[:12]}.json"
        chosen = run.id_file
        id_file = (launch.cwd or Path.home()) / chosen if chosen else note.with_suffix(".cid")
        if chosen and id_file.exists():
            return None  # of another container, and the program will say so
        remove = (program, *run.before[1:])
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            note.write_text(json.dumps(_to_json(remove, id_file, environment)), encoding="utf-8")
        except OSError as error:
            _logger.warning("What container %s runs cannot be noted: %s", server, error)
            return None
        added = () if chosen else ("--cidfile", str(id_file))
        argv = (*run.before, *run.words, *added, *run.after)
        changed = replace(launch, argv=argv, written_once=None if chosen else id_file)
        return Claim(changed, id_file, note, remove)

    async def end_previous(self, environment: Mapping[str, str]) -> None:
        """Remove what an engine that was killed left behind. Call it before anything is claimed."""
        notes = await asyncio.to_thread(_read_notes, self._folder)
        await asyncio.gather(*(_end_one(note, environment) for note in notes))


async def _end_one(note: Path, environment: Mapping[str, str]) -> None:
    try:
        found = json.loads(await asyncio.to_thread(note.read_text, encoding="utf-8"))
        remove, id_file = tuple(map(str, found["command"])), Path(found["id_file"])
        variables = {**environment, **{str(name): str(value) for name, value in found["environment"].items()}}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        _logger.warning("A note of a container cannot be read: %s", error)
        return
    await _remove_all(note, id_file, remove, variables)


async def _remove_all(note: Path, id_file: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Remove the container of a note, and those of earlier starts of the same command (see ``written_once``)."""
    done = True
    for file in [id_file, *await asyncio.to_thread(_earlier, note)]:
        if await _remove(file, command, environment):
            _forget(file)
        else:
            done = False
    if done:
        _forget(note)


async def _remove(id_file: Path, command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Remove the container whose id stands in the file; True if there is none any more."""
    container = await asyncio.to_thread(_read_id, id_file)
    if not container:
        return True  # none was made
    said = bytearray()
    launch = LocalLaunch((*command, "rm", "--force", container))
    try:
        child = await ChildProcess.spawn(launch, environment=environment, on_stdout=_ignore, on_stderr=said.extend)
    except CallboardError as error:
        _logger.warning("The container %.12s could not be removed: %s", container, error.message)
        return True  # the program is gone; there is nothing that could be tried again
    child.close_stdin()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LIMIT):
                await asyncio.shield(child.exited)
    finally:
        status = await child.stop(grace=0.1)
    text = said[:1000].decode("utf-8", "replace").strip()
    if status.code == 0 or _GONE.search(text):
        return True
    _logger.warning("The container %.12s could not be removed: %s", container, text or status.sentence())
    return False


def _find_run(argv: Sequence[str]) -> _Run | None:
    name = PurePath(argv[0]).name.lower().removesuffix(".exe")
    if name not in _PROGRAMS:
        return None
    place = 1
    while place < len(argv) and argv[place].startswith("-"):
        place += 2 if argv[place] in _WITH_VALUE else 1
    words = 2 if list(argv[place : place + 2]) == ["container", "run"] else 1
    if argv[place + words - 1 : place + words] not in (("run",), ["run"]):
        return None
    return _Run(tuple(argv[:place]), tuple(argv[place + words :]), tuple(argv[place : place + words]))


def _to_json(command: Sequence[str], id_file: Path, environment: Mapping[str, str]) -> dict[str, object]:
    daemon = {name: value for name, value in environment.items() if _OF_THE_DAEMON.fullmatch(name)}
    return {"command": list(command), "id_file": str(id_file), "environment": daemon}


def _read_id(file: Path) -> str:
    try:
        text = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
    return text if _ID.fullmatch(text) else ""


def _read_notes(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _earlier(note: Path) -> list[Path]:
    return sorted(note.parent.glob(f"{note.stem}-*.cid"))


def _forget(file: Path) -> None:
    # The person's own file for the id too: with it there, the next run would be refused.
    with contextlib.suppress(OSError):
        file.unlink(missing_ok=True)


def _ignore(data: bytes) -> None:
    """The id again."""

"""Finding the program that a server's command names, and saying in words why it cannot be run."""

import os
from collections.abc import Mapping
from pathlib import Path

from callboard.core.errors import CallboardError

_SHEBANG_BYTES = 512


def find_program(command: str, *, path: str, cwd: Path) -> str:
    """The absolute path of ``command``, looked for as the child itself would: on ``path``, relative to ``cwd``.

    Raises ``command-not-found`` (also when the interpreter named in a script's first line is missing) and
    ``command-not-executable``.
    """
    if os.sep in command or (os.altsep and os.altsep in command):
        candidate = cwd / Path(command).expanduser()
        if not candidate.exists():
            raise CallboardError("command-not-found", f"There is no program {candidate}.", data={"command": command})
        return _runnable(candidate, path)
    blocked: Path | None = None
    for folder in path.split(os.pathsep):
        for name in _spellings(command):
            candidate = cwd / folder / name if folder else cwd / name
            if candidate.is_file():
                if os.access(candidate, os.X_OK):
                    return _runnable(candidate, path)
                blocked = blocked or candidate
    if blocked is not None:
        return _runnable(blocked, path)
    raise CallboardError(
        "command-not-found",
        f"The program {command} was not found; searched were {path.replace(os.pathsep, ', ') or 'no folders'}.",
        data={"command": command, "path": path},
    )


def refused(error: OSError, program: str) -> CallboardError:
    """What the system's refusal to start ``program`` means."""
    why = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        return CallboardError("command-not-found", f"The program {program} cannot be started: {why}.")
    if isinstance(error, PermissionError) or error.errno == 8:  # ENOEXEC
        return CallboardError("command-not-executable", f"The file {program} cannot be run: {why}.")
    return CallboardError("start-refused", f"The system refused to start {program}: {why}.")


def _spellings(command: str) -> list[str]:
    if os.name != "nt":
        return [command]
    endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
    if any(command.upper().endswith(ending.upper()) for ending in endings):
        return [command]
    return [command + ending for ending in endings]


def _runnable(program: Path, path: str) -> str:
    if not program.is_file():
        raise CallboardError("command-not-executable", f"{program} is a folder, not a program.")
    if not os.access(program, os.X_OK):
        raise CallboardError("command-not-executable", f"The file {program} is not marked as executable.")
    if os.name == "posix":
        _check_first_line(program, path)
    return str(program)


def _check_first_line(program: Path, path: str) -> None:
    # Without this the kernel's answer is "No such file", said of a script that plainly exists, or an exit with 127.
    try:
        with program.open("rb") as file:
            head = file.read(_SHEBANG_BYTES)
    except OSError:
        return  # may be run without being readable
    if not head.startswith(b"#!"):
        if b"\0" not in head:
            message = f"The file {program} is neither a program nor a script whose first line names its interpreter."
            raise CallboardError("command-not-executable", message)
        return
    words = head[2:].split(b"\n", 1)[0].decode(errors="surrogateescape").split(" ")
    words = [word for word in words if word]
    if not words:
        return
    interpreter = Path(words[0])
    missing = str(interpreter) if not interpreter.exists() else ""
    if not missing and interpreter.name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        if names and not _on_path(names[0].rstrip("\r"), path):
            missing = names[0]
    if missing:
        ending = " (the line ends in a carriage return)" if missing.endswith("\r") else ""
        raise CallboardError(
            "command-not-found",
            f"The script {program} needs {missing.rstrip()}, which was not found{ending}; "
            f"searched were {path.replace(os.pathsep, ', ')}.",
            data={"command": missing.rstrip(), "path": path},
        )


def _on_path(name: str, path: str) -> bool:
    if "/" in name:
        return Path(name).exists()
    return any(os.access(Path(folder) / name, os.X_OK) for folder in path.split(os.pathsep) if folder)


def child_environment(environment: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """What the child gets: ``environment`` with the roster's own variables over it."""
    return {**environment, **added}

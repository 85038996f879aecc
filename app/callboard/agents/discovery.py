"""Looking before serving: which interpreters there are for a file, which agents are in it, and what each offers."""

import asyncio
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from callboard.agents.link import WORKER, AgentError, WorkerLink, failure_of

SECONDS: Final = 60.0  # for an import that takes its time
_FOLDERS: Final = (".venv", "venv", "env")
_PROGRAMS: Final = ("Scripts/python.exe",) if sys.platform == "win32" else ("bin/python", "bin/python3")


@dataclass(frozen=True)
class Interpreter:
    """A Python that may have an agent's packages. ``origin`` is "environment", "project" or "callboard"."""

    path: str
    origin: Literal["environment", "project", "callboard"]


def interpreters_for(place: Path) -> list[Interpreter]:
    """The interpreters for an agent in this file or folder, the likeliest first.

    A virtual environment in the folder or in one above it, that of the project that the folder belongs to (beside its
    pyproject.toml or uv.lock), and the one that runs this program.
    """
    found: dict[str, Interpreter] = {}
    folder = place if place.is_dir() else place.parent
    for parent in (folder, *folder.parents):
        is_project = any((parent / name).exists() for name in ("pyproject.toml", "uv.lock"))
        for name in _FOLDERS:
            for program in _PROGRAMS:
                path = parent / name / program
                if path.exists() and (parent / name / "pyvenv.cfg").exists():
                    made = Interpreter(str(path), "project" if is_project else "environment")
                    found.setdefault(str(parent / name), made)
        if is_project:
            break
    return [*found.values(), Interpreter(sys.executable, "callboard")]


async def list_agents(module: str, python: str = "", cwd: Path | None = None) -> list[dict[str, str]]:
    """The agents in a module or file: name, kind and description of each; none of them is made.

    Raises AgentError with what the module's own code said.
    """
    program = python or sys.executable
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            str(WORKER),
            "--list",
            module,
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        message = f"the interpreter {program} cannot be started: {error.strerror or error}"
        raise AgentError(failure_of("agent-python", message)) from error
    try:
        async with asyncio.timeout(SECONDS):
            output, _ = await process.communicate()
    except BaseException as error:
        if process.returncode is None:
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            raise AgentError(failure_of("agent-load", f"{module} was not imported within {SECONDS:.0f} s")) from error
        raise
    try:
        answer = json.loads(output)
    except ValueError as error:
        raise AgentError(failure_of("agent-load", f"{module} ended the program when it was imported")) from error
    if "error" in answer:
        raise AgentError(answer["error"])
    found: list[dict[str, str]] = answer["agents"]
    return found


async def describe(
    agent: str, python: str = "", params: Mapping[str, Any] | None = None, cwd: Path | None = None
) -> list[dict[str, Any]]:
    """Make the agent and ask what it offers (AGENT of the contract, usually one). Raises AgentError."""
    link = WorkerLink()
    try:
        async with asyncio.timeout(SECONDS):
            await link.spawn(python, cwd)
            await link.load(agent, params or {}, persist=False, thoughts=False, tools=True)
    except TimeoutError as error:
        raise AgentError(failure_of("agent-load", f"{agent} was not loaded within {SECONDS:.0f} s")) from error
    finally:
        await link.close()
    return link.agents

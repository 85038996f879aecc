"""Virtual environments for real agent frameworks, made once under a cache folder; the `--agents` option of pytest."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

# As it was before tests get a home of their own: package clients keep their caches and settings in the real one.
ENVIRONMENT = dict(os.environ)
PROJECT = Path(__file__).parents[2]
Version = tuple[int, int]


class Unavailable(Exception):
    """An environment that cannot be had here; the message says why, in one line."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What to install for an agent framework, and where it runs.

    ``packages`` are pinned requirements. ``light`` ones are installed by every run of the tests, the others only with
    ``--agents``. ``seconds`` bounds the installation. ``below`` is the first Python version that it does not run on.
    """

    name: str
    packages: tuple[str, ...]
    light: bool = False
    seconds: float = 600.0
    minimum: Version = (3, 11)
    below: Version = (3, 99)


FRAMEWORKS = {
    framework.name: framework
    for framework in (
        Framework("pydantic-ai", ("pydantic-ai-slim==2.68.0",), light=True),
        Framework("langgraph", ("langgraph==1.2.24", "langchain==1.5.2")),
        Framework("openai-agents", ("openai-agents==0.24.0",)),
        Framework("google-adk", ("google-adk==2.13.0",)),
        Framework("smolagents", ("smolagents==1.26.0",)),
        Framework("agentkernel", ("agentkernel==0.9.5",), minimum=(3, 12), below=(3, 14)),
        Framework("gaia", ("amd-gaia[mcp]==0.25.1",), seconds=900.0),
    )
}


def cache_folder() -> Path:
    """Where the environments are kept: CALLBOARD_TEST_VENVS, else beside the person's other caches."""
    if chosen := ENVIRONMENT.get("CALLBOARD_TEST_VENVS"):
        return Path(chosen)
    return Path(ENVIRONMENT.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "callboard-tests"


def interpreter_of(environment: Path) -> Path:
    """A virtual environment's Python."""
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def python_for(framework: Framework, cache: Path | None = None) -> Path:
    """The interpreter that has the framework, installed now if it is not there yet.

    Raises:
        Unavailable: no fitting Python was found, or the packages could not be installed in time.
    """
    base = _base_python(framework)
    mark = hashlib.sha256("\n".join((base, *framework.packages)).encode()).hexdigest()[:10]
    folder = (cache or cache_folder()) / f"{framework.name}-{mark}"
    if interpreter_of(folder).exists():
        return interpreter_of(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Made aside and renamed when complete: what has the name is whole, and two runs at once do not spoil one another.
    making = Path(tempfile.mkdtemp(prefix=f"{framework.name}-making-", dir=folder.parent))
    try:
        _install(making, base, framework)
        if not folder.exists():
            making.rename(folder)
    except OSError:
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return interpreter_of(folder)


def _base_python(framework: Framework) -> str:
    for candidate in _pythons():
        program = "import sys; print(sys.version_info[0], sys.version_info[1], sys.base_prefix)"
        try:
            found = subprocess.run([candidate, "-c", program], capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            major, minor, _prefix = found.stdout.split(maxsplit=2)
            if framework.minimum <= (int(major), int(minor)) < framework.below:
                return candidate
    wanted = ".".join(map(str, framework.minimum))
    raise Unavailable(f"{framework.name} needs Python {wanted} or later, and none that fits was found")


def _pythons() -> Iterator[str]:
    yield os.path.realpath(sys.executable)
    for name in ("python3.13", "python3.12", "python3.11", "python3.14", "python3"):
        if found := shutil.which(name):
            yield found
    pyenv = Path(ENVIRONMENT.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for python in sorted(pyenv.glob("versions/3.1?.*/bin/python"), reverse=True):
        yield str(python)


def _install(environment: Path, base: str, framework: Framework) -> None:
    uv = PROJECT / ".uv" / "bin" / "uv"
    uv_command = str(uv) if uv.exists() else shutil.which("uv")
    if uv_command:
        _run(framework, 60.0, uv_command, "venv", "-q", "--allow-existing", "--python", base, str(environment))
        python = str(interpreter_of(environment))
        command = [uv_command, "pip", "install", "-q", "--compile-bytecode", "--python", python]
    else:
        venv.create(environment, with_pip=False, symlinks=sys.platform != "win32")
        command = [base, "-m", "pip", "--python", str(interpreter_of(environment)), "install", "-q"]
    _run(framework, framework.seconds, *command, *framework.packages)


def _run(framework: Framework, seconds: float, *command: str) -> None:
    environment = {name: value for name, value in ENVIRONMENT.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{framework.name} was not installed within {seconds:.0f} s") from None
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no reason was given"]
        raise Unavailable(f"{framework.name} could not be installed: {lines[-1][:200]}")


# ---- pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--agents", action="store_true", help="also test the agent frameworks that take minutes to install"
    )


class AgentEnvironments:
    """The interpreters with a framework that this run may use; each is looked for once."""

    def __init__(self, all_of_them: bool) -> None:
        self._all = all_of_them
        self._found: dict[str, Path | str] = {}

    def python(self, name: str) -> Path:
        """The framework's interpreter; skips the test where it cannot be had."""
        framework = FRAMEWORKS[name]
        if not (framework.light or self._all):
            pytest.skip(f"{name} takes long to install; run with --agents")
        if name not in self._found:
            try:
                self._found[name] = python_for(framework)
            except Unavailable as error:
                self._found[name] = str(error)
        found = self._found[name]
        if isinstance(found, str):
            pytest.skip(found)
        return found


@pytest.fixture(scope="session")
def agent_environments(pytestconfig: pytest.Config) -> AgentEnvironments:
    """The frameworks' interpreters, installed when first asked for."""
    return AgentEnvironments(bool(pytestconfig.getoption("--agents")))


def main(names: Sequence[str]) -> None:
    """Install these frameworks, or all, and say where they are and how long it took."""
    import time

    for name in names or FRAMEWORKS:
        started = time.monotonic()
        try:
            outcome = str(python_for(FRAMEWORKS[name]))
        except Unavailable as error:
            outcome = str(error)
        print(f"{name}: {time.monotonic() - started:.1f} s, {outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])

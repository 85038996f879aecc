"""Who may import whom: the contracts in pyproject.toml hold, and each of them would notice a breach."""

from __future__ import annotations

import ast
import json
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import callboard

PACKAGE = Path(callboard.__file__).parent
UNIT_TESTS = Path(__file__).parent
HEADLESS = ("core", "system", "clients", "api", "engine", "agents", "commands", "connect")
OF_WINDOWS = frozenset({"callboard.system.job_object"})  # can be imported there alone

# One breach of each contract: the file that makes it, what it imports, and the contract's name.
BREACHES = [
    ("core/breach_layer.py", "callboard.system", "The window and the command line"),
    ("system/breach_layer.py", "callboard.engine", "The engine: under the control API's server"),
    ("engine/breach_qt.py", "PySide6.QtCore", "Qt is for the window alone"),
    ("ui/breach_engine.py", "callboard.engine", "The clients of the control API never see the engine"),
    ("core/breach_io.py", "asyncio", "The rules in core do no input or output"),
    ("engine/breach_fastmcp.py", "fastmcp", "FastMCP and the SDK are for the shipped servers"),
    ("ui/breach_pydantic.py", "pydantic", "The window does without pydantic"),
    ("engine/breach_keyring.py", "keyring", "The keyring is for the engine's secrets"),
    ("engine/breach_otel.py", "opentelemetry.sdk.trace", "OpenTelemetry and Prometheus are for the engine's telemetry"),
    ("servers/breach_ours.py", "callboard.engine", "The shipped servers and the agents stand alone"),
]


def lint(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root / "app"), "COLUMNS": "200"}
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", *options]
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, encoding="utf-8", check=False
    )


def verdicts(output: str) -> dict[str, str]:
    """From import-linter's report: each contract's name and whether it is kept."""
    lines = re.finditer(r"^(.+?) (KEPT|BROKEN)(?: \(.*\))?$", output, re.MULTILINE)
    return {line[1].strip(): line[2] for line in lines}


def test_contracts_are_kept(pytestconfig: pytest.Config) -> None:
    result = lint(pytestconfig.rootpath, "--no-cache")

    assert result.returncode == 0, result.stdout + result.stderr
    assert set(verdicts(result.stdout).values()) == {"KEPT"}
    assert len(verdicts(result.stdout)) == len(BREACHES), "each contract has its breach in this file"


def test_each_contract_notices_its_breach(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "app" / "callboard", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(pytestconfig.rootpath / "pyproject.toml", tmp_path)
    for file, module, _contract in BREACHES:
        (tmp_path / "app" / "callboard" / file).write_text(f"import {module}\n")

    result = lint(tmp_path, "--no-cache")

    assert result.returncode == 1, result.stdout + result.stderr
    found = verdicts(result.stdout)
    for _file, _module, contract in BREACHES:
        (verdict,) = [verdict for name, verdict in found.items() if name.startswith(contract)]
        assert verdict == "BROKEN", contract


def loaded_by(modules: list[str], suspects: list[str], folder: Path) -> list[str]:
    """Which of the suspects are loaded once these modules are, in a Python of its own."""
    program = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in {suspects!r} if name in sys.modules]))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


# What lint cannot see: imports made by the libraries that we import.


def test_the_headless_half_loads_nothing_of_the_window(tmp_path: Path) -> None:
    modules = []
    for package in HEADLESS:
        modules.append(f"callboard.{package}")
        found = pkgutil.walk_packages([str(PACKAGE / package)], f"callboard.{package}.")
        modules += [name for _, name, _ in found if name not in OF_WINDOWS or sys.platform == "win32"]

    assert loaded_by(modules, ["PySide6", "shiboken6", "qasync", "callboard.ui"], tmp_path) == []


@pytest.mark.parametrize("root", ["callboard.engine_main", "callboard.cli"])
def test_what_starts_headless_is_light(root: str, tmp_path: Path) -> None:
    """FastMCP, the keyring and the database take a second and 50 MB each; who needs them imports them then."""
    heavy = ["PySide6", "shiboken6", "qasync", "fastmcp", "mcp", "mcp_types", "keyring"]
    heavy += ["sqlalchemy", "alembic", "psycopg"]

    assert loaded_by([root], heavy, tmp_path) == []


def modules_in(source: str) -> Iterator[str]:
    """The modules that a module imports, wherever in it but for types alone; "." for a relative import."""
    tree = ast.parse(source)
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." if node.level else (node.module or "")


def imported(source: str) -> Iterator[str]:
    """The top-level names of the packages that a module imports."""
    return (name if name == "." else name.partition(".")[0] for name in modules_in(source))


def foreign(source: str) -> set[str]:
    """What a module imports that does not come with Python."""
    return {name for name in imported(source) if name not in sys.stdlib_module_names}


def test_the_agents_worker_needs_python_alone() -> None:
    """It runs under the person's own interpreter, where nothing of ours is installed."""
    assert foreign("import os, asyncio\ndef f():\n    from callboard.core import errors\n    from . import x") == {
        "callboard",
        ".",
    }
    waiting, seen = ["callboard.agents.worker", "callboard"], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        source = source_of(name)
        assert foreign(source) <= {"callboard"}, name
        ours = {module for module in modules_in(source) if module.partition(".")[0] == "callboard"}
        assert all(module.startswith("callboard.agents.") for module in ours), name
        waiting += ours - seen
    assert "callboard.agents.contract" in seen


def source_of(module: str) -> str:
    """The text of one of our modules or packages."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")


def test_unit_tests_do_without_qt() -> None:
    users = {
        str(file.relative_to(UNIT_TESTS))
        for file in UNIT_TESTS.rglob("*.py")
        for name in imported(file.read_text("utf-8"))
        if name in ("PySide6", "qasync", "pytestqt")
    }
    assert users == set()

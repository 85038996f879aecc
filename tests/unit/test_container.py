"""The container of the engine, as far as it can be looked at without building it."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from callboard.core.roster import Gateway
from callboard.engine.gateway.address import VARIABLE, is_exposed

Instruction = tuple[str, str]


@pytest.fixture(scope="module")
def root(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath


@pytest.fixture(scope="module")
def steps(root: Path) -> list[Instruction]:
    """The Containerfile's instructions with what stands behind them."""
    text = (root / "packaging/container/Containerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    found = []
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if line.strip():
            name, rest = line.split(None, 1)
            found.append((name, rest.strip()))
    return found


def values(steps: list[Instruction], name: str) -> list[str]:
    return [rest for step, rest in steps if step == name]


def locked(path: Path) -> dict[str, str]:
    """The versions of a lock file by package."""
    return dict(re.findall(r"^([a-z0-9-]+)(?:\[.*\])?==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_it_runs_the_engine_as_a_plain_user(steps: list[Instruction]) -> None:
    assert values(steps, "USER") == ["10001"]
    assert any("useradd --uid 10001 " in run for run in values(steps, "RUN"))
    assert json.loads(values(steps, "CMD")[0]) == ["callboard", "engine"]
    assert steps.index(("USER", "10001")) > max(place for place, (name, _) in enumerate(steps) if name == "RUN")


def test_its_gateway_is_where_others_look_for_it(steps: list[Instruction]) -> None:
    (environment,) = values(steps, "ENV")
    settings = dict(part.split("=", 1) for part in environment.split())
    assert is_exposed(settings[VARIABLE])
    port = str(Gateway().port)
    assert values(steps, "EXPOSE") == [port]
    assert f"http://127.0.0.1:{port}/healthz" in values(steps, "HEALTHCHECK")[0]
    assert settings["CALLBOARD_HOME"] in values(steps, "WORKDIR")


def test_what_it_copies_is_there_and_not_ignored(steps: list[Instruction], root: Path) -> None:
    rules = (root / "packaging/container/Containerfile.dockerignore").read_text(encoding="utf-8").split()
    for copy in values(steps, "COPY"):
        if copy.startswith("--from"):
            continue
        for source in copy.split()[:-1]:
            assert (root / source).exists(), source
            assert f"!{source}" in rules
    assert rules[0] == "*"
    assert not any(fnmatch(".venv", rule.removeprefix("!")) for rule in rules[1:])


def test_its_packages_are_those_of_the_project_without_the_window(root: Path) -> None:
    path = root / "packaging/container/requirements.lock"
    ours, project = locked(path), locked(root / "packaging/requirements.lock")
    assert {name: project[name] for name in ours} == ours
    assert not {"pyside6-essentials", "shiboken6", "qasync", "pytest"} & ours.keys()
    assert {"uvicorn", "sqlalchemy", "psycopg", "alembic", "hatchling"} <= ours.keys()
    text = path.read_text(encoding="utf-8")
    assert "://" not in text
    assert text.count("==") <= text.count("--hash=sha256:")

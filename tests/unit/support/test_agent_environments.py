"""The environments that tests of agent frameworks run under: installed once, or a reason why not."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.support.agent_environments import (
    FRAMEWORKS,
    AgentEnvironments,
    Framework,
    Unavailable,
    python_for,
)

METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A package that needs no network."""
    path = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr("tiny-1.0.dist-info/METADATA", METADATA)
        archive.writestr("tiny-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("tiny-1.0.dist-info/RECORD", "")
    return path


def test_an_environment_is_made_once(wheel: Path, tmp_path: Path) -> None:
    framework = Framework("tiny", (str(wheel),))
    python = python_for(framework, tmp_path / "cache")
    shown = subprocess.run(
        [python, "-c", "import tiny; print(tiny.answer)"], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "42"
    wheel.unlink()  # it is not asked for again
    assert python_for(framework, tmp_path / "cache") == python
    assert [folder.name for folder in (tmp_path / "cache").iterdir()] == [python.parents[1].name]


def test_what_cannot_be_installed_leaves_a_reason_and_nothing_else(tmp_path: Path) -> None:
    framework = Framework("gone", (str(tmp_path / "gone-1.0-py3-none-any.whl"),))
    with pytest.raises(Unavailable, match=r"gone could not be installed: .+"):
        python_for(framework, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_framework_for_other_pythons_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"later needs Python 9\.1 or later"):
        python_for(Framework("later", (), minimum=(9, 1)), tmp_path)


def test_slow_frameworks_are_skipped_unless_they_are_asked_for() -> None:
    slow = next(framework for framework in FRAMEWORKS.values() if not framework.light)
    with pytest.raises(pytest.skip.Exception, match="--agents"):
        AgentEnvironments(all_of_them=False).python(slow.name)


def test_the_readme_names_the_versions_that_are_tested() -> None:
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    table = readme[readme.index("## Python agents") :].partition("\n## ")[0]
    for framework in FRAMEWORKS.values():
        for package in framework.packages:
            name, version = package.split("==")
            assert f"`{name.partition('[')[0]}` {version}" in table

"""What the module for Windows asks of the system, with a stand-in for it: it was not yet run on Windows."""

from __future__ import annotations

import ctypes
import importlib
import subprocess
import sys
from collections.abc import Iterator
from ctypes import wintypes
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there the tests of processes run the real thing")
MODULE = "callboard.system.job_object"
JOB, CHILD = 70, 71
SUSPENDED, NO_WINDOW = 0x4, 0x0800_0000


class Windows:
    """Kernel32, ntdll and Popen: notes what is asked, in order, and fails where it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.failing = ""
        self.limits: Any = None
        self.pids: list[int] = []
        self.started: dict[str, Any] = {}

    def library(self, name: str, **_options: object) -> Any:
        """ctypes.WinDLL."""
        return _Library(self)

    def call(self, name: str, arguments: tuple[Any, ...]) -> int | None:
        """One function of a library: its result."""
        self.asked.append(name)
        match name:
            case "CreateJobObjectW":
                return None if self.failing == name else JOB
            case "SetInformationJobObject":
                assert arguments[:2] == (JOB, 9)
                self.limits = arguments[2]._obj
                assert arguments[3] == ctypes.sizeof(self.limits)
            case "AssignProcessToJobObject":
                assert arguments == (JOB, CHILD)
            case "QueryInformationJobObject":
                assert arguments[:2] == (JOB, 3)
                found = arguments[2]._obj
                found.assigned = found.listed = len(self.pids)
                found.pids[: len(self.pids)] = self.pids
            case "NtResumeProcess":
                assert arguments == (CHILD,)
                return -1 if self.failing == name else 0
        return 0 if self.failing == name else 1

    def popen(self, command: Any, **options: Any) -> Any:
        """subprocess.Popen."""
        self.asked.append("Popen")
        if self.failing == "Popen":
            raise FileNotFoundError(2, "not found")
        self.started = {"command": command, **options}
        return _Child(self)


class _Library:
    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._functions: dict[str, _Function] = {}

    def __getattr__(self, name: str) -> _Function:
        return self._functions.setdefault(name, _Function(self._windows, name))


class _Function:
    def __init__(self, windows: Windows, name: str) -> None:
        self._windows, self._name = windows, name

    def __call__(self, *arguments: Any) -> int | None:
        return self._windows.call(self._name, arguments)


class _Child:
    _handle = CHILD

    def __init__(self, windows: Windows) -> None:
        self._windows = windows

    def kill(self) -> None:
        self._windows.asked.append("kill")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Windows:
    stand_in = Windows()
    monkeypatch.setattr(ctypes, "WinDLL", stand_in.library, raising=False)
    monkeypatch.setattr(ctypes, "get_last_error", lambda: 5, raising=False)
    monkeypatch.setattr(ctypes, "WinError", lambda code: OSError(code, "access denied"), raising=False)
    monkeypatch.setattr(wintypes, "DWORD", ctypes.c_uint32)  # where long has 64 bits it is too large
    monkeypatch.setattr(subprocess, "CREATE_NO_WINDOW", NO_WINDOW, raising=False)
    return stand_in


@pytest.fixture
def job_object(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        module = importlib.import_module(MODULE)
    monkeypatch.setattr(subprocess, "Popen", windows.popen)
    yield module
    sys.modules.pop(MODULE, None)


def start(module: ModuleType, tmp_path: Path) -> Any:
    """Start a program; the process and its job."""
    return module.start_tree(["server.exe", "an argument"], cwd=tmp_path, environment={"A": "b"})


def test_structures_are_laid_out_as_the_system_has_them(job_object: ModuleType):
    assert ctypes.sizeof(job_object._BasicLimits) == 64
    assert job_object._BasicLimits.flags.offset == 16
    assert ctypes.sizeof(job_object._ExtendedLimits) == 144
    assert job_object._ExtendedLimits.io_counters.offset == 64
    assert job_object._ExtendedLimits.process_memory.offset == 112
    assert job_object._ProcessIds.pids.offset == 8


def test_a_child_is_in_its_job_before_it_runs(job_object: ModuleType, windows: Windows, tmp_path: Path):
    process, _ = start(job_object, tmp_path)
    assert windows.asked == [
        "CreateJobObjectW",
        "SetInformationJobObject",
        "Popen",
        "AssignProcessToJobObject",
        "NtResumeProcess",
    ]
    assert windows.limits.basic.flags == 0x2000, "whoever is still in it ends with us"
    assert windows.started["creationflags"] == SUSPENDED | NO_WINDOW
    assert (windows.started["cwd"], windows.started["env"]) == (tmp_path, {"A": "b"})
    assert isinstance(process, _Child)


def test_the_whole_job_is_known_ended_and_given_up(job_object: ModuleType, windows: Windows, tmp_path: Path):
    _, job = start(job_object, tmp_path)
    windows.pids = [8, 12, 16]
    assert job.members(pipes_held=False) == [8, 12, 16]
    windows.asked.clear()
    job.ask_to_end([8])
    assert not windows.asked, "there is no way to ask"
    job.kill([8])
    job.close()
    job.close()
    job.kill([8])
    assert windows.asked == ["TerminateJobObject", "CloseHandle"]


@pytest.mark.parametrize(
    ("failing", "after"),
    [
        ("CreateJobObjectW", []),
        ("SetInformationJobObject", ["CloseHandle"]),
        ("Popen", ["CloseHandle"]),
        ("AssignProcessToJobObject", ["CloseHandle", "kill"]),
        ("NtResumeProcess", ["CloseHandle", "kill"]),
    ],
)
def test_what_cannot_be_put_into_a_job_does_not_run(
    job_object: ModuleType, windows: Windows, tmp_path: Path, failing: str, after: list[str]
):
    windows.failing = failing
    with pytest.raises(OSError, match=r"not found|access denied|cannot be resumed"):
        start(job_object, tmp_path)
    assert windows.asked[windows.asked.index(failing) + 1 :] == after

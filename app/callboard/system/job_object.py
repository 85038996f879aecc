"""Windows: a child and everything that it starts, in one job that the system ends together with us.

The job is assigned while the child is still suspended, so that nothing it starts can be outside. Not yet run on
Windows.
"""

import ctypes
import subprocess
import sys
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from pathlib import Path

from callboard.system.batch_command import command_line

assert sys.platform == "win32"

_EXTENDED_LIMITS = 9
_PROCESS_IDS = 3
_KILL_ON_CLOSE = 0x2000
_CREATE_SUSPENDED = 0x4
_MOST_PROCESSES = 1024

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_ntdll = ctypes.WinDLL("ntdll")
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
_kernel.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
_kernel.QueryInformationJobObject.argtypes = (
    wintypes.HANDLE,
    ctypes.c_int,
    ctypes.c_void_p,
    wintypes.DWORD,
    ctypes.c_void_p,
)
_kernel.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)
_ntdll.NtResumeProcess.argtypes = (wintypes.HANDLE,)


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("per_process_time", ctypes.c_int64),
        ("per_job_time", ctypes.c_int64),
        ("flags", wintypes.DWORD),
        ("minimum_working_set", ctypes.c_size_t),
        ("maximum_working_set", ctypes.c_size_t),
        ("active_processes", wintypes.DWORD),
        ("affinity", ctypes.c_size_t),
        ("priority", wintypes.DWORD),
        ("scheduling", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("basic", _BasicLimits),
        ("io_counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("peak_process_memory", ctypes.c_size_t),
        ("peak_job_memory", ctypes.c_size_t),
    )


class _ProcessIds(ctypes.Structure):
    _fields_ = (
        ("assigned", wintypes.DWORD),
        ("listed", wintypes.DWORD),
        ("pids", ctypes.c_size_t * _MOST_PROCESSES),
    )


class JobTree:
    """A child and everything that it started. Owns the job's handle: closing it ends whoever is still there."""

    def __init__(self) -> None:
        self._job = _kernel.CreateJobObjectW(None, None)
        if not self._job:
            raise ctypes.WinError(ctypes.get_last_error())
        limits = _ExtendedLimits()
        limits.basic.flags = _KILL_ON_CLOSE
        self._check(
            _kernel.SetInformationJobObject(self._job, _EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits))
        )

    def add(self, process: "subprocess.Popen[bytes]") -> None:
        """Take a process that has not run yet. Raises OSError."""
        self._check(_kernel.AssignProcessToJobObject(self._job, int(process._handle)))  # type: ignore[attr-defined]

    def resume(self, process: "subprocess.Popen[bytes]") -> None:
        """Let a process that was taken run. Raises OSError."""
        if _ntdll.NtResumeProcess(int(process._handle)) < 0:  # type: ignore[attr-defined]
            self.close()
            raise OSError("the process cannot be resumed")

    def members(self, *, pipes_held: bool) -> list[int]:
        """Living processes of the job; ``pipes_held`` makes no difference, nobody leaves a job."""
        found = _ProcessIds()
        _kernel.QueryInformationJobObject(self._job, _PROCESS_IDS, ctypes.byref(found), ctypes.sizeof(found), None)
        return list(found.pids[: found.listed])

    def ask_to_end(self, pids: list[int]) -> None:
        """Nothing: a process without a window or a console of ours cannot be asked. Its input was closed before."""

    def kill(self, pids: list[int]) -> None:
        """End all processes of the job."""
        if self._job:
            _kernel.TerminateJobObject(self._job, 1)

    def close(self) -> None:
        """Give the job up, and with it whoever is still in it. Idempotent."""
        if self._job:
            _kernel.CloseHandle(self._job)
            self._job = None

    def _check(self, succeeded: int) -> None:
        if not succeeded:
            error = ctypes.WinError(ctypes.get_last_error())
            self.close()
            raise error


def start_tree(
    argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str]
) -> "tuple[subprocess.Popen[bytes], JobTree]":
    """Start a program with three pipes and without a console, in a job of its own. Raises OSError."""
    job = JobTree()
    try:
        process = subprocess.Popen(
            command_line(argv, shell=environment.get("COMSPEC", "cmd.exe")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=environment,
            creationflags=_CREATE_SUSPENDED | subprocess.CREATE_NO_WINDOW,
        )
    except BaseException:
        job.close()
        raise
    try:
        job.add(process)
        job.resume(process)
    except BaseException:
        process.kill()
        raise
    return process, job

"""Folders on Windows, which cannot open a file in a folder: what was opened is asked afterwards where it really is.

A handle that turns out to lie elsewhere than its path says, because a link or junction is on the way, is closed unread.
Every folder on the way is held open without the right to rename or delete it, so that none can be exchanged while
something in it is looked at. Paths in the short form of old (`PROGRA~1`) are refused. Not yet run on Windows.
"""

from __future__ import annotations

import ctypes
import itertools
import msvcrt
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from typing import Final, Self

from callboard.servers.filesystem.folder import Item, item_of, link_refused, must_be_regular, said_of, within
from callboard.servers.filesystem.places import Refused, Root, shown

assert sys.platform == "win32"

_GENERIC_READ: Final = 0x80000000
_LIST: Final = 0x1
_SHARE_READ_WRITE: Final = 0x1 | 0x2  # not FILE_SHARE_DELETE: see the module
_OPEN_EXISTING: Final = 3
_BACKUP_SEMANTICS: Final = 0x02000000  # needed to open a folder
_INVALID: Final = wintypes.HANDLE(-1).value
_LONGEST: Final = 32768

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateFileW.restype = wintypes.HANDLE
_kernel.CreateFileW.argtypes = (
    wintypes.LPCWSTR,
    wintypes.DWORD,
    wintypes.DWORD,
    ctypes.c_void_p,
    wintypes.DWORD,
    wintypes.DWORD,
    wintypes.HANDLE,
)
_kernel.GetFinalPathNameByHandleW.argtypes = (wintypes.HANDLE, wintypes.LPWSTR, wintypes.DWORD, wintypes.DWORD)
_kernel.CloseHandle.argtypes = (wintypes.HANDLE,)


class WindowsFolder:
    """See Folder. ``real`` is where it is; ``above`` the folder that it was reached through, closed with it."""

    def __init__(self, handle: int, real: str, path: str, above: WindowsFolder | None = None) -> None:
        self._handle = handle
        self._real = real
        self._above = above
        self.path = path

    @classmethod
    def root(cls, root: Root) -> WindowsFolder:
        """Open a root."""
        with _telling(root.named):
            handle = _open(root.real, _LIST)
        real = _final_path(handle)
        if os.path.normcase(real) != os.path.normcase(root.real):
            _kernel.CloseHandle(handle)
            raise Refused(link_refused(root.named))
        return cls(handle, real, root.named)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """See Folder."""
        _kernel.CloseHandle(self._handle)

    def folder(self, name: str) -> WindowsFolder:
        """See Folder."""
        path = within(self.path, name)
        handle, real = self._open(name, path, _LIST)
        if not stat.S_ISDIR(os.lstat(real).st_mode):
            _kernel.CloseHandle(handle)
            raise Refused(f"{shown(path)} is not a folder.")
        return WindowsFolder(handle, real, path)

    def file(self, name: str) -> tuple[int, os.stat_result]:
        """See Folder."""
        path = within(self.path, name)
        must_be_regular(self.look(name), path)
        handle, _ = self._open(name, path, _GENERIC_READ)
        descriptor = msvcrt.open_osfhandle(handle, os.O_RDONLY | os.O_BINARY)
        try:
            status = os.fstat(descriptor)
            must_be_regular(status, path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status

    def look(self, name: str) -> os.stat_result:
        """See Folder."""
        with _telling(within(self.path, name)):
            return os.lstat(within(self._real, name) if name else self._real)

    def items(self, limit: int) -> list[Item]:
        """See Folder."""
        with _telling(self.path), os.scandir(self._real) as entries:
            return [item_of(entry) for entry in itertools.islice(entries, limit)]

    def _open(self, name: str, path: str, access: int) -> tuple[int, str]:
        wanted = within(self._real, name)
        with _telling(path):
            handle = _open(wanted, access)
        real = _final_path(handle)
        if os.path.normcase(real) != os.path.normcase(wanted):
            _kernel.CloseHandle(handle)
            raise Refused(link_refused(path))
        return handle, real


def _open(path: str, access: int) -> int:
    handle: int = _kernel.CreateFileW(path, access, _SHARE_READ_WRITE, None, _OPEN_EXISTING, _BACKUP_SEMANTICS, None)
    if handle == _INVALID:
        raise ctypes.WinError(ctypes.get_last_error())
    return handle


def _final_path(handle: int) -> str:
    buffer = ctypes.create_unicode_buffer(_LONGEST)
    length = _kernel.GetFinalPathNameByHandleW(handle, buffer, _LONGEST, 0)
    if not 0 < length < _LONGEST:
        return ""
    path = buffer.value
    if path.startswith("\\\\?\\UNC\\"):
        return "\\\\" + path[8:]
    return path.removeprefix("\\\\?\\")


@contextmanager
def _telling(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Refused(said_of(error, path)) from None

"""Unpacking a bundle that nobody has reason to trust. Everything here runs in a worker thread."""

import hashlib
import os
import shutil
import stat
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from callboard.core.bundle import MANIFEST
from callboard.core.errors import CallboardError
from callboard.engine.registry.plain_file import open_plain_file

MIB: Final = 1024 * 1024
LARGEST_BUNDLE: Final = 512 * MIB  # as a file
LARGEST_CONTENT: Final = 2048 * MIB  # unpacked
MOST_FILES: Final = 100_000
_LARGEST_DIRECTORY: Final = 32 * MIB  # of the archive's list of files
_LARGEST_MANIFEST: Final = 1 * MIB
_PART: Final = 256 * 1024
_LONGEST_NAME: Final = 1024
_DEEPEST: Final = 64
_END: Final = b"PK\x05\x06"
_LOCATOR: Final = b"PK\x06\x07"
_WINDOWS_NAMES: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{digit}" for name in ("com", "lpt") for digit in "123456789")}
)


def copy_bundle(path: Path, target: Path) -> str:
    """Copy a bundle's file, which might change while it is looked at; returns the SHA-256 of what was copied.

    Raises ``bundle-invalid``, ``bundle-too-large`` or ``bundle-unwritable``.
    """
    digest, left = hashlib.sha256(), LARGEST_BUNDLE
    try:
        source = open_plain_file(path)
    except OSError as error:
        raise CallboardError(
            "bundle-invalid",
            f"{path} cannot be read: {error.strerror}.",
            fix="Check the file's name, and that you may read it.",
        ) from None
    try:
        with source, target.open("xb") as copy:
            while part := source.read(_PART):
                left -= len(part)
                if left < 0:
                    raise _too_large(f"The file has more than {LARGEST_BUNDLE // MIB} MiB.")
                digest.update(part)
                copy.write(part)
    except OSError as error:
        raise CallboardError("bundle-unwritable", f"{path} cannot be copied: {error.strerror}.") from error
    return digest.hexdigest()


def read_manifest_of(path: Path) -> object:
    """The manifest's document. Raises ``bundle-invalid``."""
    with _opened(path) as archive:
        try:
            info = archive.getinfo(MANIFEST)
        except KeyError:
            raise _invalid(f"there is no {MANIFEST} in it") from None
        if info.file_size > _LARGEST_MANIFEST:
            raise _invalid(f"its {MANIFEST} is too large")
        _check_member(info)
        body = b"".join(_parts(archive, info, _LARGEST_MANIFEST))
    try:
        document: object = msgspec.json.decode(body.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _invalid(f"its {MANIFEST} is not JSON") from None
    return document


def unpack(path: Path, folder: Path, is_stopped: Callable[[], bool] = lambda: False) -> None:
    """Unpack all of a bundle into a new ``folder``, readable by the owner alone.

    What would be written outside of it, links, encrypted or doubly named members and archives that grow beyond all
    bounds are refused: ``bundle-refused``, ``bundle-too-large``, ``bundle-invalid``, ``bundle-unwritable``. Nothing is
    left of the folder then, or when ``is_stopped`` says so between two members or parts of one.
    """
    try:
        folder.mkdir(mode=0o700)
        try:
            _unpack_into(path, folder, is_stopped)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        raise CallboardError("bundle-unwritable", f"{folder} cannot be written: {error.strerror}.") from error


def _unpack_into(path: Path, folder: Path, is_stopped: Callable[[], bool]) -> None:
    with _opened(path) as archive:
        members = archive.infolist()
        if len(members) > MOST_FILES:
            raise _too_large(f"It holds more than {MOST_FILES} files.")
        if sum(info.file_size for info in members) > LARGEST_CONTENT:
            raise _too_large(f"It would unpack to more than {LARGEST_CONTENT // MIB} MiB.")
        left = LARGEST_CONTENT
        seen: set[str] = set()
        folders: set[PurePosixPath] = set()
        for info in members:
            _go_on_unless(is_stopped)
            place = _check_member(info)
            _count_folders(place / "_" if info.is_dir() else place, folders)
            key = place.as_posix().casefold()
            if key in seen:
                raise _refused(f'It holds "{place}" twice.')
            seen.add(key)
            left -= _write(archive, info, folder / place, left, is_stopped)


def _go_on_unless(is_stopped: Callable[[], bool]) -> None:
    if is_stopped():
        raise _invalid("nobody wants it any more")


def _count_folders(place: PurePosixPath, folders: set[PurePosixPath]) -> None:
    """Add the folders above ``place`` to those that the bundle makes, of which there may be as many as files."""
    for folder in place.parents:
        if folder in folders:
            break
        folders.add(folder)
    if len(folders) > MOST_FILES:
        raise _too_large(f"It holds more than {MOST_FILES} folders.")


def _write(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path, left: int, is_stopped: Callable[[], bool]
) -> int:
    """Write one member; returns its size."""
    if info.is_dir():
        target.mkdir(mode=0o700, parents=True, exist_ok=True)
        return 0
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o700 if (info.external_attr >> 16) & 0o111 else 0o600
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    size = 0
    try:
        descriptor = os.open(target, flags, mode)
    except FileExistsError:
        raise _refused(f'It holds "{info.filename}" twice.') from None
    with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor
        for part in _parts(archive, info, left):
            _go_on_unless(is_stopped)
            file.write(part)
            size += len(part)
    return size


def _parts(archive: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> Iterator[bytes]:
    """What a member holds, at most ``most`` bytes, whatever its header claims."""
    try:
        with archive.open(info) as member:
            while part := member.read(_PART):
                most -= len(part)
                if most < 0:
                    raise _too_large("It unpacks to more than it says.")
                yield part
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise _invalid(f"the archive is damaged ({error})") from None


def _opened(path: Path) -> zipfile.ZipFile:
    """The archive, once its list of files is known to be of a bearable size: it is read into memory at once."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 65_557))
            tail = file.read()
    except OSError as error:
        raise _invalid(f"{path} cannot be read ({error.strerror})") from None
    at = tail.rfind(_END)
    if at < 0 or len(tail) < at + 22:
        raise _invalid("the file is not a ZIP archive")
    (size,) = struct.unpack_from("<I", tail, at + 12)
    if tail[max(0, at - 20) : at].startswith(_LOCATOR) or size > _LARGEST_DIRECTORY:
        raise _too_large("Its list of files is too long.")
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, struct.error, UnicodeDecodeError) as error:
        raise _invalid(f"the archive is damaged ({error})") from None


def _check_member(info: zipfile.ZipInfo) -> PurePosixPath:
    """Where a member goes, relative to the folder. Raises ``bundle-refused``."""
    name = info.orig_filename
    shown = "".join(letter if letter.isprintable() else "?" for letter in name[:80])
    if info.flag_bits & 0x1:
        raise _refused(f'"{shown}" in it is encrypted.')
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _refused(f'"{shown}" in it is compressed in an unusual way.')
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        what = "a link" if kind == stat.S_IFLNK else "no plain file"
        raise _refused(f'"{shown}" in it is {what}.')
    parts = name.removesuffix("/").split("/")
    if len(name) > _LONGEST_NAME or len(parts) > _DEEPEST or not all(map(_is_good, parts)):
        raise _refused(f'It would write to "{shown}", which is not a place inside its own folder.')
    return PurePosixPath(*parts)


def _is_good(part: str) -> bool:
    if part in ("", ".", "..") or not part.isprintable() or "\\" in part or ":" in part:
        return False
    return sys.platform != "win32" or not (
        part[-1] in ". " or part.partition(".")[0].lower() in _WINDOWS_NAMES or any(c in '<>"|?*' for c in part)
    )


def _invalid(why: str) -> CallboardError:
    return CallboardError("bundle-invalid", f"This is no bundle that Callboard can use: {why}.")


def _refused(why: str) -> CallboardError:
    return CallboardError("bundle-refused", f"The bundle is not unpacked. {why}")


def _too_large(why: str) -> CallboardError:
    return CallboardError("bundle-too-large", f"The bundle is not unpacked. {why}")

"""Bundles on this machine: opened when a person wants to see one, kept while a server uses it, removed after that."""

import asyncio
import contextlib
import hashlib
import logging
import os
import shutil
import sys
import threading
import uuid
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import Any, Final

import msgspec

from callboard.core.bundle import Manifest, Place, read_manifest
from callboard.core.errors import CallboardError
from callboard.core.registry import short_name
from callboard.engine import tasks
from callboard.engine.registry.limits import Limits
from callboard.engine.registry.unpack import LARGEST_BUNDLE, copy_bundle, read_manifest_of, unpack

log = logging.getLogger(__name__)

_DOWNLOAD: Final = Limits(total=1800.0, size=LARGEST_BUNDLE)
_RECEIVED, _NEW = ".received-", ".new-"


class Bundles:
    """Each bundle has a folder of its own, named after it and its content. Belongs to the engine's loop.

    ``used`` gives the entries that may refer to one, those that can be brought back included; None: not known now.
    """

    def __init__(self, folder: Path, home: Path, used: Callable[[], list[dict[str, Any]] | None]) -> None:
        self.folder = folder
        self._home = home
        self._used = used
        self._held: dict[str, int] = {}  # by how many a bundle was opened and not released
        self._lock = asyncio.Lock()  # one unpacking or removal at a time
        self._arriving: set[str] = set()  # names of files that are being written
        self._task: asyncio.Task[None] | None = None

    async def open_file(self, path: Path, sha256: str = "") -> tuple[str, Path, Manifest]:
        """Unpack a bundle, if it is not there yet: its id, its folder, and what it says of itself. It is held then.

        Raises ``bundle-…`` codes. Nothing of the bundle is run.
        """
        async with self._received() as file:
            digest = await asyncio.to_thread(copy_bundle, path, file)
            return await self._open(file, digest, sha256)

    async def open_url(self, url: str, sha256: str = "") -> tuple[str, Path, Manifest]:
        """Fetch a bundle and open it; raises ``remote-…`` codes as well."""
        async with self._received() as file:
            digest = await _download(url, file)
            return await self._open(file, digest, sha256)

    @contextlib.asynccontextmanager
    async def _received(self) -> AsyncGenerator[Path, None]:
        """A file of our own for a bundle, which is gone afterwards."""
        file = self.folder / f"{_RECEIVED}{uuid.uuid4().hex}"
        try:
            await asyncio.to_thread(self.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CallboardError("bundle-unwritable", f"{self.folder} cannot be made: {error.strerror}.") from error
        self._arriving.add(file.name)
        try:
            yield file
        finally:
            await asyncio.to_thread(file.unlink, missing_ok=True)
            self._arriving.discard(file.name)

    async def _open(self, file: Path, digest: str, wanted: str) -> tuple[str, Path, Manifest]:
        if wanted and digest != wanted.lower():
            message = "The bundle is not the one that was promised: its checksum differs."
            raise CallboardError("bundle-refused", message)
        document = await asyncio.to_thread(read_manifest_of, file)
        name = read_manifest(document, self._place(self.folder)).name
        key = f"{short_name(name)[:40]}-{digest[:16]}"
        folder = self.folder / key
        manifest = read_manifest(document, self._place(folder))
        async with self._lock:
            if not await asyncio.to_thread(folder.is_dir):
                await self._unpack(file, folder, manifest)
            self._held[key] = self._held.get(key, 0) + 1
        return key, folder, manifest

    async def release(self, key: str) -> None:
        """Whoever opened it needs it no more; it goes if no server uses it."""
        count = self._held.pop(key, 0)
        if count > 1:
            self._held[key] = count - 1
        await self.collect()

    def collect_soon(self) -> None:
        """The roster has changed: remove what no server uses now."""
        if self._task is None or self._task.done():
            self._task = tasks.spawn(self.collect(), name="remove unused bundles")

    async def collect(self) -> None:
        """Remove what no server uses and nobody holds. What cannot be removed is logged, and tried next time."""
        async with self._lock:
            names = await asyncio.to_thread(_folders, self.folder)
            used = self._used() if names else None
            if used is None:
                return
            written = msgspec.json.encode(used).decode()
            kept = {*self._held, *self._arriving}
            unused = [name for name in names if name not in kept and name not in written]
            await asyncio.to_thread(_remove, self.folder, unused)

    async def close(self) -> None:
        """Nobody holds a bundle any more. The servers have ended."""
        if self._task is not None:
            await asyncio.wait([self._task])
        self._held.clear()
        await self.collect()

    def _place(self, folder: Path) -> Place:
        import platformdirs  # needed only here

        folders = {
            "HOME": str(self._home),
            "DESKTOP": platformdirs.user_desktop_dir(),
            "DOCUMENTS": platformdirs.user_documents_dir(),
            "DOWNLOADS": platformdirs.user_downloads_dir(),
        }
        return Place(str(folder), sys.platform, os.sep, folders)

    async def _unpack(self, path: Path, folder: Path, manifest: Manifest) -> None:
        stopped = threading.Event()
        new = self.folder / f"{_NEW}{uuid.uuid4().hex}"

        def work() -> None:
            unpack(path, new, stopped.is_set)
            _finish(new, manifest)
            new.rename(folder)

        try:
            await asyncio.to_thread(work)
        except OSError as error:
            raise CallboardError("bundle-unwritable", f"{folder} cannot be written: {error.strerror}.") from error
        finally:
            stopped.set()


async def _download(url: str, file: Path) -> str:
    """Fetch a bundle into a file; returns its SHA-256. Parts are small, and the disk's cache takes them at once."""
    from callboard.engine.registry.fetch import fetch  # httpx2: only where somebody fetches

    digest = hashlib.sha256()
    try:
        with await asyncio.to_thread(file.open, "xb") as opened:

            def keep(part: bytes) -> None:
                digest.update(part)
                opened.write(part)

            await fetch(url, _DOWNLOAD, keep)
    except OSError as error:
        raise CallboardError("bundle-unwritable", f"{file} cannot be written: {error.strerror}.") from error
    return digest.hexdigest()


def _finish(folder: Path, manifest: Manifest) -> None:
    """What the manifest names must be there, and be a program where it is run as one."""
    for text in manifest.needed:
        file = folder / text
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            shutil.rmtree(folder, ignore_errors=True)
            raise CallboardError("bundle-invalid", f'The bundle does not hold "{text[:200]}", which it wants to run.')
    for text in manifest.executables:
        (folder / text).chmod(0o700)


def _folders(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [each.name for each in folder.iterdir()]
    return []


def _remove(folder: Path, names: Collection[str]) -> None:
    for name in names:
        place = folder / name
        try:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            log.info("the bundle %s cannot be removed yet: %s", name, error)

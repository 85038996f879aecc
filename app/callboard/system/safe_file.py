"""Writing files that a person would miss."""

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

BACKUPS = 10


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace ``path`` whole or not at all, and on the disk when this returns.

    A link is followed: its target is replaced. An existing file keeps its mode, a new one gets ``mode``. Blocks for
    the time of an fsync. Raises OSError.
    """
    target = path.resolve()
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(target.stat().st_mode)
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def keep_backup(path: Path, data: bytes, *, keep: int = BACKUPS) -> Path:
    """Store ``data`` as a dated copy in the folder "backups" beside ``path``; the oldest beyond ``keep`` go."""
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    now = time.time_ns()
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now / 1e9))
    backup = folder / f"{path.stem}-{stamp}-{now % 1_000_000_000:09}{path.suffix}"
    write_atomically(backup, data)
    for old in sorted(folder.glob(f"{path.stem}-*{path.suffix}"))[:-keep]:
        old.unlink(missing_ok=True)
    return backup


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

"""Waiting for changes, with the system's help and without it."""

import asyncio
import sys
from pathlib import Path

import pytest

from callboard.engine import file_watch
from callboard.engine.file_watch import FolderWatch


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
async def test_the_system_tells_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch, "SAFETY", 3600.0)  # so that only the system can end the wait
    monkeypatch.setattr(file_watch, "SETTLE", 0.01)
    watch = FolderWatch([tmp_path])
    file = tmp_path / "file"
    for change in (
        lambda: file.write_text("x"),
        lambda: file.write_text("longer"),
        lambda: file.rename(tmp_path / "other"),
        lambda: (tmp_path / "other").unlink(),
    ):
        waiting = asyncio.ensure_future(watch.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        change()
        await waiting
    watch.close()
    watch.close()


async def test_a_folder_that_cannot_be_watched_is_looked_at_from_time_to_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_watch, "POLL", 0.01)
    monkeypatch.setattr(file_watch, "SAFETY", 3600.0)
    watch = FolderWatch([tmp_path / "not-there"])
    await watch.wait()
    await watch.wait()
    watch.close()


async def test_without_inotify_it_polls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_watch.sys, "platform", "darwin")
    monkeypatch.setattr(file_watch, "POLL", 0.01)
    watch = FolderWatch([tmp_path])
    await watch.wait()
    watch.close()

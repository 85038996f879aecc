"""A call log on a file of its own."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from callboard.engine.calls.log import CallLog

OpenLog = Callable[..., AbstractAsyncContextManager[CallLog]]


def plain(data: bytes) -> bytes:
    """Redaction that finds nothing to mask."""
    return data


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the log's file will be."""
    return tmp_path / "calls.sqlite3"


@pytest.fixture
def open_log(path: Path) -> OpenLog:
    """Opens a log at ``path`` and closes it at the end of the block."""

    @asynccontextmanager
    async def opened(redact: Callable[[bytes], bytes] = plain, **settings: Any) -> AsyncIterator[CallLog]:
        log = CallLog(path, redact, **settings)
        await log.open()
        try:
            yield log
        finally:
            await log.close()

    return opened


@pytest.fixture
async def log(open_log: OpenLog) -> AsyncIterator[CallLog]:
    """An open log."""
    async with open_log() as log:
        yield log

"""What every end-to-end test checks: that no process of it is left on the machine, wherever it has gone."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import processes_of_home

ENDING_SECONDS = 10.0  # for servers of an engine that was killed, and for shells that were asked for their PATH


@pytest.fixture(autouse=True)
def _leaves_no_process_anywhere(_leaves_nothing: list[str], _isolated_home: Path) -> Iterator[None]:
    """Looks at all processes that have the test's home folder: a session of their own does not hide them."""
    yield
    deadline = time.monotonic() + ENDING_SECONDS
    while (left := processes_of_home(_isolated_home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid, command in left.items():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _leaves_nothing.append(f"process: {pid} {command}")

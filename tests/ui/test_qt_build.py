"""Is the installed build of Qt's bindings sound on this Python?"""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import QObject


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None cannot be lost there")
def test_void_methods_do_not_lose_none(qapp: object) -> None:
    """A build that drops a reference to None at each call ends the program within seconds of use."""
    thing = QObject()
    before = sys.getrefcount(None)
    for _ in range(1000):
        thing.setObjectName("x")

    assert abs(sys.getrefcount(None) - before) < 100

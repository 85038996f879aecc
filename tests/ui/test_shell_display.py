"""Whether there is a screen, found out before Qt would end the process over it."""

import socket
import sys
from pathlib import Path

import pytest

from callboard.ui import display

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux may lack a screen")


@pytest.mark.parametrize(
    ("environment", "there"),
    [
        ({}, False),
        ({"DISPLAY": ""}, False),
        ({"DISPLAY": ":98765"}, False),
        ({"DISPLAY": "somewhere:0"}, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({"QT_QPA_PLATFORM": "offscreen"}, True),
        ({"QT_QPA_PLATFORM": "xcb"}, False),
    ],
)
def test_what_the_environment_tells(environment: dict[str, str], there: bool) -> None:
    assert display.has_display(environment) is there


def test_a_display_that_somebody_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "X_SOCKETS", str(tmp_path / "X"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "X7"))
        server.listen()
        assert display.has_display({"DISPLAY": ":7.0"})

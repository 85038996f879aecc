"""The window's entry: what must happen before Qt is loaded, in the order that makes it quick.

A second start hands over to the first window; the engine is started before the slow imports, so that it comes up
while Qt does. Everything with a widget in it is in ui.application.
"""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence

from callboard.core.errors import FIXES
from callboard.system.engine_child import EngineChild
from callboard.system.paths import find_paths
from callboard.system.screen import has_screen
from callboard.ui.hand_over import hand_over
from callboard.ui.qt_load import load_qt

EXIT_FAILED = 1
EXIT_NO_DISPLAY = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the window until the person quits; the exit code (1: it could not start, 2: no display)."""
    parser = argparse.ArgumentParser(prog="callboard run", description="Open the window and run the servers.")
    parser.add_argument("--background", action="store_true", help="start hidden in the tray, where there is one")
    parser.add_argument("--show", action="store_true", help="show the window (the default)")
    parser.add_argument("bundle", nargs="?", metavar="FILE", help="a bundle (.mcpb) to look at and to add")
    options = parser.parse_args(arguments)
    bundle = os.path.abspath(options.bundle) if options.bundle else ""  # noqa: PTH100  no import of pathlib for it
    return open_window(background=options.background and not options.show and not bundle, bundle=bundle)


def open_window(*, background: bool = False, bundle: str = "") -> int:
    """Open the window, or bring up the one that is open already; returns when the person has quit.

    With ``background`` it stays hidden where there is a tray to find it in. ``bundle`` is the full path of a file that
    is opened over the window.
    """
    if not has_screen():
        sys.stderr.write(f"callboard: There is no screen to open a window on.\n  {FIXES['no-display']}\n")
        return EXIT_NO_DISPLAY
    paths = find_paths()
    try:
        paths.create()
    except OSError as error:
        sys.stderr.write(f"callboard: the folders of the program cannot be made: {error}\n")
        return EXIT_FAILED
    activation = os.environ.get("XDG_ACTIVATION_TOKEN", "")
    if hand_over(paths, activation=activation, bundle=bundle):
        return 0
    asked_to_quit: list[int] = []  # signals that come before there is a loop to take them
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: asked_to_quit.append(received))
    first_start = not paths.roster.exists()
    child = EngineChild(paths, with_screen=True)
    if not child.other_is_alive():
        with contextlib.suppress(OSError):  # the window tries again, and says so
            child.start()

    load_qt()  # with the next line a quarter of a second
    from callboard.ui.application import run_window

    return run_window(
        paths,
        child,
        background=background,
        first_start=first_start,
        bundle=bundle,
        asked_to_quit=lambda: bool(asked_to_quit),
    )


if __name__ == "__main__":
    sys.exit(main())

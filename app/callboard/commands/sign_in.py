"""Commands that sign in to remote servers, with a browser here or on another computer, and out again."""

import asyncio
import contextlib
import os
import sys
import threading
from argparse import Namespace
from typing import Final
from urllib.parse import urlsplit

from callboard.api.client import EngineClient
from callboard.api.sign_in_schema import SignInView
from callboard.commands.servers import settled
from callboard.commands.terminal import Terminal
from callboard.core.errors import FIXES, CallboardError

_POLL: Final = 0.2  # seconds between two looks at a sign-in
_START_SECONDS: Final = 60.0
_UNDER_WAY: Final = ("running", "waiting")


async def sign_in(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Sign in to a server, and wait until it is ready."""
    view = await client.sign_in(options.server)
    try:
        if view.state == "waiting":
            view = await _with_person(client, view, options, terminal)
    except (asyncio.CancelledError, KeyboardInterrupt):
        with contextlib.suppress(CallboardError):
            await client.cancel_sign_in(options.server)
        raise
    if options.json:
        terminal.json(view)
    if view.state != "signed-in" or view.error_code:
        terminal.failure(_problem(view))
        return 1
    if not options.json:
        terminal.line(f"{options.server}: signed in{_rights(view)}")
    await _see_it_start(client, options, terminal)
    return 0


async def sign_out(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Forget a server's sign-in."""
    view = await client.sign_out(options.server)
    if options.json:
        terminal.json(view)
    else:
        terminal.line(f"{options.server}: signed out")
    return 0


async def _with_person(client: EngineClient, view: SignInView, options: Namespace, terminal: Terminal) -> SignInView:
    """Send the person to the browser, and take what comes back: to the gateway by itself, or pasted here."""
    opened = not options.no_browser and await asyncio.to_thread(_open_browser, view.url)
    terminal.note("Your browser was opened. If it shows nothing, open:" if opened else "Open this in a browser:")
    terminal.note(f"    {view.url}")
    terminal.note(
        "If the browser is on another computer, it ends at an address there that it cannot show "
        f"({view.redirect_uri}?…). Copy that address, and paste it here:"
    )
    pasted: asyncio.Queue[str] = asyncio.Queue()
    _read_lines(pasted)
    while view.state in _UNDER_WAY:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL):
                text = await pasted.get()
            try:
                await client.answer_sign_in(options.server, text)
            except CallboardError as error:
                terminal.failure(error)
        view = await client.sign_in_view(options.server)
    return view


async def _see_it_start(client: EngineClient, options: Namespace, terminal: Terminal) -> None:
    server = await client.server(options.server)
    if server.enabled and server.state != "stopped":
        server = await settled(client, server, "start", _START_SECONDS)
        if not options.json:
            terminal.line(f"{server.name}: {server.state}" + (f" ({server.reason})" if server.reason else ""))


def _open_browser(url: str) -> bool:
    """Open an address where there is a screen; False if there is none, or no browser."""
    import webbrowser

    if urlsplit(url).scheme not in ("http", "https") or os.environ.get("SSH_CONNECTION"):
        return False
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # what webbrowser finds then are text browsers, which take over the terminal
    try:
        return webbrowser.open(url)
    except webbrowser.Error:
        return False


def _read_lines(into: "asyncio.Queue[str]") -> None:
    """Hand over the lines of standard input, as long as this process lives."""
    loop = asyncio.get_running_loop()

    def work() -> None:
        rest = b""
        # the file itself: a thread that waits in a buffered stream would keep the interpreter from ending
        while chunk := os.read(0, 4096):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if text := line.decode("utf-8", "replace").strip():
                    loop.call_soon_threadsafe(into.put_nowait, text)

    def run() -> None:
        with contextlib.suppress(OSError, RuntimeError):  # no input, or the command has ended
            work()

    threading.Thread(target=run, name="standard input", daemon=True).start()


def _rights(view: SignInView) -> str:
    return f", for {', '.join(view.scopes)}" if view.scopes else ""


def _problem(view: SignInView) -> CallboardError:
    step = next((step.name for step in view.steps if step.state == "failed"), "")
    where = f" (at the step {step})" if step else ""
    code = view.error_code if view.error_code in FIXES else "sign-in-failed"
    return CallboardError(code, f"{view.message or 'Nobody signed in.'}{where}", fix=view.fix)

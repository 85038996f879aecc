"""Asking the person at the terminal, where there is one."""

import getpass
import sys
from typing import Final

from callboard.commands.arguments import UsageError

LONGEST_SECRET: Final = 64 * 1024  # characters on standard input


def ask(question: str, *, hidden: bool) -> str:
    """What the person types on one line; the question goes to stderr, because the output may be meant for a program."""
    try:
        if hidden:
            return getpass.getpass(question, stream=sys.stderr).strip()
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()
    except EOFError:
        return ""


def is_there() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agrees(question: str, done: str) -> bool:
    """Whether the person says yes; raises :class:`UsageError` where nobody is there. ``done``: what is agreed to."""
    if not is_there():
        raise UsageError(f"Nobody can be asked here: say --yes if it shall be {done}.")
    return ask(question, hidden=False).lower() in ("y", "yes")


def read_stdin() -> str:
    """What stands on standard input: a secret, or several."""
    return sys.stdin.read(LONGEST_SECRET).strip()

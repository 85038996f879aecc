"""Windows: the one line of text from which a program gets its arguments.

Programs take it apart by the rules of the C library, and the standard library knows those. Batch files (npx.cmd) are
run by the command interpreter, which has rules of its own: there, only this keeps an argument whole, and keeps it from
being run as a command.
"""

import subprocess
from collections.abc import Sequence

# Characters that are themselves in an argument of a batch file without quotes.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789#$*+-./:?@\\_")


def command_line(argv: Sequence[str], *, shell: str) -> str:
    """The line that starts ``argv``; batch files are started by ``shell``, the path of cmd.exe.

    Raises ValueError for an argument that no batch file can be given (a line break).
    """
    if not argv[0].lower().endswith((".bat", ".cmd")):
        return subprocess.list2cmdline(argv)
    if '"' in argv[0]:
        raise ValueError("a quotation mark in the name of a batch file")
    arguments = "".join(f" {_quoted(argument)}" for argument in argv[1:])
    # /d: no start-up commands; /v:off: ! is itself; the outer quotes are taken off by /c.
    return f'"{shell}" /d /e:on /v:off /c ""{_percent(argv[0])}"{arguments}"'


def _quoted(argument: str) -> str:
    if any(character in argument for character in "\r\n\0"):
        raise ValueError("a line break in an argument of a batch file")
    if argument and not argument.endswith("\\") and all(character in _PLAIN for character in argument):
        return argument
    # Inside quotes nothing is special but the quotation mark, written twice, and the percent sign. Backslashes at the
    # end are doubled because the program behind the batch file takes a quote after one for a part of the argument.
    trailing = len(argument) - len(argument.rstrip("\\"))
    return '"' + _percent(argument.replace('"', '""')) + "\\" * trailing + '"'


def _percent(text: str) -> str:
    # No escape exists on the command line: an empty piece of a variable that is always there parts the signs.
    return text.replace("%", "%%cd:~,%")

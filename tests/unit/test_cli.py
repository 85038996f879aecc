"""The command line without an engine: what it understands, how it ends, how fast it is there."""

import subprocess
import sys
from pathlib import Path

import pytest

from callboard import __version__, cli
from callboard.system.engine_file import EngineAddress, write_engine_file
from callboard.system.paths import find_paths

COMMANDS = (
    "run", "engine", "quit", "doctor", "metrics", "snippet", "connect",
    "list", "start", "stop", "restart", "enable", "disable", "remove", "tail", "tools", "inspect", "calls", "call",
    "health", "refresh", "test", "resources", "prompts", "secrets",
)  # fmt: skip


def ends(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a command."""
    try:
        code = cli.main(arguments)
    except SystemExit as end:
        code = int(end.code or 0)
    output = capsys.readouterr()
    return code, output.out, output.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ends(capsys, "--version") == (0, f"callboard {__version__}\n", "")


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = ends(capsys, "--help")
    assert code == 0
    for word in (*COMMANDS, "exit codes", "130", "NO_COLOR", "CALLBOARD_HOME"):
        assert word in output


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("run", "engine")])
def test_every_command_has_help(capsys: pytest.CaptureFixture[str], command: str) -> None:
    code, output, _ = ends(capsys, command, "--help")
    assert code == 0
    assert f"usage: callboard {command}" in output


@pytest.mark.parametrize(("other", "command"), [("reconnect", "restart"), ("logs", "tail")])
def test_some_commands_have_another_name(capsys: pytest.CaptureFixture[str], other: str, command: str) -> None:
    assert ends(capsys, other, "--help") == ends(capsys, command, "--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["list", "--nonsense"],
        ["start"],
        ["call", "no-dot"],
        ["call", ".tool"],
        ["calls", "one"],
        ["tail", "x", "-n", "-1"],
        ["calls", "--status", "odd"],
        ["test"],
        ["secrets", "set"],
        ["secrets", "show", "name"],
    ],
)
def test_wrong_usage_is_told_on_stderr_with_the_fix(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    code, output, errors = ends(capsys, *arguments)
    assert (code, output) == (2, "")
    sentence, fix = errors.splitlines()
    assert sentence.startswith("callboard: ")
    assert sentence.endswith(".")
    assert fix.startswith("  See `callboard")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lst"], 'There is no command "lst", but there is "list".'),
        (["quux"], 'There is no command "quux".'),
        (["policy", "alow"], 'There is no command "alow", but there is "allow".'),
    ],
)
def test_a_command_that_is_not_there(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert ends(capsys, *arguments)[2].splitlines()[0] == f"callboard: {said}"


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["list", "--json"], ["tail", "x", "-f"], ["call", "a.b"], ["snippet", "vscode"], ["quit"], ["doctor"]],
)
def test_without_an_engine(capsys: pytest.CaptureFixture[str], callboard_home: Path, arguments: list[str]) -> None:
    assert ends(capsys, *arguments) == (
        3,
        "",
        "callboard: No engine is running.\n  Start it with `callboard engine`, or open the window.\n",
    )
    assert list(callboard_home.iterdir()) == []


def test_file_of_a_killed_engine_means_no_engine(capsys: pytest.CaptureFixture[str]) -> None:
    paths = find_paths()
    paths.create()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write_engine_file(paths.engine_file, EngineAddress(gone.pid, "http://127.0.0.1:9", "token", __version__))
    code, _, errors = ends(capsys, "list")
    assert code == 3
    assert errors.startswith("callboard: No engine is running.\n")


def test_start_up_loads_nothing_heavy() -> None:
    script = "import sys; from callboard.commands.command_line import build_parser; build_parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert {"asyncio", "msgspec", "httpx2", "PySide6", "fastmcp", "pydantic", "ssl"}.isdisjoint(loaded)

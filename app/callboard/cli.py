"""The command line: the way from what is said to the engine, or another program, and back to an exit code.

Nothing heavy is imported before it is known what to do: ``callboard --version`` answers at once.
"""

import argparse
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final

from callboard.commands.command_line import USAGE, build_parser

if TYPE_CHECKING:
    from callboard.api.client import EngineClient
    from callboard.commands.terminal import Terminal
    from callboard.core.errors import CallboardError

    Command = Callable[[EngineClient, argparse.Namespace, Terminal], Coroutine[Any, Any, int]]

OK, FAILED, NO_ENGINE, NOT_FOUND, INTERRUPTED = 0, 1, 3, 4, 130

_EXIT_CODES = {
    "engine-not-running": NO_ENGINE,
    "engine-unreachable": NO_ENGINE,
    "server-unknown": NOT_FOUND,
    "tool-unknown": NOT_FOUND,
    "prompt-unknown": NOT_FOUND,
    "resource-unknown": NOT_FOUND,
    "client-unknown": NOT_FOUND,
    "profile-unknown": NOT_FOUND,
    "shipped-unknown": NOT_FOUND,
    "registry-unknown": NOT_FOUND,
    "not-found": NOT_FOUND,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. ``argv`` is without the program's name (default: ``sys.argv``)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        parser = build_parser()
        options, rest = parser.parse_known_args(arguments)
        if rest and not options.passes_on:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        options.rest = rest
        code = _HANDLES[options.handle](options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # the reader has gone; what the interpreter flushes at its end must not fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    return code


# what runs in a process of its own accord


def _run(options: argparse.Namespace) -> int:
    from callboard.gui import main as open_window

    return open_window(options.rest)


def _engine(options: argparse.Namespace) -> int:
    from callboard.engine_main import main as run_engine

    return run_engine(with_screen=options.with_screen)


def _doctor(options: argparse.Namespace) -> int:
    from callboard.commands.terminal import Terminal
    from callboard.core.meanings import MEANINGS

    if options.server not in MEANINGS:
        return _ask_engine(options)
    from callboard.commands.program import explain

    return explain(options.server, Terminal.standard(), as_json=options.json)


def _connect(options: argparse.Namespace) -> int:
    from callboard.connect import main as bridge

    return bridge(server=options.server, client=options.client, url=options.url, token_variable=options.token_env)


def _agent(options: argparse.Namespace) -> int:
    from callboard.commands import agent
    from callboard.commands.arguments import UsageError
    from callboard.commands.terminal import Terminal
    from callboard.core.errors import CallboardError

    try:
        return agent.serve(options) if options.action == "serve" else agent.list_agents(options)
    except UsageError as error:
        Terminal.standard().error(str(error), f"See `callboard agent {options.action} --help`.")
        return USAGE
    except CallboardError as error:
        Terminal.standard().failure(error)
        return FAILED


# what asks the engine


def _find_command(name: str) -> "Command":
    from callboard.commands import (
        adding,
        agent_servers,
        calls,
        entries,
        looks,
        offers,
        policy,
        program,
        registry,
        secrets,
        servers,
        sign_in,
    )

    commands: dict[str, Command] = {
        "agent reload": agent_servers.reload,
        "agent conversations": agent_servers.conversations,
        "list": servers.list_servers,
        "start": servers.start,
        "stop": servers.stop,
        "restart": servers.restart,
        "reset": servers.reset,
        "enable": entries.enable,
        "disable": entries.disable,
        "remove": entries.remove,
        "sign-in": sign_in.sign_in,
        "sign-out": sign_in.sign_out,
        "tail": servers.tail,
        "tools": servers.tools,
        "inspect": servers.inspect,
        "add": adding.add,
        "registry search": registry.search,
        "registry show": registry.show,
        "health": looks.health,
        "refresh": looks.refresh,
        "test": looks.test,
        "resources": offers.resources,
        "prompts": offers.prompts,
        "secrets": secrets.secrets,
        "calls": calls.calls,
        "call": calls.call,
        "snippet": program.snippet,
        "quit": program.quit_engine,
        **policy.COMMANDS,
        "doctor": program.doctor,
        "metrics": program.metrics,
    }
    return commands[name]


def _ask_engine(options: argparse.Namespace) -> int:
    import asyncio

    from callboard.commands.arguments import UsageError
    from callboard.commands.terminal import Terminal
    from callboard.core.errors import CallboardError

    terminal = Terminal.standard()
    command = _find_command(options.name_of_command)
    try:
        return asyncio.run(_with_client(command, options, terminal))
    except UsageError as error:
        terminal.error(str(error), f"See `callboard {options.name_of_command} --help`.")
        return USAGE
    except CallboardError as error:
        terminal.failure(error)
        return _EXIT_CODES.get(error.code, FAILED)


async def _with_client(command: "Command", options: argparse.Namespace, terminal: "Terminal") -> int:
    from callboard.api.client import EngineClient
    from callboard.core.errors import CallboardError
    from callboard.system.paths import find_paths

    async with EngineClient.from_file(find_paths().engine_file) as client:
        try:
            return await command(client, options, terminal)
        except CallboardError as error:
            if error.code == "engine-unreachable" and not _is_alive(client.address.pid):
                raise _not_running() from error
            raise


def _not_running() -> "CallboardError":
    from callboard.core.errors import CallboardError

    return CallboardError("engine-not-running", "No engine is running.")


def _is_alive(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid)


_HANDLES: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "run": _run,
    "engine": _engine,
    "doctor": _doctor,
    "connect": _connect,
    "agent": _agent,
    "ask": _ask_engine,
}

"""What can be said to ``callboard``: every command with its options.

``handle`` of what is parsed names the way to go: "ask" for a command that asks the engine, which ``name_of_command``
then names; the others run in a process of their own. Imports nothing heavy, so that ``--help`` answers at once.
"""

import argparse
import difflib
import re
from typing import Any, Final, NoReturn

from callboard import __version__
from callboard.commands.policy_arguments import add_policy

USAGE: Final = 2  # the exit code for a wrong command line

_DESCRIPTION = """\
Runs your MCP servers, serves them to every AI client on this machine through one gateway, and shows every call.
Without a command, `callboard` opens the window.
"""

_EPILOG = """\
exit codes:
  0    done
  1    what was asked for failed (a tool said that it failed, a server did not start, a check found a fault)
  2    the command line is wrong, or there is no screen for the window
  3    no engine is running, or it does not answer
  4    there is no such server, tool, resource, prompt, secret, client, profile or call
  130  interrupted with Ctrl-C

CALLBOARD_HOME moves all files of the program under one folder. NO_COLOR switches colours off.
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line the way every other error is said."""

    def error(self, message: str) -> NoReturn:
        if wrong := re.match(r"argument (?:COMMAND|ACTION): invalid choice: '(.*)' \(choose from (.*)\)$", message):
            close = difflib.get_close_matches(wrong[1], re.findall(r"[\w-]+", wrong[2]), n=1)
            message = f'there is no command "{wrong[1]}"' + (f', but there is "{close[0]}"' if close else "")
        self.exit(USAGE, f"callboard: {message[:1].upper()}{message[1:]}.\n  See `{self.prog} --help`.\n")


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = _Parser(
        prog="callboard",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"callboard {__version__}")
    parser.set_defaults(handle="run", passes_on=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    _add_programs(commands)
    _add_servers(commands)
    _add_looks(commands)
    _add_catalogue(commands)
    _add_calls(commands)
    _add_offers(commands)
    _add_secrets(commands)
    add_policy(commands, _command)
    return parser


_Commands = Any  # argparse's own type of what add_subparsers() returns is private


def _add_programs(commands: _Commands) -> None:
    text = "open the window (the default)"
    command = commands.add_parser("run", help=text, description=_sentence(text), add_help=False)
    command.set_defaults(handle="run", passes_on=True)
    command = _command(commands, "engine", "run the engine here, without a window", json=False)
    command.add_argument("--with-screen", action="store_true", help="end with the screen that this was started on")
    command.set_defaults(handle="engine")
    _command(commands, "quit", "stop the engine and all its servers", json=False)
    command = _command(commands, "doctor", "look for what is wrong; with an error code, say what it means")
    command.add_argument(
        "server",
        nargs="?",
        metavar="NAME",
        help="look at this server closely (it is started for that), or explain a code",
    )
    command.set_defaults(handle="doctor")
    _command(commands, "metrics", "print the figures of all calls as Prometheus reads them", json=False)
    command = _command(commands, "snippet", "print a client's configuration; without a name, list the clients")
    command.add_argument("client", nargs="?", metavar="CLIENT", help="a client as `callboard snippet` lists it")
    command.add_argument("--server", metavar="NAME", help="for this server's own endpoint instead of all servers")
    command.add_argument("--with-token", action="store_true", help="put the token in, for scripts")
    command = commands.add_parser(
        "connect",
        help="speak MCP on stdin and stdout, for clients that only know stdio",
        description="Bridge MCP on stdin and stdout to the gateway. Starts the engine if none runs.",
    )
    command.add_argument("--server", metavar="NAME", help="this server only")
    command.add_argument(
        "--client", metavar="NAME", default="connect", help="whose token to use (as `callboard snippet` lists them)"
    )
    command.add_argument("--url", help="an MCP endpoint to use instead of the local gateway's")
    command.add_argument("--token-env", metavar="VARIABLE", help="environment variable that holds --url's bearer token")
    command.set_defaults(handle="connect")

    _add_agent(commands)


def _add_agent(commands: _Commands) -> None:
    text = "serve Python agents on their own, and look after those that the engine serves"
    group = commands.add_parser("agent", help=text, description=_sentence(text))
    actions = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = actions.add_parser(
        "serve",
        help="serve an agent over stdio or HTTP",
        description="Serve an agent to MCP clients. Without other options, to the one that started this command.",
    )
    command.add_argument("agents", nargs="+", metavar="AGENT", help="package.module:attribute or file.py:attribute")
    command.add_argument("--transport", choices=("stdio", "http"), default="stdio", help="default: stdio")
    command.add_argument("--port", type=_count, default=8080, metavar="N", help="for http (default 8080)")
    command.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="for http (default 127.0.0.1)")
    command.add_argument(
        "--token-env", metavar="VARIABLE", help="environment variable with the token that clients send"
    )
    command.add_argument("--python", metavar="PATH", help="the interpreter that has the agent's packages")
    command.add_argument("--whole", action="store_true", help="the agent as one tool, instead of its own tools")
    command.add_argument("--reload", action="store_true", help="load the agent anew when its files change")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any setting of an agent in the roster; repeat it",
    )
    command.set_defaults(handle="agent", action="serve")
    text = "list the agents in a file or module, or what one of them offers"
    command = actions.add_parser("list", help=text, description=_sentence(text))
    command.add_argument(
        "agent", metavar="PLACE", help="a file or module, or an agent as `callboard agent serve` takes it"
    )
    command.add_argument("--python", metavar="PATH", help="the interpreter that has the agent's packages")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(handle="agent", action="list")
    command = _command(actions, "reload", "load the agents of servers anew while they run")
    command.add_argument("servers", nargs="+", metavar="NAME")
    command.set_defaults(name_of_command="agent reload")
    command = _command(actions, "conversations", "show the conversations that an agent's server holds")
    command.add_argument("server", metavar="NAME")
    command.set_defaults(name_of_command="agent conversations")


def _add_servers(commands: _Commands) -> None:
    _command(commands, "list", "show every server and its state")
    described = {name: f"{name} servers and wait for it" for name in ("start", "stop", "restart")}
    for name, text in (described | {"reset": "forget earlier failures of servers"}).items():
        command = _command(commands, name, text, other=("reconnect",) if name == "restart" else ())
        command.add_argument("servers", nargs="+", metavar="NAME")
        command.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="wait at most (default 60)")
    for name, text in (
        ("enable", "enable servers, and wait for those that start by themselves"),
        ("disable", "disable servers: they are stopped, and nothing starts them"),
    ):
        _command(commands, name, text).add_argument("servers", nargs="+", metavar="NAME")
    command = _command(commands, "remove", "take servers out of the roster", json=False)
    command.add_argument("servers", nargs="+", metavar="NAME")
    command.add_argument("-y", "--yes", action="store_true", help="do not ask before they are removed")
    command = _command(commands, "sign-in", "sign in to a remote server")
    command.add_argument("server", metavar="NAME")
    command.add_argument("--no-browser", action="store_true", help="only print the address to open")
    command = _command(commands, "sign-out", "forget the sign-in to a remote server")
    command.add_argument("server", metavar="NAME")
    command = _command(commands, "tail", "show the end of a server's log", other=("logs",))
    command.add_argument("server", metavar="NAME")
    command.add_argument("-f", "--follow", action="store_true", help="go on with new lines until Ctrl-C")
    command.add_argument("-n", "--lines", type=_count, default=20, metavar="N", help="lines to show (default 20)")
    command = _command(commands, "tools", "show the tools of a server, or of all")
    command.add_argument("server", nargs="?", metavar="SERVER")
    command = _command(commands, "inspect", "show all that is known of a server or a tool")
    command.add_argument("name", metavar="NAME", help="a server, or SERVER.TOOL")


def _add_looks(commands: _Commands) -> None:
    command = _command(commands, "health", "ask servers for a sign of life; without a name, all of them")
    command.add_argument("servers", nargs="*", metavar="NAME")
    command.add_argument("--cached", action="store_true", help="only tell what the last look found, and how old it is")
    command = _command(commands, "refresh", "read anew what servers offer; without a name, of all of them")
    command.add_argument("servers", nargs="*", metavar="NAME")
    command = _command(commands, "test", "try a server step by step, each with its time; it is started for that")
    command.add_argument("server", metavar="NAME")


def _add_offers(commands: _Commands) -> None:
    command = _command(commands, "resources", "show the resources of a server, or of all; with a URI, read one")
    command.add_argument("server", nargs="?", metavar="SERVER")
    command.add_argument(
        "uri", nargs="?", metavar="URI", help="a resource or a template as `callboard resources` lists it"
    )
    command.add_argument(
        "--arg", action="append", default=[], metavar="NAME=VALUE", help="fill in a template; repeat it"
    )
    command.add_argument("-o", "--output", metavar="FILE", help="write what is read into a file, as it is")
    command = _command(commands, "prompts", "show the prompts of a server, or of all; with SERVER.PROMPT, get one")
    command.add_argument("name", nargs="?", metavar="SERVER[.PROMPT]")
    command.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="one argument; repeat it")


def _add_secrets(commands: _Commands) -> None:
    group = _command(commands, "secrets", "show which secrets there are; or set or delete one")
    group.set_defaults(action="list")
    actions = group.add_subparsers(title="commands", metavar="COMMAND")
    for name, text in (
        ("set", "set a secret: its value is asked for, or read from standard input"),
        ("delete", "forget a secret"),
    ):
        command = actions.add_parser(name, help=text, description=_sentence(text))
        command.add_argument("name", metavar="NAME")
        command.set_defaults(action=name)


def _add_catalogue(commands: _Commands) -> None:
    command = _command(commands, "add", "add a server: one that comes with Callboard, of a registry, or of a bundle")
    command.description = "Add a server. Without a name, list those that come with Callboard."
    command.add_argument("name", nargs="?", metavar="NAME", help="a server as `callboard add` lists it, or FILE.mcpb")
    command.add_argument("--as", dest="new_name", metavar="NAME", help="its name in the roster (default: the same)")
    command.add_argument(
        "--folder", action="append", default=[], metavar="PATH", help="a folder that it may read; repeat it"
    )
    command.add_argument("--secret-stdin", action="store_true", help="read its token or key from standard input")
    command.add_argument("--disabled", action="store_true", help="do not start it yet, whatever it lacks")
    other = command.add_argument_group("servers of registries and bundles")
    other.add_argument("--from-registry", action="store_true", help="NAME is one that `callboard registry` shows")
    _add_source(other)
    other.add_argument("--way", type=_count, metavar="N", help="which of the ways to set it up (default: the first)")
    other.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="what it asks for; repeat it")
    other.add_argument("-y", "--yes", action="store_true", help="do not ask before it is added")
    _add_registry(commands)


def _add_registry(commands: _Commands) -> None:
    text = "search a registry of MCP servers"
    group = commands.add_parser("registry", help=text, description=_sentence(text))
    actions = group.add_subparsers(title="commands", metavar="COMMAND", required=True)
    command = _command(actions, "search", "list servers whose name, title or description has these words")
    command.add_argument("words", nargs="+", metavar="WORD")
    command.add_argument("--all", action="store_true", help="all pages of a long list")
    _add_source(command)
    command.set_defaults(name_of_command="registry search")
    command = _command(actions, "show", "show a server of the registry, and how it would be set up")
    command.add_argument("name", metavar="NAME", help="its name there, or the last part of it")
    _add_source(command)
    command.set_defaults(name_of_command="registry show")


def _add_source(command: Any) -> None:
    command.add_argument(
        "--from",
        dest="source",
        metavar="PLACE",
        help="where to look: an address, a file or a folder (default: the official registry, or what the roster says)",
    )


def _add_calls(commands: _Commands) -> None:
    command = _command(commands, "calls", "show the newest calls, or one with its arguments and result")
    command.add_argument("id", nargs="?", type=_count, metavar="ID", help="show this call only")
    command.add_argument("-f", "--follow", action="store_true", help="go on with calls as they end until Ctrl-C")
    command.add_argument("-n", "--lines", type=_count, default=20, metavar="N", help="calls to show (default 20)")
    for name in ("server", "tool", "client"):
        command.add_argument(f"--{name}", metavar="NAME", help=f"only calls of this {name}")
    command.add_argument("--engine", metavar="NAME", help="only calls of this engine, where several share their log")
    command.add_argument("--status", choices=("running", "completed", "failed", "cancelled"))
    command.add_argument("--text", help="only calls with this text in tool, error, arguments or result")
    command = _command(commands, "call", "call a tool")
    command.add_argument("tool", type=_tool, metavar="SERVER.TOOL")
    command.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE", help="one argument; repeat it")
    command.add_argument("--args", metavar="JSON", help="all arguments: a JSON object, @FILE, or - for stdin")


def _command(
    commands: _Commands, name: str, text: str, *, json: bool = True, other: tuple[str, ...] = ()
) -> argparse.ArgumentParser:
    """A command of the engine's; ``other``: names that it has too."""
    command: argparse.ArgumentParser = commands.add_parser(name, aliases=other, help=text, description=_sentence(text))
    if json:
        command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(handle="ask", name_of_command=name)
    return command


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _tool(text: str) -> str:
    server, _, tool = text.partition(".")
    if not server or not tool:
        raise argparse.ArgumentTypeError(f"{text!r} is not SERVER.TOOL")
    return text

"""What can be said to `callboard clients`, `callboard policy` and `callboard profiles`."""

import argparse
from collections.abc import Callable
from typing import Any

Add = Callable[..., argparse.ArgumentParser]


def add_policy(commands: Any, add: Add) -> None:
    """Add the three commands; ``add(commands, name, help)`` makes one with --json. Without an action each lists."""
    _add_clients(_group(commands, add, "clients", "show the clients and what each may use, or change one"), add)
    _add_rules(_group(commands, add, "policy", "show the rules, change them, and answer questions"), add)
    _add_profiles(_group(commands, add, "profiles", "show the profiles, or change one"), add)


def _group(commands: Any, add: Add, name: str, text: str) -> Any:
    return add(commands, name, text).add_subparsers(title="actions", metavar="ACTION")


def _action(group: Any, add: Add, name: str, text: str, *, json: bool = False) -> argparse.ArgumentParser:
    command = add(group, name.split()[-1], text, json=json)
    command.set_defaults(name_of_command=name)
    return command


def _add_clients(group: Any, add: Add) -> None:
    command = _action(group, add, "clients show", "show one client with its rules", json=True)
    command.add_argument("client", metavar="CLIENT")
    for name, text in (
        ("clients add", "let another program in, with a token of its own"),
        ("clients set", "change what holds for a client"),
    ):
        command = _action(group, add, name, text)
        command.add_argument("client", metavar="CLIENT")
        command.add_argument("--name", metavar="TEXT", help="what people see")
        command.add_argument("--profile", metavar="NAME", help='bind its token to a profile; "" frees it')
        command.add_argument("--max-result-chars", type=int, metavar="N", help="characters of one result; 0: no bound")
        command.add_argument("--read-only", action=argparse.BooleanOptionalAction, help="only tools that only read")
    command = _action(group, add, "clients rotate", "replace a client's token and print the new one")
    command.add_argument("client", metavar="CLIENT")
    command = _action(group, add, "clients reset", "take a client out of the roster: the default holds for it")
    command.add_argument("client", metavar="CLIENT")


def _add_rules(group: Any, add: Add) -> None:
    command = _action(
        group, add, "policy show", "show the rules of a client, or of all without rules of their own", json=True
    )
    command.add_argument("client", nargs="?", metavar="CLIENT")
    for effect, text in (
        ("allow", "allow what the patterns name"),
        ("ask", "ask the person before each call of what the patterns name"),
        ("deny", "deny what the patterns name"),
    ):
        command = _action(group, add, f"policy {effect}", text)
        command.add_argument("client", metavar="CLIENT", help='a client, or "default": all without rules of their own')
        command.add_argument(
            "patterns", nargs="+", metavar="PATTERN", help="SERVER.NAME with * for anything; tool:, prompt:, resource:"
        )
    command = _action(group, add, "policy check", "say what would become of a call, and why", json=True)
    command.add_argument("client", metavar="CLIENT")
    command.add_argument("item", metavar="SERVER.NAME")
    command.add_argument("--kind", choices=("tool", "prompt", "resource"), default="tool")
    command.add_argument("--profile", default="", metavar="NAME", help="at the endpoint of this profile")
    _action(group, add, "policy questions", "show the calls that wait for you", json=True)
    command = _action(group, add, "policy answer", "answer a question")
    command.add_argument("question", type=int, metavar="ID")
    command.add_argument("choice", choices=("once", "always", "deny"))
    _action(group, add, "policy approvals", 'show what was answered with "always"', json=True)
    command = _action(group, add, "policy revoke", 'forget answers "always": all of a client, or one')
    command.add_argument("client", metavar="CLIENT")
    command.add_argument("item", nargs="?", default="", metavar="SERVER.NAME")


def _add_profiles(group: Any, add: Add) -> None:
    command = _action(group, add, "profiles set", "add a profile, or say anew what it selects")
    command.add_argument("profile", metavar="NAME")
    command.add_argument("--server", action="append", default=[], metavar="NAME", help="all of a server; repeat it")
    command.add_argument("--tool", action="append", default=[], metavar="PATTERN", help="what this names; repeat it")
    command.add_argument("--deny", action="append", default=[], metavar="PATTERN", help="but not this; repeat it")
    command.add_argument("--description", default="", metavar="TEXT")
    command = _action(group, add, "profiles remove", "take a profile out of the roster")
    command.add_argument("profile", metavar="NAME")

"""Commands about secrets: which there are, setting and forgetting one. A value is never shown."""

from argparse import Namespace

from callboard.api.client import EngineClient
from callboard.api.schema import SecretsView
from callboard.commands import asking
from callboard.commands.arguments import UsageError
from callboard.commands.terminal import Cell, Terminal
from callboard.core.errors import CallboardError


async def secrets(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """The secrets in use; or set or delete one."""
    if options.action == "set":
        await _set(client, options, terminal)
    elif options.action == "delete":
        await _delete(client, options, terminal)
    else:
        view = await client.secrets()
        if options.json:
            terminal.json(view)
        else:
            _show(view, terminal)
    return 0


async def _set(client: EngineClient, options: Namespace, terminal: Terminal) -> None:
    asked = f"Value of {options.name}: "
    value = asking.ask(asked, hidden=True) if asking.is_there() else asking.read_stdin()
    if not value:
        raise UsageError("No value was given: type one, or pipe it in.")
    await client.set_secret(options.name, value)
    terminal.line(f"{options.name}: set")
    view = await client.secrets()
    if view.problem:
        terminal.note(f"{view.problem} {view.fix}")


async def _delete(client: EngineClient, options: Namespace, terminal: Terminal) -> None:
    known = {each.name: each for each in (await client.secrets()).secrets}
    if options.name not in known or not known[options.name].present:
        raise CallboardError("not-found", f"There is no secret {options.name}.", fix="See `callboard secrets`.")
    await client.delete_secret(options.name)
    users = known[options.name].used_by
    terminal.line(f"{options.name}: deleted" + (f"; still used by {', '.join(users)}" if users else ""))


def _show(view: SecretsView, terminal: Terminal) -> None:
    if view.secrets:
        rows = [
            (
                each.name,
                Cell("set", "fine") if each.present else Cell("missing", "attention"),
                ", ".join(each.used_by),
            )
            for each in view.secrets
        ]
        terminal.table(("NAME", "VALUE", "USED BY"), rows)
    else:
        terminal.note("There are no secrets.")
    terminal.note(f"{view.problem} {view.fix}" if view.problem else f"Values are kept in {_place(view)}.")


def _place(view: SecretsView) -> str:
    return f"the keyring ({view.backend})" if view.kind == "keyring" else view.backend

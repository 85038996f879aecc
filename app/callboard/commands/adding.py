"""The command add: where the new server comes from."""

from argparse import Namespace

from callboard.api.client import EngineClient
from callboard.commands import registry, shipped
from callboard.commands.arguments import UsageError
from callboard.commands.terminal import Terminal

_OF_REGISTRIES = {"source": "--from", "way": "--way", "set": "--set", "yes": "--yes"}


async def add(client: EngineClient, options: Namespace, terminal: Terminal) -> int:
    """Add a server of the catalogue, of a registry or of a bundle."""
    is_bundle = bool(options.name) and options.name.lower().endswith(registry.BUNDLE_ENDINGS)
    if not options.from_registry and not is_bundle:
        for name, option in _OF_REGISTRIES.items():
            if getattr(options, name):
                raise UsageError(f"{option} goes with --from-registry, or with the file of a bundle.")
        return await shipped.add(client, options, terminal)
    if options.folder:
        raise UsageError("--folder is for a server that comes with Callboard; say it with --set.")
    if options.from_registry and not options.name:
        raise UsageError("--from-registry needs the name of a server.")
    return await (registry.add_offer if options.from_registry else registry.add_bundle)(client, options, terminal)

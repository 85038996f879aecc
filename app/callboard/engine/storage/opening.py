"""From the setting ``storage`` to the storage; without the setting nothing of it is imported."""

import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from callboard.core.errors import CallboardError
from callboard.engine.masking import Masking
from callboard.engine.secrets.store import SecretStore
from callboard.engine.storage.setting import NAME, find_address

if TYPE_CHECKING:
    from callboard.engine.storage.shared import SharedStorage


async def open_storage(
    written: str,
    environment: Mapping[str, str],
    secrets: SecretStore,
    masking: Masking,
    on_change: Callable[[], None],
) -> "SharedStorage | None":
    """What this engine shares with others, not yet started; None without the setting.

    ``written`` is the roster's; ``on_change`` is for any thread. Raises what :func:`find_address` raises, and
    ``storage-packages``.
    """
    address, hidden = await find_address(written, environment, secrets.get_many)
    masking.learn(hidden)
    if not address:
        return None
    try:
        from callboard.engine.storage.shared import SharedStorage
    except ImportError as error:
        message = f"Storage in PostgreSQL needs the Python package {error.name}, which is not installed."
        raise CallboardError("storage-packages", message) from error
    return SharedStorage(address, environment.get(NAME) or socket.gethostname(), on_change)

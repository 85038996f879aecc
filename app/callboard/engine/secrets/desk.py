"""What a person does with secrets: sees which there are and who uses them, stores and forgets their values."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from callboard.api.schema import SecretsView
from callboard.engine import tasks
from callboard.engine.secrets.store import SecretStore

if TYPE_CHECKING:
    from callboard.engine.bus import Bus
    from callboard.engine.server_table import ServerTable
    from callboard.engine.telemetry.telemetry import Telemetry


class SecretDesk:
    """Engine loop only; owned by the engine."""

    def __init__(self, store: SecretStore, table: "ServerTable", telemetry: "Telemetry", bus: "Bus") -> None:
        """``table`` and ``telemetry`` are told of values that are there now, ``bus`` of everything that changed."""
        self._store = store
        self._table = table
        self._telemetry = telemetry
        self._bus = bus

    async def view(self) -> SecretsView:
        """The secret store, the names in use and who uses them."""
        users = self._table.secret_users()
        for name, more in self._telemetry.secret_users().items():
            users[name] = users.get(name, []) + more
        return await self._store.view(users)

    async def set(self, name: str, value: str) -> None:
        """Store a secret; servers that waited for it start."""
        await self._store.set(name, value)
        self.stored([name])

    async def delete(self, name: str) -> None:
        """Forget a secret."""
        await self._store.delete(name)
        self._table.sign_ins.secret_gone(name)

    def stored(self, names: Iterable[str]) -> None:
        """These have a value now, or another one."""
        self._table.secrets_changed(names)
        self._telemetry.secrets_changed(names)

    def publish(self) -> None:
        """Tell who follows the events, soon."""
        tasks.spawn(self._publish(), name="tell of the secrets")

    async def _publish(self) -> None:
        self._bus.publish("secrets", await self.view())

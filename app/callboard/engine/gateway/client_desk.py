"""What a person needs to connect a client: its configuration and its token."""

from collections.abc import Callable
from urllib.parse import quote

from callboard.api.schema import ClientView, SnippetView
from callboard.clients.snippets import Clients
from callboard.engine.gateway.clients import ClientTokens


class ClientDesk:
    """Hands out configurations and tokens. Engine loop only; owned by the engine.

    ``check`` raises ``server-unknown`` for a name that is no server's; ``url`` is the gateway's address at the moment.
    """

    def __init__(
        self, clients: Clients, tokens: ClientTokens, check: Callable[[str], object], url: Callable[[], str]
    ) -> None:
        self._clients = clients
        self._tokens = tokens
        self._check = check
        self._url = url

    def views(self) -> list[ClientView]:
        """The programs for which a configuration can be copied."""
        return self._clients.views()

    def token(self, client: str) -> str:
        """A client's token in clear; raises ``client-unknown``."""
        return self._tokens.token_for(client)

    async def rotate(self, client: str) -> str:
        """Replace a client's token; raises ``client-unknown``."""
        return await self._tokens.rotate(client)

    def snippet(self, client: str, server: str, *, with_token: bool) -> SnippetView:
        """A configuration for a client, for one server or ("") for all; raises ``client-unknown``."""
        if server:
            self._check(server)
        url = f"{self._url()}/servers/{quote(server)}/mcp" if server else f"{self._url()}/mcp"
        token = self._tokens.token_for(client) if with_token and client in self._tokens.ids else None
        return self._clients.snippet(client, url, server or "callboard", token)

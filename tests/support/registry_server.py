"""A small registry of MCP servers inside a test: its REST API with pages, and whatever else a test puts at a path."""

from typing import Any
from urllib.parse import unquote

from tests.support.site import Said, Seen, Site, data


def package(kind: str, identifier: str, **more: Any) -> dict[str, Any]:
    """A package that speaks on its standard streams."""
    return {"registryType": kind, "identifier": identifier, "transport": {"type": "stdio"}, **more}


def server(name: str, **more: Any) -> dict[str, Any]:
    """A server.json with the little that each has."""
    return {"name": name, "description": f"What {name} does", "version": "1.0.0", **more}


class RegistryServer(Site):
    """``servers`` are server.json documents; ``api`` is the API's version, ``page`` the most that it gives at once.

    ``files`` maps paths to answers that go before the API's.
    """

    def __init__(self, servers: list[dict[str, Any]], *, api: str = "v0.1", page: int = 2) -> None:
        super().__init__()
        self.servers = servers
        self.files: dict[str, Said] = {}
        self._api, self._page = f"/{api}/servers", page

    async def answer(self, seen: Seen) -> Said:
        """See Site."""
        if seen.path in self.files:
            return self.files[seen.path]
        if seen.path == self._api:
            return self._list(seen.query)
        if seen.path.startswith(self._api + "/") and seen.path.endswith("/versions/latest"):
            name = unquote(seen.path.removeprefix(self._api + "/").removesuffix("/versions/latest"))
            found = next((each for each in self.servers if each["name"] == name), None)
            return data(_response(found)) if found else data({"error": "Server not found"}, 404)
        return Said(404)

    def _list(self, query: dict[str, str]) -> Said:
        words = query.get("search", "").lower()
        found = [each for each in self.servers if words in each["name"].lower()]
        begin = int(query.get("cursor", "0").removeprefix("after:"))
        shown = found[begin : begin + min(self._page, int(query.get("limit", "30")))]
        end = begin + len(shown)
        metadata = {"count": len(shown), **({"nextCursor": f"after:{end}"} if end < len(found) else {})}
        return data({"servers": [_response(each) for each in shown], "metadata": metadata})


def _response(document: dict[str, Any]) -> dict[str, Any]:
    official = {"status": "active", "publishedAt": "2026-01-01T00:00:00Z", "isLatest": True}
    return {"server": document, "_meta": {"io.modelcontextprotocol.registry/official": official}}

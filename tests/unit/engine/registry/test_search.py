"""Searching a registry over the network and in files."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.engine.registry import search as searching
from callboard.engine.registry.fetch import fetch_all
from callboard.engine.registry.limits import Limits
from callboard.engine.registry.search import find, search
from tests.support.registry_server import RegistryServer, package, server
from tests.support.site import Said, Seen, Site, data

LIMITS = Limits(total=60.0, size=1024 * 1024)
SERVERS = [
    server(f"io.github.{who}/weather-{who}", packages=[package("npm", f"weather-{who}")]) for who in ("a", "b", "c")
] + [server("com.example/files", remotes=[{"type": "streamable-http", "url": "https://files.example.com/mcp"}])]


@pytest.fixture
async def registry() -> AsyncIterator[RegistryServer]:
    async with RegistryServer(SERVERS) as site:
        yield site


async def all_names(source: str, words: str, limit: int = 2) -> list[list[str]]:
    """The names on each page."""
    pages, cursor = [], ""
    while True:
        page = await search(source, words, cursor, limit)
        pages.append([offer.name for offer in page.offers])
        cursor = page.cursor
        if not cursor:
            return pages


WEATHER = [["io.github.a/weather-a", "io.github.b/weather-b"], ["io.github.c/weather-c"]]


async def test_pages_of_the_api(registry: RegistryServer) -> None:
    assert await all_names(registry.url, "weather") == WEATHER
    first, second = registry.requests("/v0.1/servers")
    assert first.query == {"search": "weather", "limit": "2", "version": "latest"}
    assert second.query["cursor"] == "after:2"


@pytest.mark.parametrize("path", ["", "/", "/v0.1/servers", "/v0.1/servers/"])
async def test_the_address_may_be_short_or_long(registry: RegistryServer, path: str) -> None:
    assert await all_names(registry.url + path, "files") == [["com.example/files"]]


async def test_an_older_api() -> None:
    async with RegistryServer(SERVERS, api="v0") as site:
        assert await all_names(site.url, "weather") == WEATHER


@pytest.mark.parametrize("path", ["/servers.json", "/list"])
async def test_a_plain_document_is_searched_here(registry: RegistryServer, path: str) -> None:
    registry.files[path] = data({"servers": SERVERS})
    assert await all_names(registry.url + path, "weather") == WEATHER
    assert await all_names(registry.url + path, "WEATHER-B what") == [["io.github.b/weather-b"]]
    assert await all_names(registry.url + path, "nothing") == [[]]


async def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(SERVERS))
    assert await all_names(str(file), "weather") == WEATHER
    assert await all_names(str(file), "") == [
        ["io.github.a/weather-a", "io.github.b/weather-b"],
        ["io.github.c/weather-c", "com.example/files"],
    ]


async def test_a_folder(tmp_path: Path) -> None:
    for number, document in enumerate(SERVERS):
        folder = tmp_path / f"s{number}"
        folder.mkdir()
        (folder / "server.json").write_text(json.dumps(document))
    (tmp_path / "package.json").write_text('{"name": "x"}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.txt").write_text("x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "server.json").write_text(json.dumps(server("io.github.hidden/weather")))
    (tmp_path / "again").symlink_to(tmp_path)
    assert await all_names(str(tmp_path), "weather") == WEATHER


async def test_a_cursor_that_is_none_begins_anew(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(SERVERS))
    for cursor in ("x", "-1", "9" * 30, "٣"):
        page = await search(str(file), "files", cursor)
        assert [offer.name for offer in page.offers] == ["com.example/files"]


@pytest.mark.parametrize("content", ["", "{", "[" * 200_000, "3", '{"mcpServers": {}}', "\ufeff{}", '{"name": "x"}'])
async def test_a_file_that_is_something_else(tmp_path: Path, content: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(CallboardError) as caught:
        await search(str(file), "")
    assert caught.value.code == "registry-invalid"


async def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CallboardError, match="cannot be read") as caught:
        await search(str(tmp_path / "gone.json"), "")
    assert caught.value.code == "registry-invalid"


async def test_an_empty_registry_is_one(tmp_path: Path, registry: RegistryServer) -> None:
    (tmp_path / "x.json").write_text('{"servers": []}')
    assert (await search(str(tmp_path / "x.json"), "")).offers == []
    assert (await search(registry.url, "nothing")).offers == []


# one server


async def test_a_server_by_its_whole_name(registry: RegistryServer) -> None:
    assert (await find(registry.url, "com.example/files")).name == "com.example/files"
    (request,) = registry.seen
    assert request.path == "/v0.1/servers/com.example/files/versions/latest"


async def test_a_server_by_the_last_part_of_its_name(registry: RegistryServer, tmp_path: Path) -> None:
    assert (await find(registry.url, "weather-c")).name == "io.github.c/weather-c"
    (tmp_path / "x.json").write_text(json.dumps(SERVERS))
    assert (await find(str(tmp_path / "x.json"), "weather-c")).name == "io.github.c/weather-c"
    assert (await find(str(tmp_path / "x.json"), "io.github.a/weather-a")).name == "io.github.a/weather-a"


@pytest.mark.parametrize("name", ["weather", "com.example/other", "x"])
async def test_a_server_that_is_not_there(registry: RegistryServer, name: str) -> None:
    with pytest.raises(CallboardError) as caught:
        await find(registry.url, name)
    assert caught.value.code == "registry-unknown"


async def test_a_last_part_that_several_have(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([server("a/files"), server("b/files")]))
    with pytest.raises(CallboardError, match="several servers named files: a/files, b/files") as caught:
        await find(str(tmp_path / "x.json"), "files")
    assert caught.value.data == {"names": ["a/files", "b/files"]}


# the network


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (Said(500), "remote-failed"),
        (Said(403), "remote-forbidden"),
        (Said(200, b"<html>"), "registry-invalid"),
        (Said(200, b"{}", {"content-encoding": "gzip"}), "remote-status"),
        (Said(200, gzip.compress(b"{}"), {"content-encoding": "gzip"}), "remote-status"),
        (Said(302, b"", {"location": "file:///etc/passwd"}), "remote-status"),
        (Said(302, b"", {"location": "ftp://127.0.0.1/x"}), "remote-status"),
        (Said(302, b"", {}), "remote-status"),
        (Said(301, b"", {"location": "/x.json"}), "remote-status"),
        (Said(200, b" " * (2 * 1024 * 1024)), "remote-status"),
    ],
)
async def test_answers_that_are_no_good(
    registry: RegistryServer, monkeypatch: pytest.MonkeyPatch, said: Said, code: str
) -> None:
    monkeypatch.setattr(searching, "_ONE_DOCUMENT", LIMITS)
    registry.files["/x.json"] = said
    with pytest.raises(CallboardError) as caught:
        await search(f"{registry.url}/x.json", "")
    assert caught.value.code == code
    assert caught.value.fix


async def test_a_redirect_is_followed(registry: RegistryServer) -> None:
    registry.files["/x.json"] = Said(302, b"", {"location": "/y.json"})
    registry.files["/y.json"] = data(SERVERS)
    assert len((await search(f"{registry.url}/x.json", "")).offers) == 4


async def test_a_registry_that_is_not_there() -> None:
    async with Site() as site:
        url = site.url
    with pytest.raises(CallboardError) as caught:
        await search(url, "")
    assert caught.value.code == "remote-refused"


@pytest.mark.parametrize("url", ["http://", "http://[::1", "https://x y/", "http://127.0.0.1:99999/"])
async def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(CallboardError):
        await search(url, "")


async def test_an_answer_that_takes_too_long() -> None:
    class Slow(Site):
        async def answer(self, seen: Seen) -> Said:
            queue: asyncio.Queue[bytes] = asyncio.Queue()
            self.streams.append(queue)
            return Said(200, b"[", {}, queue)

    async with Slow() as site:
        with pytest.raises(CallboardError) as caught:
            await fetch_all(f"{site.url}/x.json", Limits(total=0.5, size=1024))
    assert caught.value.code == "remote-timeout"


async def test_a_proxy_of_the_system_is_used(registry: RegistryServer, monkeypatch: pytest.MonkeyPatch) -> None:
    class Proxy(Site):
        async def answer(self, seen: Seen) -> Said:
            return data([server("a/b", packages=[package("npm", "x")])])

    async with Proxy() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        found = await search("http://registry.example.com/x.json", "")
        assert [offer.name for offer in found.offers] == ["a/b"]
        (request,) = proxy.seen
        assert "registry.example.com" in request.path + request.headers["host"]
        assert (await search(registry.url, "files")).offers  # this computer itself is reached directly
        assert len(proxy.seen) == 1


def documents(count: int) -> list[dict[str, Any]]:
    return [server(f"a/{number:05}") for number in range(count)]


async def test_a_large_document(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps(documents(5000)))
    assert (await find(str(tmp_path / "x.json"), "a/04999")).name == "a/04999"

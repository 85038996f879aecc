"""Bundles on this machine: unpacked, kept while they are used, and removed."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from callboard.core.errors import CallboardError
from callboard.core.registry_fill import command_line, fill
from callboard.engine.registry.bundles import Bundles
from tests.support.bundles import SERVER, manifest, write_bundle
from tests.support.registry_server import RegistryServer
from tests.support.site import Said, Seen

Entries = list[dict[str, Any]]


class Kept:
    """Bundles of a roster that a test writes; None: a roster that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.entries: Entries | None = []
        self.bundles = Bundles(folder / "bundles", folder, lambda: self.entries)

    @property
    def there(self) -> list[str]:
        folder = self.bundles.folder
        return sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path / "data")


async def test_a_bundle_is_unpacked_where_it_can_run(kept: Kept, tmp_path: Path) -> None:
    key, folder, found = await kept.bundles.open_file(write_bundle(tmp_path / "b.mcpb"))

    assert kept.there == [key]
    assert key.startswith("shouter-")
    assert (folder / "server/main.py").read_text() == SERVER
    entry = fill(found.way, "shouter", {}).entry
    assert command_line(entry) == f"python3 {folder}/server/main.py"
    assert entry["cwd"] == str(folder)


async def test_the_same_bundle_is_unpacked_once(kept: Kept, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb")
    key, folder, _ = await kept.bundles.open_file(bundle)
    (folder / "mark").touch()
    assert (await kept.bundles.open_file(bundle))[0] == key
    assert (folder / "mark").exists()
    other = write_bundle(tmp_path / "c.mcpb", files={"server/main.py": SERVER + "#"})
    assert (await kept.bundles.open_file(other))[0] != key
    assert len(kept.there) == 2


async def test_a_bundle_goes_when_nobody_wants_it(kept: Kept, tmp_path: Path) -> None:
    key, _, _ = await kept.bundles.open_file(write_bundle(tmp_path / "b.mcpb"))
    await kept.bundles.open_file(tmp_path / "b.mcpb")
    await kept.bundles.release(key)
    assert kept.there == [key]
    await kept.bundles.release(key)
    assert kept.there == []
    await kept.bundles.release("unknown")


async def test_a_bundle_stays_as_long_as_an_entry_names_it(kept: Kept, tmp_path: Path) -> None:
    key, folder, found = await kept.bundles.open_file(write_bundle(tmp_path / "b.mcpb"))
    kept.entries = [fill(found.way, "x", {}).entry]
    await kept.bundles.release(key)
    assert kept.there == [key]
    kept.entries = [{"command": f"{folder}/server/tool"}]
    await kept.bundles.collect()
    assert kept.there == [key]
    kept.entries = None
    await kept.bundles.collect()
    assert kept.there == [key]
    kept.entries = []
    kept.bundles.collect_soon()
    await kept.bundles.close()
    assert kept.there == []


async def test_what_an_earlier_engine_left_goes(kept: Kept, tmp_path: Path) -> None:
    for name in ("old-0123", ".new-1", ".fetched-2"):
        (kept.bundles.folder / name).mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (kept.bundles.folder / "link").symlink_to(outside)
    await kept.bundles.collect()
    assert kept.there == []
    assert (outside / "file").exists()


@pytest.mark.parametrize(
    ("document", "files", "says"),
    [
        (manifest(), {}, "server/main.py"),
        (manifest() | {"server": {"type": "node", "entry_point": "../../x"}}, None, "../../x"),
        (manifest() | {"server": {"type": "binary", "mcp_config": {"command": "../tool"}}}, None, "../tool"),
        (manifest() | {"server": {"type": "node", "entry_point": "/etc/passwd"}}, None, "/etc/passwd"),
    ],
)
async def test_what_a_bundle_wants_to_run_must_be_in_it(
    kept: Kept, tmp_path: Path, document: Any, files: dict[str, str | bytes] | None, says: str
) -> None:
    (kept.bundles.folder.parent).mkdir(parents=True)
    (kept.bundles.folder.parent / "tool").touch()
    with pytest.raises(CallboardError) as caught:
        await kept.bundles.open_file(write_bundle(tmp_path / "b.mcpb", document, files))
    assert caught.value.code == "bundle-invalid"
    assert says in caught.value.message
    assert kept.there == []


@pytest.mark.skipif(sys.platform == "win32", reason="modes of files")
async def test_a_program_can_be_run(kept: Kept, tmp_path: Path) -> None:
    server = {"type": "binary", "entry_point": "server/tool", "mcp_config": {"command": "server/tool"}}
    bundle = write_bundle(tmp_path / "b.mcpb", manifest() | {"server": server}, {"server/tool": "#!/bin/sh\n"})
    _, folder, _ = await kept.bundles.open_file(bundle)
    assert os.access(folder / "server/tool", os.X_OK)


async def test_a_bundle_from_the_network(kept: Kept, tmp_path: Path) -> None:
    body = write_bundle(tmp_path / "b.mcpb").read_bytes()
    digest = hashlib.sha256(body).hexdigest()
    async with RegistryServer([]) as site:
        site.files["/b.mcpb"] = Said(200, body)
        site.files["/moved.mcpb"] = Said(302, b"", {"location": "/b.mcpb"})
        site.files["/broken.mcpb"] = Said(200, body[:-50])
        key, folder, _ = await kept.bundles.open_url(f"{site.url}/moved.mcpb", digest.upper())
        assert (folder / "manifest.json").is_file()
        for path, checksum, code in (
            ("/b.mcpb", "0" * 64, "bundle-refused"),
            ("/broken.mcpb", "", "bundle-invalid"),
            ("/gone.mcpb", "", "remote-not-found"),
        ):
            with pytest.raises(CallboardError) as caught:
                await kept.bundles.open_url(site.url + path, checksum)
            assert caught.value.code == code
    assert kept.there == [key]


async def test_a_slow_fetch_holds_nothing_else_up(kept: Kept, tmp_path: Path) -> None:
    class Slow(RegistryServer):
        async def answer(self, seen: Seen) -> Said:
            queue: asyncio.Queue[bytes] = asyncio.Queue()
            self.streams.append(queue)
            return Said(200, b"PK", {}, queue)

    async with Slow([]) as site:
        fetching = asyncio.ensure_future(kept.bundles.open_url(f"{site.url}/b.mcpb"))
        while not kept.there:  # noqa: ASYNC110  the disk sets no event
            await asyncio.sleep(0.01)
        await kept.bundles.collect()
        assert len(kept.there) == 1  # it is still arriving
        key, _, _ = await kept.bundles.open_file(write_bundle(tmp_path / "b.mcpb"))
        await kept.bundles.release(key)
    with pytest.raises(CallboardError):
        await fetching
    assert kept.there == []


async def test_a_hostile_bundle_leaves_nothing(kept: Kept, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb", files={"server/main.py": SERVER, "../evil": "x"})
    with pytest.raises(CallboardError) as caught:
        await kept.bundles.open_file(bundle)
    assert caught.value.code == "bundle-refused"
    assert kept.there == []
    assert not (kept.bundles.folder / "evil").exists()
    assert not (kept.bundles.folder.parent / "evil").exists()


async def test_giving_up_leaves_nothing_that_counts(kept: Kept, tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb")
    task = asyncio.ensure_future(kept.bundles.open_file(bundle))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await kept.bundles.collect()
    key, folder, _ = await kept.bundles.open_file(bundle)
    assert json.loads((folder / "manifest.json").read_text())["name"] == "shouter"
    await kept.bundles.release(key)
    assert kept.there == []

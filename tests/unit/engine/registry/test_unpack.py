"""Bundles that somebody made to do harm, and those that are merely broken."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callboard.core.errors import CallboardError
from callboard.engine.registry import unpack as unpacking
from callboard.engine.registry.unpack import copy_bundle, read_manifest_of, unpack
from tests.support.bundles import SERVER, write_bundle

Members = list[tuple[str | zipfile.ZipInfo, bytes]]


def archive(path: Path, members: Members) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


def member(name: str, mode: int = 0o644, kind: int = stat.S_IFREG) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (kind | mode) << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def everything_below(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*"))


def refused(tmp_path: Path, members: Members, code: str) -> CallboardError:
    """Unpacking fails with this code, and leaves no trace."""
    inside = tmp_path / "inside"
    inside.mkdir()
    bundle = archive(inside / "b.mcpb", members)
    before = everything_below(tmp_path)
    with pytest.raises(CallboardError) as caught:
        unpack(bundle, inside / "out")
    assert caught.value.code == code
    assert everything_below(tmp_path) == before
    return caught.value


def test_all_of_a_good_bundle_is_there(tmp_path: Path) -> None:
    members: Members = [
        ("manifest.json", b"{}"),
        ("server/", b""),
        (member("server/tool", 0o755), b"#!/bin/sh\n"),
        (member("server/data", 0o4666), b"x"),
        ("ünï/ço dé", b"y" * 300_000),
    ]
    out = tmp_path / "out"

    unpack(archive(tmp_path / "b.mcpb", members), out)

    assert everything_below(out) == sorted(
        ["manifest.json", "server", "server/tool", "server/data", "ünï", "ünï/ço dé"]
    )
    assert (out / "ünï/ço dé").read_bytes() == b"y" * 300_000
    if sys.platform != "win32":
        modes = {
            name: stat.S_IMODE((out / name).stat().st_mode) for name in ("", "server", "server/tool", "server/data")
        }
        assert modes == {"": 0o700, "server": 0o700, "server/tool": 0o700, "server/data": 0o600}


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "a/../../evil",
        "/etc/evil",
        "..\\evil",
        "a\\..\\..\\evil",
        "C:/evil",
        "C:evil",
        "\\\\host\\share\\evil",
        "a//b",
        "./evil",
        "a/./b",
        "..",
        "a/..",
        "a\x01b",
        "a:stream",
        "a\nb",
        "x/" * 80 + "x",
        "y" * 2000,
    ],
)
def test_no_name_leads_outside(tmp_path: Path, name: str) -> None:
    refused(tmp_path, [("manifest.json", b"{}"), (member(name), b"evil")], "bundle-refused")


@pytest.mark.parametrize(
    ("kind", "what"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "no plain"), (stat.S_IFCHR, "no plain")]
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: int, what: str) -> None:
    error = refused(tmp_path, [(member("link", 0o777, kind), b"/etc"), ("link/passwd", b"x")], "bundle-refused")
    assert what in error.message


@pytest.mark.parametrize("names", [("a", "a"), ("a", "A"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
def test_nothing_is_written_twice(tmp_path: Path, names: tuple[str, str]) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    bundle = archive(inside / "b.mcpb", [(name, b"x") for name in names])
    with pytest.raises(CallboardError) as caught:
        unpack(bundle, inside / "out")
    assert caught.value.code in ("bundle-refused", "bundle-unwritable")
    assert everything_below(inside) == ["b.mcpb"]


def test_what_says_how_large_it_is_is_believed_to_be_no_smaller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_CONTENT", 1024 * 1024)
    refused(tmp_path, [("zeros", bytes(1024 * 1024 + 1))], "bundle-too-large")


def test_a_bomb_of_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_CONTENT", 1024 * 1024)
    refused(tmp_path, [(f"zeros{n}", bytes(300_000)) for n in range(4)], "bundle-too-large")


def test_a_file_that_unpacks_to_more_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_CONTENT", 100_000)
    bundle = archive(tmp_path / "b.mcpb", [("zeros", bytes(5_000_000))])
    raw = bytearray(bundle.read_bytes())
    for signature, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = raw.find(signature) + at
        raw[place : place + 4] = struct.pack("<I", 1000)
    bundle.write_bytes(raw)

    with pytest.raises(CallboardError) as caught:
        unpack(bundle, tmp_path / "out")
    assert caught.value.code in ("bundle-invalid", "bundle-too-large")
    assert everything_below(tmp_path) == ["b.mcpb"]


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_FILES", 10)
    refused(tmp_path, [(f"f{n}", b"") for n in range(11)], "bundle-too-large")


def test_too_many_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_FILES", 30)
    error = refused(tmp_path, [(f"{n}/a/b/c/d/e/f/g/h/i/", b"") for n in range(4)], "bundle-too-large")
    assert "folders" in error.message


def test_folders_that_files_share_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_FILES", 30)
    unpack(archive(tmp_path / "b.mcpb", [(f"a/b/c/d/{n}", b"") for n in range(30)]), tmp_path / "out")
    assert len(list((tmp_path / "out/a/b/c/d").iterdir())) == 30


def test_a_list_of_files_that_would_fill_the_memory_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacking, "_LARGEST_DIRECTORY", 1000)
    refused(tmp_path, [(f"f{n}", b"") for n in range(30)], "bundle-too-large")


def test_a_second_hidden_list_of_files_is_not_read(tmp_path: Path) -> None:
    bundle = archive(tmp_path / "b.mcpb", [("manifest.json", b"{}")])
    raw = bundle.read_bytes()
    end = raw.rfind(b"PK\x05\x06")
    bundle.write_bytes(raw[:end] + b"PK\x06\x07" + bytes(16) + raw[end:])
    with pytest.raises(CallboardError) as caught:
        read_manifest_of(bundle)
    assert caught.value.code == "bundle-too-large"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "LARGEST_BUNDLE", 100)
    with pytest.raises(CallboardError, match="MiB") as caught:
        copy_bundle(write_bundle(tmp_path / "b.mcpb"), tmp_path / "copy")
    assert caught.value.code == "bundle-too-large"


def test_encrypted_members_are_refused(tmp_path: Path) -> None:
    bundle = archive(tmp_path / "b.mcpb", [("manifest.json", b"{}"), ("a", b"x")])
    raw = bytearray(bundle.read_bytes())
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.rfind(signature) + at] |= 1
    bundle.write_bytes(raw)
    with pytest.raises(CallboardError, match="encrypted"):
        unpack(bundle, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unusual_compression_is_refused(tmp_path: Path, method: int) -> None:
    info = member("a")
    info.compress_type = method
    refused(tmp_path, [("manifest.json", b"{}"), (info, b"x" * 1000)], "bundle-refused")


def test_a_damaged_member_is_found_out(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb", files={"a": os.urandom(2000)})
    raw = bytearray(bundle.read_bytes())
    raw[raw.rfind(b"PK\x03\x04") + 200] ^= 0xFF
    bundle.write_bytes(raw)
    with pytest.raises(CallboardError, match="damaged"):
        unpack(bundle, tmp_path / "out")
    assert everything_below(tmp_path) == ["b.mcpb"]


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive at all", b"PK\x05\x06" + bytes(5), b"{}"])
def test_what_is_no_archive_is_no_bundle(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "b.mcpb"
    file.write_bytes(content)
    with pytest.raises(CallboardError) as caught:
        read_manifest_of(file)
    assert caught.value.code == "bundle-invalid"


@pytest.mark.parametrize("content", [b"", b"[", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}'])
def test_what_is_no_manifest_is_no_bundle(tmp_path: Path, content: bytes) -> None:
    bundle = archive(tmp_path / "b.mcpb", [("manifest.json", content)])
    with pytest.raises(CallboardError, match="not JSON"):
        read_manifest_of(bundle)


def test_a_bundle_without_a_manifest(tmp_path: Path) -> None:
    with pytest.raises(CallboardError, match=r"no manifest\.json"):
        read_manifest_of(archive(tmp_path / "b.mcpb", [("folder/manifest.json", b"{}")]))


def test_a_manifest_that_is_too_large(tmp_path: Path) -> None:
    with pytest.raises(CallboardError, match="too large"):
        read_manifest_of(archive(tmp_path / "b.mcpb", [("manifest.json", b" " * (1024 * 1024 + 1))]))


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: None], ids=["a folder", "nothing"])
def test_what_cannot_be_read(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "b.mcpb")
    with pytest.raises(CallboardError) as caught:
        copy_bundle(tmp_path / "b.mcpb", tmp_path / "copy")
    assert caught.value.code == "bundle-invalid"


@pytest.mark.skipif(sys.platform == "win32", reason="a FIFO")
def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "b.mcpb")
    with pytest.raises(CallboardError, match="plain file"):
        copy_bundle(tmp_path / "b.mcpb", tmp_path / "copy")


def test_a_signature_behind_the_archive_does_no_harm(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb")
    with bundle.open("ab") as file:
        file.write(b"SIGNATURE" * 100)
    unpack(bundle, tmp_path / "out")
    assert (tmp_path / "out/server/main.py").read_text() == SERVER


def test_unpacking_can_be_stopped(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "b.mcpb")
    with pytest.raises(CallboardError):
        unpack(bundle, tmp_path / "out", lambda: True)
    assert everything_below(tmp_path) == ["b.mcpb"]


@pytest.mark.parametrize("empty", ["f{}", "f{}/"])
def test_unpacking_what_is_empty_can_be_stopped(tmp_path: Path, empty: str) -> None:
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append((tmp_path / "out" / "f1").exists())
        return asked[-1]

    with pytest.raises(CallboardError):
        unpack(archive(tmp_path / "b.mcpb", [(empty.format(n), b"") for n in range(9)]), tmp_path / "out", stopped)
    assert asked == [False, False, True]
    assert everything_below(tmp_path) == ["b.mcpb"]


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="folders that may not be written")
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(CallboardError) as caught:
        unpack(write_bundle(tmp_path / "b.mcpb"), closed / "out")
    assert caught.value.code == "bundle-unwritable"


def test_a_place_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    with pytest.raises(CallboardError) as caught:
        unpack(write_bundle(tmp_path / "b.mcpb"), tmp_path / "out")
    assert caught.value.code == "bundle-unwritable"
    assert everything_below(tmp_path / "out") == ["mine"]


GOOD = io.BytesIO()
with zipfile.ZipFile(GOOD, "w", zipfile.ZIP_DEFLATED) as _file:
    _file.writestr("manifest.json", '{"name": "x"}')
    _file.writestr("server/main.py", SERVER)


@given(st.lists(st.tuples(st.integers(0, len(GOOD.getvalue()) - 1), st.integers(0, 255)), min_size=1, max_size=8))
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_is_more_than_an_error(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(GOOD.getvalue())
    for place, value in changes:
        raw[place] = value
    folder = tmp_path / "each"
    folder.mkdir(exist_ok=True)
    bundle = folder / "b.mcpb"
    bundle.write_bytes(raw)
    for work in (lambda: read_manifest_of(bundle), lambda: unpack(bundle, folder / "out")):
        with contextlib.suppress(CallboardError):
            work()
    if (folder / "out").exists():
        assert {"b.mcpb", "out"} == {file.name for file in folder.iterdir()}
        for file in sorted((folder / "out").rglob("*"), reverse=True):
            file.unlink() if file.is_file() else file.rmdir()
        (folder / "out").rmdir()

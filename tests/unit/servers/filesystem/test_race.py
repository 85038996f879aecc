"""The symlink race: somebody exchanges a file or folder for a link without a pause while it is read."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from callboard.servers.filesystem.places import Refused, Roots
from callboard.servers.filesystem.tools import Answer, Files
from tests.support import swapper

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="names are exchanged in one step with renameat2")

SECONDS = 5.0
ENOUGH = 50  # calls that were answered, and calls that were refused, before the attack counts as one


@dataclass
class Battlefield:
    """A root whose folder `door` and file `leaf.txt` may at any moment be links that lead out of it."""

    root: Path
    secret: str = "SECRET-OUTSIDE"


@contextmanager
def exchanging(*names: Path) -> Iterator[None]:
    """Another process exchanges each pair of names by turns."""
    command = [sys.executable, swapper.__file__, *map(str, names)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        try:
            assert process.stdout.readline() == b"begun\n"
            yield
            assert process.poll() is None
        finally:
            process.stdin.close()
            process.wait()
    assert process.returncode == 0


@pytest.fixture
def field(tmp_path: Path) -> Battlefield:
    root, outside = tmp_path / "root", tmp_path / "outside"
    field = Battlefield(root)
    for folder in (root / "door", outside):
        folder.mkdir(parents=True)
    (outside / "a.txt").write_text(f"{field.secret}\n")
    (outside / f"{field.secret}.txt").write_text("a name can be a secret, too")
    (root / "door" / "a.txt").write_text("inside\n")
    (root / "leaf.txt").write_text("inside\n")
    (root / "door-link").symlink_to(outside)
    (root / "leaf-link").symlink_to(outside / "a.txt")
    return field


def attacks(files: Files) -> list[Callable[[], Answer]]:
    """Calls of every tool that reads; of those that answer for many files, each answers by itself."""
    return [
        lambda: files.read_text_file("door/a.txt"),
        lambda: files.read_text_file("leaf.txt"),
        lambda: files.read_text_file("door/a.txt", tail=1),
        lambda: files.read_multiple_files(["door/a.txt", "leaf.txt"]),
        lambda: files.list_directory("door"),
        lambda: files.list_directory_with_sizes("door"),
        lambda: files.directory_tree("."),
        lambda: files.directory_tree("door"),
        lambda: files.search_files(".", "**"),
        lambda: files.search_files("door", "**"),
        lambda: files.get_file_info("door/a.txt"),
    ]


def test_assertion_31_a_link_exchanged_for_a_file_or_folder_for_five_seconds_leaks_not_a_byte(
    field: Battlefield,
) -> None:
    roots, _ = Roots.of([str(field.root)])
    assert roots is not None
    calls = attacks(Files(roots))
    answered = refused = 0
    size = f"size: {len(field.secret) + 1}"
    with exchanging(field.root / "door", field.root / "door-link", field.root / "leaf.txt", field.root / "leaf-link"):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or min(answered, refused) < ENOUGH:
            for call in calls:
                try:
                    answer = call()
                except Refused as error:
                    refused += 1
                    told = str(error)
                else:
                    answered += 1
                    told = "\n".join([answer.text, *answer.remarks, *answer.for_person])
                assert field.secret not in told
                assert size not in told
    assert not [descriptor for descriptor in Path("/dev/fd").iterdir() if _leads_to(descriptor, field.root.parent)]


def _leads_to(descriptor: Path, folder: Path) -> bool:
    try:
        return descriptor.readlink().is_relative_to(folder)
    except OSError:
        return False  # that of the listing itself

"""The roster's file against editors, other programs, bad disks and the person's own mistakes."""

import asyncio
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from callboard.core.errors import CallboardError
from callboard.engine.roster_file import UNDO_STEPS, RosterFile
from callboard.engine.tasks import cancel_and_wait, spawn
from callboard.system.resources import resource

STARTER = resource("starter-roster.yaml")
TEXT = "# mine\nservers:\n  a: {command: x}  # the first\n\n  b:\n    url: http://localhost:1/mcp\n"


class Changes:
    """Counts changes and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._event.set()

    async def wait(self) -> None:
        """Wait for a change since the last call."""
        await self._event.wait()
        self._event.clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config" / "roster.yaml"


async def opened(path: Path, text: str | bytes | None = TEXT) -> RosterFile:
    """A roster file that holds ``text``."""
    if text is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    file = RosterFile(path, STARTER)
    await file.load()
    return file


@asynccontextmanager
async def watched(path: Path) -> AsyncIterator[tuple[RosterFile, Changes]]:
    changes = Changes()
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    file = RosterFile(path, STARTER, changes)
    await file.load()
    task = spawn(file.watch(), "watch the roster")
    await asyncio.sleep(0)
    yield file, changes
    await cancel_and_wait(task)


async def test_the_first_start_writes_the_starter_roster(path: Path) -> None:
    file = await opened(path, None)
    assert list(file.roster.servers) == ["local-tools"]
    assert file.starter
    assert path.read_bytes() == STARTER.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    await file.save_entry("local-tools", {**file.roster.written["local-tools"], "enabled": False})
    assert not file.starter
    assert "# Callboard's roster" in path.read_text()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_cannot_be_written_still_gives_the_starter_roster(path: Path) -> None:
    path.parent.mkdir(mode=0o500)
    await check_unwritable(path)


async def test_a_config_folder_that_is_a_file_still_gives_the_starter_roster(path: Path) -> None:
    path.parent.write_text("not a folder")
    await check_unwritable(path)


async def check_unwritable(path: Path) -> None:
    """The starter roster is in force, and the problem is told."""
    file = await opened(path, None)
    assert list(file.roster.servers) == ["local-tools"]
    assert file.problem is not None
    assert file.problem.code == "roster-unwritable"
    with pytest.raises(CallboardError) as caught:
        await file.save_entry("x", {"command": "y"})
    assert caught.value.code == "roster-unwritable"


async def test_an_edit_is_written_with_a_backup_and_can_be_undone_and_redone(path: Path) -> None:
    file = await opened(path)
    path.chmod(0o640)
    added = await file.save_entry("c", {"command": "z"}, revision=file.revision, create=True)
    after = path.read_text()
    assert after == TEXT + "\n  c:\n    command: z\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    (backup,) = (path.parent / "backups").iterdir()
    assert backup.read_text() == TEXT
    assert added.revision == file.revision
    undone = await file.undo(added.undo)
    assert path.read_text() == TEXT
    redone = await file.undo(undone.undo)
    assert path.read_text() == after
    assert redone.revision == added.revision
    with pytest.raises(CallboardError) as caught:
        await file.undo(undone.undo)
    assert caught.value.code == "not-found"


async def test_backups_do_not_pile_up(path: Path) -> None:
    file = await opened(path)
    for index in range(13):
        await file.save_entry("a", {"command": f"x{index}"})
    backups = sorted((path.parent / "backups").iterdir())
    assert len(backups) == 10
    assert "x11" in backups[-1].read_text()
    assert [item.name for item in path.parent.iterdir() if item.name.startswith(".")] == []


async def test_undo_steps_are_bounded(path: Path) -> None:
    file = await opened(path)
    edits = [await file.save_entry("a", {"command": f"x{index}"}) for index in range(UNDO_STEPS + 1)]
    codes = []
    for edit in edits[:2]:
        with pytest.raises(CallboardError) as caught:
            await file.undo(edit.undo)
        codes.append(caught.value.code)
    assert codes == ["not-found", "roster-changed"]  # the first is forgotten, the second overtaken
    await file.undo(edits[-1].undo)


async def test_undo_beside_a_change_from_outside_touches_its_entry_alone(path: Path) -> None:
    file = await opened(path)
    removed = await file.remove_entry("a")
    path.write_text(path.read_text() + "\n  mine: {command: by-hand}\n")
    await file.undo(removed.undo)
    assert list(file.roster.servers) == ["b", "mine", "a"]
    renamed = await file.save_entry("b", {"url": "http://localhost:2/mcp"}, rename="c")
    path.write_text("# changed\n" + path.read_text())
    await file.undo(renamed.undo)
    assert file.roster.written["b"] == {"url": "http://localhost:1/mcp"}
    assert list(file.roster.servers) == ["b", "mine", "a"]


async def test_undo_of_an_entry_that_was_changed_since_is_refused(path: Path) -> None:
    file = await opened(path)
    edit = await file.save_entry("a", {"command": "y"})
    path.write_text(path.read_text().replace("command: y", "command: by-hand"))
    before = path.read_text()
    with pytest.raises(CallboardError) as caught:
        await file.undo(edit.undo)
    assert caught.value.code == "roster-changed"
    assert path.read_text() == before


async def test_a_file_that_changed_meanwhile_is_not_written_over(path: Path) -> None:
    file = await opened(path)
    revision = file.revision
    path.write_text(TEXT + "# by hand\n")
    with pytest.raises(CallboardError) as caught:
        await file.save_entry("a", {"command": "y"}, revision=revision)
    assert caught.value.code == "roster-changed"
    assert path.read_text() == TEXT + "# by hand\n"
    await file.save_entry("a", {"command": "y"}, revision=file.revision)
    assert path.read_text() == TEXT.replace("{command: x}", "{command: y}") + "# by hand\n"


async def test_an_edit_without_revision_applies_to_the_file_as_it_is_now(path: Path) -> None:
    file = await opened(path)
    path.write_text(TEXT + "# by hand\n")
    await file.save_entry("a", {"command": "y"})
    assert path.read_text().endswith("# by hand\n")


@pytest.mark.parametrize(
    ("broken", "code", "line", "column"),
    [
        (TEXT + "  c: [\n", "roster-unreadable", 8, 1),
        (TEXT + "  c: {comand: x}\n", "roster-invalid", 7, 7),
        (TEXT.encode() + b"# caf\xe9\n", "roster-unreadable", 7, 6),
    ],
)
async def test_a_broken_file_is_told_with_its_place_and_left_alone(
    path: Path, broken: str | bytes, code: str, line: int, column: int
) -> None:
    file = await opened(path)
    data = broken.encode() if isinstance(broken, str) else broken
    path.write_bytes(data)
    assert await file.refresh()
    view = file.view()
    assert view.problem is not None
    assert (view.problem.code, view.problem.line, view.problem.column) == (code, line, column)
    assert list(view.servers) == ["a", "b"]
    for edit in (file.save_entry("a", {"command": "y"}), file.remove_entry("a")):
        with pytest.raises(CallboardError) as caught:
            await edit
        assert caught.value.code == code
    assert path.read_bytes() == data
    path.write_text(TEXT)
    assert await file.refresh()
    assert file.problem is None


async def test_a_roster_that_is_gone_stays_in_force_and_is_written_again_by_an_edit(path: Path) -> None:
    file = await opened(path)
    path.unlink()
    assert await file.refresh()
    assert list(file.roster.servers) == ["a", "b"]
    assert file.problem is not None
    assert "is gone" in file.problem.message
    await file.save_entry("a", {"command": "y"})
    assert path.read_text() == TEXT.replace("{command: x}", "{command: y}")
    assert file.problem is None


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
async def test_byte_order_marks_are_read_and_not_written(path: Path, encoding: str) -> None:
    file = await opened(path, TEXT.replace("x", "é").encode(encoding))
    assert file.roster.written["a"] == {"command": "é"}
    await file.save_entry("b", {"url": "http://localhost:2/"})
    assert path.read_bytes() == TEXT.replace("x", "é").replace(":1/mcp", ":2/").encode()


async def test_a_linked_roster_stays_a_link(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "dotfiles" / "roster.yaml"
    target.parent.mkdir()
    target.write_text(TEXT)
    path.parent.mkdir()
    path.symlink_to(target)
    file = await opened(path, None)
    await file.save_entry("a", {"command": "y"})
    assert path.is_symlink()
    assert "command: y" in target.read_text()


async def test_wrong_edits_are_refused_with_the_field(path: Path) -> None:
    file = await opened(path)
    with pytest.raises(CallboardError) as caught:
        await file.save_entry("a.b", {"command": "x", "argz": []})
    assert caught.value.code == "entry-invalid"
    assert [item["field"] for item in caught.value.data["problems"]] == ["name", "argz"]
    cases = [
        (file.save_entry("a", {"command": "x"}, create=True), "name-taken"),
        (file.save_entry("A", {"command": "x"}), "name-taken"),
        (file.save_entry("a", {"command": "x"}, rename="b"), "name-taken"),
        (file.save_entry("gone", {"command": "x"}, rename="c"), "server-unknown"),
        (file.remove_entry("gone"), "server-unknown"),
        (file.save_item("clients", "admin", {}), "name-taken"),
        (file.save_item("clients", "default", {}), "name-taken"),
    ]
    for edit, code in cases:
        with pytest.raises(CallboardError) as caught:
            await edit
        assert caught.value.code == code
    assert path.read_text() == TEXT
    await file.save_entry("a", {"command": "x"}, rename="A")
    assert list(file.roster.servers) == ["A", "b"]


async def test_changes_from_outside_are_told(path: Path) -> None:
    async with watched(path) as (file, changes):
        path.write_text(TEXT + "  c: {command: z}\n")
        await changes.wait()
        assert list(file.roster.servers) == ["a", "b", "c"]
        other = path.with_suffix(".new")  # as most editors save
        other.write_text(TEXT)
        other.replace(path)
        await changes.wait()
        assert list(file.roster.servers) == ["a", "b"]
        path.write_text("servers: [")
        await changes.wait()
        assert file.problem is not None


async def test_a_file_that_is_only_touched_is_no_change(path: Path) -> None:
    async with watched(path) as (file, changes):
        os.utime(path)
        assert not await file.refresh()
        await file.save_entry("a", {"command": "y"})
        await changes.wait()
        assert changes.count == 1


async def test_clients_profiles_and_the_policy_are_edited_and_taken_back(path: Path) -> None:
    file = await opened(path)
    profile = await file.save_item("profiles", "work", {"servers": ["a"]})
    await file.save_item("clients", "vscode", {"profile": "work"})
    await file.save_item("", "policy", {"deny": ["*.rm"]})
    settings = file.roster.settings
    assert (settings.clients["vscode"].profile, settings.policy.deny) == ("work", ["*.rm"])
    assert file.roster.sections["profiles"] == {"work": {"servers": ["a"]}}
    for section, name, item, code in (
        ("profiles", "work", None, "entry-invalid"),  # a client is bound to it
        ("profiles", "w x", {"servers": ["a"]}, "entry-invalid"),
        ("clients", "vscode", {"profil": "work"}, "entry-invalid"),
        ("clients", "vscode", {"profile": "gone"}, "entry-invalid"),
        ("clients", "cursor", None, "not-found"),
        ("", "policy", {"allow": "x.*"}, "entry-invalid"),
    ):
        with pytest.raises(CallboardError) as caught:
            await file.save_item(section, name, item)
        assert caught.value.code == code
    before = path.read_text()
    reset = await file.save_item("clients", "vscode", None)
    await file.undo(reset.undo)
    assert path.read_text() == before
    with pytest.raises(CallboardError) as caught:
        await file.save_item("profiles", "work", {"servers": ["b"]}, revision=profile.revision)
    assert caught.value.code == "roster-changed"
    await file.save_item("clients", "vscode", {"max_result_chars": 500})
    await file.undo(profile.undo)  # beside the others
    assert file.roster.settings.profiles == {}
    assert file.roster.settings.clients["vscode"].max_result_chars == 500

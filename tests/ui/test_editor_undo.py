"""Taking back and making again what was changed in the roster."""

from collections.abc import Iterator
from typing import Any

import pytest

from callboard.api.schema import RosterEdit
from callboard.core.errors import CallboardError
from callboard.ui.editor.commands import RosterUndo
from callboard.ui.editor.saver import Filled, Saved
from tests.ui.conftest import HandLink, engine_view, until
from tests.ui.editor_fakes import MemoryEngine

SERVERS: dict[str, dict[str, Any]] = {"a": {"command": "a"}, "b": {"command": "b"}}


@pytest.fixture
def engine(link: HandLink) -> MemoryEngine:
    """An engine with two servers."""
    engine = MemoryEngine(SERVERS)
    engine.join(link)
    return engine


@pytest.fixture
def undo(link: HandLink, engine: MemoryEngine) -> Iterator[RosterUndo]:
    """What can be undone in a window."""
    undo = RosterUndo(link)
    yield undo
    undo.deleteLater()


async def remove(undo: RosterUndo, engine: MemoryEngine, name: str) -> None:
    """Remove a server and let the event come."""
    removed: list[str] = []
    undo.removed.connect(removed.append)
    undo.remove_server(name)
    await until(lambda: removed == [name], "removal")
    undo.removed.disconnect(removed.append)
    engine.tell()


async def step(undo: RosterUndo, engine: MemoryEngine, *, redo: bool = False) -> None:
    """Undo or redo one change and let the event come."""
    (undo.redo_action if redo else undo.undo_action).trigger()
    assert undo.is_busy
    await until(lambda: not undo.is_busy, "the step")
    engine.tell()


async def test_a_removal_is_undone_and_done_again(undo: RosterUndo, engine: MemoryEngine) -> None:
    assert not undo.undo_action.isEnabled()
    await remove(undo, engine, "a")
    assert list(engine.servers) == ["b"]
    assert undo.undo_action.text() == "&Undo: Remove a"
    await step(undo, engine)
    assert engine.servers == SERVERS
    assert not undo.can_undo
    assert undo.redo_action.text() == "&Redo: Remove a"
    await step(undo, engine, redo=True)
    assert list(engine.servers) == ["b"]
    await step(undo, engine)
    assert engine.servers == SERVERS


async def test_changes_are_undone_newest_first(undo: RosterUndo, engine: MemoryEngine) -> None:
    said: list[str] = []
    undo.said.connect(said.append)
    await remove(undo, engine, "a")
    await remove(undo, engine, "b")
    assert engine.servers == {}
    await step(undo, engine)
    assert list(engine.servers) == ["b"]
    await step(undo, engine)
    assert engine.servers == SERVERS
    assert said == ["Undone: Remove b", "Undone: Remove a"]


async def test_nothing_else_is_undone_while_a_step_is_under_way(undo: RosterUndo, engine: MemoryEngine) -> None:
    await remove(undo, engine, "a")
    await remove(undo, engine, "b")
    engine.gate.clear()
    undo.undo()
    undo.undo()
    assert not undo.undo_action.isEnabled()
    engine.gate.set()
    await until(lambda: not undo.is_busy, "the step")
    assert list(engine.servers) == ["b"]
    assert undo.can_undo


async def test_a_change_of_the_same_server_from_outside_ends_undo(undo: RosterUndo, engine: MemoryEngine) -> None:
    await remove(undo, engine, "a")
    engine.write_outside({"b": {"command": "other"}})
    assert undo.can_undo, "another server's entry has nothing to do with it"
    engine.write_outside({"a": {"command": "new"}, "b": {"command": "other"}})
    assert not undo.can_undo
    assert undo.undo_action.text() == "&Undo"


async def test_what_cannot_be_taken_back_is_told_and_forgotten(undo: RosterUndo, engine: MemoryEngine) -> None:
    failures: list[CallboardError] = []
    undo.failed.connect(failures.append)
    await remove(undo, engine, "a")
    engine.forget_undo()
    await step(undo, engine)
    assert [error.code for error in failures] == ["not-found"]
    assert not undo.can_undo


async def test_a_lost_engine_keeps_what_can_be_undone(undo: RosterUndo, engine: MemoryEngine, link: HandLink) -> None:
    await remove(undo, engine, "a")
    link.disconnect_by_hand()
    assert not undo.undo_action.isEnabled()
    engine.join(link)
    assert undo.undo_action.isEnabled()
    link.say("engine", engine_view(pid=1))
    assert not undo.can_undo, "another engine knows nothing of it"


async def test_saved_forms_are_recorded(undo: RosterUndo, engine: MemoryEngine) -> None:
    for original, name, text in (("", "c", "Add c"), ("c", "c", "Edit c"), ("c", "d", "Rename c to d")):
        edit = RosterEdit(revision="1", undo="token")
        undo.record(Saved(Filled(name, {"command": "x"}), original, edit))
        assert undo.undo_action.text() == f"&Undo: {text}"


async def test_a_removal_that_fails_is_told(undo: RosterUndo, engine: MemoryEngine, link: HandLink) -> None:
    failures: list[CallboardError] = []
    undo.failed.connect(failures.append)
    link.disconnect_by_hand()
    undo.remove_server("a")
    await until(lambda: failures, "the failure")
    assert failures[0].code == "engine-not-running"
    assert not undo.can_undo

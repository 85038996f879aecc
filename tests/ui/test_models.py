"""The models behind lists and tables."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester, QSignalSpy
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from callboard.api.schema import CallView, ToolView
from callboard.core.errors import CallboardError
from callboard.core.health import State
from callboard.ui import formats
from callboard.ui.models.calls import CallFilter, CallsModel
from callboard.ui.models.offers import OfferListModel, tool_offer
from callboard.ui.models.parameters import parameters
from callboard.ui.models.payload import readable
from callboard.ui.models.pretty import pretty
from callboard.ui.models.roles import Role
from callboard.ui.models.servers import ServerListModel, ServerOrder, tools_text, trouble_text
from tests.ui.conftest import NOW, HandLink, call_view, server_view, until
from tests.ui.pages_kit import FakeEngine

FATAL = QAbstractItemModelTester.FailureReportingMode.Fatal


class TestServers:
    @pytest.fixture
    def model(self, qapp: QApplication) -> Iterator[ServerListModel]:
        model = ServerListModel()
        self.order = ServerOrder(model)
        self.testers = [QAbstractItemModelTester(model, FATAL), QAbstractItemModelTester(self.order, FATAL)]
        yield model
        for tester in self.testers:
            tester.deleteLater()
        self.order.deleteLater()
        model.deleteLater()

    def names(self) -> list[str]:
        return [self.order.index(row, 0).data(Role.VIEW).name for row in range(self.order.rowCount())]

    def test_those_that_need_attention_come_first_and_the_others_stay_in_roster_order(
        self, model: ServerListModel
    ) -> None:
        model.reset(
            [
                server_view("a"),
                server_view("b", State.STOPPED),
                server_view("c", State.FAILED),
                server_view("d", State.DISABLED),
                server_view("e", State.NEEDS_SIGN_IN),
            ]
        )
        assert self.names() == ["c", "e", "a", "b", "d"]

    def test_a_crash_loop_does_not_make_the_list_jump(self, model: ServerListModel, qtbot: QtBot) -> None:
        model.reset([server_view("a"), server_view("b", State.RESTARTING, attempt=1, max_attempts=5)])
        for attempt in range(2, 5):
            for state in (State.STARTING, State.RESTARTING):
                model.change(server_view("b", state, attempt=attempt, max_attempts=5))
                qtbot.waitUntil(lambda: model.data(model.index(1), Role.VIEW) == model.view("b"), timeout=30_000)
                assert self.names() == ["b", "a"]
        model.change(server_view("b"))
        qtbot.waitUntil(lambda: self.names() == ["a", "b"], timeout=30_000)

    def test_many_changes_are_shown_together(self, model: ServerListModel, qtbot: QtBot) -> None:
        model.reset([server_view("a"), server_view("b")])
        spy = QSignalSpy(model.dataChanged)
        model.change(server_view("a", State.STOPPING))
        assert spy.count() == 1, "the first change after a quiet time is shown at once"
        for number in range(50):
            model.change(server_view("a", State.STARTING, restarts=number))
        assert spy.count() == 1
        newest = model.view("a")
        assert newest is not None
        assert newest.restarts == 49, "what is asked for by name is never old"
        qtbot.waitUntil(lambda: spy.count() == 2, timeout=30_000)
        assert model.data(model.index(0), Role.VIEW).restarts == 49

    def test_a_button_does_not_move_from_under_the_pointer(self, model: ServerListModel) -> None:
        model.reset([server_view("a"), server_view("b")])
        self.order.hold(True)
        model.change(server_view("b", State.FAILED))
        assert self.names() == ["a", "b"]
        self.order.hold(False)
        assert self.names() == ["b", "a"]

    def test_servers_come_and_go(self, model: ServerListModel, qtbot: QtBot) -> None:
        model.reset([server_view("a"), server_view("b")])
        model.change(server_view("c"))
        assert self.names() == ["a", "b", "c"]
        model.remove("a")
        model.remove("not there")
        assert self.names() == ["b", "c"]
        model.reset([server_view("c"), server_view("b")])
        assert self.names() == ["c", "b"]
        spy = QSignalSpy(model.modelReset)
        model.reset([server_view("c", State.STOPPED), server_view("b")])
        assert spy.count() == 0, "the same servers are changed in place, so that the chosen one stays chosen"
        assert model.data(model.index(0), Role.VIEW).state is State.STOPPED

    def test_a_change_that_waits_does_not_bring_a_removed_server_back(
        self, model: ServerListModel, qtbot: QtBot
    ) -> None:
        model.reset([server_view("a"), server_view("b")])
        model.change(server_view("a", State.STOPPED))
        model.change(server_view("b", State.STOPPED))
        model.remove("b")
        qtbot.waitUntil(lambda: not model._timer.isActive(), timeout=30_000)
        assert self.names() == ["a"]

    def test_search_looks_at_name_command_and_address(self, model: ServerListModel) -> None:
        model.reset(
            [
                server_view("files", command=["npx", "server-filesystem"]),
                server_view("hub", url="https://example.com/mcp"),
                server_view("x", display_name="Ünïcode"),
            ]
        )
        for text, found in (("FILESYS", ["files"]), ("example", ["hub"]), ("ünï", ["x"]), ("[", []), ("", None)):
            self.order.setFilterFixedString(text)
            assert self.names() == (["files", "hub", "x"] if found is None else found)

    def test_a_row_says_everything_to_a_screen_reader(self, model: ServerListModel) -> None:
        model.reset([server_view("a", State.FAILED, reason="Exited - 5 times", tools=3, cached=True)])
        index = model.index(0)
        assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "a, Failed: Exited, stdio, 3 tools (cached)"
        assert index.data(Qt.ItemDataRole.AccessibleDescriptionRole) == "Press Enter to: Retry now"

    def test_what_is_wrong_is_told_with_the_next_attempt(self) -> None:
        view = server_view("a", State.RESTARTING, reason="Exited with code 1. More.", next_retry=NOW + 4)
        assert trouble_text(view, NOW) == "in 4 s · Exited with code 1"
        assert trouble_text(server_view("a", reason="Old news."), NOW) == ""
        given_up = server_view("a", State.FAILED, reason="HTTP 502.", next_retry=NOW + 70, attempt=6, max_attempts=5)
        assert trouble_text(given_up, NOW) == "next try in 1 min 10 s · HTTP 502"
        assert [tools_text(server_view("a", tools=n)) for n in (0, 1, 2)] == ["", "1 tool", "2 tools"]


class TestTools:
    def test_the_same_tools_again_change_nothing(self, qapp: QApplication) -> None:
        model = OfferListModel()
        tester = QAbstractItemModelTester(model, FATAL)
        spy = QSignalSpy(model.modelReset)
        tools = [ToolView(name="echo", wire_name="s__echo", description="Says it", problem="odd")]
        model.reset([tool_offer(tool) for tool in tools])
        model.reset([tool_offer(tool) for tool in tools])
        assert spy.count() == 1
        assert model.index(0).data() == "echo"
        assert model.index(0).data(Qt.ItemDataRole.AccessibleTextRole) == "echo, odd, Says it"
        assert "s__echo" in model.index(0).data(Role.SEARCH)
        tester.deleteLater()
        model.deleteLater()


class TestParameters:
    def row(self, schema: Any, **root: Any) -> Any:
        return parameters({"properties": {"p": schema}, **root})[0]

    def test_names_types_and_what_is_required(self) -> None:
        rows = parameters(
            {
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "Where"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 9, "default": 5},
                },
                "required": ["path"],
            }
        )
        assert [(row.name, row.type, row.required, row.default) for row in rows] == [
            ("path", "string", True, ""),
            ("limit", "integer", False, "5"),
        ]
        assert rows[0].description == "Where"
        assert rows[1].limits == "1\N{EN DASH}9"

    @pytest.mark.parametrize(
        ("schema", "said"),
        [
            ({"type": ["string", "null"]}, "string | null"),
            ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer | null"),
            ({"type": "array", "items": {"type": "string"}}, "string[]"),
            ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}, "(string | number)[]"),
            ({"type": "array"}, "array"),
            ({"enum": ["a", "b"]}, "enum"),
            ({"properties": {}}, "object"),
            ({}, "any"),
            (True, "any"),
        ],
    )
    def test_types(self, schema: Any, said: str) -> None:
        assert self.row(schema).type == said

    def test_references_are_followed_and_what_stands_beside_them_wins(self) -> None:
        shape = {"type": "string", "description": "general", "default": "x"}
        row = self.row({"$ref": "#/$defs/Shape", "description": "special"}, **{"$defs": {"Shape": shape}})
        assert (row.type, row.description, row.default) == ("string", "special", '"x"')
        assert self.row({"$ref": "#/nowhere"}).type == "any"
        assert self.row({"$ref": "https://example.com/s.json"}).type == "any"

    def test_nested_objects_are_unfolded(self) -> None:
        inner = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
        rows = parameters(
            {"properties": {"one": inner, "many": {"type": "array", "items": inner}, "maybe": {"anyOf": [inner, {}]}}}
        )
        assert [row.name for row in rows] == ["one", "one.id", "many", "many[].id", "maybe", "maybe.id"]
        assert rows[1].required

    def test_a_schema_that_contains_itself_ends(self) -> None:
        node = {
            "properties": {
                "next": {"$ref": "#/$defs/Node"},
                "kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            }
        }
        rows = parameters({"properties": {"root": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}})
        assert 1 < len(rows) <= 500
        json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]}
        assert self.row({"$ref": "#/$defs/Json"}, **{"$defs": {"Json": json}}).type.startswith("string | (string | ")
        assert self.row({"$ref": "#/properties/p"}).type == "any"

    @pytest.mark.parametrize("schema", [None, [], "x", {}, {"properties": []}, {"properties": {"a": 3}}])
    def test_odd_schemas_do_no_harm(self, schema: Any) -> None:
        assert len(parameters(schema)) <= 1

    def test_limits_are_said_in_words(self) -> None:
        assert self.row({"enum": list(range(20))}).limits == "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, …"
        assert self.row({"type": "string", "minLength": 2, "pattern": "^a", "format": "uri"}).limits == (
            "≥ 2 characters; matches ^a; format: uri"
        )
        assert self.row({"type": "number", "exclusiveMinimum": 0}).limits == "> 0"


class TestPayload:
    def test_texts_of_a_result_are_shown_with_their_lines(self) -> None:
        result = '{"content": [{"type": "text", "text": "one\\ntwo"}, {"type": "text", "text": "{\\"a\\": 1}"}]}'
        assert readable(result) == 'one\ntwo\n\n{\n  "a": 1\n}'

    def test_what_is_no_text_is_named(self) -> None:
        image = '{"content": [{"type": "image", "mimeType": "image/png", "data": "AAAAAAAA"}]}'
        assert readable(image) == "[image/png, 6 bytes]"
        assert readable('{"contents": [{"uri": "file:///a", "text": "hi"}, {"uri": "file:///b", "blob": "AAAA"}]}') == (
            "hi\n\n[blob, 3 bytes]"
        )
        assert (
            readable('{"messages": [{"role": "user", "content": {"type": "text", "text": "Do it"}}]}') == "user: Do it"
        )

    @pytest.mark.parametrize("text", ["", "{", "[1]", "null", '{"content": 3}', '{"content": [null]}', "[" * 100_000])
    def test_what_is_no_result_is_not_made_readable(self, text: str) -> None:
        assert readable(text) == ""
        assert isinstance(pretty(text), str)

    def test_json_is_indented_and_other_text_left_alone(self) -> None:
        assert pretty('{"ä":1}') == '{\n  "ä": 1\n}'
        assert pretty('{"cut": "of') == '{"cut": "of'


class TestCalls:
    @pytest.fixture
    async def engine(self, link: HandLink) -> AsyncIterator[FakeEngine]:
        engine = FakeEngine(calls=1000)
        link.hand = engine
        link.connect_by_hand()
        yield engine
        await link.close()

    @pytest.fixture
    async def model(self, link: HandLink, engine: FakeEngine) -> AsyncIterator[CallsModel]:
        model = CallsModel(link)
        tester = QAbstractItemModelTester(model, FATAL)
        await until(lambda: model.is_loaded)
        yield model
        tester.deleteLater()
        model.deleteLater()

    def shown(self, model: CallsModel, rows: range) -> list[CallView | None]:
        return [model.call_at(row) for row in rows]

    async def all_rows(self, model: CallsModel) -> list[CallView]:
        """Every row, read as a person who scrolls through the table."""
        found: list[CallView] = []
        for row in range(model.total):
            await until(lambda row=row: model.call_at(row) is not None)  # type: ignore[misc]
            found.append(model.call_at(row))  # type: ignore[arg-type]
        return found

    async def test_the_end_is_read_first_and_the_rest_when_it_is_looked_at(
        self, model: CallsModel, engine: FakeEngine
    ) -> None:
        assert model.rowCount() == 1000
        assert self.shown(model, range(999, 1000)) == engine.rows[-1:]
        assert model.index(0, 0).data() == "…"
        await until(lambda: model.call_at(0) is not None)
        assert self.shown(model, range(256)) == engine.rows[:256]
        assert sorted(question[1] for question in engine.questions) == [-1, 0]

    async def test_only_some_pages_are_kept(self, model: CallsModel, engine: FakeEngine) -> None:
        model._rows.kept = 2
        assert await self.all_rows(model) == engine.rows
        held = [number for number in range(1, 1001) if model.row_of(number) is not None]
        assert len(held) <= 2 * CallsModel.PAGE
        assert all(model.row_of(number) == number - 1 for number in held)

    async def test_fast_scrolling_asks_only_for_where_it_ends(self, link: HandLink, qapp: QApplication) -> None:
        engine = link.hand = FakeEngine(calls=50_000)
        link.connect_by_hand()
        model = CallsModel(link)
        await until(lambda: model.is_loaded)
        for row in range(0, 40_000, 256):
            model.call_at(row)
        await until(lambda: model.call_at(39_936) is not None)
        assert len(engine.questions) <= 6
        model.deleteLater()
        await link.close()

    async def test_new_calls_come_at_the_end_and_are_completed_in_place(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        inserted, reset = QSignalSpy(model.rowsInserted), QSignalSpy(model.modelReset)
        new = engine.add(3, status="running", duration_ms=None)
        link.callsChanged.emit(new)
        await until(lambda: model.total == 1003)
        assert self.shown(model, range(1000, 1003)) == list(new)
        tails = engine.tails
        done = [engine.change(call, status="completed", duration_ms=5.0) for call in new]
        changed = QSignalSpy(model.dataChanged)
        link.callsChanged.emit(done)
        await until(lambda: self.shown(model, range(1000, 1003)) == done)
        assert changed.count() == 1, "one signal for a batch"
        assert engine.tails == tails, "the news alone suffice for rows that are here"
        assert (inserted.count(), reset.count()) == (1, 0)

    async def test_a_hundred_calls_a_second_are_shown_in_a_few_steps(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        inserted, changed = QSignalSpy(model.rowsInserted), QSignalSpy(model.dataChanged)
        for _ in range(50):
            link.callsChanged.emit(engine.add(2))
            await asyncio.sleep(0)
        await until(lambda: model.total == 1100)
        assert inserted.count() <= 5
        assert changed.count() <= 5

    async def test_an_old_answer_does_not_make_a_finished_call_run_again(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        running = engine.add(1, status="running", duration_ms=None)[0]
        engine.hold = asyncio.Event()
        link.callsChanged.emit([running])
        await until(lambda: engine.tails == 2)
        done = engine.change(running, status="completed", duration_ms=5.0)
        link.callsChanged.emit([done])
        await until(lambda: not model._batch.isActive())
        engine.hold.set()
        await until(lambda: model.total == 1001)
        assert model.call_at(1000) == done
        link.callsChanged.emit([running])
        await until(lambda: not model._batch.isActive())
        assert model.call_at(1000) == done

    async def test_more_news_than_a_page(self, model: CallsModel, engine: FakeEngine, link: HandLink) -> None:
        link.callsChanged.emit(engine.add(700))
        await until(lambda: model.total == 1700)
        assert await self.all_rows(model) == engine.rows

    async def test_rows_that_the_engine_threw_away_disappear(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        assert await self.all_rows(model) == engine.rows
        del engine.rows[:300]
        link.callsChanged.emit(engine.add(5))
        await until(lambda: model.total == 705)
        assert await self.all_rows(model) == engine.rows

    async def test_as_many_rows_gone_as_came_is_noticed(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        del engine.rows[:5]
        link.callsChanged.emit(engine.add(5))
        await until(lambda: model.call_at(999) == engine.rows[-1])
        assert await self.all_rows(model) == engine.rows

    async def test_a_filter_is_the_engines_work(self, model: CallsModel, engine: FakeEngine, link: HandLink) -> None:
        failed = [engine.change(engine.rows[place], status="failed", error="no") for place in (3, 400, 999)]
        model.set_filter(CallFilter(status="failed"))
        assert not model.is_loaded
        await until(lambda: model.is_loaded)
        assert self.shown(model, range(model.total)) == failed
        assert engine.questions[-1][2]["status"] == "failed"
        engine.change(failed[1], status="completed")
        link.callsChanged.emit([engine.rows[400]])
        await until(lambda: model.total == 2)
        assert self.shown(model, range(2)) == [failed[0], failed[2]]

    async def test_the_answer_to_an_old_filter_is_ignored(self, model: CallsModel, engine: FakeEngine) -> None:
        engine.hold = asyncio.Event()
        model.set_filter(CallFilter(server="nowhere"))
        await until(lambda: engine.tails == 2)
        model.set_filter(CallFilter(server="local-tools"))
        await until(lambda: engine.tails == 3)
        engine.hold.set()
        await until(lambda: model.is_loaded)
        assert model.total == 1000

    async def test_pausing_counts_what_is_new(self, model: CallsModel, engine: FakeEngine, link: HandLink) -> None:
        model.set_paused(True)
        unseen: list[int] = []
        model.unseenChanged.connect(unseen.append)
        running = engine.change(engine.rows[-1], status="running")
        link.callsChanged.emit([running, *engine.add(7)])
        await until(lambda: unseen == [7])
        assert model.total == 1000
        assert model.call_at(999) == running, "rows that are shown still change"
        model.set_paused(False)
        await until(lambda: model.total == 1007)
        assert unseen == [7, 0]

    async def test_without_an_engine_rows_stay_and_a_new_connection_reads_what_was_missed(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        reset = QSignalSpy(model.modelReset)
        link.disconnect_by_hand()
        assert model.total == 1000
        model.reload()
        engine.add(2)
        changed = engine.change(engine.rows[0], error="was changed meanwhile")
        link.connect_by_hand()
        await until(lambda: model.total == 1002)
        await until(lambda: model.call_at(0) is not None)
        assert model.call_at(0) == changed
        assert reset.count() == 0, "what a person reads stays in its place"

    async def test_a_failure_is_told_and_the_next_question_still_asked(
        self, model: CallsModel, engine: FakeEngine, link: HandLink
    ) -> None:
        errors: list[CallboardError] = []
        model.failed.connect(errors.append)
        engine.error = CallboardError("internal", "The log is closed.")
        model.reload()
        await until(lambda: errors)
        model.call_at(0)
        await until(lambda: len(errors) == 2)
        engine.error = None
        link.callsChanged.emit(engine.add(1))
        await until(lambda: model.total == 1001)
        await until(lambda: model.call_at(0) is not None)

    async def test_columns(self, model: CallsModel, engine: FakeEngine, link: HandLink) -> None:
        link.callsChanged.emit(
            engine.add(
                1,
                started=time.time() - 3 * 3600 - 60,
                tool="read",
                status="failed",
                error="gone",
                duration_ms=1234.0,
                request_bytes=1024,
                response_bytes=2048,
            )
        )
        await until(lambda: model.total == 1001)
        texts = [model.index(1000, column).data() for column in range(model.columnCount())]
        assert texts == ["3 h ago", "vscode", "local-tools", "read", "Failed", "gone", "1.23 s", formats.size(3072)]
        tip = Qt.ItemDataRole.ToolTipRole
        assert model.headerData(CallsModel.SIZE, Qt.Orientation.Horizontal, tip) == "Arguments and result together"
        assert model.index(1000, CallsModel.STATUS).data(tip) == "gone"
        assert ":" in model.index(1000, CallsModel.TIME).data(tip)
        titles = [model.headerData(column, Qt.Orientation.Horizontal) for column in range(8)]
        assert titles == ["Time", "Client", "Server", "Tool", "Status", "Error", "Duration", "Size"]
        assert (model.clients, model.tools("local-tools")) == (["vscode"], ["echo", "read"])

    async def test_whatever_happens_the_rows_are_those_of_the_log(
        self, model: CallsModel, engine: FakeEngine, link: HandLink, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(CallsModel, "TAIL_MS", 1)
        model._tail_timer.setInterval(1)
        choice = random.Random(7)
        narrowed = CallFilter()
        for _ in range(60):
            match choice.randrange(6):
                case 0 | 1:
                    count = choice.choice([1, 5, 300])
                    link.callsChanged.emit(engine.add(count, status=choice.choice(["running", "completed"])))
                case 2:
                    place = choice.randrange(len(engine.rows))
                    link.callsChanged.emit([engine.change(engine.rows[place], status="failed")])
                case 3:
                    del engine.rows[: choice.randrange(200)]
                    link.callsChanged.emit(engine.add(1))
                case 4:
                    narrowed = choice.choice([CallFilter(), CallFilter(status="failed"), CallFilter(server="none")])
                    model.set_filter(narrowed)
                case 5 if model.total:
                    model.call_at(choice.randrange(model.total))
            await asyncio.sleep(choice.choice([0, 0.002, 0.02]))
        expected = engine.matching(status=narrowed.status, server=narrowed.server)
        await until(lambda: model.is_loaded and model.total == len(expected))
        await until(lambda: not model._batch.isActive() and not model._tail_timer.isActive())
        assert await self.all_rows(model) == expected

    def test_a_filter_is_false_when_it_lets_everything_pass(self) -> None:
        assert not CallFilter()
        assert CallFilter(text="x")
        assert call_view(1).id == 1

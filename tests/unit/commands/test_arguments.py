import io
import sys
from pathlib import Path
from typing import Any

import pytest

from callboard.commands.arguments import UsageError, tool_arguments
from callboard.core.errors import CallboardError

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": "integer"},
        "ratio": {"type": ["number", "null"]},
        "on": {"type": "boolean"},
        "items": {"type": "array", "items": {"type": "string"}},
        "options": {"$ref": "#/$defs/Options"},
        "colour": {"enum": ["red", "1"]},
        "either": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
        "free": {},
        "loop": {"$ref": "#/properties/loop"},
        "away": {"$ref": "https://example.org/schema"},
    },
    "$defs": {"Options": {"type": "object"}},
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=5", "5"),
        ('text="quoted"', '"quoted"'),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("maybe=word", "word"),
        ("maybe=null", None),
        ("maybe=5", "5"),
        ("count=5", 5),
        ("count=12345678901234567890", 12345678901234567890),
        ("count=five", "five"),
        ("count=true", "true"),
        ("ratio=1.5", 1.5),
        ("ratio=2", 2),
        ("on=true", True),
        ("on=yes", "yes"),
        ('items=["a","b"]', ["a", "b"]),
        ("items=a,b", "a,b"),
        ('options={"deep":{"x":1}}', {"deep": {"x": 1}}),
        ("colour=1", "1"),
        ("either=7", 7),
        ("either=seven", "seven"),
        ("either=[1]", "[1]"),
        ("free=5", 5),
        ('free="5"', "5"),
        ("free=word", "word"),
        ("loop=1", 1),
        ("away=1", 1),
        ("unknown={}", {}),
    ],
)
def test_value_is_json_where_the_schema_wants_it(pair: str, value: Any) -> None:
    arguments = tool_arguments([pair], None, SCHEMA)
    assert arguments == {pair.partition("=")[0]: value}
    assert [type(each) for each in arguments.values()] == [type(value)]


@pytest.mark.parametrize("schema", [None, True, {}, {"properties": []}, {"properties": {"a": 1}}])
def test_odd_schema_means_any_value(schema: Any) -> None:
    assert tool_arguments(["a=1", "b=x"], None, schema) == {"a": 1, "b": "x"}


def test_single_arguments_stand_over_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tool_arguments(["text=new"], '{"text":"old","count":1}', SCHEMA) == {"text": "new", "count": 1}
    file = tmp_path / "arguments.json"
    file.write_text('{"text":"ä"}', encoding="utf-8")
    assert tool_arguments([], f"@{file}", SCHEMA) == {"text": "ä"}
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"text":"in"}'))
    assert tool_arguments([], "-", SCHEMA) == {"text": "in"}


@pytest.mark.parametrize(("pairs", "whole"), [(["novalue"], None), (["=x"], None), ([], "{"), ([], "[1]"), ([], "")])
def test_wrong_arguments_are_refused(pairs: list[str], whole: str | None) -> None:
    with pytest.raises(UsageError):
        tool_arguments(pairs, whole, SCHEMA)


def test_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CallboardError) as caught:
        tool_arguments([], f"@{tmp_path}/missing", SCHEMA)
    assert caught.value.code == "bad-request"

"""Any Python value as parts of an answer."""

import dataclasses
import datetime
import decimal
import enum
import uuid
from pathlib import Path
from typing import Any

import pydantic
import pytest

from callboard.agents.contract import (
    Blob,
    Chunk,
    Data,
    Link,
    Progress,
    Text,
    part_from_wire,
    part_to_wire,
)
from callboard.agents.parts import NotPlainError, events_of, media_type_of, plain, yielded


@dataclasses.dataclass
class Point:
    x: int
    when: datetime.date


class Model(pydantic.BaseModel):
    name: str


class Level(enum.IntEnum):
    LOW = 1


class Colour(enum.Enum):
    RED = "red"


class Picture:
    def _repr_png_(self) -> bytes:
        return b"\x89PNG..."


@pytest.mark.parametrize(
    ("value", "events"),
    [
        (None, []),
        ("", [Text("")]),
        ("a", [Text("a")]),
        (b"%PDF-1.7", [Blob(b"%PDF-1.7", "application/pdf")]),
        ({"a": 1}, [Data({"a": 1})]),
        ([1, 2], [Data([1, 2])]),
        ([], [Data([])]),
        (["a", b"\xff\xd8\xff"], [Text("a"), Blob(b"\xff\xd8\xff", "image/jpeg")]),
        ([Text("a"), {"b": 1}], [Text("a"), Data({"b": 1})]),
        (Link("https://a"), [Link("https://a")]),
        (Picture(), [Blob(b"\x89PNG...", "image/png")]),
        (True, [Data(True)]),
        (Point(1, datetime.date(2026, 1, 2)), [Data({"x": 1, "when": "2026-01-02"})]),
        (Model(name="n"), [Data({"name": "n"})]),
    ],
    ids=repr,
)
def test_values(value: Any, events: list[Any]) -> None:
    assert events_of(value) == events


def test_what_has_a_form_in_json() -> None:
    number = uuid.UUID(int=1)
    given = {
        1: (Level.LOW, Colour.RED),
        Colour.RED: {1.5},
        "path": Path("/a/b"),
        "id": number,
        "money": decimal.Decimal("1.10"),
        "time": datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC),
    }
    assert plain(given) == {
        "1": [1, "red"],
        "red": [1.5],
        "path": str(Path("/a/b")),
        "id": str(number),
        "money": "1.10",
        "time": "2026-01-02T00:00:00+00:00",
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (object(), "the value is a object, which has no form in JSON"),
        ({"a": [1, {"b": object()}]}, "a[1].b is a object"),
        ([float("nan")], "[0] is nan, which JSON does not have"),
        (Model, "the value is the class Model"),
        ({(1, 2): 1}, "the value has a tuple as a key"),
        (iter([1]), "the value is a list_iterator"),
    ],
    ids=repr,
)
def test_what_has_none_is_named(value: Any, said: str) -> None:
    with pytest.raises(NotPlainError) as caught:
        plain(value)
    assert said in str(caught.value)
    assert "0x" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "events"),
    [
        ("a", [Chunk("a")]),
        ({"progress": 1, "total": 3, "message": "m"}, [Progress("m", 1.0, 3.0)]),
        ({"progress": "reading"}, [Progress("reading")]),
        ({"progress": 1, "other": 2}, [Data({"progress": 1, "other": 2})]),
    ],
    ids=repr,
)
def test_what_generators_yield(value: Any, events: list[Any]) -> None:
    assert yielded(value) == events


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (b"GIF89a", "image/gif"),
        (b"RIFF....WAVE", "audio/wav"),
        (b"RIFF....WEBP", "image/webp"),
        (b"RIFF....AVI ", "application/octet-stream"),
        (b"", "application/octet-stream"),
    ],
    ids=repr,
)
def test_the_type_of_a_file_by_its_beginning(data: bytes, media_type: str) -> None:
    assert media_type_of(data) == media_type


@pytest.mark.parametrize(
    "part",
    [Text("a"), Blob(b"\0\xff", "a/b", "n"), Link("u", "n", "m", "d"), Data([None], "x/y", "t"), Data({})],
    ids=repr,
)
def test_there_and_back_over_the_pipe(part: Any) -> None:
    assert part_from_wire(part_to_wire(part)) == part


@pytest.mark.parametrize(
    "value", [{}, {"part": "chunk", "text": ""}, {"part": "blob", "data": "*"}, {"part": "text"}], ids=repr
)
def test_what_is_no_part(value: Any) -> None:
    with pytest.raises(ValueError, match="not a part"):
        part_from_wire(value)

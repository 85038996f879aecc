"""From parts to MCP's results."""

import base64
from typing import Any

import pytest

from callboard.agents.contract import Blob, Data, Link, Part, Text
from callboard.agents.results import (
    META_LABEL,
    Kept,
    Result,
    Results,
    Shape,
    Shelf,
    failed,
    finished,
    one_line,
    shaped,
)
from callboard.core.redact import Redactor

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}}


def make(*parts: Part, shape: Shape | None = None, shelf: Shelf | None = None) -> Result:
    shape = shape if shape is not None else Shape("agent")
    return Results(shelf if shelf is not None else Shelf(0)).make(parts, shape, "me")


def test_every_kind_in_its_order() -> None:
    found = make(
        Text("see:"),
        Blob(b"png", "image/png"),
        Blob(b"wav", "audio/wav"),
        Blob(b"%PDF-", "application/pdf", "a b.pdf"),
        Blob(b"a,b", "text/csv", "t.csv"),
        Link("https://a/x", "x", "text/html", "A page"),
        Data({"n": 1}),
    )
    kinds = [block["type"] for block in found.content]
    assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link", "text"]
    assert found.content[1] == {"type": "image", "data": base64.b64encode(b"png").decode(), "mimeType": "image/png"}
    pdf = found.content[3]["resource"]
    assert pdf["uri"].startswith("agent://agent/")
    assert pdf["uri"].endswith("/a%20b.pdf")
    assert base64.b64decode(pdf["blob"]) == b"%PDF-"
    assert found.content[4]["resource"]["text"] == "a,b"
    assert found.content[5]["uri"] == "https://a/x"
    assert found.content[6]["text"] == '{"n": 1}'
    assert found.structured is None


def test_files_have_addresses_of_their_own_and_can_be_read_by_whose_they_are() -> None:
    shelf = Shelf(0)
    first = make(Blob(b"1", "application/pdf"), shelf=shelf).content[0]["resource"]["uri"]
    second = make(Blob(b"2", "application/pdf"), shelf=shelf).content[0]["resource"]["uri"]
    assert first != second
    assert shelf.get(first, "me") == Kept("me", b"1", "application/pdf")
    assert shelf.get(second, "me") == Kept("me", b"2", "application/pdf")
    assert shelf.get(second, "somebody else") is None


def test_the_shelf_is_bounded() -> None:
    shelf = Shelf(10)
    uris = [shelf.put("agent://a", Kept("me", b"12345", "x/y")) for _ in range(4)]
    assert [shelf.get(uri, "me") is not None for uri in uris] == [False, False, True, True]


def test_labelled_replies() -> None:
    value = {"version": "v1.0", "createSurface": {"surfaceId": "s1"}}
    found = make(Data(value, "application/a2ui+json"))
    assert found.structured == value
    assert found.meta == {META_LABEL: "application/a2ui+json"}
    assert found.content == [{"type": "text", "text": '{"version":"v1.0","createSurface":{"surfaceId":"s1"}}'}]


def test_a_labelled_list_stands_under_result_with_the_flag() -> None:
    value = [{"createSurface": {"surfaceId": "s1"}}]
    found = make(Data(value, "application/a2ui+json"))
    assert found.structured == {"result": value}
    assert found.meta == {META_LABEL: "application/a2ui+json", "fastmcp": {"wrap_result": True}}


def test_unlabelled_replies_stay_as_they_were() -> None:
    value = {"version": "v1.0", "createSurface": {"surfaceId": "s1"}}
    found = make(Data(value))
    assert found.content == [{"type": "text", "text": '{"version": "v1.0", "createSurface": {"surfaceId": "s1"}}'}]
    assert (found.structured, found.meta) == (None, {})


def test_a_label_from_the_settings() -> None:
    assert make(Data({"a": 1}), shape=Shape("agent", label="application/x+json")).meta == {
        META_LABEL: "application/x+json"
    }


def test_an_output_schema_asks_for_structured_content() -> None:
    assert make(Data({"n": 1}), shape=Shape("a", OBJECT)).structured == {"n": 1}
    wrapped = make(Data([1]), shape=Shape("a", OBJECT, wrapped=True))
    assert wrapped.structured == {"result": [1]}
    assert wrapped.meta == {"fastmcp": {"wrap_result": True}}
    untyped = make(Data({"n": 1}), shape=Shape("a", OBJECT, wrapped=True, flagged=False))
    assert (untyped.structured, untyped.meta) == ({"result": {"n": 1}}, {})


def test_text_that_is_json_is_structured_content_too() -> None:
    shape = Shape("a", OBJECT)
    assert shaped(make(Text('{"n": 1}'), shape=shape), shape).structured == {"n": 1}
    wrong = shaped(make(Text("no"), shape=shape), shape)
    assert wrong.is_error
    assert "output schema" in wrong.content[-1]["text"]
    text = Shape("a", {"type": "object", "properties": {"result": {"type": "string"}}}, wrapped=True)
    assert shaped(make(Text("1"), shape=text), text).structured == {"result": "1"}


def test_an_answer_that_breaks_the_promise_is_an_error() -> None:
    from callboard.agents.arguments import validator_of

    shape = Shape("a", OBJECT, check=validator_of("a", OBJECT))
    found = shaped(make(Data({"n": "x"}), shape=shape), shape)
    assert found.is_error
    assert found.structured is None
    assert "does not fit this tool's output schema: 'x' is not of type 'integer'" in found.content[-1]["text"]


def test_text_beside_structured_content() -> None:
    assert make(Data({"n": 1}, text="one")).content[0]["text"] == "one"
    assert make(Data({"n": 1}, "a/b", text="")).content == []


def test_a_long_text_is_cut_and_can_be_read_whole() -> None:
    shelf = Shelf(0)
    found = make(Text("x" * 900), Text("y" * 900), shape=Shape("agent", limit=1000), shelf=shelf)
    assert found.content[0]["text"] == "x" * 900
    cut, link = found.content[1:]
    assert cut["text"].startswith("y" * 100 + "… [800 characters more: the whole text is agent://agent/")
    kept = shelf.get(link["uri"], "me")
    assert kept is not None
    assert kept.data == "y" * 900


def test_a_large_file_is_a_link() -> None:
    shelf = Shelf(0)
    (block,) = make(Blob(b"x" * 2000, "application/zip", "a.zip"), shape=Shape("a", limit=1000), shelf=shelf).content
    assert (block["type"], block["name"], block["description"]) == ("resource_link", "a.zip", "2000 bytes")
    assert shelf.get(block["uri"], "me") is not None


def test_nothing_says_so() -> None:
    assert finished(make()).content == [{"type": "text", "text": "(no output)"}]
    assert finished(make(Text(""))).content == [{"type": "text", "text": "(no output)"}]


def test_a_failure_keeps_what_was_said() -> None:
    found = failed("no more", make(Text("so far")))
    assert found.is_error
    assert [block["text"] for block in found.content] == ["so far", "no more"]
    assert failed("").content[0]["text"] == "The agent says that it failed."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kaboom\n  at once", "kaboom at once"),
        ("kaboom secret=/root/x", "kaboom secret=***"),
        ("no file /home/me/secret/place/notes.txt there", "no file …/notes.txt there"),
        (r"no file C:\Users\me\notes.txt", "no file …/notes.txt"),
        ("see https://example.org/a/b", "see https://example.org/a/b"),
        ("token s3cr3t-value is bad", "token *** is bad"),
        ("x" * 1000, "x" * 500 + "…"),
    ],
)
def test_errors_are_one_line_without_secrets_and_places(text: str, line: str) -> None:
    assert one_line(text, Redactor(["s3cr3t-value"])) == line


def test_a_results_values_are_plain() -> None:
    found: dict[str, Any] = {"a": [1, "x", None]}
    assert make(Data(found), shape=Shape("a", OBJECT)).structured == found

"""The form for a call's arguments, and the same as JSON."""

from collections.abc import Iterator
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QSignalSpy, QTest
from PySide6.QtWidgets import QApplication, QComboBox, QLabel, QLineEdit, QPlainTextEdit

from callboard.ui.theme import Theme
from callboard.ui.widgets.argument_form import ArgumentForm

SCHEMA = {
    "properties": {
        "text": {"type": "string", "description": "What to say"},
        "count": {"type": "integer", "default": 3},
        "ratio": {"type": ["number", "null"]},
        "loud": {"type": "boolean"},
        "mode": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"$ref": "#/$defs/Options"},
        "a.b": {"type": "string"},
    },
    "required": ["text", "count"],
    "$defs": {"Options": {"type": "object", "properties": {"deep": {"type": "string"}}}},
}


@pytest.fixture
def form(qapp: QApplication, theme: Theme) -> Iterator[ArgumentForm]:
    form = ArgumentForm(theme)
    form.resize(500, 400)
    form.show_schema(SCHEMA, {})
    form.show()
    yield form
    form.hide()
    form.deleteLater()


def enter(form: ArgumentForm, **texts: str) -> None:
    for name, text in texts.items():
        form._fields[name].set_text(text)


def problems(form: ArgumentForm) -> dict[str, str]:
    return {name: field._problem.text() for name, field in form._fields.items() if field.has_problem}


def test_each_argument_has_an_editor_that_suits_it(form: ArgumentForm) -> None:
    kinds = {name: type(field._edit).__mro__ for name, field in form._fields.items()}
    assert list(kinds) == ["text", "count", "ratio", "loud", "mode", "tags", "options", "a.b"], "what is nested is JSON"
    for name, kind in {"text": QPlainTextEdit, "count": QLineEdit, "loud": QComboBox, "mode": QComboBox}.items():
        assert kind in kinds[name], name
    count = form._fields["count"]._edit
    assert isinstance(count, QLineEdit)
    assert count.placeholderText() == "integer, required, default: 3"
    loud = form._fields["loud"]._edit
    assert isinstance(loud, QComboBox)
    assert loud.currentText() == "boolean, optional"
    assert form._fields["loud"].text == "", "what it is to be is no value"
    assert count.accessibleName() == "count"


def test_values_are_what_the_schema_wants(form: ArgumentForm) -> None:
    enter(form, text="5", count="7", ratio="1.5", loud="true", mode="slow", tags='["a"]', options='{"deep": "x"}')
    assert form.arguments() == {
        "text": "5",
        "count": 7,
        "ratio": 1.5,
        "loud": True,
        "mode": "slow",
        "tags": ["a"],
        "options": {"deep": "x"},
    }
    enter(form, ratio="null", loud="", mode="", tags="", options="")
    assert form.arguments() == {"text": "5", "count": 7, "ratio": None}, "what is empty is left out"


def test_what_is_wrong_is_told_beside_the_field(form: ArgumentForm) -> None:
    enter(form, count="many", tags="[")
    assert form.arguments() is None
    assert problems(form) == {"text": "is required", "count": "must be integer", "tags": "must be array"}
    enter(form, text="x", count="1", tags="")
    assert form.arguments() == {"text": "x", "count": 1}
    assert problems(form) == {}


def test_fields_and_json_are_the_same_arguments(form: ArgumentForm) -> None:
    enter(form, text="two\nlines", count="2")
    assert form.show_raw(True)
    assert form.arguments() == {"text": "two\nlines", "count": 2}
    form._raw.setPlainText('{"text": "changed", "count": 4, "mode": "fast"}')
    assert form.show_raw(False)
    assert (form._fields["text"].text, form._fields["mode"].text) == ("changed", "fast")
    assert form.show_raw(True)
    for wrong, words in (("{", "not JSON"), ("[1]", "JSON object")):
        form._raw.setPlainText(wrong)
        assert not form.show_raw(False), "nothing is lost"
        assert form.arguments() is None
        assert any(words in label.text() for label in form.findChildren(QLabel) if label.isVisible())


def test_keys(form: ArgumentForm) -> None:
    spy = QSignalSpy(form.submitted)
    text = form._fields["text"]._edit
    QTest.keyClick(text, Qt.Key.Key_Return)
    assert (spy.count(), form._fields["text"].text) == (0, "\n")
    QTest.keyClick(text, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(form._fields["count"]._edit, Qt.Key.Key_Return)
    assert spy.count() == 2
    before = text.height()
    enter(form, text="\n" * 4)
    assert text.height() > before, "a text gets the room it needs"


@pytest.mark.parametrize("schema", [None, {}, {"properties": {}}, {"properties": "odd"}, {"type": "object"}, []])
def test_odd_schemas_leave_json(form: ArgumentForm, schema: Any) -> None:
    form.show_schema(schema, {"any": 1})
    assert not form.has_fields
    assert form.arguments() == {}
    assert form.show_raw(True)
    form._raw.setPlainText('{"any": [1]}')
    assert form.arguments() == {"any": [1]}

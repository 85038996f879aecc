"""Rules of the editor that need no screen."""

from typing import Any

import pytest

from callboard.api.schema import FieldProblem
from callboard.core.roster import SERVER_NAME as ROSTER_SERVER_NAME
from callboard.ui.editor import entry_model
from callboard.ui.editor.entry_model import (
    JsonProblem,
    conflicts,
    copy_name,
    free_name,
    get_at,
    has_reference,
    kind_of,
    name_problem,
    number_from,
    object_from,
    pairs_from,
    place_problems,
    referred_secret,
    secrets_in,
    split_command_line,
    with_changes,
)


def test_the_name_rule_is_the_rosters() -> None:
    assert entry_model.SERVER_NAME.pattern == ROSTER_SERVER_NAME.pattern


@pytest.mark.parametrize(
    ("entry", "kind"),
    [({"command": "x"}, "local"), ({"url": "x"}, "remote"), ({"agent": "x"}, "agent"), ({}, "local")],
)
def test_kind(entry: dict[str, Any], kind: str) -> None:
    assert kind_of(entry) == kind


def test_changes_leave_everything_else_as_it_stands() -> None:
    entry = {"command": "npx", "x-note": [1, {"a": 2}], "timeouts": {"start": 5, "odd": 1}, "env": {"A": 1}}
    changed = with_changes(entry, {("command",): "uvx", ("timeouts", "start"): None, ("restart", "max"): 2})
    assert changed == {
        "command": "uvx",
        "x-note": [1, {"a": 2}],
        "timeouts": {"odd": 1},
        "env": {"A": 1},
        "restart": {"max": 2},
    }
    assert list(changed)[:4] == list(entry)
    assert entry["timeouts"] == {"start": 5, "odd": 1}, "the entry itself is not touched"


def test_a_group_that_becomes_empty_goes() -> None:
    assert with_changes({"url": "u", "timeouts": {"call": 1}}, {("timeouts", "call"): None}) == {"url": "u"}
    assert with_changes({"url": "u"}, {("timeouts", "call"): None}) == {"url": "u"}


def test_get_at() -> None:
    assert get_at({"a": {"b": 0}}, ("a", "b")) == 0
    assert get_at({"a": "text"}, ("a", "b")) is None


def test_only_the_same_field_changed_differently_is_a_conflict() -> None:
    base = {"command": "npx", "cwd": "/a", "args": ["1"]}
    theirs = {"command": "bunx", "cwd": "/b", "args": ["1"]}
    mine = {("command",): "uvx", ("cwd",): "/b", ("args",): ["2"]}
    assert conflicts(mine, base, theirs) == [("command",)]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "missing"),
        ("a b", "pattern"),
        ("-a", "pattern"),
        ("a" * 65, "pattern"),
        ("ä", "pattern"),
        ("github", "taken"),
        ("GitHub", "case"),
        ("gitlab", ""),
    ],
)
def test_names(name: str, problem: str) -> None:
    assert name_problem(name, ["github"]) == problem


def test_free_names() -> None:
    assert free_name("x", ["X"]) == "x-2"
    assert copy_name("x", ["x"]) == "x-copy"
    assert copy_name("x", ["x", "x-copy", "x-copy-2"]) == "x-copy-3"
    assert len(copy_name("n" * 64, [])) == 64
    long = copy_name("n" * 64, [copy_name("n" * 64, [])])
    assert len(long) == 64
    assert long.endswith("-2")


def test_references() -> None:
    assert referred_secret("${secret:github-token}") == "github-token"
    assert referred_secret("Bearer ${secret:x}") == ""
    assert referred_secret("${secret:}") == ""
    assert referred_secret(7) == ""
    assert has_reference("a${env:B}")
    assert not has_reference("a$${env:B}")
    entry = {
        "env": {"A": "${secret:one}"},
        "args": ["--t=${secret:two}"],
        "auth": {"type": "bearer", "secret": "three"},
    }
    assert secrets_in(entry) == {"one", "two", "three"}


@pytest.mark.parametrize(
    ("text", "command", "args"),
    [
        ("npx -y @x/server", "npx", ["-y", "@x/server"]),
        ("$ npx -y x", "npx", ["-y", "x"]),
        ("docker run \\\n  -i img", "docker", ["run", "-i", "img"]),
        ("sh -c 'a | b'", "sh", ["-c", "a | b"]),
        ('"/opt/My App/run" ""', "/opt/My App/run", [""]),
        (r'"C:\Program Files\node\npx.cmd" -y C:\data\x', r"C:\Program Files\node\npx.cmd", ["-y", r"C:\data\x"]),
    ],
)
def test_command_lines(text: str, command: str, args: list[str]) -> None:
    line = split_command_line(text)
    assert line is not None
    assert (line.command, line.args, line.shell_word) == (command, args, "")


@pytest.mark.parametrize("text", ["", "npx", "  npx ", "it's one", '"/opt/My App/run"', "A=b"])
def test_what_is_no_command_line(text: str) -> None:
    assert split_command_line(text) is None


def test_a_command_line_with_variables_and_a_pipe() -> None:
    line = split_command_line("A=1 B='x y' uvx tool | tee log")
    assert line is not None
    assert (line.command, line.args, line.env) == ("uvx", ["tool", "|", "tee", "log"], {"A": "1", "B": "x y"})
    assert line.shell_word == "|"
    only = split_command_line("A=1 uvx")
    assert only is not None
    assert (only.command, only.args, only.env) == ("uvx", [], {"A": "1"})


def test_pairs() -> None:
    assert pairs_from("# tokens\nexport A=1\nB = 'x=y'\n\n", "=") == {"A": "1", "B": "x=y"}
    assert pairs_from("X-Key: abc: d", ":") == {"X-Key": "abc: d"}
    assert pairs_from("plain", "=") == {}
    assert pairs_from("A=1\nno pair here", "=") == {}


@pytest.mark.parametrize(
    ("text", "number"),
    [("30", 30), ("0.5", 0.5), ("0,5", 0.5), (" 2.0 ", 2), ("soon", None), ("inf", None), ("nan", None), ("", None)],
)
def test_numbers(text: str, number: float | None) -> None:
    found = number_from(text)
    assert found == number
    assert type(found) is type(number)


def test_json_objects() -> None:
    assert object_from('{"a": [1]}') == {"a": [1]}
    problem = object_from('{"a": 1,\n "b" 2}')
    assert isinstance(problem, JsonProblem)
    assert (problem.line, problem.column) == (2, 6)
    assert object_from("[1]") == JsonProblem()
    assert isinstance(object_from('{"a": NaN}'), JsonProblem), "NaN is not JSON"
    assert isinstance(object_from("[" * 100_000), JsonProblem)


def test_problems_go_to_the_field_they_belong_to() -> None:
    problems = [
        FieldProblem(field="env.A.B", message="1"),
        FieldProblem(field="timeouts.start", message="2"),
        FieldProblem(field="timeouts", message="3"),
        FieldProblem(field="", message="4"),
    ]
    placed, homeless = place_problems(problems, {("env",), ("timeouts", "start")})
    assert placed == {("env",): {"A.B": "1"}, ("timeouts", "start"): {"": "2"}}
    assert [item.message for item in homeless] == ["3", "4"]

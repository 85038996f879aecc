"""Edits of the roster's text: what is asked for happens, and every other byte stays."""

import difflib
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.core.errors import CallboardError
from callboard.core.roster_parse import parse_roster
from callboard.core.roster_text import remove_entry, rename_entry, set_entry
from callboard.core.roster_yaml import read_yaml

ROSTER = """\
# my servers
version: 1   # the format

servers:
  # the first one
  files:   # local
    command: npx   # needs Node
    args:
      - -y
      # which folder
      - "/home/zoë/doc s"
    env: {B: '2', "A": on}
    # nothing after this

  # the remote one
  remote: {url: "https://example.org/mcp", auth: {type: bearer, secret: token}}  # flow

  last:
      agent:   my.agents:One
      params:
          deep: {a: [1, 2]}   # typed
      description: |
        two
        # lines

  # old:
  #   command: gone

gateway:
  port: 4471   # mine
"""
MARKS = ("  files:", "  # the remote", "  remote:", "  last:", "  # old:")
PARTS = [ROSTER[start:end] for start, end in itertools.pairwise(map(ROSTER.index, MARKS))]


def changed_lines(old: str, new: str) -> list[str]:
    """The lines that differ, as "-old" and "+new"."""
    diff = difflib.ndiff(old.splitlines(keepends=True), new.splitlines(keepends=True))
    return [line[0] + line[2:].rstrip("\n") for line in diff if line[0] in "+-"]


def entry(text: str, name: str) -> dict[str, Any]:
    """The entry as written."""
    return parse_roster(text).written[name]


def test_one_changed_field_changes_one_line() -> None:
    new = set_entry(ROSTER, "files", {**entry(ROSTER, "files"), "command": "uvx"})
    assert changed_lines(ROSTER, new) == ["-    command: npx   # needs Node", "+    command: uvx   # needs Node"]


def test_an_entry_saved_as_it_is_changes_nothing() -> None:
    for name, value in parse_roster(ROSTER).written.items():
        assert set_entry(ROSTER, name, value) == ROSTER


def test_a_changed_argument_keeps_the_comments_beside_it() -> None:
    new = set_entry(ROSTER, "files", {**entry(ROSTER, "files"), "args": ["-y", "/tmp", "--", "x: y"]})
    assert changed_lines(ROSTER, new) == [
        '-      - "/home/zoë/doc s"',
        "+      - /tmp",
        "+      - --",
        '+      - "x: y"',
    ]


def test_an_argument_put_first_and_one_taken_out() -> None:
    new = set_entry(ROSTER, "files", {**entry(ROSTER, "files"), "args": ["--quiet", "/home/zoë/doc s"]})
    assert changed_lines(ROSTER, new) == ["-      - -y", "+      - --quiet"]
    new = set_entry(ROSTER, "files", {**entry(ROSTER, "files"), "args": ["--quiet", "-y", "/home/zoë/doc s"]})
    assert changed_lines(ROSTER, new) == ["+      - --quiet"]


def test_added_and_dropped_fields() -> None:
    old = entry(ROSTER, "files")
    new = set_entry(ROSTER, "files", {**{k: v for k, v in old.items() if k != "env"}, "enabled": False})
    assert changed_lines(ROSTER, new) == ["-    env: {B: '2', \"A\": on}", "+    enabled: false"]


def test_a_nested_value_in_a_deep_mapping() -> None:
    old = entry(ROSTER, "last")
    new = set_entry(ROSTER, "last", {**old, "params": {"deep": {"a": [1, 2]}, "silent": True}})
    assert changed_lines(ROSTER, new) == ["+          silent: true"]


def test_a_flow_entry_stays_on_its_line_with_its_comment() -> None:
    new = set_entry(ROSTER, "remote", {"url": "https://example.org/other"})
    assert changed_lines(ROSTER, new)[1] == "+  remote: {url: https://example.org/other}  # flow"


def test_a_new_entry_goes_to_the_end() -> None:
    new = set_entry(ROSTER, "added", {"command": "${python}", "args": ["-m", "x"], "env": {"PORT": 8080, "E": ""}})
    assert changed_lines(ROSTER, new) == [
        "+  added:",
        "+    command: ${python}",
        "+    args: [-m, x]",
        "+    env:",
        '+      PORT: "8080"',
        '+      E: ""',
        "+",
    ]
    assert list(parse_roster(new).servers) == ["files", "remote", "last", "added"]
    assert "  # old:\n  #   command: gone\n\ngateway:" in new
    assert remove_entry(new, "added") == ROSTER


def test_removing_takes_the_comment_above_and_the_ones_inside() -> None:
    new = remove_entry(ROSTER, "files")
    assert "the first one" not in new
    assert "nothing after this" not in new
    assert new.startswith("# my servers\nversion: 1   # the format\n\nservers:\n  # the remote one\n  remote: {")
    assert new.endswith(ROSTER[ROSTER.index("  remote:") :])


def test_the_last_entry_removed_leaves_a_roster_without_servers() -> None:
    text = ROSTER
    for name in ("remote", "files", "last"):
        text = remove_entry(text, name)
    assert parse_roster(text).servers == {}
    assert "port: 4471   # mine" in text
    again = set_entry(text, "x", {"command": "y"})
    assert changed_lines(text, again) == ["+  x:", "+    command: y"]


def test_renaming_changes_the_name_alone() -> None:
    assert rename_entry(ROSTER, "files", "docs") == ROSTER.replace("  files:   #", "  docs:   #")


def test_crlf_stays_crlf() -> None:
    text = ROSTER.replace("\n", "\r\n")
    for edit in (
        lambda t: set_entry(t, "added", {"command": "a", "env": {"K": "v"}}),
        lambda t: set_entry(t, "files", {**entry(ROSTER, "files"), "command": "uvx", "args": ["-y", "a", "b"]}),
        lambda t: remove_entry(t, "remote"),
    ):
        new = edit(text)
        assert new.replace("\r\n", "\n").count("\r") == 0
        assert "\n" not in new.replace("\r\n", "")
        assert new.replace("\r\n", "\n") == edit(ROSTER)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "servers:\n  x:\n    command: y\n"),
        ("# only a comment", "# only a comment\n\nservers:\n  x:\n    command: y"),
        ("version: 1\n", "version: 1\n\nservers:\n  x:\n    command: y\n"),
        ("servers:", "servers:\n  x:\n    command: y"),
        ("servers: # none yet\nversion: 1\n", "servers: # none yet\n  x:\n    command: y\nversion: 1\n"),
        ("servers: {}\n", "servers:\n  x:\n    command: y\n"),
        ("{version: 1, servers: {}}", "{version: 1, servers: {x: {command: y}}}"),
        ("servers: ~ # none\n", "servers: # none\n  x:\n    command: y\n"),
        ("{servers: {a: {url: 'http://a'}}}", "{servers: {a: {url: 'http://a'}, x: {command: y}}}"),
        ("\ufeffservers:\n  a: {command: b}", "servers:\n  a: {command: b}\n\n  x:\n    command: y"),
    ],
)
def test_adding_to_rosters_of_every_shape(text: str, expected: str) -> None:
    assert set_entry(text, "x", {"command": "y"}) == expected


def test_flow_entries_can_be_removed_from_either_end() -> None:
    text = "servers: {a: {command: x}, b: {command: y}}\n"
    assert remove_entry(text, "a") == "servers: {b: {command: y}}\n"
    assert remove_entry(text, "b") == "servers: {a: {command: x}}\n"


def test_empty_fields_are_filled_in_place() -> None:
    text = "servers:\n  a:\n    command: x\n    env:   # nothing yet\n    cwd:\n"
    new = set_entry(text, "a", {"command": "x", "env": {"K": "v"}, "cwd": "/tmp"})
    assert new == "servers:\n  a:\n    command: x\n    env:   # nothing yet\n      K: v\n    cwd: /tmp\n"


def test_an_entry_that_others_share_is_written_out_where_it_is_used() -> None:
    text = "servers:\n  a: &a {command: x, args: [1]}\n  b: *a\n  c:\n    <<: *a\n    args: [2]\n"
    new = set_entry(text, "b", {"command": "y"})
    assert new == "servers:\n  a: &a {command: x, args: [1]}\n  b:\n    command: y\n  c:\n    <<: *a\n    args: [2]\n"
    new = set_entry(text, "c", {"command": "x", "args": ["3"]})
    assert changed_lines(text, new) == ["-    args: [2]", '+    args: ["3"]']
    new = set_entry(text, "c", {"command": "z", "args": ["2"]})
    assert changed_lines(text, new) == ["+    command: z"]
    new = set_entry(text, "c", {"args": ["2"], "url": "http://x"})
    assert parse_yaml_servers(new)["c"] == {"args": ["2"], "url": "http://x"}


def parse_yaml_servers(text: str) -> dict[str, Any]:
    """Entries as written, right or wrong."""
    return dict(read_yaml(text).value["servers"] or {})


def test_an_entry_whose_anchor_is_used_elsewhere_is_not_touched() -> None:
    text = "servers:\n  a: &a\n    command: x\n  b: *a\n"
    with pytest.raises(CallboardError, match="cannot be changed from here") as caught:
        set_entry(text, "a", {"command": "y"})
    assert caught.value.code == "roster-uneditable"
    with pytest.raises(CallboardError):
        remove_entry(text, "a")


texts = st.text(st.characters(codec="utf-8"), max_size=12)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,8}", fullmatch=True)
params = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {"command": texts},
    optional={
        "args": st.lists(texts, max_size=4),
        "env": st.dictionaries(texts, texts, max_size=3),
        "description": texts,
        "enabled": st.booleans(),
        "params": st.dictionaries(texts, params, max_size=3),
    },
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(names, entries), min_size=1, max_size=6),
    st.sampled_from([ROSTER, "", ROSTER.replace("\n", "\r\n")]),
)
def test_any_sequence_of_edits_says_what_was_asked_and_keeps_the_rest(
    edits: list[tuple[str, dict[str, Any]]], text: str
) -> None:
    comments = [line for line in text.splitlines() if line.startswith("#") or "# mine" in line]
    expected = parse_yaml_servers(text) if text else {}
    untouched = [part for part in PARTS if text == ROSTER and part.split(":")[0].strip() not in dict(edits)]
    for name, value in edits:
        text = set_entry(text, name, value)
        expected[name] = value
        assert parse_yaml_servers(text) == expected
    assert all(part in text for part in untouched)
    assert [line for line in text.splitlines() if line.startswith("#") or "# mine" in line] == comments
    for name in dict(edits):
        text = remove_entry(text, name)
        del expected[name]
        assert parse_yaml_servers(text) == expected


@pytest.mark.parametrize("number", [1e-05, 1e22, 1.5e300, -2e-09, 0.1, 3.0])
def test_a_number_reads_back_as_itself(number: float) -> None:
    text = set_entry("version: 1\nservers: {}\n", "greeter", {"agent": "a:b", "params": {"rate": number}})
    assert parse_roster(text).written["greeter"]["params"] == {"rate": number}


# ---- clients, profiles and the policy

RULES = """\
# top
policy: {deny: ["*.rm"]}   # for all

clients:
  # mine
  vscode:
    policy:
      allow: [git.*]   # the tools I use
    x: 1
"""


def test_other_sections_are_edited_with_the_same_care() -> None:
    changed = set_entry(RULES, "vscode", {"policy": {"allow": ["git.*", "files.*"]}, "x": 1}, "clients")
    assert changed_lines(RULES, changed) == [
        "-      allow: [git.*]   # the tools I use",
        "+      allow: [git.*, files.*]   # the tools I use",
    ]
    policy = set_entry(RULES, "policy", {"deny": ["*.rm"], "ask_seconds": 30.0, "read_only": True}, "")
    assert changed_lines(RULES, policy) == [
        '-policy: {deny: ["*.rm"]}   # for all',
        '+policy: {deny: ["*.rm"], ask_seconds: 30.0, read_only: true}   # for all',
    ]
    assert remove_entry(RULES, "policy", "") == RULES.replace('# top\npolicy: {deny: ["*.rm"]}   # for all\n\n', "")


def test_a_section_that_is_not_there_is_begun() -> None:
    text = set_entry(ROSTER, "work", {"servers": ["files"], "description": None}, "profiles")
    assert text == ROSTER + "\nprofiles:\n  work:\n    servers: [files]\n"
    text = set_entry(ROSTER, "policy", {"deny": ["*.rm"]}, "")
    assert text == ROSTER + '\npolicy:\n  deny: ["*.rm"]\n'
    assert set_entry("", "a", {"max_result_chars": 500}, "clients") == "clients:\n  a:\n    max_result_chars: 500\n"


def test_a_section_may_become_empty_and_be_filled_again() -> None:
    emptied = remove_entry(RULES, "vscode", "clients")
    assert read_yaml(emptied).value["clients"] is None
    filled = set_entry(emptied, "cursor", {"profile": "work"}, "clients")
    assert read_yaml(filled).value["clients"] == {"cursor": {"profile": "work"}}
    assert "# for all" in filled


def test_numbers_keep_their_type_where_a_server_would_have_text() -> None:
    text = set_entry(RULES, "vscode", {"max_result_chars": 8000, "policy": {"read_only": False}}, "clients")
    assert read_yaml(text).value["clients"]["vscode"] == {"max_result_chars": 8000, "policy": {"read_only": False}}

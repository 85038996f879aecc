"""Reading a roster: what is accepted, what is refused, and with which place and words."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.core.roster import AgentEntry, LocalEntry, RemoteEntry
from callboard.core.roster_parse import check_entry, name_problem, parse_roster
from callboard.core.roster_yaml import MAX_CHARS, RosterError
from callboard.system.resources import resource

FULL = """\
version: 1
x-mine: &common {DEBUG: on, PORT: 8080, VERSION: 1.10, MODE: 0755, DAY: 2024-01-31, EMPTY: ''}
servers:
  local:
    display_name: A local one
    description: 2024
    enabled: no
    start: on-demand
    command: ${python}
    args: [-m, x, 1.50, true, 0x10, "", '${env:HOME}/a']
    env: *common
    cwd: ~
    timeouts: {start: 10, call: 1.5, idle: 600}
    restart: {max: 0, delay: 0.5}
    sharing: per-client
    tools:
      allow: ["read_*"]
      deny: [write]
      rename: {read_file: read}
      aliases: {"*": {app_dir: appPath}}
  remote:
    url: https://example.org:8443/mcp
    headers: {X-Team: 7}
    auth: {type: bearer, secret: token}
    transport: sse
  agent:
    agent: my.module:Agent
    python: ~/venv/bin/python
    params: {flag: yes, n: 3, ratio: 0.5, text: 12:30, none: ~, list: [1, a], 5: five}
    expose: [one, '!two']
gateway: {port: 0, auth: open, hosts: [box.local, 10]}
log: {max_age_days: 7, max_size_mb: 100, payload_kb: 16}
"""


def test_everything_at_once() -> None:
    roster = parse_roster(FULL)
    local, remote, agent = roster.servers.values()
    assert isinstance(local, LocalEntry)
    assert local.args == ["-m", "x", "1.50", "true", "0x10", "", "${env:HOME}/a"]
    assert local.env == {
        "DEBUG": "on",
        "PORT": "8080",
        "VERSION": "1.10",
        "MODE": "0755",
        "DAY": "2024-01-31",
        "EMPTY": "",
    }
    assert (local.description, local.cwd, local.enabled, local.start) == ("2024", "~", False, "on-demand")
    assert (local.timeouts.start, local.timeouts.call, local.timeouts.idle) == (10, 1.5, 600)
    assert (local.restart.max, local.restart.delay, local.sharing) == (0, 0.5, "per-client")
    assert local.tools.aliases == {"*": {"app_dir": "appPath"}}
    assert isinstance(remote, RemoteEntry)
    assert remote.headers == {"X-Team": "7"}
    assert (remote.auth.type, remote.transport) == ("bearer", "sse")
    assert isinstance(agent, AgentEntry)
    assert agent.params == {
        "flag": True,
        "n": 3,
        "ratio": 0.5,
        "text": "12:30",
        "none": None,
        "list": [1, "a"],
        "5": "five",
    }
    assert agent.expose == ["one", "!two"]
    assert (roster.settings.gateway.port, roster.settings.gateway.hosts) == (0, ["box.local", "10"])
    assert roster.settings.log.payload_kb == 16
    assert list(roster.written) == ["local", "remote", "agent"]
    assert roster.written["remote"]["auth"] == {"type": "bearer", "secret": "token"}


@pytest.mark.parametrize(
    "text", ["", "\n", "# only a comment\n", "---\n", "servers:\n", "servers: {}\n", "\ufeffversion: 1\n"]
)
def test_a_roster_without_servers(text: str) -> None:
    roster = parse_roster(text)
    assert roster.servers == {}
    assert (roster.settings.gateway.port, roster.settings.gateway.auth) == (4470, "token")


def test_defaults() -> None:
    entry = parse_roster("servers:\n  a:\n    command: x\n    env:\n    cwd:\n").servers["a"]
    assert isinstance(entry, LocalEntry)
    assert (entry.enabled, entry.start, entry.sharing, entry.env, entry.cwd) == (True, "at-launch", "shared", {}, "")
    assert (entry.timeouts.start, entry.timeouts.call, entry.timeouts.idle) == (30, 300, None)
    assert (entry.restart.max, entry.restart.delay) == (5, 1)
    assert entry.tools.allow is None


def test_the_starter_roster() -> None:
    roster = parse_roster(resource("starter-roster.yaml").read_text(encoding="utf-8"))
    assert roster.written == {
        "local-tools": {
            "display_name": "Local tools",
            "command": "${python}",
            "args": ["-m", "callboard.servers.local_tools"],
        }
    }


def test_merge_keys_and_aliases() -> None:
    roster = parse_roster("servers:\n  a: &a {command: x, args: [1]}\n  b: {<<: *a, args: [2]}\n  c: *a\n")
    assert roster.written["b"] == {"command": "x", "args": ["2"]}
    assert roster.servers["c"] == roster.servers["a"]


@pytest.mark.parametrize(
    ("text", "code", "line", "column", "part"),
    [
        ("servers: [\n", "roster-unreadable", 2, 1, "expected"),
        ("servers:\n\ta: 1\n", "roster-unreadable", 2, 1, "a tab"),
        ("servers:\n  a: {command: ${python}}\n", "roster-unreadable", 2, 17, "a reference needs quotes"),
        ("a: \x01\n", "roster-unreadable", 1, 4, "control character"),
        ("a: 1\n---\nb: 1\n", "roster-unreadable", 2, 1, "document"),
        ("[" * 5000, "roster-unreadable", 1, 1001, "depth"),
        ("a: &a [*a]\n", "roster-invalid", 1, 4, "contains itself"),
        ("a: !thing 1\n", "roster-invalid", 1, 4, "tag"),
        ("- a\n", "roster-invalid", 1, 1, "servers:"),
        ("servers:\n  a: {command: x}\n  a: {command: y}\n", "roster-invalid", 3, 3, "stands twice"),
        ("servers:\n  A: {command: x}\n  a: {command: y}\n", "roster-invalid", 3, 3, "only by upper and lower case"),
        ("servers:\n  a.b: {command: x}\n", "roster-invalid", 2, 3, "1 to 64 letters"),
        ("servers:\n  a: x\n", "roster-invalid", 2, 6, "must be a mapping"),
        ("servers: [a]\n", "roster-invalid", 1, 10, "must be a mapping"),
        ("server: {}\n", "roster-invalid", 1, 1, "did you mean servers"),
        ("mcpServers: {}\n", "roster-invalid", 1, 1, "did you mean servers"),
        ("version: 2\n", "roster-invalid", 1, 10, "must be 1"),
        ("gateway: {prot: 1}\n", "roster-invalid", 1, 11, "did you mean port"),
        ("gateway: {port: 99999}\n", "roster-invalid", 1, 17, "at most 65535"),
        ("gateway: {auth: none}\n", "roster-invalid", 1, 17, "must be one of token and open"),
        ("log: {payload_kb: 1.5}\n", "roster-invalid", 1, 19, "whole number"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, code: str, line: int, column: int, part: str) -> None:
    with pytest.raises(RosterError) as caught:
        parse_roster(text)
    error = caught.value
    assert part in error.message
    assert (error.code, error.line, error.column) == (code, line, column)
    assert (error.data["line"], error.data["column"]) == (line, column)


@pytest.mark.parametrize(
    ("kind", "field", "column", "part"),
    [
        ("comand: x", "", 5, "servers.a.comand is not a field here; did you mean command"),
        ("enabled: true", "", 3, "needs one of command, url and agent"),
        ("command: ''", "", 14, "must not be empty"),
        ("command: x", "url: http://h/", 5, "stands beside command"),
        ("command: x", "args: -m", 11, "must be a list, like [-m]"),
        ("command: x", "args: [a, ~]", 15, 'write "" for an empty one'),
        ("command: x", "env: {A: }", 14, "has no value"),
        ("command: x", "env: {A=B: c}", 11, "is not a name"),
        ("command: x", "env: {A: 1, A: 2}", 17, '"A" stands twice'),
        ("command: x", "env: [A]", 10, "must be a mapping"),
        ("command: x", "env: {A: '${HOME}'}", 14, "perhaps ${env:HOME}"),
        ("command: x", "enabled: maybe", 14, "true or false"),
        ("command: x", "start: at-lunch", 12, "did you mean at-launch"),
        ("command: x", "timeouts: {start: 0}", 23, "more than 0"),
        ("command: x", "timeouts: {strat: 1}", 16, "did you mean start"),
        ("command: x", "timeouts: 5", 15, "must be a mapping"),
        ("command: x", "headers: {}", 5, "not a field of a server with a command"),
        ("url: htp://x", "", 10, "http:// or https://"),
        ("url: http://h:port/", "", 10, "not a valid address"),
        ("url: http://h", "auth: {type: bearr}", 18, "did you mean bearer"),
        ("url: http://h", "auth: {type: bearer}", 11, "auth.secret is missing"),
        ("url: http://h", "auth: {secret: x}", 11, "auth.type is missing"),
        ("url: http://h", "auth: {type: none, secrt: x}", 24, "did you mean secret"),
        ("url: http://h", "auth: {type: bearer, secret: a b}", 34, "secret's name"),
        ("url: http://h", "auth: {type: oauth, grant: client-credentials}", 11, "needs client_id and secret"),
        ("url: http://h", "auth: {type: oauth, secret: x}", 11, "needs client_id where"),
        ("url: http://h", "auth: {type: oauth, issuer: a}", 33, "http:// or https://"),
        ("url: http://h", "auth: {type: oauth, client_metadata: 'https://a/'}", 42, "has a path"),
        ("url: http://h", "auth: {type: oauth, scopes: ['a b']}", 34, "one scope"),
        ("url: http://h", "headers: {'a b': c}", 15, "not a name that a header"),
        ("url: http://h", 'headers: {A: "b\\nc"}', 18, "must be one line"),
        ("agent: m:A", "expose: some", 13, '"auto", "tools", "whole" or a list'),
        ("agent: m:A", "params: {a: ['${secret:}']}", 18, "does not name a secret"),
        ("agent: []", "", 12, "must name an agent"),
        ("agent: m:A", "aliases: docker", 14, "gaia"),
        ("agent: m:A", "aliases: {a: [b]}", 14, "the argument that it stands for"),
        ("agent: m:A", "limits: {turn: 3}", 14, "turns"),
        ("agent: m:A", "limits: {turns: -1}", 21, "must be at least 0"),
    ],
)
def test_mistakes_in_an_entry(kind: str, field: str, column: int, part: str) -> None:
    with pytest.raises(RosterError) as caught:
        parse_roster(f"servers:\n  a:\n    {kind}\n" + (f"    {field}\n" if field else ""))
    error = caught.value
    assert part in error.message
    assert (error.line, error.column) == (2 if column == 3 else 4 if field else 3, column)


def test_the_first_mistake_in_the_file_is_told_and_the_others_counted() -> None:
    with pytest.raises(RosterError, match=r"servers\.a\.x is not a field.*\(and 2 more mistakes\)") as caught:
        parse_roster("servers:\n  a: {x: 1, command: y}\n  b: {command: 1, args: 2}\ngateway: {port: x}\n")
    assert caught.value.field == "servers.a.x"


def test_input_that_would_grow_without_bounds_is_refused() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 9):
        bomb += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    with pytest.raises(RosterError, match="too large"):
        parse_roster(bomb)
    with pytest.raises(RosterError, match="larger than"):
        parse_roster("#" * (MAX_CHARS + 1))


def test_values_from_the_api_become_text_where_that_is_clear() -> None:
    entry, problems = check_entry({"command": "x", "args": [1, True, "a"], "env": {"PORT": 8080, "D": False}})
    assert isinstance(entry, LocalEntry)
    assert (entry.args, entry.env) == (["1", "true", "a"], {"PORT": "8080", "D": "false"})
    _, problems = check_entry({"command": "x", "args": [1.1], "env": {"A": None, "B": [1], "C": "\0"}})
    assert {problem.field: problem.text for problem in problems} == {
        "args.0": 'Must be in quotes, because a number can be spelled in more than one way ("1.10").',
        "env.A": 'Has no value; write "" for an empty one.',
        "env.B": "Must be text.",
        "env.C": "Must not contain a NUL character.",
    }


@pytest.mark.parametrize(
    ("raw", "field"), [(None, ""), ([], ""), ({}, ""), ({"command": 5.5}, "command"), ({"url": []}, "url")]
)
def test_entries_that_are_none(raw: Any, field: str) -> None:
    entry, problems = check_entry(raw)
    assert entry is None
    assert [problem.field for problem in problems] == [field]


def test_equal_entries_are_equal_and_changed_ones_are_not() -> None:
    one, _ = check_entry({"command": "x", "env": {"A": "1"}})
    same, _ = check_entry({"command": "x", "env": {"A": 1}, "enabled": True})
    other, _ = check_entry({"command": "x", "env": {"A": "2"}})
    assert one == same
    assert one != other


def test_server_names() -> None:
    for good in ("a", "A-1_b", "0", "x" * 64):
        assert name_problem(good) is None
    for bad in ("", "-a", "_a", "a.b", "a b", "é", "a/b", "x" * 65, ".."):
        assert name_problem(bad)
    assert name_problem("a", ["b", "a"]) == "is taken"
    assert name_problem("A", ["a"]) == 'differs from "a" only by upper and lower case'


@settings(max_examples=200, deadline=None)
@given(st.text("ab: -[]{}&*!|>'\"#%@\n\t\\,?~<1.", max_size=80))
def test_any_text_is_a_roster_or_an_error_with_a_place(text: str) -> None:
    problem = None
    try:
        parse_roster(text)
    except RosterError as error:
        problem = error
    assert problem is None or (problem.line >= 1 and problem.column >= 1 and problem.message.endswith("."))

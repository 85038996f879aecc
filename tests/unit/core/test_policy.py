"""Who may use what: the order of the rules, what tools declare, and what is said of servers without looking at them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.core.policy import Hints, Policy, Verdict
from callboard.core.policy_shapes import DefaultPolicy, Profile, Rules
from callboard.core.roster_parse import parse_roster
from callboard.core.roster_yaml import RosterError

READS = Hints.of({"readOnlyHint": True})
DESTROYS = Hints.of({"destructiveHint": True})
WRITES = Hints.of({"readOnlyHint": False, "destructiveHint": False})
SILENT = Hints.of({"title": "no hint"})
UNLISTED = Hints(is_listed=False)


def effect(rules: Rules, server: str, name: str, hints: Hints = SILENT, kind: Any = "tool", profile: Any = None) -> str:
    return Policy(rules, profile).decide(kind, server, name, hints).effect


@pytest.mark.parametrize(
    ("annotations", "destructive", "undeclared"),
    [
        (None, False, True),
        ({}, False, True),
        ({"readOnlyHint": "yes", "destructiveHint": 1}, False, True),
        ({"readOnlyHint": False}, True, False),
        ({"readOnlyHint": True}, False, False),
        ({"destructiveHint": True}, True, False),
        ({"destructiveHint": False}, False, False),
        ({"readOnlyHint": True, "destructiveHint": True}, False, False),
        ({"readOnlyHint": False, "destructiveHint": False}, False, False),
    ],
)
def test_what_a_tool_declares(annotations: Any, destructive: bool, undeclared: bool) -> None:
    hints = Hints.of(annotations)
    assert (hints.is_destructive, hints.is_undeclared) == (destructive, undeclared)


def test_out_of_the_box_all_is_allowed_and_what_destroys_asks() -> None:
    rules = DefaultPolicy()
    assert [effect(rules, "a", "t", hints) for hints in (READS, WRITES, SILENT, DESTROYS, UNLISTED)] == [
        *("allow", "allow", "allow"),
        *("ask", "ask"),
    ]
    assert effect(rules, "a", "u://x", kind="resource") == effect(rules, "a", "p", kind="prompt") == "allow"
    assert Policy(rules).is_open
    assert Policy(rules).covers("a")


def test_a_policy_without_rules_denies_everything() -> None:
    assert Policy(Rules()).decide("tool", "a", "t") == Verdict("deny", "is not allowed")
    assert not Policy(Rules()).may_use("a")


def test_deny_goes_before_allow_and_ask() -> None:
    rules = Rules(allow=["*"], deny=["*.delete_*", "prompt:a.*"], ask=["a.delete_all", "a.x"])
    assert effect(rules, "a", "delete_all") == "deny"
    assert effect(rules, "a", "x") == "ask"
    assert effect(rules, "a", "greet", kind="prompt") == "deny"
    assert effect(rules, "a", "greet") == "allow"
    assert effect(rules, "b", "greet", kind="prompt") == "allow"


def test_what_is_only_asked_for_need_not_be_allowed_too() -> None:
    rules = Rules(allow=["a.read"], ask=["a.*"])
    assert effect(rules, "a", "write") == "ask"
    assert effect(rules, "a", "read") == "ask"
    assert effect(rules, "b", "write") == "deny"


def test_read_only_trusts_nothing_but_the_declaration() -> None:
    rules = Rules(allow=["*"], read_only=True, ask=[])
    assert [effect(rules, "a", "t", hints) for hints in (READS, WRITES, SILENT, DESTROYS, UNLISTED)] == [
        "allow",
        *("deny",) * 4,
    ]
    assert effect(rules, "a", "u://x", kind="resource") == "allow"
    assert not Policy(rules).covers("a")


def test_words_of_ask() -> None:
    rules = Rules(allow=["*"], ask=["undeclared"])
    assert [effect(rules, "a", "t", hints) for hints in (SILENT, DESTROYS, READS)] == ["ask", "allow", "allow"]


def test_a_tool_that_is_allowed_by_its_full_name_is_not_asked_for_by_a_word() -> None:
    for named in ("a.t", "tool:a.t"):
        rules = Rules(allow=["*", named], ask=["destructive", "undeclared"])
        assert [effect(rules, "a", "t", hints) for hints in (SILENT, DESTROYS, UNLISTED)] == ["allow"] * 3
        assert effect(rules, "a", "u", DESTROYS) == "ask"
    for pattern in ("a.*", "a.?", "a.[t]", "prompt:a.t"):
        assert effect(Rules(allow=["*", pattern]), "a", "t", DESTROYS) == "ask", pattern
    # what is written for it by hand goes before
    assert effect(Rules(allow=["a.t"], ask=["a.*"]), "a", "t", DESTROYS) == "ask"
    assert effect(Rules(allow=["a.t"], deny=["a.*"]), "a", "t", DESTROYS) == "deny"
    assert effect(Rules(allow=["a.t"], read_only=True), "a", "t", DESTROYS) == "deny"


def test_a_profile_narrows_and_never_widens() -> None:
    profile = Profile(servers=["a"], tools=["b.t", "resource:c.*"], deny=["a.no"])
    everything = Rules(allow=["*"], ask=[])
    assert [effect(everything, *each.split("."), profile=profile) for each in ("a.x", "a.no", "b.t", "b.u", "c.t")] == [
        *("allow", "deny", "allow", "deny", "deny")
    ]
    assert effect(everything, "c", "u://1", kind="resource", profile=profile) == "allow"
    assert effect(Rules(allow=["b.*"]), "a", "x", profile=profile) == "deny"
    policy = Policy(everything, profile)
    assert [policy.may_use(server) for server in "abcd"] == [True, True, True, False]
    assert not policy.is_open
    assert [policy.covers(server) for server in "ab"] == [False, False]


DOCS = Rules(allow=["resource:v.file:///docs/*"], deny=["v.file:///docs/secret*"])


@pytest.mark.parametrize(
    "uri",
    [
        *("file:///docs/../etc/passwd", "file:///docs/%2e%2e/etc/passwd", "file:///docs/.%2E/x", "file:///docs/..%2Fx"),
        *(
            "file:///docs/..%5cx",
            "file:///docs/..\\x",
            "file:///docs/./secret1",
            "file:///docs/x/..",
            "file:///docs/..;a/x",
        ),
        *("file:///docs/.\t./etc", "file:///docs/x?/../../etc", "file:///etc/passwd"),
        *("file:///docs/secret1", "file:///docs/%73ecret1", "FILE:///docs/secret1", "file://localhost/docs/secret1"),
        *("file:/docs/secret1", "file:///docs//secret1", "file:////docs/secret1", "file:///docs%2Fsecret1"),
    ],
)
def test_a_uri_is_not_spelled_around_a_pattern(uri: str) -> None:
    assert effect(DOCS, "v", uri, kind="resource") == "deny"
    assert effect(Rules(allow=["*"], deny=[*DOCS.deny, "v.file:///etc/*"]), "v", uri, kind="resource") == "deny"


@pytest.mark.parametrize(
    ("pattern", "uri"),
    [
        ("a.https://Example.com/%7Euser/*", "https://example.COM/~user/x"),
        ("a.HTTPS://example.com/%c3%a9*", "https://example.com/%C3%A9t%C3%A9"),
        ("a.https://web/http://other/*", "https://web/http://other/x"),
        ("a.file:///docs/*", "file:///docs/a..b/...x/.hidden?q=1.2"),
        ("*.file:///docs/*", "file:///docs/{path}"),
        ("a.doc:x", "DOC:x"),
        ("resource:*", "doc://one/readme"),
    ],
)
def test_spellings_of_one_uri_are_one(pattern: str, uri: str) -> None:
    assert effect(Rules(allow=[pattern]), "a", uri, kind="resource") == "allow"
    assert effect(Rules(allow=["*"], deny=[pattern]), "a", uri, kind="resource") == "deny"
    assert effect(Rules(allow=["*"], ask=[pattern]), "a", uri, kind="resource") == "ask"


def test_a_path_with_dots_is_the_servers_affair_where_no_pattern_decides() -> None:
    for rules in (DefaultPolicy(), Rules(allow=["a.*"], deny=["b.*"]), Rules(allow=["*"], read_only=True)):
        assert effect(rules, "a", "file:///docs/../x", kind="resource") == "allow"
    assert effect(Rules(allow=["a.x/../y"]), "a", "x/../y") == "allow"  # a tool may be called so


@pytest.mark.parametrize(
    ("pattern", "server", "reaches", "covers"),
    [
        ("*", "git", True, True),
        ("*.*", "git", True, True),
        ("git.*", "git", True, True),
        ("git.*", "github", False, False),
        ("git*", "github", True, True),
        ("g*.push", "github", True, False),
        ("*delete*", "git", True, False),
        ("git.x", "git", True, False),
        ("[gh]it.*", "hit", True, True),
        ("?it.*", "git", True, True),
        ("tool:git.*", "git", True, False),
        ("x.git.*", "git", False, False),
        ("git?push*", "git", True, False),
        ("git[.]push", "git", True, False),
        ("git[!a]*", "git", True, True),
        ("git?push*", "github", False, False),
    ],
)
def test_what_a_pattern_says_of_a_server(pattern: str, server: str, reaches: bool, covers: bool) -> None:
    policy = Policy(Rules(allow=[pattern], ask=[]))
    assert (policy.may_use(server), policy.covers(server)) == (reaches, covers)


@pytest.mark.parametrize("denied", ["db?drop*", "db[.]drop*", "d?[!x]drop*"])
def test_a_wildcard_that_stands_for_the_dot_leaves_no_server_whole(denied: str) -> None:
    policy = Policy(Rules(allow=["*"], deny=[denied], ask=[]))
    assert policy.decide("tool", "db", "drop_table").effect == "deny"
    assert not policy.covers("db")
    assert policy.covers("docs")


_parts = st.text(alphabet="ab.*?", min_size=1, max_size=6)


@given(
    allow=st.lists(_parts.map(lambda part: f"{part}*"), max_size=3),
    deny=st.lists(_parts.map(lambda part: f"{part}*"), max_size=2),
    server=st.text(alphabet="ab", min_size=1, max_size=3),
    names=st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=5),
)
def test_what_is_said_of_a_server_holds_for_all_its_names(
    allow: list[str], deny: list[str], server: str, names: list[str]
) -> None:
    policy = Policy(Rules(allow=allow, deny=deny, ask=[]))
    effects = {policy.decide("tool", server, name).effect for name in names}
    if policy.covers(server):
        assert effects == {"allow"}
    if not policy.may_use(server):
        assert effects == {"deny"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clients: {vscode: {polcy: {}}}", "clients.vscode.polcy is not a field here; did you mean policy"),
        (
            "clients: {vscode: {policy: {alow: []}}}",
            "clients.vscode.policy.alow is not a field here; did you mean allow",
        ),
        (
            "clients: {v: {policy: {allow: [github]}}}",
            "clients.v.policy.allow.0 must be SERVER.NAME with * for anything",
        ),
        ("clients: {v: {policy: {ask: [destruct]}}}", "clients.v.policy.ask.0 must be destructive, undeclared or"),
        ("clients: {v: {profile: x}}", 'clients.v.profile names "x", which is no profile; there are none'),
        (
            "clients: {v: {profile: x}}\nprofiles: {y: {servers: [a]}}",
            'clients.v.profile names "x", which is no profile; there is y',
        ),
        ("clients: {v: {max_result_chars: 3}}", "clients.v.max_result_chars must be at least 100"),
        ("clients: {'a b': {}}", "clients.a b must be 1 to 64 letters"),
        ("clients: {admin: {}}", "clients.admin is no client: it is what the administrator is called"),
        ("clients: {Default: {}}", "clients.Default is no client: it stands for all clients without rules"),
        ("profiles: {a: {}}", "profiles.a needs servers or tools"),
        ("profiles: {a: {server: [x]}}", "profiles.a.server is not a field here; did you mean servers"),
        ("policy: {ask_secnds: 3}", "policy.ask_secnds is not a field here; did you mean ask_seconds"),
        ("policy: {deny: x.*}", "policy.deny must be a list"),
    ],
)
def test_mistakes_in_the_roster_are_named(text: str, said: str) -> None:
    with pytest.raises(RosterError) as caught:
        parse_roster(text)
    assert said in caught.value.message


def test_the_roster_says_all_of_it() -> None:
    roster = parse_roster(
        """
policy: {deny: ["*.rm"], ask_seconds: 30, max_result_chars: 9000}
clients:
  vscode: {policy: {allow: [git.*], ask: []}, max_result_chars: 500}
  bot: {profile: work}
profiles:
  work: {servers: [git], tools: ["resource:docs.*"], deny: [git.push]}
"""
    )
    settings = roster.settings
    assert settings.policy.allow == ["*"]
    assert settings.policy.ask == ["destructive"]
    assert settings.clients["vscode"].policy == Rules(allow=["git.*"], ask=[])
    assert settings.clients["bot"].profile == "work"
    assert settings.profiles["work"].deny == ["git.push"]

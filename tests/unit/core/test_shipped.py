"""The catalogue of shipped servers, and what is said of what they need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callboard.core.roster_parse import check_entry
from callboard.core.shipped import Browser, Here, Program, Shipped, findings, is_first_party, load_catalogue
from callboard.system.resources import resource

CATALOGUE = load_catalogue(resource("shipped.yaml").read_text(encoding="utf-8"))
NOTHING = Here("linux", has_display=False)
EVERYTHING = Here(
    "linux",
    programs={"npx": Program("/usr/bin/npx"), "node": Program("/usr/bin/node", "v20.1.0")},
    modules=frozenset({"sqlalchemy", "psycopg"}),
    browsers={"chrome": Browser("/opt/google/chrome/chrome")},
    secrets=frozenset({"postgres-url", "github-token", "context7-api-key", "exa-api-key"}),
)


def said(name: str, here: Here, args: list[str] | None = None) -> list[tuple[str, str]]:
    return [(found.state, found.message) for found in findings(CATALOGUE[name], here, args)]


def test_the_catalogue_has_the_eight_servers() -> None:
    assert list(CATALOGUE) == [
        "local-tools",
        "filesystem",
        "sequential-thinking",
        "postgres",
        "github",
        "context7",
        "exa",
        "playwright",
    ]
    for shipped in CATALOGUE.values():
        assert shipped.title
        assert shipped.description
        assert shipped.is_like(shipped.entry)
        assert sum(other.is_like(shipped.entry) for other in CATALOGUE.values()) == 1


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_entry_is_one_that_a_roster_takes(name: str) -> None:
    entry, problems = check_entry(CATALOGUE[name].with_answers(folders=["/tmp"], secrets=EVERYTHING.secrets))

    assert problems == []
    assert entry is not None
    assert entry.enabled


def test_every_need_says_how_to_get_it_on_every_system() -> None:
    for system in ("linux", "darwin", "win32"):
        for shipped in CATALOGUE.values():
            for found in findings(shipped, replace(NOTHING, system=system)):
                assert found.state != "met"
                assert found.fix


def test_where_everything_is_nothing_is_missing() -> None:
    for name in CATALOGUE:
        assert {state for state, _ in said(name, EVERYTHING)} <= {"met", "asked"}


def test_what_a_machine_lacks_is_said_before_a_start() -> None:
    assert said("local-tools", NOTHING) == []
    assert said("postgres", NOTHING) == [
        ("missing", "The Python packages SQLAlchemy and psycopg are not here."),
        ("asked", "It needs the database's address."),
    ]
    assert said("github", NOTHING) == [("asked", "It needs a personal access token.")]
    assert said("context7", NOTHING) == [("optional", "It works without an API key, too.")]
    assert said("playwright", NOTHING) == [
        ("missing", "Node.js is not here: the program npx was not found."),
        ("missing", "Google Chrome is not here."),
        ("missing", "There is no screen for its windows here."),
    ]


def test_a_version_that_is_too_old_and_a_browser_that_cannot_run_are_told() -> None:
    here = replace(
        EVERYTHING,
        programs={"npx": Program("/usr/bin/npx"), "node": Program("/usr/bin/node", "v16.20.2")},
        browsers={"chrome": Browser("/opt/google/chrome/chrome", ("libnss3.so", "libgbm.so.1"))},
        has_display=False,
    )

    assert said("playwright", here, ["-y", "@playwright/mcp@latest", "--headless"]) == [
        ("missing", "Node.js 16.20.2 is too old: it must be 18 or later."),
        ("missing", "Google Chrome is here, but cannot run: the libraries libnss3.so, libgbm.so.1 are missing."),
        ("met", "There is a screen, or none is needed."),
    ]
    assert "install-deps" in findings(CATALOGUE["playwright"], here)[1].fix


def test_what_a_person_gives_becomes_part_of_the_entry() -> None:
    assert CATALOGUE["filesystem"].with_answers(folders=["/a", "/b"], secrets=frozenset())["args"] == [
        "-m",
        "callboard.servers.filesystem",
        "/a",
        "/b",
    ]
    exa = CATALOGUE["exa"]
    assert exa.with_answers(folders=[], secrets=frozenset())["auth"] == "none"
    assert exa.with_answers(folders=[], secrets=frozenset({"exa-api-key"}))["auth"]["header"] == "x-api-key"
    assert exa.entry["auth"] == "none"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.b: {known_by: x, entry: {command: x}}", "a.b: must be"),
        ("a: {known_by: x, entry: {comand: x}}", "a: "),
        ("a: {known_by: x, entry: {command: x, timeouts: {start: 0}}}", "a: timeouts.start"),
        ("a: {known_by: x, entry: {command: x}, needs: [{kind: luck}]}", "luck"),
    ],
)
def test_a_catalogue_that_is_wrong_says_where(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load_catalogue(text)


def test_our_own_servers_are_those_that_our_interpreter_runs() -> None:
    ours = {}
    for name, shipped in CATALOGUE.items():
        entry, _ = check_entry(shipped.entry)
        assert entry is not None
        ours[name] = is_first_party(entry)
    assert [name for name, is_ours in ours.items() if is_ours] == list(CATALOGUE)[:4]
    for command, args in (
        ("python", ["-m", "callboard.servers.x"]),
        ("${python}", ["-m"]),
        ("${python}", ["-c", "callboard.servers."]),
    ):
        entry, _ = check_entry({"command": command, "args": args})
        assert entry is not None
        assert not is_first_party(entry)


def test_an_entry_of_another_kind_is_not_taken_for_one_of_ours() -> None:
    shipped: Shipped = CATALOGUE["filesystem"]

    assert shipped.is_like({"command": "python", "args": ["-m", "callboard.servers.filesystem", "/x"]})
    assert not shipped.is_like({"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/x"]})
    assert not shipped.is_like({"url": "https://example.com/mcp"})
    assert not shipped.is_like({"command": "x", "args": None})

"""What counts as lost, and how expected.yaml is held against it."""

from pathlib import Path

import pytest

from tests.conformance.suite import Outcome
from tests.conformance.verdict import Entry, judge, losses, read_expected, table


def outcome(**checks: str) -> Outcome:
    return Outcome(checks, {name: f"about {name}" for name in checks})


@pytest.mark.parametrize(
    ("direct", "through", "lost"),
    [
        ("SUCCESS", "SUCCESS", False),
        ("SUCCESS", "INFO", False),
        ("SUCCESS", "WARNING", True),
        ("SUCCESS", "SKIPPED", True),
        ("SUCCESS", "FAILURE", True),
        ("SUCCESS", "", True),
        ("INFO", "", False),
        ("SKIPPED", "SKIPPED", False),
        ("FAILURE", "FAILURE", False),
        ("FAILURE", "SUCCESS", False),
        ("WARNING", "FAILURE", False),
        ("", "FAILURE", True),
        ("", "INFO", False),
    ],
)
def test_what_counts_as_lost(direct: str, through: str, lost: bool) -> None:
    before = outcome(**({"one": direct} if direct else {}))
    after = outcome(other="SUCCESS", **({"one": through} if through else {}))
    assert losses(before, after) == ({"one"} if lost else set())


def test_a_scenario_that_did_not_run_is_lost() -> None:
    assert losses(outcome(one="SUCCESS"), Outcome({}, {})) == {"one", "no result"}


def entry(*checks: str, revision: str = "r", scenario: str = "s") -> Entry:
    return Entry("gateway", revision, scenario, frozenset(checks), "because")


@pytest.mark.parametrize(
    ("expected", "cell", "unexpected", "stale"),
    [
        ([], "LOST", ["r s, run: one about one", "r s, run: two about two"], []),
        ([entry("one", "two")], "listed", [], []),
        ([entry()], "listed", [], []),
        ([entry("one")], "LOST", ["r s, run: two about two"], []),
        ([entry("one", "two", "three")], "listed", [], ["r s, run: three is listed but passes"]),
        (
            [entry(revision="q"), entry(scenario="t")],
            "LOST",
            ["r s, run: one about one", "r s, run: two about two"],
            [],
        ),
    ],
)
def test_expectations_name_what_is_lost(
    expected: list[Entry], cell: str, unexpected: list[str], stale: list[str]
) -> None:
    results = {"s": outcome(one="FAILURE", two="FAILURE")}
    verdict = judge("run", "r", {"s": {"one", "two"}}, results, expected)
    assert (verdict.cells, verdict.unexpected, verdict.stale) == ({"s": cell}, unexpected, stale)


def test_a_line_about_what_passes_is_stale() -> None:
    verdict = judge("run", "r", {"s": set()}, {"s": outcome(one="SUCCESS")}, [entry()])
    assert verdict.cells == {"s": "ok"}
    assert verdict.stale == ["r s, run: every check is listed but passes"]


def test_the_list_itself_is_whole() -> None:
    entries = read_expected()
    assert {entry.section for entry in entries} <= {"direct", "gateway", "crossed", "client"}
    assert all(entry.reason for entry in entries)
    assert {entry.revision for entry in entries} <= {"2025-11-25", "2026-07-28"}


@pytest.mark.parametrize("line", ["{revision: r, scenarios: [s]}", "{revision: r, scenarios: [s], reason: w, more: 1}"])
def test_a_line_without_a_reason_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "expected.yaml"
    path.write_text(f"gateway:\n  - {line}\n")
    with pytest.raises(ValueError, match="not a proper entry"):
        read_expected(path)


def test_the_table_has_a_row_for_each_scenario() -> None:
    rows = {("r1", "a"): {"x": "ok"}, ("r1", "bee"): {"x": "LOST", "y": "ok"}, ("r2", "a"): {"y": "listed"}}
    assert table(["x", "y"], rows).split("\n") == [
        "",
        "r1   x             y",
        "a    ok            -",
        "bee  LOST          ok",
        "",
        "r2   x             y",
        "a    -             listed",
    ]

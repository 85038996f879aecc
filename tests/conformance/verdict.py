"""What is lost through the gateway, and whether expected.yaml says so."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.suite import Outcome, Results

EXPECTED = Path(__file__).parent / "expected.yaml"
SECTIONS = ("direct", "gateway", "crossed", "client")
_GOOD = ("SUCCESS", "INFO")


@dataclass(frozen=True)
class Entry:
    """One line of expected.yaml."""

    section: str
    revision: str
    scenario: str
    checks: frozenset[str]  # empty for any
    reason: str


def read_expected(path: Path = EXPECTED) -> list[Entry]:
    """All entries; raises ValueError for one that is not whole."""
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    entries = []
    for section, lines in found.items():
        for line in lines or []:
            if section not in SECTIONS or line.keys() - {"checks"} != {"revision", "scenarios", "reason"}:
                raise ValueError(f"expected.yaml, {section}: {line} is not a proper entry")
            checks = frozenset(line.get("checks", ()))
            entries += [
                Entry(section, str(line["revision"]), scenario, checks, line["reason"])
                for scenario in line["scenarios"]
            ]
    return entries


def failures(outcome: Outcome) -> set[str]:
    """The checks that are not as they should be, whatever they are elsewhere."""
    if not outcome.checks:
        return {"no result"}
    return {name for name, status in outcome.checks.items() if status in ("FAILURE", "WARNING")}


def losses(direct: Outcome, outcome: Outcome) -> set[str]:
    """The checks that are fine directly and not so here."""
    lost = {
        name for name, status in direct.checks.items() if status == "SUCCESS" and outcome.checks.get(name) not in _GOOD
    }
    return lost | {name for name in failures(outcome) if direct.checks.get(name) not in ("FAILURE", "WARNING")}


@dataclass
class Verdict:
    """One run held against what was expected of it."""

    cells: dict[str, str]  # scenario → what the table shows
    unexpected: list[str]  # one line each
    stale: list[str]


def judge(run: str, revision: str, found: dict[str, set[str]], results: Results, expected: list[Entry]) -> Verdict:
    """``found`` has the bad checks of each scenario of a run; ``expected`` the entries that hold for the run."""
    verdict = Verdict({}, [], [])
    for scenario, bad in found.items():
        entries = [entry for entry in expected if (entry.revision, entry.scenario) == (revision, scenario)]
        allowed: set[str] = set()
        for entry in entries:
            missed = entry.checks - bad if entry.checks else (set() if bad else {"every check"})
            verdict.stale += [f"{revision} {scenario}, {run}: {name} is listed but passes" for name in sorted(missed)]
            allowed |= entry.checks or bad
        surprises = sorted(bad - allowed)
        messages = results[scenario].messages if scenario in results else {}
        verdict.unexpected += [
            f"{revision} {scenario}, {run}: {name} {messages.get(name, '')}".rstrip() for name in surprises
        ]
        verdict.cells[scenario] = "LOST" if surprises else "listed" if bad else "ok"
    return verdict


def table(columns: list[str], rows: dict[tuple[str, str], dict[str, str]]) -> str:
    """A table of scenario by run; ``rows`` are keyed by revision and scenario."""
    width = max(len(scenario) for _, scenario in rows) + 2
    lines = []
    revision = ""
    for (this, scenario), cells in rows.items():
        if this != revision:
            revision = this
            lines += ["", f"{this:<{width}}" + "".join(f"{column:<14}" for column in columns)]
        lines.append(f"{scenario:<{width}}" + "".join(f"{cells.get(column, '-'):<14}" for column in columns))
    return "\n".join(line.rstrip() for line in lines)

"""Run the protocol's conformance suite against the fixture server, directly and through the gateway.

    python -m tests.conformance [--keep FOLDER]

Exit code 0 if nothing is lost on the way but what expected.yaml lists, 1 if something is, 3 where Node is missing.
The suite comes from npm into CALLBOARD_CONFORMANCE_DIR (else callboard-conformance in the user's cache folder).
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.stage import http_fixture, through_gateway
from tests.conformance.suite import Outcome, Results, Suite, Unavailable, say
from tests.conformance.verdict import Entry, Verdict, failures, judge, losses, read_expected, table

TOTAL_SECONDS = 780
REVISIONS = {"2025-11-25": "legacy", "2026-07-28": "modern"}
OTHER = {"legacy": "modern", "modern": "legacy"}
NO_NODE = 3


@dataclass(frozen=True)
class Run:
    """One server behind the gateway: of both eras, of the client's own alone, or of the other alone."""

    column: str
    servers: str  # "both", "own" or "crossed"
    transport: str

    def era(self, revision: str) -> str:
        """What the fixture speaks."""
        own = REVISIONS[revision]
        return {"both": "both", "own": own, "crossed": OTHER[own]}[self.servers]


RUNS = [
    Run("stdio", "both", "stdio"),
    Run("http", "both", "http"),
    Run("own stdio", "own", "stdio"),
    Run("own http", "own", "http"),
    Run("crossed stdio", "crossed", "stdio"),
    Run("crossed http", "crossed", "http"),
]
DIRECT, UPSTREAM = "direct", "upstream"


class Campaign:
    """All runs, and what came of them."""

    def __init__(self, suite: Suite, folder: Path, expected: list[Entry]) -> None:
        self._suite = suite
        self._folder = folder
        self._expected = expected
        self.rows: dict[tuple[str, str], dict[str, str]] = {}
        self.client_rows: dict[tuple[str, str], dict[str, str]] = {}
        self.unexpected: list[str] = []
        self.stale: list[str] = []

    async def servers(self, revision: str) -> None:
        """Everything that a revision requires of a server."""
        async with http_fixture("both") as url:
            direct = await self._suite.server(url, revision, self._folder / revision / DIRECT)
        bad = {scenario: failures(outcome) for scenario, outcome in direct.items()}
        self._take(self.rows, judge(DIRECT, revision, bad, direct, self._of("direct")), revision, DIRECT)
        for run in RUNS:
            began = time.monotonic()
            verdict = await self._behind_gateway(run, revision, direct)
            self._take(self.rows, verdict, revision, run.column)
            say(f"{revision} {run.column}: {_counts(verdict)}, {time.monotonic() - began:.0f} s")

    async def _behind_gateway(self, run: Run, revision: str, direct: Results) -> Verdict:
        expected = self._of("gateway") + (self._of("crossed") if run.servers == "crossed" else [])
        folder = self._folder / revision / run.column.replace(" ", "-")
        async with through_gateway(folder / "home", run.era(revision), run.transport) as url:
            for attempt in ("first", "second"):
                results = await self._suite.server(url, revision, folder / attempt)
                bad = {
                    scenario: losses(outcome, results.get(scenario, Outcome({}, {})))
                    for scenario, outcome in direct.items()
                }
                verdict = judge(run.column, revision, bad, results, expected)
                if not verdict.unexpected:
                    break
                # some of the suite's waits are half a second long: a busy machine gets one more chance
        return verdict

    async def clients(self, revision: str) -> None:
        """What a revision has for clients, authorization and extensions included."""
        results: Results = {}
        for scenario in self._suite.client_scenarios(revision):
            folder = self._folder / revision / "client" / scenario
            results[scenario] = await self._suite.client(scenario, revision, folder)
        bad = {scenario: failures(outcome) for scenario, outcome in results.items()}
        verdict = judge(UPSTREAM, revision, bad, results, self._of("client"))
        self._take(self.client_rows, verdict, revision, UPSTREAM)
        say(f"{revision} clients: {_counts(verdict)}")

    def _of(self, section: str) -> list[Entry]:
        return [entry for entry in self._expected if entry.section == section]

    def _take(self, rows: dict[tuple[str, str], dict[str, str]], verdict: Verdict, revision: str, column: str) -> None:
        for scenario, cell in verdict.cells.items():
            rows.setdefault((revision, scenario), {})[column] = cell
        self.unexpected += verdict.unexpected
        self.stale += verdict.stale


def _counts(verdict: Verdict) -> str:
    return ", ".join(f"{count} {cell}" for cell, count in Counter(verdict.cells.values()).most_common())


async def run(folder: Path) -> int:
    """Run everything; the exit code."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # so that no process is left behind
    campaign = Campaign(Suite.install(), folder, read_expected())
    async with asyncio.timeout(TOTAL_SECONDS):
        for revision in REVISIONS:
            await campaign.servers(revision)
            await campaign.clients(revision)
    say(table([DIRECT, *(run.column for run in RUNS)], campaign.rows))
    say(table([UPSTREAM], campaign.client_rows))
    for title, lines in (("lost", campaign.unexpected), ("listed in expected.yaml, but", campaign.stale)):
        if lines:
            say(f"\n{title}:\n  " + "\n  ".join(lines))
    if campaign.unexpected or campaign.stale:
        return 1
    say("\nNothing is lost but what expected.yaml lists.")
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="dev.sh conformance")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what the suite wrote, there")
    options = parser.parse_args()
    try:
        if options.keep is not None:
            return asyncio.run(run(options.keep))
        with tempfile.TemporaryDirectory(prefix="callboard-conformance-") as folder:
            return asyncio.run(run(Path(folder)))
    except Unavailable as error:
        say(f"The conformance suite cannot run: {error}.")
        return NO_NODE
    except TimeoutError:
        say(f"The runs took longer than {TOTAL_SECONDS} s.")
    except (asyncio.CancelledError, KeyboardInterrupt):
        say("Stopped.")
    return 1


if __name__ == "__main__":
    sys.exit(main())

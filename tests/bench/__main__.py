"""`python -m tests.bench [NAME...] [--out FILE]`: measures, prints a table, and ends by itself."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "app"))

from tests.bench.agents import agents  # noqa: E402
from tests.bench.cost import cost  # noqa: E402
from tests.bench.engines import idle, many, memory  # noqa: E402
from tests.bench.figures import Figure, Unavailable, table  # noqa: E402
from tests.bench.relay import relay  # noqa: E402
from tests.bench.telemetry import telemetry  # noqa: E402
from tests.bench.trouble import crowd, flood  # noqa: E402
from tests.bench.windows import log, stall, start  # noqa: E402

BENCHMARKS: dict[str, Callable[[], list[Figure]]] = {
    function.__name__: function
    for function in (start, stall, log, idle, relay, cost, telemetry, memory, many, crowd, flood, agents)
}


def main() -> int:
    """Run the benchmarks that are named, or all of them."""
    width = max(map(len, BENCHMARKS))
    described = "\n".join(f"  {name:{width}}  {function.__doc__}" for name, function in BENCHMARKS.items())
    parser = argparse.ArgumentParser(
        prog="sh packaging/dev.sh bench",
        description="Measure speed and size, on loopback only.",
        epilog=f"benchmarks:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark (default: all)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the figures to this JSON file too")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(BENCHMARKS)}")
    report = {"machine": machine(), "benchmarks": {}}
    print(", ".join(f"{key} {value}" for key, value in report["machine"].items()))
    for name in options.names or BENCHMARKS:
        print(f"\n{name}: {BENCHMARKS[name].__doc__}", flush=True)
        began = time.monotonic()
        try:
            figures = BENCHMARKS[name]()
        except Unavailable as reason:
            print(f"  left out: {reason}")
            continue
        print(table(figures))
        print(f"({time.monotonic() - began:.0f} s)", flush=True)
        report["benchmarks"][name] = [vars(figure) for figure in figures]
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return 0


def machine() -> dict[str, str]:
    """What the figures depend on."""
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
    return {"Python": platform.python_version(), "cores": str(os.cpu_count()), "load": load, "on": platform.platform()}


if __name__ == "__main__":
    sys.exit(main())

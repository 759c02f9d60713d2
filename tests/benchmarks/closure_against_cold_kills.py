"""Times closure with fork launch against a kill at each crossing from a cold start.

Run by hand: ``python tests/benchmarks/closure_against_cold_kills.py``. Both campaigns
run one after the other, with the same number of workers; what counts is the ratio.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCENARIO = ROOT / "scenarios" / "book_flight.yaml"


def timed(*words: str) -> tuple[float, dict[str, object]]:
    """Seconds that a campaign takes from command to prompt, and its report."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [sys.executable, "-m", "chaoskit", "run", str(SCENARIO), *words]
        began = time.monotonic()
        subprocess.run(
            [*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL
        )
        seconds = time.monotonic() - began
        return seconds, json.loads((out / "report.json").read_text())


def main() -> None:
    """Measure and print."""
    agent = str(ROOT / "reference_agent" / "agent_fork.yaml")
    cold, swept = timed("--strategy", "sweep")
    warm, closed = timed("--strategy", "closure", "--agent", agent)
    print(f"sweep, cold start:  {cold:6.1f} s  {swept['kills']} kills")
    print(f"closure, fork:      {warm:6.1f} s  {closed['states']} crash states")
    print(f"ratio:              {warm / cold:6.3f}")


if __name__ == "__main__":
    main()

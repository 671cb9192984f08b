"""`python -m tests.simulation --seeds 1000`: many histories, on every core; status 1 if one fails.

`--first` says where to begin; `--seeds 1 --first 4711` runs one again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.simulation.history import verdict
from tests.simulation.scenario import scenario

FAILURES_SHOWN = 5


def judge(seed: int) -> str:
    return verdict(scenario(seed))


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=50, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    began = time.monotonic()
    failures = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(judge, seeds, chunksize=5):
            if found:
                failures += 1
                if failures <= FAILURES_SHOWN:
                    print(found, "\n", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(seeds)} histories in {seconds:.1f} s, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

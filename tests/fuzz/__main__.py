"""Fuzz for a time: `python -m tests.fuzz [--seconds 60] [--seed N]`.

Rounds of steps, each of a target in turn and from a seed of its own, which is printed with a
failure: `--seed` runs that round first. The last quarter of the time hostile connections have a
running broker. The last line counts the rounds.
"""

from __future__ import annotations

import argparse
import logging
import random
import resource
import sys
import time
import traceback
from collections import Counter
from itertools import count

from tests.fuzz.live import attack
from tests.fuzz.targets import TARGETS
from tests.sampling import draw_seed

STEPS_A_ROUND = 2_000
GROWTH_MB_MAX = 200
LIVE_SHARE = 0.25  # of the time


def resident_mb() -> float:
    """Return the highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


def run_round(target: str, seed: int) -> str | None:
    """Run one round; return what was found, None if nothing."""
    chance = random.Random(seed)
    try:
        with TARGETS[target]() as step:
            for _ in range(STEPS_A_ROUND):
                step(chance)
    except Exception:
        return f"{target}, --seed {seed}\n{traceback.format_exc()}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=draw_seed("fuzzing"))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(f"--seed {options.seed}", flush=True)
    failures: list[str] = []
    rounds: Counter[str] = Counter()
    grown_from = 0.0
    deadline = time.monotonic() + options.seconds * (1 - LIVE_SHARE)
    for number in count():
        for target in TARGETS:
            found = run_round(target, options.seed + number)
            rounds[target] += 1
            if found is not None:
                failures.append(found)
                print(found, flush=True)
        grown_from = grown_from or resident_mb()
        if time.monotonic() > deadline:
            break
    grown_mb = resident_mb() - grown_from
    rounds["live"] += 1
    try:
        print(attack(options.seed, options.seconds * LIVE_SHARE), flush=True)
    except Exception:
        failures.append(traceback.format_exc())
        print(failures[-1], flush=True)
    print(f"{dict(rounds)} rounds of {STEPS_A_ROUND} steps; memory grew by {grown_mb:.0f} MB")
    if grown_mb > GROWTH_MB_MAX:
        failures.append(f"memory grew by {grown_mb:.0f} MB, more than {GROWTH_MB_MAX}")
    print(f"{sum(rounds.values()) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

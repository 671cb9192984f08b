"""Run many histories on every core: `python -m tests.simulation --seeds 1000`.

The status is 1 if one fails. `--first` says where to begin; `--seeds 1 --first 4711` runs one
again. Each seed stands for two histories of transactions, the second with days that pass, one of
groups, two of rebalances (with days for every third seed), the second with the streams protocol,
and five of the runtime: one of any kind,
one where time decides what comes out, one of an application with a model of its own, one with a
ledger, and one in which days pass; `--only` runs one kind.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from tests.simulation import scenario as transactions
from tests.simulation.groups import scenario as groups
from tests.simulation.groups.history import GroupHistory
from tests.simulation.history import find_failure
from tests.simulation.rebalances import scenario as rebalances
from tests.simulation.rebalances.history import RebalanceHistory
from tests.simulation.rebalances.streams_history import (
    StreamsRebalanceHistory,
    streams_scenario,
)
from tests.simulation.runtime import scenario as runtime
from tests.simulation.runtime.applications import APPLICATIONS
from tests.simulation.runtime.days import scenario as days
from tests.simulation.runtime.days.history import DaysHistory
from tests.simulation.runtime.history import RuntimeHistory
from tests.simulation.runtime.topologies import TIMED
from tests.simulation.transactions import TransactionHistory

FAILURES_SHOWN = 5
DAYS_EVERY = 3


def _has_days(seed: int) -> bool:
    return seed % DAYS_EVERY == DAYS_EVERY - 1


KINDS: dict[str, Callable[[int], str]] = {
    "transactions": lambda seed: find_failure(TransactionHistory, transactions.scenario(seed)),
    "groups": lambda seed: find_failure(GroupHistory, groups.scenario(seed, days=_has_days(seed))),
    "rebalances": lambda seed: find_failure(
        RebalanceHistory, rebalances.scenario(seed, days=_has_days(seed))
    ),
    "streams groups": lambda seed: find_failure(
        StreamsRebalanceHistory, streams_scenario(seed, days=_has_days(seed))
    ),
    "runtime": lambda seed: find_failure(RuntimeHistory, runtime.scenario(seed)),
    "timed": lambda seed: find_failure(
        RuntimeHistory, runtime.scenario(seed, kind=TIMED[seed % len(TIMED)])
    ),
    "applications": lambda seed: find_failure(
        RuntimeHistory, runtime.scenario(seed, kind=[*APPLICATIONS][seed % len(APPLICATIONS)])
    ),
    "ledger": lambda seed: find_failure(RuntimeHistory, runtime.scenario(seed, ledger=True)),
    "expiring": lambda seed: find_failure(
        TransactionHistory, transactions.scenario(seed, days=True)
    ),
    "days": lambda seed: find_failure(DaysHistory, days.days_scenario(seed)),
}


def judge(history: tuple[str, int]) -> str:
    kind, seed = history
    found = KINDS[kind](seed)
    return f"{kind}, {found}" if found else ""


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=50, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first one")
    parser.add_argument("--only", choices=KINDS, help="one kind of histories")
    options = parser.parse_args()
    kinds = [options.only] if options.only else list(KINDS)
    seeds = range(options.first, options.first + options.seeds)
    histories = [(kind, seed) for seed in seeds for kind in kinds]
    began = time.monotonic()
    failures = 0
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(judge, histories, chunksize=5):
            if found:
                failures += 1
                if failures <= FAILURES_SHOWN:
                    print(found, "\n", flush=True)
    seconds = time.monotonic() - began
    print(f"{len(histories)} histories in {seconds:.1f} s, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

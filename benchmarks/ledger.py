"""Measure what the ledger costs: a worker's processor time with it and without it, by turns.

python -m benchmarks.ledger [--records 600000] [--rounds 6]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.recorded import record
from benchmarks.runs import WORK, Input, Runs, Way, broker_at

_KEYS = 10_000
_VALUE_BYTES = 100
_COMMIT_INTERVAL_MS = 100


def main() -> None:
    """Measure the processor time with and without a ledger, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="millrace-bench-") as name,
        broker_at("embedded", Path(name)) as servers,
    ):
        runs = Runs(servers, Input(options.records, _KEYS, _VALUE_BYTES), Path(name))
        for operator in WORK:
            way = Way(operator, "exactly_once_v2", _COMMIT_INTERVAL_MS)
            taken: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(options.rounds):
                for ledger in taken:
                    began = time.process_time()
                    runs.run_millrace(way, ledger=ledger)
                    taken[ledger].append(time.process_time() - began)
            for ledger, seconds in taken.items():
                kept = "with a ledger" if ledger else "without"
                record("ledger", operator, kept, "s of cpu", seconds, baseline=not ledger)
            without, with_it = (statistics.median(taken[ledger]) for ledger in taken)
            print(f"{operator}: {without:.2f} s without, {with_it:.2f} s with, of the processor")


if __name__ == "__main__":
    main()

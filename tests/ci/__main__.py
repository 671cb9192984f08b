"""Run the parts of `make test`, `make ci` or `make ci-full`: `python -m tests.ci LEVEL`.

What each part prints is shown when it ends; in between, how far the parts are. Then comes a table
of the times, what exceeds its entry in CONTRIBUTING.md, and the parts that failed. The last line
counts the parts; the exit status is 0 only if none failed. Figures of demonstrations and benchmarks
are there to be read; only an exit status decides.

`make test` and `make ci` take samples of the large matrices, chosen by the commit; `--sample N`
repeats another run's, and `make ci-full` takes no samples.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from tests.ci.parts import AT_ONCE, CI, FULL, LEVELS, TEST, order_parts, parts_of
from tests.ci.running import run_parts
from tests.ci.times import PAGE, find_overruns, format_table, read_entries
from tests.sampling import VARIABLE, sample_of_commit


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.ci", description=__doc__)
    parser.add_argument("level", choices=LEVELS)
    parser.add_argument("--only", help="names of parts, with commas between them")
    parser.add_argument("--sample", type=int, help="the sample to take; default: the commit's")
    given = parser.parse_args(arguments)
    entries = read_entries(PAGE.read_text())
    parts = order_parts(parts_of(given.level), entries)
    if given.only:
        wanted, known = given.only.split(","), [part.name for part in parts]
        if unknown := sorted(set(wanted) - set(known)):
            parser.error(f"no part is named {', '.join(unknown)}: there are {', '.join(known)}")
        parts = [part for part in parts if part.name in wanted]
    environment = {}
    if given.level in (CI, FULL):
        environment["CI"] = "true"
    if given.level in (TEST, CI):
        sample = sample_of_commit() if given.sample is None else given.sample
        environment[VARIABLE] = str(sample)
        print(
            f"sample {sample}: {VARIABLE}={sample} before a make target takes the same", flush=True
        )
    began_s = time.monotonic()
    at_once = AT_ONCE[given.level]
    outcomes = run_parts(parts, environment, at_once)
    print(f"\n=== times\n{format_table(outcomes, time.monotonic() - began_s)}\n")
    if given.level == CI:
        for line in find_overruns(outcomes, entries):
            print(f"slow: {line}")
    for each in outcomes:
        if not each.passed:
            print(f"{each.part}: {each.verdict}")
    passed = sum(each.passed for each in outcomes)
    print(f"{passed} passed, {len(outcomes) - passed} failed")
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

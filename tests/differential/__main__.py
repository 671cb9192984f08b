"""Run more cases than a test run has time for.

Usage: `python -m tests.differential --cases 1000 --seed 0`.

A case that differs is made small and written to `corpus/`, to be kept. The exit status is 1 if any
differs. `--operator` puts that operator into each case.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential.description import Case
from tests.differential.generator import generate
from tests.differential.peer import Peer
from tests.differential.productions import PRODUCTIONS
from tests.differential.trial import Tally, Verdict, judge, smallest

CORPUS = Path(__file__).parent / "corpus"
DIFFERING_MAX = 5
SAID_EVERY = 500


def report(verdict: Verdict, kept_in: Path | None) -> str:
    """Describe what differs, and the case."""
    where = "" if kept_in is None else f"kept in {kept_in}: commit it when it agrees\n"
    lines = "\n".join(verdict.differences)
    return f"seed {verdict.case.seed} differs\n{lines}\n{where}{verdict.case.text()}"


def keep(case: Case, directory: Path = CORPUS) -> Path:
    """Save the case as a file of the corpus, and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"seed-{case.seed}.json"
    path.write_text(case.text())
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--operator", choices=sorted(PRODUCTIONS), help="in each case")
    parser.add_argument("--only", help="productions to use, with commas between them")
    parser.add_argument("--keep", type=Path, default=CORPUS, help="where small cases go")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--differing", type=int, default=DIFFERING_MAX, help="stop after so many")
    given = parser.parse_args(arguments)
    operators = given.only.split(",") if given.only else list(PRODUCTIONS)
    tally, begin = Tally(), time.monotonic()
    with Peer() as peer:
        for seed in range(given.seed, given.seed + given.cases):
            verdict = judge(generate(seed, operators, given.operator), peer)
            tally.add(verdict)
            if tally.cases % SAID_EVERY == 0:
                print(f"{tally.cases} cases, {len(tally.differing)} differ", flush=True)
            if not verdict.differences:
                continue
            if given.no_shrink:
                print(f"seed {seed} differs\n" + "\n".join(verdict.differences), flush=True)
            else:
                small = smallest(verdict, peer)
                print(report(small, keep(small.case, given.keep)), flush=True)
            if len(tally.differing) >= given.differing:
                break
    for name, count in sorted(tally.labels.items()):
        print(f"{count:6} {name}")
    for reason, count in tally.refusals.most_common():
        print(f"{count:6} refused by Kafka Streams: {reason:.150}")
    print(
        f"{tally.cases} cases, {len(tally.differing)} differ, "
        f"{tally.refusals.total()} are none, {time.monotonic() - begin:.1f} s"
    )
    return 1 if tally.differing else 0


if __name__ == "__main__":
    sys.exit(main())

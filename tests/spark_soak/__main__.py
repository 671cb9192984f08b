"""Run `make soak-reconcile`: reconcile an application at ten cuts while its workers are killed.

Workers run a topology with a ledger while records come at `--rate` and one worker after the other
is killed with `kill -9`. Cuts are taken at their pace and reconciled one after the other, meanwhile
and on the same machine. So the rate that was reached is measured, by the offsets of the cuts and
their times, and printed. Then the load ends, the whole is reconciled once more, and three errors
are planted. Status 1 if an account differs, something could not be checked, or a planted error is
not found and named.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import SystemRandom

from pyspark.sql import SparkSession

from streams.spark import Cut, reconcile
from streams.spark.reconciliation.report import Report
from streams.spark.session import session
from tests import brokers
from tests.spark_soak import planted
from tests.spark_soak.checks import read_at, written_at, wrong
from tests.spark_soak.fire import Fire
from tests.spark_soak.topology import app

LINE = "{:>4}{:>10}{:>12}{:>11}{:>11}{:>7}{:>11}{:>12}{:>6}{:>12}"
HEAD = ("cut", "taken, s", "records in", "records/s", "written/s")
CHECKED = ("kills", "in flight", "rows", "off", "checked, s")


class Table:
    """Prints a line for each cut, as it is checked."""

    def __init__(self) -> None:
        self._cuts: list[Cut] = []
        print(LINE.format(*HEAD, *CHECKED), flush=True)

    def add(self, cut: Cut, kills: int, report: Report, seconds: float, off: int) -> None:
        rows = sum(sum(each.counts.values()) for each in report.accounts.values())
        rates = self._rates(self._cuts[-1], cut) if self._cuts else ("", "")
        self._cuts.append(cut)
        since = (cut.taken_ms - self._cuts[0].taken_ms) / 1000
        what = (len(self._cuts), f"{since:.1f}", f"{read_at(cut):,}", *rates, kills)
        checked = (report.in_flight_count, f"{rows:,}", off, f"{seconds:.1f}")
        print(LINE.format(*what, *checked), flush=True)

    def summary(self) -> str:
        """Return the rate from the first cut to the last one."""
        read, written = self._rates(self._cuts[0], self._cuts[-1])
        return f"{read} records a second came in and {written} were written, on average"

    @staticmethod
    def _rates(one: Cut, other: Cut) -> tuple[str, str]:
        seconds = (other.taken_ms - one.taken_ms) / 1000
        read = (read_at(other) - read_at(one)) / seconds
        return f"{read:,.0f}", f"{(written_at(other) - written_at(one)) / seconds:,.0f}"


def under_fire(spark: SparkSession, fire: Fire, cuts: Iterator[Cut]) -> list[str]:
    """Reconcile at each cut as it is taken; return what is wrong."""
    found: list[str] = []
    table = Table()
    for cut in cuts:
        kills, began = fire.kills, time.monotonic()
        with reconcile(spark, app, cut=cut) as report:
            off = wrong(report)
            table.add(cut, kills, report, time.monotonic() - began, len(off))
        found += [f"cut of {cut.taken_ms}: {each}" for each in off]
    print(f"{table.summary()}; {fire.kills} kills", flush=True)
    return found


def with_errors(spark: SparkSession, fire: Fire) -> list[str]:
    """Reconcile at the end, then with each planted error; return what is wrong or not found."""
    with reconcile(spark, app) as report:
        found = wrong(report)
    if found:
        return found
    print(f"nothing left to process: all {fire.load.written:,} records are as expected", flush=True)
    for plant in planted.ALL:
        error = plant(fire)
        with reconcile(spark, app) as report:
            named = error.is_named(report)
        print(f"planted, {'found' if named else 'NOT FOUND'}: {error}", flush=True)
        if not named:
            found.append(f"not found: {error}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.spark_soak")
    parser.add_argument("--rate", type=int, default=50_000, help="records a second that come in")
    parser.add_argument("--cuts", type=int, default=10)
    parser.add_argument("--every-s", type=float, default=4.0, help="seconds from cut to cut")
    parser.add_argument("--kill-every-s", type=float, default=5.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--broker", default="embedded", help="embedded, kafka or HOST:PORT")
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = SystemRandom().randrange(10**6) if options.seed is None else options.seed
    print(f"seed {seed}: {options.rate:,} records a second, {options.cuts} cuts", flush=True)
    with ExitStack() as stack:
        broker = brokers.make(options.broker)
        stack.callback(broker.close)
        broker.start()
        directory = Path(tempfile.mkdtemp(prefix="millrace-soak-reconcile-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        spark = stack.enter_context(session(settings={"spark.driver.memory": "2g"}))
        servers = broker.bootstrap_servers
        fire = Fire(stack, servers, directory, options.workers, options.rate, seed)
        fire.kill_every(options.kill_every_s)
        found = under_fire(spark, fire, fire.cuts(options.cuts, options.every_s))
        fire.cease()
        found += with_errors(spark, fire)
    print(
        "\n".join(found[:40])
        if found
        else "all results are as expected, every planted error was found"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

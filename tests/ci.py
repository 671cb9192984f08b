"""What CI runs: the make targets in order, each timed, each given its turn whatever came before.

`python -m tests.ci` prints each part's output as it comes, then a table of the times. Its last line
counts the parts; the exit status is 0 only if none failed. Figures of the demonstrations and the
benchmark are there to be read; only an exit status decides.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

PART_TIMEOUT_S = 1_800.0
MAKE = ("make", "--no-print-directory")


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its command, and the exit statuses with which it has passed."""

    name: str
    command: Sequence[str]
    good: Sequence[int] = (0,)


PARTS: Sequence[Part] = (
    Part("gates", (*MAKE, "gates")),
    Part("unit tests", (*MAKE, "unit", "OPTIONS=--hypothesis-profile=ci")),
    Part("simulation", (*MAKE, "simulation")),
    Part("simulation, more seeds", (*MAKE, "soak", "SEEDS=50")),
    Part("conformance", (*MAKE, "conformance")),
    Part("integration", (*MAKE, "integration")),
    Part("crash matrix", (*MAKE, "crashes")),
    Part("upgrade", (*MAKE, "upgrade")),
    Part("fuzzing", (*MAKE, "fuzz", "SECONDS=60")),
    Part("clients", (*MAKE, "clients")),
    Part("tools", (*MAKE, "tools")),
    Part("liveness", (*MAKE, "liveness")),
    # Not by make: the cases of a fixed block and of today's, with their own counts.
    Part(
        "beside Kafka Streams",
        (sys.executable, "-m", "pytest", "-q", "-s", "--durations=3", "tests/differential"),
    ),
    Part("containers", (*MAKE, "containers")),
    Part("Spark", (*MAKE, "spark")),
    Part("an application under trouble", (*MAKE, "soak-app", "MINUTES=1.3")),
    Part("the same on real Kafka", (*MAKE, "soak-app", "MINUTES=0.7", "OPTIONS=--broker kafka")),
    Part("demo with its books", (*MAKE, "demo", "SPARK=1")),
    # Counts that are off (status 1) are what at least once shows; make would call it an error.
    Part(
        "demo, at least once",
        (sys.executable, "-m", "examples.demo", "--guarantee", "at_least_once", "--spark"),
        good=(0, 1),
    ),
    Part("benchmark", (*MAKE, "bench", "OPTIONS=--quick --rounds 1")),
    Part("benchmark of the broker", (*MAKE, "bench-broker", "OPTIONS=--quick")),
    Part("benchmark of groups", (*MAKE, "bench-groups", "OPTIONS=--quick")),
    Part("benchmark of operators", (*MAKE, "bench-dsl", "OPTIONS=--records 20000 --rounds 1")),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one part went."""

    part: str
    seconds: float
    verdict: str

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"


def run(part: Part) -> Outcome:
    """Run one part to its end; one that hangs is ended with all that it started."""
    print(f"\n=== {part.name}: {' '.join(part.command)}", flush=True)
    begin = time.monotonic()
    process = subprocess.Popen(part.command, start_new_session=True)
    try:
        status = process.wait(PART_TIMEOUT_S)
        verdict = "passed" if status in part.good else f"failed, status {status}"
    except subprocess.TimeoutExpired:
        verdict = f"failed, not done after {PART_TIMEOUT_S:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Outcome(part.name, time.monotonic() - begin, verdict)


def table(outcomes: Sequence[Outcome]) -> str:
    """A line for each part, and their sum."""
    lines = [f"{each.part:24}{each.seconds:8.1f} s  {each.verdict}" for each in outcomes]
    total = sum(each.seconds for each in outcomes)
    return "\n".join([*lines, f"{'all':24}{total:8.1f} s"])


def main() -> int:
    outcomes = [run(part) for part in PARTS]
    passed = sum(each.passed for each in outcomes)
    print(f"\n=== parts\n{table(outcomes)}\n")
    print(f"{passed} passed, {len(outcomes) - passed} failed")
    return 0 if passed == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

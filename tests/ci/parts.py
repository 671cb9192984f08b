"""Define the parts of `make test`, `make ci` and `make ci-full`: a command each, and its schedule.

A part is a make target wherever a person would run it by hand too. Parts wait for brokers for much
of their time, and run side by side: those of `make test` three at a time, others two, as crash
tests and Spark start several JVMs. Benchmarks run alone, because anything beside them would be in
their figures.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.sampling import SEEDS

MAKE = ("make", "--no-print-directory")
TEST, CI, FULL = "test", "ci", "ci-full"
LEVELS = (TEST, CI, FULL)
AT_ONCE = {TEST: 3, CI: 2, FULL: 2}
"""How many parts of a level run side by side."""


@dataclass(frozen=True, slots=True)
class Part:
    """Represents one command of CI.

    `good` are the exit statuses with which it has passed; if it is `alone`, nothing runs beside it.
    """

    name: str
    command: Sequence[str]
    good: Sequence[int] = (0,)
    alone: bool = False


def _make(name: str, *arguments: str, alone: bool = False) -> Part:
    return Part(name, (*MAKE, *arguments), alone=alone)


_EVERY_TIME = (
    _make("unit tests", "unit"),
    _make("conformance", "conformance"),
    _make("simulation", "simulation"),
    _make("gates", "gates"),
    _make("documentation", "docs"),
)
_INTEGRATION_EMBEDDED = _make("integration", "integration", "OPTIONS=--broker embedded")
_DEMO_AT_LEAST_ONCE = Part(
    "demo, at least once",
    (
        *(sys.executable, "-m", "examples.demo"),
        *("--guarantee", "at_least_once", "--spark", "--lines", "80000"),
    ),
    # Counts that are off (status 1) are what at least once shows; make would call it an error.
    good=(0, 1),
)
_CI = (
    _make("integration", "integration"),
    _make("Spark", "spark"),
    _make("crash matrix", "crashes"),
    *_EVERY_TIME,
    _make("clients", "clients"),
    _make("beside Kafka Streams", "differential-tests"),
    _make("an application under trouble", "soak-app", "MINUTES=1.3"),
    _make("the same on real Kafka", "soak-app", "MINUTES=0.7", "OPTIONS=--broker kafka"),
    _make("queries under trouble", "soak-queries", "MINUTES=0.3"),
    _make("demo, reconciled", "demo", "SPARK=1"),
    _DEMO_AT_LEAST_ONCE,
    _make("fuzzing", "fuzz", "SECONDS=60"),
    _make("liveness", "liveness"),
    _make("three nodes", "cluster"),
    _make("security", "security"),
    _make("tools", "tools"),
    _make("ported applications", "porting"),
    _make("monitoring", "monitoring"),
    _make("schema registry", "registry"),
    _make("containers", "containers"),
    _make("package", "package"),
    _make("simulation, more seeds", "soak", "SEEDS=30"),
    _make("upgrade", "upgrade"),
    _make("a version of Kafka", "versions"),
    _make("benchmark", "bench", "OPTIONS=--quick", alone=True),
    _make("benchmark of the broker", "bench-broker", "OPTIONS=--quick", alone=True),
    _make("benchmark of groups", "bench-groups", "OPTIONS=--quick", alone=True),
    _make(
        "benchmark of operators",
        "bench-dsl",
        "OPTIONS=--records 20000 --application-records 20000 --rounds 1",
        alone=True,
    ),
)
_ONLY_FULL = (
    _make("faults and alerts", "monitoring-faults"),
    _make("Kafka's smoke test", "smoke"),
    *(_make(f"clients, seed {n}", "clients", f"OPTIONS=--seed {n}") for n in SEEDS),
    *(_make(f"fuzzing, seed {n}", "fuzz", f"OPTIONS=--seed {n}") for n in SEEDS),
    *(
        _make(
            f"trouble on {broker}, seed {n}",
            "soak-app",
            "MINUTES=1.3",
            f"OPTIONS=--seed {n} --broker {broker}",
        )
        for broker in ("embedded", "kafka")
        for n in SEEDS
    ),
    _make("10 000 cases beside Kafka Streams", "differential", "CASES=10000", "SEED=100000"),
    _make("1 000 histories", "soak", "SEEDS=1000"),
    _make("an application under long trouble", "soak-app", "MINUTES=10"),
    _make("queries under long trouble", "soak-queries", "MINUTES=10"),
    _make("long fuzzing", "fuzz", "SECONDS=600"),
    _make("benchmark of queries", "bench-queries", "OPTIONS=--quick"),
    _make("fuzzing of queries", "fuzz-queries", "EXAMPLES=1000"),
    _make("unit tests on other Pythons", "pythons"),
    _make("wheel, sdist and SBOM", "dist"),
    _make("audit of dependencies", "audit"),
)


def parts_of(level: str) -> Sequence[Part]:
    """Return the parts of a level. Raises ValueError for an unknown level."""
    match level:
        case "test":
            return (_INTEGRATION_EMBEDDED, *_EVERY_TIME)
        case "ci":
            return _CI
        case "ci-full":
            return (*_ONLY_FULL, *_CI)
    raise ValueError(f"{level!r} is no level: give one of {', '.join(LEVELS)}")


def order_parts(parts: Sequence[Part], entries: Mapping[str, int]) -> list[Part]:
    """Return the parts by their seconds, the longest first: those that run last end together then.

    Those without an entry come before the others: how long they take is not known.
    """
    return sorted(parts, key=lambda part: -entries.get(part.name, sys.maxsize))

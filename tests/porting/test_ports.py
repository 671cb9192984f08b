"""Test that ported applications write what the Java ones write, of the same records.

The first four are Kafka's own examples; the others are of some size: a pipeline of orders with
foreign keys, a detector of fraud by the Processor API, and sensors with sessions and `suppress`.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from streams import TopologyTestDriver
from tests.clients.programs import JVM_FLAGS, need, run
from tests.differential.peer import JARS
from tests.porting.ports.ported import PORTS
from tests.processes import HANG_LIMIT_S

Row = tuple[str, str, str, int]
"""Topic, key, value ("" deletes), time in ms."""
SEED = 7
WORDS = ["To", "be", "or", "NOT", "to"]


@pytest.fixture(scope="module")
def java_ported(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command of the Java applications."""
    need("javac")
    into, path = tmp_path_factory.mktemp("ported"), JARS.class_path()
    source = str(Path(__file__).parent / "java" / "Ported.java")
    run(["javac", "-Xlint:all", "-Werror", "-cp", path, "-d", str(into), source])
    return ["java", *JVM_FLAGS, "-cp", f"{into}:{path}", "Ported"]


def draw(count: int, step_ms: tuple[int, ...], row: Callable[[random.Random], Row]) -> list[Row]:
    """Draw rows in the order of time, of which some come late.

    None has the time 0, which librdkafka can't write.
    """
    rng, time_ms, rows = random.Random(SEED), 10_000, []
    for _ in range(count):
        time_ms += rng.choice(step_ms)
        topic, key, value, _ = row(rng)
        rows.append((topic, key, value, time_ms - rng.choice((0, 0, 0, 7_000))))
    return rows


def draw_order(rng: random.Random) -> Row:
    if rng.random() < 0.3:
        city = rng.choice(("berlin", "lyon", "oslo", ""))
        return "customers", f"c{rng.randrange(6)}", city, 0
    order = f"c{rng.randrange(6)}:{rng.randrange(1, 90)}"
    return "in", f"o{rng.randrange(20)}", order if rng.random() < 0.85 else "", 0


def draw_view(rng: random.Random) -> Row:
    user = f"user{rng.randrange(6)}"
    if rng.random() < 0.2:
        return "regions", user, rng.choice(("north", "south", "")), 0
    return "in", user, f"/page{rng.randrange(9)}", 0


INPUTS: Mapping[str, list[Row]] = {
    "word-count": draw(120, (1,), lambda rng: ("in", "k", " ".join(rng.choices(WORDS, k=4)), 0)),
    "page-views": draw(300, (100, 5_000, 40_000), draw_view),
    "temperature": draw(200, (200, 1_000), lambda rng: ("in", "s", str(rng.randrange(10, 30)), 0)),
    "anomalies": draw(300, (500, 4_000), lambda rng: ("in", "k", f"user{rng.randrange(5)}", 0)),
    "orders": draw(300, (1_000,), draw_order),
    "sensors": draw(
        200,
        (1_000, 5_000, 40_000),
        lambda rng: ("in", f"sensor{rng.randrange(4)}", str(rng.randrange(100)), 0),
    ),
    "fraud": draw(
        200,
        (1_000, 20_000),
        lambda rng: ("in", f"card{rng.randrange(5)}", str(rng.randrange(1, 60)), 0),
    ),
}


def run_java(command: list[str], name: str, state: Path) -> list[list[str]]:
    text = "".join("\t".join(map(str, row)) + "\n" for row in INPUTS[name])
    done = subprocess.run(
        [*command, name, str(state)],
        input=text,
        capture_output=True,
        text=True,
        timeout=HANG_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == 3]


def run_port(name: str) -> list[list[str]]:
    found = []
    with TopologyTestDriver(PORTS[name](), stores="memory") as driver:
        for topic, key, value, time_ms in INPUTS[name]:
            driver.topic(topic).pipe(key, value or None, timestamp_ms=time_ms)
        for topic in ("out", "alerts"):
            if topic in driver.topics:
                for record in driver.topic(topic).read_all():
                    value = "null" if record.value is None else record.value
                    found.append([topic, record.key, value, str(record.timestamp_ms)])
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PORTS)
def test_a_port_writes_what_the_java_application_writes(
    name: str, java_ported: list[str], tmp_path: Path
) -> None:
    expected = run_java(java_ported, name, tmp_path)
    assert len(expected) > 20, f"{name} writes too little to compare (seed {SEED})"
    assert run_port(name) == expected, f"seed {SEED}"

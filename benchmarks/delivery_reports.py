"""Measure what it costs a record to know which one a broker has refused, from delivery reports.

    python -m benchmarks.delivery_reports [--records 200000] [--rounds 5]

Each way writes the same records in transactions of 10 000 to an embedded broker. A plain loop and
the sink's call keep nothing of a record; one report for all is what `on_delivery` of the producer
gives, with the topic alone; a report of its own keeps for each record where it was read, in a table
until its report comes. Times are of the processor of this process, the best of the rounds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.recorded import record
from benchmarks.runs import broker_at

TRANSACTION_RECORDS = 10_000
VALUE = b"x" * 100
UNIT = "microseconds of processor time a record"
Write = Callable[[Producer, int], None]
"""Writes a record with this number."""


def write_plainly(producer: Producer, number: int) -> None:
    producer.produce("out", VALUE, b"key")


def write_as_a_sink(producer: Producer, number: int) -> None:
    producer.produce("out", VALUE, b"key", -1, None, None, 1, None)


class ReportForEach:
    """Keeps the number of each record until its report comes, and the errors by number."""

    def __init__(self) -> None:
        self.open: dict[int, tuple[str, int]] = {}
        self.errors: dict[int, Any] = {}

    def write(self, producer: Producer, number: int) -> None:
        self.open[number] = ("in", number)

        def note_report(error: Any, message: Any) -> None:
            origin = self.open.pop(number)
            if error is not None:
                self.errors[number] = origin, error

        producer.produce("out", VALUE, b"key", -1, note_report, None, 1, None)


class OneReport:
    """Notes the errors of all records, without knowing which they are of."""

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def note_error(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)


def measure_way(servers: str, name: str, write: Write, records: int, **settings: Any) -> float:
    """Return the seconds of processor time that writing the records takes."""
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": name, "linger.ms": 5, **settings}
    )
    producer.init_transactions(30)
    began_s = time.process_time()
    for first in range(0, records, TRANSACTION_RECORDS):
        producer.begin_transaction()
        for number in range(first, min(first + TRANSACTION_RECORDS, records)):
            write(producer, number)
        producer.flush(60)
        producer.commit_transaction(60)
    return time.process_time() - began_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ways: dict[str, tuple[Callable[[], Write], dict[str, Any]]] = {
        "a plain loop": (lambda: write_plainly, {}),
        "as the sink calls it": (lambda: write_as_a_sink, {}),
        "one report for all": (lambda: write_as_a_sink, {"on_delivery": OneReport().note_error}),
        "a report of its own": (lambda: ReportForEach().write, {}),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    with (
        tempfile.TemporaryDirectory(prefix="millrace-bench-") as directory,
        broker_at("embedded", Path(directory)) as servers,
    ):
        admin = AdminClient({"bootstrap.servers": servers})
        admin.create_topics([NewTopic("out", 1)])["out"].result(30)
        for _ in range(options.rounds):
            for name, (create, settings) in ways.items():
                seconds = measure_way(servers, name, create(), options.records, **settings)
                found[name].append(seconds / options.records * 1e6)
    for name, each in found.items():
        record("delivery_reports", name, "confluent-kafka", UNIT, each)
        print(f"{name:24} {min(each):6.2f} us a record")


if __name__ == "__main__":
    main()

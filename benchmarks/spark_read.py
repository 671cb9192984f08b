"""Measure reads of a topic into Spark with Millrace's data source and Spark's Kafka connector.

    python -m benchmarks.spark_read [--quick] [--records N] [--broker embedded|HOST:PORT]

Both have a Spark of two cores: ours the PySpark that is installed, the connector 4.0.0 (see
`tests.spark.connector.sessions`). They take turns, each reading key, value, topic, partition,
offset and timestamp of the committed records of the same topic, four partitions with an aborted
transaction after each committed one, into nothing (`noop`, which takes every row). Before that both
write what they read: equal row by row, or RuntimeError; and read some rounds that don't count,
since it takes the JVM that many to compile what it runs. Counted are seconds from the question to
its answer, planning included, and the processor time of all processes of a Spark, the broker's not.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks import recorded
from benchmarks.figures import CPU, SECONDS, all_cpu_s
from benchmarks.runs import broker_at
from tests.spark.connector.sessions import CONNECTOR, MILLRACE, Session

PARTITIONS = 4
TRANSACTION = 50_000
VALUE = b"v" * 100
WAIT_S = 120.0
WARMING = 5
"""Rounds that don't count."""


def write_topic(servers: str, records: int) -> str:
    """Write a topic of `records` committed records, with aborted ones between; return its name."""
    topic = f"spark-read-{uuid4().hex[:8]}"
    new = NewTopic(topic, PARTITIONS, config={"retention.ms": "-1"})
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([new])[topic].result(30)
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": topic,
            "linger.ms": 50,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.init_transactions(WAIT_S)
    for first in range(0, records, TRANSACTION):
        producer.begin_transaction()
        for number in range(first, min(first + TRANSACTION, records)):
            producer.produce(topic, VALUE, b"key-%d" % number, partition=number % PARTITIONS)
            if number % 10_000 == 0:
                producer.poll(0)
        producer.commit_transaction(WAIT_S)
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(topic, VALUE, b"aborted", partition=partition)
        producer.flush(WAIT_S)
        producer.abort_transaction(WAIT_S)
    return topic


def read_rows(directory: Path) -> pa.Table:
    """Read the rows that a session has written to a directory, sorted by partition and offset."""
    table = ds.dataset(directory, format="parquet").to_table()
    return table.sort_by([("partition", "ascending"), ("offset", "ascending")])


def check_same_rows(sessions: dict[str, Session], servers: str, topic: str, records: int) -> None:
    """Raise RuntimeError unless both sources read all records of the topic, and the same rows."""
    with tempfile.TemporaryDirectory() as directory:
        found = {}
        for source, session in sessions.items():
            into = Path(directory) / source
            session.ask(source, servers, topic, into=str(into))
            found[source] = read_rows(into)
        columns = [found[CONNECTOR][name].to_pylist() for name in ("partition", "offset")]
        if len(set(zip(*columns, strict=True))) != records:
            raise RuntimeError(f"the connector read {len(found[CONNECTOR])} of {records} records")
        for name in ("partition", "offset", "key", "value"):
            ours, theirs = (found[source][name].to_pylist() for source in (MILLRACE, CONNECTOR))
            if ours != theirs:
                raise RuntimeError(f"column {name} differs: {len(ours)} rows and {len(theirs)}")


def main() -> None:
    """Measure reads with both sources, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="100 000 records, two rounds")
    parser.add_argument("--broker", default="embedded", help="embedded, or HOST:PORT")
    given = parser.parse_args()
    records, rounds = (100_000, 2) if given.quick else (given.records, given.rounds)
    with (
        tempfile.TemporaryDirectory() as name,
        broker_at(given.broker, Path(name)) as servers,
        Session(Path(name), connector=False) as ours,
        Session(Path(name), connector=True) as theirs,
    ):
        topic = write_topic(servers, records)
        sessions = {MILLRACE: ours, CONNECTOR: theirs}
        check_same_rows(sessions, servers, topic, records)
        figures = measure_by_turns(sessions, servers, topic, rounds)
    print_and_record(figures, records)


Figures = dict[str, dict[str, list[float]]]
"""By source and unit, a value for each round."""


def measure_by_turns(
    sessions: dict[str, Session], servers: str, topic: str, rounds: int
) -> Figures:
    """Let the sources read by turns; return the seconds and processor time of each round."""
    figures: Figures = {source: {SECONDS: [], CPU: []} for source in sessions}
    for number in range(WARMING + rounds):
        for source, session in sessions.items():
            before_s = all_cpu_s(session.pid)
            seconds = session.ask(source, servers, topic)["seconds"]
            if number >= WARMING:
                figures[source][SECONDS].append(seconds)
                figures[source][CPU].append(all_cpu_s(session.pid) - before_s)
    return figures


def print_and_record(figures: Figures, records: int) -> None:
    """Print the medians in a table with the machine's load, and record all values."""
    load = os.getloadavg()[0]
    case = f"{records} records of 100 bytes"
    table = Table(title=f"{case}, local[2]; load of the machine {load:.1f}")
    for heading in ("source", "s", "from", "to", "records/s", "s of processors"):
        table.add_column(heading, justify="left" if heading == "source" else "right")
    for source, found in figures.items():
        each = found[SECONDS]
        median = statistics.median(each)
        shown = [f"{value:.2f}" for value in (median, min(each), max(each))]
        used = f"{statistics.median(found[CPU]):.2f}"
        table.add_row(source, *shown, f"{records / median:,.0f}", used)
        for unit, what, values in (
            (SECONDS, case, each),
            (CPU, f"{case}, processors", [value * 1e6 / records for value in found[CPU]]),
        ):
            baseline = source == CONNECTOR
            recorded.record("spark_read", what, source, unit, values, baseline=baseline)
    console = Console()
    console.print(table)
    for unit, what in ((SECONDS, "time"), (CPU, "processor time")):
        ours, theirs = (statistics.median(figures[each][unit]) for each in (MILLRACE, CONNECTOR))
        console.print(f"{what}: {MILLRACE} is {theirs / ours:.2f} times as fast as the connector")


if __name__ == "__main__":
    main()

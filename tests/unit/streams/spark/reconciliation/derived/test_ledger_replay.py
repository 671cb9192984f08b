"""Test that tasks are replayed in the order of the ledger, with their commits, or refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest

from streams import App, serdes
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, encode_order
from streams.spark.reconciliation.derivation.ledger_order import (
    LedgerOrder,
    TaskCommit,
    collect_ledger_orders,
)
from streams.spark.reconciliation.derivation.ledger_replay import (
    number_records,
    replay_numbered_records,
)
from streams.spark.reconciliation.derivation.replay import ReplayWork
from streams.spark.reconciliation.derivation.row_schemas import MADE, NUMBERED, READ

Record = tuple[bytes, bytes | None]
ROWS, STREAM = "rows", "stream"
RECORDS = {ROWS: [(b"k", b"1"), (b"k", b"2")], STREAM: [(b"k", b"a"), (b"k", b"b"), (b"k", b"c")]}
"""Of each topic the records of partition 3, whose offsets are even: markers lie between them."""


def build_app() -> App:
    """Build a join of a stream with a table, and a cached count of the stream."""
    app = App("joined")
    table = app.table(ROWS, key=serdes.string, value=serdes.string)
    stream = app.stream(STREAM, key=serdes.string, value=serdes.string)
    joined = stream.left_join(table, lambda value, row: f"{value}{row}")
    joined.to("joined", key=serdes.string, value=serdes.string)
    stream.group_by_key().count().to_stream().to("counts")
    return app


def commit(rows: int, stream: int, *runs: tuple[str, int]) -> TaskCommit:
    """Return a commit up to the given numbers of records, which were read in these runs."""
    places = [(0 if topic == ROWS else 1, count) for topic, count in runs]
    return TaskCommit({ROWS: 2 * rows, STREAM: 2 * stream}, encode_order(places))


def batches(schema: pa.Schema, rows: Sequence[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows one by one, as Spark may."""
    for row in rows:
        yield pa.RecordBatch.from_pylist([dict(zip(schema.names, row, strict=True))], schema=schema)


def rows_of(made: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in made for row in batch.to_pylist()]


def replay(
    commits: Sequence[TaskCommit], records: Mapping[str, Sequence[Record]] = RECORDS
) -> dict[str, list[str]]:
    """Replay the records; return the values of each topic that is written, in their order."""
    order: LedgerOrder = {3: list(commits)}
    rows = [
        (*record, topic, 3, 2 * number, number)
        for topic, of_topic in sorted(records.items())
        for number, record in enumerate(of_topic)
    ]
    numbered = rows_of(number_records(order, batches(READ, rows)))
    numbered.sort(key=lambda row: (row["commit"], row["place"]))
    in_order = [tuple(row[name] for name in NUMBERED.names) for row in numbered]
    [sub] = build_app().topology().subtopologies
    work = ReplayWork(sub, build_app().config.handlers)
    made = rows_of(replay_numbered_records((work, order), batches(NUMBERED, in_order)))
    values: dict[str, list[str]] = {}
    for row in made:
        assert row.keys() == set(MADE.names)
        count = row["target"] == "counts"
        text = str(row["value"][-1]) if count else row["value"].decode()
        values.setdefault(row["target"], []).append(text)
    return values


def test_each_record_finds_the_row_that_was_there_when_it_was_read() -> None:
    first = [commit(2, 3, (STREAM, 1), (ROWS, 1), (STREAM, 1), (ROWS, 1), (STREAM, 1))]
    assert replay(first)["joined"] == ["aNone", "b1", "c2"]
    another = [commit(2, 3, (ROWS, 2), (STREAM, 3))]
    assert replay(another)["joined"] == ["a2", "b2", "c2"]
    in_two = [commit(1, 2, (ROWS, 1), (STREAM, 2)), commit(2, 3, (STREAM, 1), (ROWS, 1))]
    assert replay(in_two)["joined"] == ["a1", "b1", "c1"]


def test_a_cached_table_passes_on_what_it_has_at_each_commit_of_the_task() -> None:
    once = [commit(2, 3, (ROWS, 2), (STREAM, 3))]
    assert replay(once)["counts"] == ["3"]
    twice = [commit(2, 1, (ROWS, 2), (STREAM, 1)), commit(2, 1), commit(2, 3, (STREAM, 2))]
    assert replay(twice)["counts"] == ["1", "3"]


def test_records_that_are_gone_or_that_the_ledger_does_not_know_are_refused() -> None:
    whole = [commit(2, 3, (ROWS, 2), (STREAM, 3))]
    with pytest.raises(ConfigError, match=r"of 5 records .* from partition 3, 4 are there"):
        replay(whole, {**RECORDS, ROWS: RECORDS[ROWS][:1]})
    with pytest.raises(ConfigError, match=r"of 3 records .*, 0 are there"):
        replay([commit(2, 0, (ROWS, 2)), commit(2, 3, (STREAM, 3))], {**RECORDS, STREAM: []})
    with pytest.raises(ConfigError, match=r"no commit in which stream\[3\] at offset 4 was read"):
        replay([commit(2, 2, (ROWS, 2), (STREAM, 2))])
    with pytest.raises(ConfigError, match=r"stream\[3\] at offset 4 is not among the records"):
        replay([commit(2, 3, (ROWS, 2), (STREAM, 2))])


def test_a_ledger_without_the_order_is_refused() -> None:
    ends = {ROWS: 4, STREAM: 6}
    with pytest.raises(ConfigError, match="the order was too long"):
        replay([TaskCommit(ends, None)])


def test_the_commits_of_tasks_are_collected_by_sub_topology_and_partition() -> None:
    topology = build_app().topology()

    def entry(number: int, offset: int, *topics: str) -> LedgerTransaction:
        task, order = f"0_{number}", encode_order([(0, offset)])
        inputs = {task: {Partition(topic, number): offset for topic in topics}}
        return LedgerTransaction(1, 0, inputs, {}, order={task: order})

    entries = [entry(1, 5, ROWS, STREAM), entry(0, 2, ROWS), entry(1, 9, ROWS, STREAM)]
    orders = collect_ledger_orders(entries, topology)
    assert {n: [c.ends for c in commits] for n, commits in orders[0].items()} == {
        0: [{ROWS: 2}],
        1: [{ROWS: 5, STREAM: 5}, {ROWS: 9, STREAM: 9}],
    }


def test_of_tasks_that_read_other_topics_nothing_is_known() -> None:
    entry = LedgerTransaction(1, 0, {"0_0": {Partition("before", 0): 1}}, {})
    later = LedgerTransaction(1, 0, {"0_0": {Partition(ROWS, 0): 1}}, {})
    assert collect_ledger_orders([entry, later], build_app().topology()) == {}

"""Test a table's own topic as its changelog with real clients: up to the committed offset."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from streams import App, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = IN_CI

TEXT: Any = {"key": serdes.string, "value": serdes.string}


def counting(topics: Topics, state: Path, **settings: Any) -> App:
    """Build an application that counts how many rows have each value."""
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
        topology_optimization="reuse.ktable.source.topics",
        **settings,
    )
    rows = app.table(topics.source, **TEXT, store="rows")
    counts = rows.group_by(lambda key, value: (value, key), **TEXT).count(store="counts")
    counts.to_stream().to(topics.target)
    return app


def send(producer: Producer, topic: str, pairs: list[tuple[str | None, str | None]]) -> None:
    for key, value in pairs:
        producer.produce(topic, value, key)
    assert producer.flush(HANG_LIMIT_S) == 0


def until_counted(topics: Topics, rows: dict[str, str]) -> None:
    expected = Counter(rows.values())

    def found() -> dict[str, int]:
        latest = {
            m.key().decode(): serdes.int64.deserialize(m.value())
            for m in records(topics.servers, topics.target, PARTITIONS)
        }
        return {value: count for value, count in latest.items() if count}

    wait_until(lambda: found() == expected, what=lambda: f"{found()}, not {expected}")


def test_a_lost_store_is_restored_up_to_the_offset_and_the_rest_is_processed(
    topics: Topics, tmp_path: Path
) -> None:
    plain = Producer({"bootstrap.servers": topics.servers})
    named = {"bootstrap.servers": topics.servers, "transactional.id": topics.application}
    transactions = Producer(named)
    transactions.init_transactions(HANG_LIMIT_S)
    rows = {f"k{n}": f"v{n % 3}" for n in range(30)}
    with counting(topics, tmp_path / "lost").start():
        send(plain, topics.source, [*rows.items(), (None, "no key")])
        transactions.begin_transaction()
        send(transactions, topics.source, [(f"k{n}", "aborted") for n in range(30)])
        transactions.abort_transaction(HANG_LIMIT_S)
        transactions.begin_transaction()
        changed = {f"k{n}": f"v{n % 2}" for n in range(0, 30, 4)}
        send(transactions, topics.source, [*changed.items(), ("k1", None)])
        transactions.commit_transaction(HANG_LIMIT_S)
        rows |= changed
        del rows["k1"]
        until_counted(topics, rows)
    # What comes now is in the topic, and was never in the table.
    later = {f"k{n}": "later" for n in range(0, 30, 3)}
    send(plain, topics.source, [*later.items(), ("k2", None)])
    rows |= later
    del rows["k2"]
    with counting(topics, tmp_path / "here").start() as running:
        until_counted(topics, rows)
        assert {key: running.store("rows").get(key) for key in rows} == rows
        assert running.metrics()["restored_records"] > 30
    existing = (
        AdminClient({"bootstrap.servers": topics.servers}).list_topics(timeout=HANG_LIMIT_S).topics
    )
    assert f"{topics.application}-counts-changelog" in existing
    assert f"{topics.application}-rows-changelog" not in existing


def test_what_a_first_start_with_latest_skips_is_not_in_a_restored_table_either(
    topics: Topics, tmp_path: Path
) -> None:
    plain = Producer({"bootstrap.servers": topics.servers})
    send(plain, topics.source, [(f"k{n}", "before") for n in range(30)])
    with counting(topics, tmp_path / "lost", auto_offset_reset="latest").start() as running:
        running.wait_for("RUNNING", timeout=HANG_LIMIT_S)
        send(plain, topics.source, [(f"new{n}", "after") for n in range(30)])
        until_counted(topics, {f"new{n}": "after" for n in range(30)})
        before = dict(running.store("rows").all())
    with counting(topics, tmp_path / "here", auto_offset_reset="latest").start() as running:
        send(plain, topics.source, [("new0", "later")])
        until_counted(topics, {f"new{n}": "after" for n in range(1, 30)} | {"new0": "later"})
        assert dict(running.store("rows").all()) == before | {"new0": "later"}

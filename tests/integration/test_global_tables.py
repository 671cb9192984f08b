"""Test that every task looks up the whole global table, after restarts and deletions too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from streams import App, Processor, Record, Store, StreamsError, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import PARTITIONS, Topics
from tests.processes import HANG_LIMIT_S, wait_until
from tests.reading import records

pytestmark = pytest.mark.sampled(1, by="broker")

TEXT: Any = {"key": serdes.string, "value": serdes.string}


class LookUp(Processor[str, str, str, str]):
    """Replaces the value by the rate of its currency, or "none"."""

    def process(self, record: Record[str, str]) -> None:
        rates = self.context.store("rates")
        self.context.forward(record.with_value(rates.get(record.value) or "none"))


def looking_up(topics: Topics, state: Path, store: Store) -> App:
    app = App(
        topics.application,
        bootstrap_servers=topics.servers,
        state_dir=state,
        commit_interval_ms=50,
    )
    app.global_table(f"{topics.application}-rates", **TEXT, store=store)
    app.stream(topics.source, **TEXT).process(LookUp, **TEXT).to(topics.target)
    return app


def send(topics: Topics, topic: str, pairs: list[tuple[str, str | None]]) -> None:
    producer = Producer({"bootstrap.servers": topics.servers})
    for key, value in pairs:
        producer.produce(topic, value, key)
    assert producer.flush(HANG_LIMIT_S) == 0


def asked(topics: Topics, currencies: list[str], answers: int) -> list[str]:
    """Ask one more question for each currency and return the answers, the last of all `answers`."""
    send(topics, topics.source, [(currency, currency) for currency in currencies])
    found: list[Any] = []

    def enough() -> bool:
        found[:] = records(topics.servers, topics.target, PARTITIONS)
        return len(found) >= answers

    wait_until(enough, what=lambda: f"{len(found)} of {answers} answers")
    latest = {m.key().decode(): m.value().decode() for m in found}
    return [latest[currency] for currency in currencies]


@pytest.mark.parametrize("store", [Store.persistent("rates"), Store.in_memory("rates")])
def test_a_global_table_is_whole_before_the_first_record_and_follows_its_topic(
    topics: Topics, tmp_path: Path, store: Store
) -> None:
    rates = f"{topics.application}-rates"
    topics.create(rates)
    # Keys of the table and of the records are in partitions of their own: it does not matter.
    send(topics, rates, [(f"C{n}", str(n)) for n in range(20)])
    currencies = [f"C{n}" for n in range(20)]
    with looking_up(topics, tmp_path, store).start() as running:
        assert asked(topics, currencies, 20) == [str(n) for n in range(20)]
        send(topics, rates, [("C3", "three"), ("C4", None)])
        seen = running.store("rates")
        wait_until(lambda: seen.get("C4") is None, what="the deletion")
        wait_until(lambda: seen.get("C3") == "three", what="the change")
        assert running.store(rates).get("C3") == "three", (
            "a global table is found by its topic, too"
        )
        assert asked(topics, ["C3", "C4", "C5"], 23) == ["three", "none", "5"]
    send(topics, rates, [("C5", "five")])
    with looking_up(topics, tmp_path, store).start():
        assert asked(topics, ["C3", "C4", "C5", "C6"], 27) == ["three", "none", "five", "6"]


@IN_CI
@pytest.mark.parametrize("new_count", [2, 50], ids=["fewer records", "more records"])
def test_a_topic_made_again_under_the_worker_ends_it_and_is_copied_anew(
    topics: Topics, tmp_path: Path, new_count: int
) -> None:
    rates = f"{topics.application}-rates"
    topics.create(rates)
    send(topics, rates, [(f"old {n}", "1") for n in range(20)])
    app = looking_up(topics, tmp_path, Store.persistent("rates"))
    refusal = f"topic '{rates}' of 'rates' is another topic of the same name"
    running = app.start()
    assert asked(topics, ["old 3"], 1) == ["1"]
    topics.make_again(rates)
    send(topics, rates, [(f"new {n}", "2") for n in range(new_count)])
    with pytest.raises(StreamsError, match=refusal), running:
        running.wait_for("NOT_RUNNING", HANG_LIMIT_S)
    with app.start():
        assert asked(topics, ["old 3", "new 0", "new 1"], 4) == ["none", "2", "2"]


@IN_CI
def test_what_the_serdes_refuse_ends_the_worker_or_is_skipped(
    topics: Topics, tmp_path: Path
) -> None:
    rates = f"{topics.application}-rates"
    topics.create(rates)
    send(topics, rates, [("good", "1")])
    producer = Producer({"bootstrap.servers": topics.servers})
    producer.produce(rates, b"\xff", b"bad")
    assert producer.flush(HANG_LIMIT_S) == 0
    app = looking_up(topics, tmp_path, Store.in_memory("rates"))
    with pytest.raises(StreamsError, match=r"can't read .*-rates\[\d\]@\d"), app.start() as running:
        running.wait_for("RUNNING", HANG_LIMIT_S)
    app.configure(None, deserialization_handler="skip")
    with app.start():
        assert asked(topics, ["good", "bad"], 2) == ["1", "none"]


@IN_CI
def test_a_topic_that_is_not_there_is_named(topics: Topics, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=f"topic '{topics.application}-rates' does not exist"):
        looking_up(topics, tmp_path, Store.in_memory("rates")).start()

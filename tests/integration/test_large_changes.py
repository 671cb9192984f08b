"""Test that a value which is too large for a changelog is a matter of the record that makes it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from streams import App, Store, StoreUnavailable, StreamsError, serdes
from tests.brokers import IN_CI
from tests.integration.cluster import Topics
from tests.processes import HANG_LIMIT_S, wait_until

pytestmark = [IN_CI, pytest.mark.sampled(1)]

TEXT: Any = {"key": serdes.string, "value": serdes.string}
LIMIT_BYTES = 1_000
PART = "x" * 90
RECORDS = 25
KEPT = 9
"""So many parts, with the JSON around them, fit into a change. With one more the settings do not
exclude it, as the overhead of a record is not known to the byte, and the broker refuses it."""


class Gathering:
    """Runs an application whose lists grow beyond what their changelog takes."""

    def __init__(self, topics: Topics, state: Path, guarantee: str) -> None:
        self.topics = topics
        admin = AdminClient({"bootstrap.servers": topics.servers})
        settings = {"cleanup.policy": "compact", "max.message.bytes": str(LIMIT_BYTES)}
        changelog = NewTopic(f"{topics.application}-lists-changelog", 1, config=settings)
        inputs = NewTopic(f"{topics.application}-parts", 1)
        for created in admin.create_topics([changelog, inputs]).values():
            created.result(HANG_LIMIT_S)
        self.input = f"{topics.application}-parts"
        self._settings: dict[str, Any] = {
            "bootstrap_servers": topics.servers,
            "state_dir": state,
            "processing_guarantee": guarantee,
            "commit_interval_ms": 50,
        }
        producer = Producer({"bootstrap.servers": topics.servers})
        for number in range(RECORDS):
            producer.produce(self.input, PART, "k", 0)
            producer.produce(self.input, f"other {number}", f"k{number}", 0)
        assert producer.flush(HANG_LIMIT_S) == 0

    def start(self, handler: Any) -> Any:
        app = App(self.topics.application, processing_handler=handler, **self._settings)
        app.stream(self.input, **TEXT).group_by_key().aggregate(
            list,
            lambda key, value, parts: [*parts, value],
            value=serdes.json,
            store=Store.persistent("lists"),
            name="gather",
        ).to_stream().map_values(len, value=serdes.int64).to(self.topics.target)
        return app.start()


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_records_beyond_the_limit_are_skipped_and_the_store_keeps_the_others(
    topics: Topics, tmp_path: Path, guarantee: str
) -> None:
    gathering = Gathering(topics, tmp_path, guarantee)
    with gathering.start("skip") as running:
        store = running.store("lists")

        def is_done() -> bool:
            with suppress(StoreUnavailable):
                return bool(store.get(f"k{RECORDS - 1}") and running.metrics()["dropped"])
            return False

        wait_until(is_done, what=lambda: f"the others: {running.health().why}")
        assert 1 <= running.metrics()["values_refused"] <= 2
        assert running.metrics()["dropped"] >= RECORDS - KEPT
        assert store.get("k") == [PART] * KEPT
        assert all(store.get(f"k{n}") == [f"other {n}"] for n in range(RECORDS))


def test_by_default_the_thread_ends_with_record_store_size_and_setting(
    topics: Topics, tmp_path: Path
) -> None:
    gathering = Gathering(topics, tmp_path, "exactly_once_v2")
    running = gathering.start("fail")
    wait_until(lambda: running.state == "ERROR", timeout_s=20, what="the end")
    with pytest.raises(StreamsError) as error:
        running.close()
    message = str(error.value)
    for part in (
        f"step 'gather' can't process {gathering.input}[0]@{2 * KEPT + 2}: store 'lists'",
        f"max.message.bytes={LIMIT_BYTES} of '{topics.application}-lists-changelog'",
        "processing_handler= decides",
    ):
        assert part in message, message

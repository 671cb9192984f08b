"""Test that the steps of a foreign-key join hash the rows of a slice together."""

from __future__ import annotations

import random
from typing import Any

import pytest

from state.memory import MemoryDisk
from streams import App, Store, serdes
from streams.common import murmur3
from streams.common.murmur3 import murmur3_hash128
from streams.common.topic_partitions import Partition
from streams.runtime.tasks.bound_steps import BoundSteps
from streams.runtime.tasks.context import TaskContext
from streams.runtime.tasks.early_serialization import EarlySerialization
from streams.runtime.tasks.failures import FAIL_ON_ANY_ERROR
from streams.runtime.tasks.partition_group import (
    NEVER_WAIT,
    RecordOrderSettings,
    create_record_buffer,
)
from streams.runtime.tasks.store_opening import open_store
from streams.runtime.tasks.task_stores import TaskStores
from streams.serdes.foreign_key_messages import (
    SubscriptionResponseWrapper,
    create_response_serde,
    create_subscription_serde,
)
from streams.testing.cluster import Message
from streams.testing.simulated_host import SimulatedHost

LEFT = Partition("left", 0)
RESPONSES = Partition("app-j-subscription-response-topic", 0)


class Made:
    """Holds the left side of a foreign-key join, and the values that it produces."""

    def __init__(self) -> None:
        app = App("app")
        rows = app.table(
            "left",
            key=serdes.string,
            value=serdes.string,
            store=Store.in_memory("t", caching=False),
        )
        others = app.table("right", key=serdes.string, value=serdes.string)
        rows.join(others, max, foreign_key=lambda key, row: row[:1], value=serdes.string, name="j")
        left = next(each for each in app.topology().subtopologies if "left" in each.sources)
        stores = {spec.name: open_store(spec, MemoryDisk()) for spec in left.stores}
        self.produced: list[bytes] = []
        producer: Any = self
        flow_control: Any = None
        context = TaskContext(
            "0_0", producer, stores, FAIL_ON_ANY_ERROR, stream_time_ms=-1, clocks=SimulatedHost(0)
        )
        self._early = EarlySerialization(lambda: stores, lambda: False)
        self._steps = BoundSteps(left, context, TaskStores("0_0", {}, stores), self._early)
        topics = self._steps.bind_sources()
        self._buffered = create_record_buffer(
            {each: topics[each.topic] for each in (LEFT, RESPONSES)},
            {},
            flow_control,
            RecordOrderSettings(NEVER_WAIT),
        )

    def process(self, records: dict[Partition, list[bytes | None]]) -> None:
        """Process one slice: the values of each partition, at the same times in all of them."""
        for partition, values in records.items():
            self._buffered.add_records(
                partition,
                [Message(partition, i, b"%d" % i, value, i) for i, value in enumerate(values)],
            )
        self._steps.process_runs(self._buffered.pop_next_runs(1_000, 0))

    def produce(self, topic: str, value: Any, key: Any, *rest: Any) -> None:
        self.produced.append(value)

    def wait_for_queue_room(self) -> None:
        """Return at once, since the queue is never full."""

    def find_transaction_error(self) -> Exception | None:
        return None

    def fetch_partition_count(self, topic: str) -> int:
        """Return 1 for every topic."""
        return 1


def create_rows() -> list[bytes]:
    """Create rows that no test has hashed before."""
    return [b"%d %x" % (i, random.getrandbits(8 * 50)) for i in range(20)]


def list_hashes(values: list[bytes]) -> list[bytes | None]:
    return [create_subscription_serde(serdes.string).deserialize(value).hash for value in values]


def test_rows_of_a_slice_are_hashed_together_after_the_first_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made()
    made.process({LEFT: [b"0 row"]})
    rows = create_rows()
    made.produced.clear()
    with monkeypatch.context() as patched:
        patched.setattr(murmur3, "compute_hash128", None)
        made.process({LEFT: [*rows, None, rows[0]]})
    assert list_hashes(made.produced) == [murmur3_hash128(row) for row in (*rows, rows[0])]


def test_only_rows_are_hashed_of_a_slice_that_has_responses_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = Made()
    made.process({LEFT: [b"0 row"]})
    hashed: list[bytes] = []

    def note_rows(rows: list[bytes], whole_blocks: int) -> list[bytes]:
        hashed.extend(rows)
        return rows

    monkeypatch.setattr(murmur3, "compute_hashes", note_rows)
    rows = create_rows()
    response = create_response_serde(serdes.string).serialize(
        SubscriptionResponseWrapper(b"-" * 16, None, 0)
    )
    made.process({LEFT: list(rows), RESPONSES: [response + row for row in rows]})
    assert sorted(hashed) == sorted(rows)

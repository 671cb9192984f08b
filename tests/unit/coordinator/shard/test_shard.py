"""Test that a shard decides, appends, applies and answers, and does nothing if the append fails."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from coordinator.errors import Refused
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.decision import (
    Decision,
    LogRecordOrigin,
    TransactionalProducer,
    TransactionEnded,
)
from coordinator.shard.shard import BrokenInvariant, Shard
from tests.unit.coordinator.fakes import FakeClock, FakeLog


class TextCodec:
    def encode_record(self, record: str) -> tuple[bytes | None, bytes | None]:
        return b"\0\1", record.encode()

    def encode_together(self, records: Sequence[str]) -> None:
        return None

    def decode_record(self, key: bytes | None, value: bytes | None) -> str | None:
        if value is None:
            raise ValueError("no value")
        return None if value == b"of another kind" else value.decode()


class Notes:
    """Keeps the applied records with their offsets in the log."""

    def __init__(self, log: FakeLog) -> None:
        self.applied: list[tuple[object, int, int]] = []
        self.shard: Shard[str] = Shard("notes-0", log, TextCodec(), self.apply, FakeClock())

    def apply(self, record: str | TransactionEnded, origin: LogRecordOrigin) -> None:
        if record == "poison":
            raise ValueError("poison")
        self.applied.append((record, origin.offset, origin.producer_id))


def test_records_are_applied_with_their_place_in_the_log_before_the_answer() -> None:
    log = FakeLog()
    notes = Notes(log)
    assert notes.shard.execute_decision(Decision(["a", "b"], "done")) == "done"
    assert (
        notes.shard.execute_decision(Decision(["c"], "again", producer=TransactionalProducer(7, 2)))
        == "again"
    )
    notes.shard.end_transaction(TransactionEnded(7, 2, committed=True))
    assert notes.applied == [
        ("a", 0, -1),
        ("b", 1, -1),
        ("c", 2, 7),
        (TransactionEnded(7, 2, committed=True), 3, 7),
    ]


def test_a_decision_without_records_leaves_the_log_alone() -> None:
    log = FakeLog()
    assert Notes(log).shard.execute_decision(Decision([], 42)) == 42
    assert log.end_offset == 0


def test_many_records_stand_in_as_many_batches_as_it_takes() -> None:
    log = FakeLog()
    notes = Notes(log)
    log.batch_bytes_max = 61 + 100
    long = "x" * 60
    notes.shard.append_in_batches(["a", "b", long, long, "c"])
    assert [batch.record_count for batch in log.batches()] == [2, 1, 1, 1]
    assert [(record, offset) for record, offset, _ in notes.applied] == [
        ("a", 0),
        ("b", 1),
        (long, 2),
        (long, 3),
        ("c", 4),
    ]
    notes.shard.append_in_batches([])
    assert log.end_offset == 5


def test_of_many_records_those_before_a_failed_append_are_true() -> None:
    log = FakeLog()
    notes = Notes(log)
    log.fail_after = 1
    log.batch_bytes_max = 61 + 30
    with pytest.raises(Refused):
        notes.shard.append_in_batches(["a", "b", "c"])
    assert notes.applied == [("a", 0, -1)]


def test_a_failed_append_changes_nothing() -> None:
    log = FakeLog()
    notes = Notes(log)
    log.fail_after = 0
    with pytest.raises(Refused):
        notes.shard.execute_decision(Decision(["a"], None))
    with pytest.raises(Refused):
        notes.shard.end_transaction(TransactionEnded(7, 2, committed=True))
    assert notes.applied == []
    log.fail_after = None
    notes.shard.execute_decision(Decision(["a"], None))
    assert notes.applied == [("a", 0, -1)]


def test_loading_applies_what_was_applied_live() -> None:
    log = FakeLog()
    live = Notes(log)
    live.shard.execute_decision(Decision(["a", "b"], None))
    live.shard.execute_decision(Decision(["c", "d"], None, producer=TransactionalProducer(7, 2)))
    live.shard.end_transaction(TransactionEnded(7, 2, committed=False))
    loaded = Notes(log)
    assert loaded.shard.replay_log() == 5
    assert loaded.applied == live.applied


def test_records_of_another_kind_are_passed_over_on_loading() -> None:
    log = FakeLog()
    Notes(log).shard.execute_decision(Decision(["a", "of another kind", "b"], None))
    loaded = Notes(log)
    loaded.shard.replay_log()
    assert [record for record, _, _ in loaded.applied] == ["a", "b"]


def test_a_broken_invariant_stops_the_shard_loudly_and_for_good() -> None:
    log = FakeLog()
    notes = Notes(log)
    with pytest.raises(BrokenInvariant, match="notes-0: applying 'poison' from offset 0"):
        notes.shard.execute_decision(Decision(["poison"], None))
    with pytest.raises(BrokenInvariant, match="poison"):
        notes.shard.execute_decision(Decision(["fine"], None))
    assert log.end_offset == 1
    loaded = Notes(log)
    loaded.shard.replay_log()
    assert loaded.shard.coordinator_state is CoordinatorState.FAILED

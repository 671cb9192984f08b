from __future__ import annotations

import pytest

from coordinator.errors import Code, Refused
from coordinator.log.batch import parse_header
from coordinator.log.batch_encoding import encode_marker
from coordinator.log.producer_state import BATCHES_KEPT, ProducerStateManager
from tests.unit.coordinator.log.logs import NOW_MS, produced

LAST = 2**31 - 1


def wrote(
    producers: ProducerStateManager, sequence: int, count: int = 1, *, epoch: int = 3
) -> None:
    """Record `count` records of producer 7 at offset 100 + sequence."""
    batch = produced([b"v"] * count, producer_id=7, epoch=epoch, sequence=sequence)
    assert producers.find_retried_append_or_refuse(batch) is None
    producers.apply_batch(batch, 100 + sequence)


def end_transaction(producers: ProducerStateManager, *, epoch: int, coordinator_epoch: int) -> None:
    """Apply a marker of producer 7 at offset 200 that commits what is open."""
    marker = encode_marker(
        7, epoch, committed=True, coordinator_epoch=coordinator_epoch, timestamp_ms=NOW_MS
    )
    producers.apply_marker(parse_header(marker), 200)


def outcome(
    producers: ProducerStateManager,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 3,
    transactional: bool = False,
) -> int | Code | None:
    """Return the duplicate's offset, the code of a refusal, or None to append the batch."""
    batch = produced(
        [b"v"] * count,
        producer_id=7,
        epoch=epoch,
        sequence=sequence,
        transactional=transactional,
    )
    try:
        earlier = producers.find_retried_append_or_refuse(batch)
    except Refused as refused:
        return refused.code
    return None if earlier is None else earlier.base_offset


@pytest.mark.parametrize(
    ("sequence", "count", "epoch", "expected"),
    [
        (2, 1, 3, None),
        (0, 2, 3, 100),
        (0, 1, 3, Code.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (1, 1, 3, Code.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 1, 3, Code.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, 1, 2, Code.INVALID_PRODUCER_EPOCH),
        (0, 2, 2, Code.INVALID_PRODUCER_EPOCH),
        (0, 2, 4, None),
        (2, 1, 4, Code.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
    ids=[
        "the next sequence",
        "a retry",
        "a retry of half a batch",
        "the other half",
        "a gap",
        "an older epoch",
        "a retry in an older epoch",
        "a newer epoch from 0",
        "a newer epoch from elsewhere",
    ],
)
def test_after_sequences_0_and_1_of_epoch_3(
    sequence: int, count: int, epoch: int, expected: int | Code | None
) -> None:
    producers = ProducerStateManager()
    wrote(producers, 0, 2)
    assert outcome(producers, sequence, count, epoch=epoch) == expected


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert outcome(ProducerStateManager(), 41) is None


def test_the_sequence_after_the_largest_int32_is_0() -> None:
    producers = ProducerStateManager()
    wrote(producers, LAST)
    assert outcome(producers, 0) is None
    assert outcome(producers, 1) == Code.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_five_batches_are_recognised_and_no_earlier_one() -> None:
    producers = ProducerStateManager()
    for sequence in range(BATCHES_KEPT + 1):
        wrote(producers, sequence)
    assert outcome(producers, 0) == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    for sequence in range(1, BATCHES_KEPT + 1):
        assert outcome(producers, sequence) == 100 + sequence


def test_a_new_epoch_forgets_the_batches_of_the_old_one() -> None:
    producers = ProducerStateManager()
    wrote(producers, 0)
    wrote(producers, 0, epoch=4)
    assert outcome(producers, 0, epoch=4) == 100
    assert outcome(producers, 0, epoch=3) == Code.INVALID_PRODUCER_EPOCH


def test_a_write_outside_the_open_transaction_is_refused() -> None:
    producers = ProducerStateManager()
    producers.apply_batch(produced(producer_id=7, epoch=3, transactional=True), 100)
    assert outcome(producers, 1) == Code.INVALID_TXN_STATE
    assert outcome(producers, 1, transactional=True) is None


def test_only_the_epoch_that_wrote_has_the_transaction_open() -> None:
    producers = ProducerStateManager()
    producers.apply_batch(produced(producer_id=7, epoch=3, transactional=True), 100)
    assert producers.has_open_transaction(7, 3)
    assert not producers.has_open_transaction(7, 4)
    assert not producers.has_open_transaction(8, 3)


def test_sequences_go_on_after_a_marker_and_begin_again_if_it_raised_the_epoch() -> None:
    producers = ProducerStateManager()
    wrote(producers, 0)
    end_transaction(producers, epoch=3, coordinator_epoch=0)
    assert outcome(producers, 1) is None
    end_transaction(producers, epoch=4, coordinator_epoch=0)
    assert outcome(producers, 1, epoch=4) == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outcome(producers, 0, epoch=4) is None


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "expected"),
    [
        (3, 5, None),
        (4, 6, None),
        (2, 5, Code.INVALID_PRODUCER_EPOCH),
        (3, 4, Code.TRANSACTION_COORDINATOR_FENCED),
    ],
)
def test_a_marker_of_an_older_epoch_or_coordinator_is_refused(
    epoch: int, coordinator_epoch: int, expected: Code | None
) -> None:
    producers = ProducerStateManager()
    end_transaction(producers, epoch=3, coordinator_epoch=5)
    try:
        producers.check_marker(7, epoch, coordinator_epoch)
        found = None
    except Refused as refused:
        found = refused.code
    assert found == expected


def test_a_silent_producer_is_forgotten_but_never_in_a_transaction() -> None:
    producers = ProducerStateManager()
    wrote(producers, 0)
    producers.apply_batch(produced(producer_id=8, transactional=True), 101)
    assert producers.forget_idle_producers(NOW_MS + 99, 100) == 0
    assert producers.forget_idle_producers(NOW_MS + 100, 100) == 1
    assert producers.find_producer(7) is None
    assert producers.find_producer(8) is not None


def came(producers: ProducerStateManager, sequence: int, epoch: int = 3) -> None:
    """Record a transactional batch that was refused before its transaction wrote here."""
    producers.track_lowest_sequence(
        produced([b"v"], producer_id=7, epoch=epoch, sequence=sequence, transactional=True)
    )


@pytest.mark.parametrize("known", [False, True], ids=["unknown producer", "known producer"])
def test_after_a_first_batch_that_was_not_taken_only_it_or_one_before_it_is(known: bool) -> None:
    producers = ProducerStateManager()
    if known:
        wrote(producers, 0, 4)
    came(producers, 4)
    came(producers, 5)
    assert outcome(producers, 5, transactional=True) == Code.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert outcome(producers, 4, transactional=True) is None


def test_once_the_first_batch_is_taken_the_sequence_goes_on() -> None:
    producers = ProducerStateManager()
    came(producers, 0)
    producers.apply_batch(
        produced([b"v"], producer_id=7, epoch=3, sequence=0, transactional=True), 0
    )
    assert outcome(producers, 1, transactional=True) is None


def test_a_new_epoch_begins_anew_whatever_of_the_old_one_was_not_taken() -> None:
    producers = ProducerStateManager()
    came(producers, 5)
    came(producers, 0, epoch=4)
    assert outcome(producers, 0, epoch=4, transactional=True) is None


def test_what_was_not_taken_is_forgotten_with_idle_producers() -> None:
    producers = ProducerStateManager()
    came(producers, 0)
    producers.forget_idle_producers(NOW_MS + 1_000, 1_000)
    assert outcome(producers, 1, transactional=True) is None


def test_the_age_of_an_open_transaction_is_by_the_brokers_clock() -> None:
    now_ms = 5_000
    producers = ProducerStateManager(lambda: now_ms)
    producers.apply_batch(produced(producer_id=7, transactional=True), 100)
    assert producers.oldest_open_transaction_at_ms() == 5_000, (
        "whatever the timestamps of its records"
    )
    assert producers.use_clock_from_now(lambda: 9_000).oldest_open_transaction_at_ms() == 9_000

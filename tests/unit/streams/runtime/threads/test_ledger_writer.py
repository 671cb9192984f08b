"""Test that a producer counts the runs of offsets it writes, and the ledger record made of them."""

from __future__ import annotations

from typing import Any

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import OutcomeUnknown
from streams.ledger import WrittenRange
from streams.runtime.clients.delivered_offsets import DeliveredOffsets
from streams.testing.cluster import Message

OUT, OTHER = Partition("out", 0), Partition("other", 3)


def reported(written: DeliveredOffsets, *where: tuple[Partition, int], error: Any = None) -> None:
    for partition, offset in where:
        written.note_delivery(error, Message(partition, offset, b"k", b"v", 0))


def test_offsets_without_a_gap_are_one_run() -> None:
    written = DeliveredOffsets()
    reported(written, (OUT, 5), (OUT, 6), (OTHER, 0), (OUT, 7), (OUT, 10), (OUT, 11))
    assert written.pop_offset_runs() == {
        OUT: (WrittenRange(5, 7), WrittenRange(10, 11)),
        OTHER: (WrittenRange(0, 0),),
    }


def test_the_next_transaction_begins_with_nothing() -> None:
    written = DeliveredOffsets()
    reported(written, (OUT, 5))
    written.pop_offset_runs()
    assert written.pop_offset_runs() == {}
    reported(written, (OUT, 6))
    assert written.pop_offset_runs() == {OUT: (WrittenRange(6, 6),)}


@pytest.mark.parametrize(("offset", "error"), [(5, "timed out"), (-1, None), (-1001, None)])
def test_a_record_of_which_nobody_knows_where_it_is_makes_the_outcome_unknown(
    offset: int, error: str | None
) -> None:
    written = DeliveredOffsets()
    reported(written, (OUT, 4))
    reported(written, (OUT, offset), error=error)
    with pytest.raises(OutcomeUnknown, match=r"out\[0\]"):
        written.pop_offset_runs()

"""The soak's checks see what they are there for."""

from __future__ import annotations

from functools import reduce

from tests.soak_app.topology import next_digest
from tests.soak_app.verdict import copied, counted, digested, regrouped

WRITTEN = {"key-1": 3, "key-11": 1}
RIGHT = [("key-1", 0), ("key-11", 0), ("key-1", 1), ("key-1", 2)]


def test_every_record_once_and_in_order_passes() -> None:
    assert copied(RIGHT, WRITTEN) == []


def test_a_record_that_is_missing_is_named() -> None:
    (gap,) = copied([pair for pair in RIGHT if pair != ("key-1", 1)], WRITTEN)
    assert gap == "copied: key-1 has 2 where 1 follows: lost before it"


def test_the_last_record_missing_is_seen() -> None:
    assert copied(RIGHT[:-1], WRITTEN) == ["copied: key-1 ends with 1 and not 2"]


def test_a_key_that_is_missing_altogether_is_seen() -> None:
    without = [pair for pair in RIGHT if pair[0] != "key-11"]
    assert copied(without, WRITTEN) == ["copied: key-11 ends with -1 and not 0"]


def test_a_record_that_is_there_twice_is_seen() -> None:
    wrong = copied([*RIGHT, ("key-1", 2)], WRITTEN)
    assert wrong == ["copied: key-1 has 2 where 3 follows: doubled or late"]


def test_two_records_in_the_wrong_order_are_seen() -> None:
    swapped = [("key-1", 0), ("key-11", 0), ("key-1", 2), ("key-1", 1)]
    assert copied(swapped, WRITTEN)


def test_a_count_that_falls_or_stays_is_seen() -> None:
    assert counted("counts", [("key-1", 1), ("key-1", 3)], {"key-1": 3}) == []
    assert counted("counts", [("key-1", 3), ("key-1", 3)], {"key-1": 3})
    assert counted("counts", [("key-1", 4), ("key-1", 3)], {"key-1": 3})


def test_a_count_that_ends_too_low_or_too_high_is_seen() -> None:
    assert counted("counts", [("key-1", 2)], {"key-1": 3})
    assert counted("counts", [("key-1", 4)], {"key-1": 3})


def test_a_digest_is_that_of_all_records_in_their_order() -> None:
    def of(*numbers: int) -> list[tuple[str, int]]:
        return [("key-1", reduce(next_digest, numbers, 0))]

    assert digested(of(0, 1, 2), {"key-1": 3}) == []
    for wrong in (of(0, 2, 1), of(0, 1, 1, 2), of(0, 2), []):
        assert digested(wrong, {"key-1": 3})


def test_the_groups_of_the_regrouped_counts_have_all_of_their_keys() -> None:
    assert regrouped(WRITTEN) == {"group-1": 4}

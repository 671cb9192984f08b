"""Test the verdict on rows of each kind of account, and what it takes to be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from streams import serdes
from streams.spark.reconciliation import comparing
from streams.spark.reconciliation.accounts import ROW, AccountKind
from streams.spark.reconciliation.comparing import (
    FOUND,
    ValueComparison,
    compare_rows,
    find_repeated_records,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.sampled(5, by="test")

TEXT = ValueComparison(serdes.string)


def row(key: str, value: bytes | str | None, at: int = 0, start: int | None = None) -> Any:
    data = value.encode() if isinstance(value, str) else value
    return (key.encode(), start, None if start is None else start + 10, data, at)


def there(row: Any, offset: int, partition: int = 0) -> Any:
    return (*row, "topic", partition, offset)


def frames(
    spark: SparkSession, expected: Iterable[Any], found: Iterable[Any]
) -> tuple[DataFrame, DataFrame]:
    return (
        spark.createDataFrame(list(expected), ROW),
        spark.createDataFrame(list(found), f"{ROW}, {FOUND}"),
    )


def verdicts(compared: DataFrame) -> Counter[tuple[str, str]]:
    """Count the records by verdict and key."""
    found: Counter[tuple[str, str]] = Counter()
    for each in compared.collect():
        found[each.verdict, bytes(each.key).decode()] += each["count"]
    return found


@pytest.mark.parametrize("kind", [AccountKind.STORE, AccountKind.UPSERTS])
def test_each_row_of_a_table_has_its_verdict(spark: SparkSession, kind: AccountKind) -> None:
    expected, found = frames(
        spark,
        [row("same", "1"), row("lost", "2"), row("other", "3"), row("never", None)],
        [
            there(row("same", "1"), 4),
            there(row("other", "4"), 7, 1),
            there(row("strange", "5"), 9),
        ],
    )
    compared = compare_rows(expected, found, kind, TEXT)
    assert verdicts(compared) == {
        ("ok", "same"): 1,
        ("missing", "lost"): 1,
        ("different", "other"): 1,
        ("unexpected", "strange"): 1,
    }
    (other,) = compared.where("verdict = 'different'").collect()
    assert (bytes(other.expected), bytes(other.found)) == (b"3", b"4")
    assert [tuple(each) for each in other.positions] == [("topic", 1, 7)]
    (lost,) = compared.where("verdict = 'missing'").collect()
    assert lost.positions == []


def test_of_an_upserted_topic_the_last_record_of_a_key_counts(spark: SparkSession) -> None:
    """Check that the record with the last offset counts.

    A deletion is no row; but where it was is told.
    """
    expected, found = frames(
        spark,
        [row("grown", "3"), row("deleted by mistake", "1")],
        [there(row("grown", text), offset) for offset, text in ((5, "2"), (10, "3"), (1, "1"))]
        + [there(row("gone", "1"), 2), there(row("gone", None), 6)]
        + [there(row("deleted by mistake", None), 11)],
    )
    compared = compare_rows(expected, found, AccountKind.UPSERTS, TEXT)
    assert verdicts(compared) == {("ok", "grown"): 1, ("missing", "deleted by mistake"): 1}
    (lost,) = compared.where("verdict = 'missing'").collect()
    assert [tuple(each) for each in lost.positions] == [("topic", 0, 11)]


@pytest.mark.parametrize("kind", [AccountKind.STORE, AccountKind.UPSERTS])
def test_a_key_that_is_in_two_partitions_is_told(spark: SparkSession, kind: AccountKind) -> None:
    """Check a key in two partitions: a deletion in another partition is no row.

    The row as it is expected is that of the key, wherever the other's offset is.
    """
    expected, found = frames(
        spark,
        [row("both", "1"), row("one", "2")],
        [
            there(row("both", "1"), 3, 0),
            there(row("both", "9"), 7, 1),
            there(row("one", "2"), 4, 0),
            there(row("one", None), 8, 1),
        ],
    )
    compared = compare_rows(expected, found, kind, TEXT)
    assert verdicts(compared) == {("ok", "both"): 1, ("ok", "one"): 1, ("unexpected", "both"): 1}
    (other,) = compared.where("verdict = 'unexpected'").collect()
    assert (bytes(other.found), [tuple(at) for at in other.positions]) == (b"9", [("topic", 1, 7)])
    assert "another partition" in other.why
    scattered = compare_rows(expected, found, kind, TEXT, keys_span_partitions=True)
    assert verdicts(scattered) == {("ok", "both"): 1, ("ok", "one"): 1}


def test_a_key_has_a_row_for_each_window(spark: SparkSession) -> None:
    expected, found = frames(
        spark,
        [row("k", "1", start=0), row("k", "2", start=10)],
        [there(row("k", "1", start=0), 1), there(row("k", "2", start=20), 2)],
    )
    compared = compare_rows(expected, found, AccountKind.STORE, TEXT)
    assert {(each.verdict, each.window_start) for each in compared.collect()} == {
        ("ok", 0),
        ("missing", 10),
        ("unexpected", 20),
    }


def test_a_key_expected_twice_is_told(spark: SparkSession) -> None:
    expected, found = frames(spark, [row("k", "1"), row("k", "2")], [there(row("k", "2"), 1)])
    (only,) = compare_rows(expected, found, AccountKind.STORE, TEXT).collect()
    assert only.expected_rows == 2


def test_times_count_where_they_are_expected(spark: SparkSession) -> None:
    expected, found = frames(spark, [row("k", "1", at=5)], [there(row("k", "1", at=6), 1)])
    assert verdicts(compare_rows(expected, found, AccountKind.STORE, TEXT)) == {("ok", "k"): 1}
    timed = compare_rows(expected, found, AccountKind.STORE, TEXT, compares_timestamps=True)
    assert verdicts(timed) == {("different", "k"): 1}
    assert timed.collect()[0].why == "its timestamp is 6 ms, and 5 was expected"
    streamed = compare_rows(expected, found, AccountKind.STREAM, TEXT, compares_timestamps=True)
    assert verdicts(streamed) == {("missing", "k"): 1, ("unexpected", "k"): 1}
    assert verdicts(compare_rows(expected, found, AccountKind.STREAM, TEXT)) == {("ok", "k"): 1}


def test_records_of_a_stream_are_counted(spark: SparkSession) -> None:
    expected, found = frames(
        spark,
        [row("a", "x"), row("a", "x"), row("b", "y"), row("b", "y"), row("c", None)],
        [there(row("a", "x"), offset) for offset in (1, 2, 3)]
        + [there(row("b", "y"), 4), there(row("c", None), 5), there(row("d", "z"), 6)],
    )
    compared = compare_rows(expected, found, AccountKind.STREAM, TEXT)
    assert verdicts(compared) == {
        ("ok", "a"): 2,
        ("unexpected", "a"): 1,
        ("ok", "b"): 1,
        ("missing", "b"): 1,
        ("ok", "c"): 1,
        ("unexpected", "d"): 1,
    }
    (doubled,) = compared.where("verdict = 'unexpected' AND key = binary('a')").collect()
    assert [each.offset for each in doubled.positions] == [1, 2, 3]


def test_a_record_doubled_is_found_with_both_offsets(spark: SparkSession) -> None:
    rows = [
        ("a", "1", 5, 1),
        ("b", "1", 5, 2),
        ("a", "1", 5, 3),
        ("a", "2", 5, 4),
        ("a", "1", 5, 6),
    ]
    _, found = frames(spark, [], [there(row(k, v, at), offset) for k, v, at, offset in rows])
    (only,) = find_repeated_records(found).collect()
    assert bytes(only.key) == b"a"
    assert [each.offset for each in only.positions] == [1, 3]


def test_values_whose_bytes_differ_may_say_the_same(spark: SparkSession) -> None:
    expected, found = frames(
        spark,
        [row("order", '{"a":1,"b":[2]}'), row("near", "[1.0]"), row("no", '{"a":1}')],
        [
            there(row("order", '{"b": [2], "a": 1}'), 1),
            there(row("near", "[1.0001]"), 2),
            there(row("no", '{"a":2}'), 3),
        ],
    )
    compared = compare_rows(
        expected, found, AccountKind.STORE, ValueComparison(serdes.json, tolerance=0.001)
    )
    assert verdicts(compared) == {("ok", "order"): 1, ("ok", "near"): 1, ("different", "no"): 1}


def test_json_of_a_stream_counts_by_what_it_says(spark: SparkSession) -> None:
    expected, found = frames(
        spark, [row("k", '{"a":1,"b":2}')], [there(row("k", '{"b": 2, "a": 1}'), 1)]
    )
    compared = compare_rows(expected, found, AccountKind.STREAM, ValueComparison(serdes.json))
    assert verdicts(compared) == {("ok", "k"): 1}


def test_a_comparison_that_takes_the_first_record_of_a_key_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run the test above with a bug planted: a table's row is its first record."""
    monkeypatch.setattr(F, "max_by", F.min_by)
    with pytest.raises(AssertionError):
        test_of_an_upserted_topic_the_last_record_of_a_key_counts(spark)


def test_a_comparison_that_takes_everything_for_equal_is_caught(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "compare_values", lambda *given: F.lit(True))
    with pytest.raises(AssertionError):
        test_each_row_of_a_table_has_its_verdict(spark, AccountKind.STORE)

"""Test which errors of reading a ledger are said to be those of its records."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, encode_transaction
from streams.spark.cuts.ledger_reader import read_ledger_transactions
from streams.spark.source.broker_access import BrokerAccess

ENTRY = encode_transaction(LedgerTransaction(1, 0, {"0_0": {Partition("in", 0): 1}}, {}))


class Ledger:
    """Stands in for the access to a ledger with these records."""

    def __init__(self, *values: bytes) -> None:
        self._values = values
        self.closed = False

    def create_range_reader(self, isolation: str) -> Ledger:
        assert isolation == "read_committed"
        return self

    def read_range(self, *_: object) -> Iterator[Any]:
        yield SimpleNamespace(offsets=range(len(self._values)), values=self._values)

    def close(self) -> None:
        self.closed = True


def read(ledger: Ledger) -> Iterator[LedgerTransaction]:
    return read_ledger_transactions(cast(BrokerAccess, ledger), "a", 0, 2)


def test_a_record_that_is_no_entry_is_named_by_its_offset() -> None:
    entries = read(ledger := Ledger(ENTRY, b"no entry"))
    assert next(entries).inputs == {"0_0": {Partition("in", 0): 1}}
    with pytest.raises(ConfigError, match=r"a-ledger\[0\] at offset 1 is no entry of a ledger"):
        next(entries)
    assert ledger.closed


def test_an_error_of_who_reads_the_entries_is_not_said_to_be_one_of_the_ledger() -> None:
    entries = read(ledger := Ledger(ENTRY, ENTRY))
    next(entries)
    with pytest.raises(KeyError, match="its own"):
        entries.throw(KeyError("its own"))  # type: ignore[attr-defined]
    assert ledger.closed

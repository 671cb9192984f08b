"""Read the transactions that an application's ledger names, as a read_committed consumer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.ledger import LedgerTransaction, decode, ledger_topic
from streams.spark.source.broker_access import BrokerAccess

_BATCH_RECORDS_MAX = 10_000


def read_ledger_transactions(
    access: BrokerAccess, application_id: str, first_offset: int, end_offset: int
) -> Iterator[LedgerTransaction]:
    """Yield the ledger's transactions from `first_offset` up to, and without, `end_offset`.

    They come in the order of the ledger. Only what is below its last stable offset can be read.

    Raises: StreamsError if some of them can't be read; ConfigError for a record that is no entry of
    a ledger.
    """
    ledger = Partition(ledger_topic(application_id), 0)
    with closing(access.create_range_reader("read_committed")) as reader:
        for lists in reader.read_range(ledger, first_offset, end_offset, _BATCH_RECORDS_MAX):
            for offset, value in zip(lists.offsets, lists.values, strict=True):
                yield _decode_entry(ledger, offset, value)


def _decode_entry(ledger: Partition, offset: int, value: bytes | None) -> LedgerTransaction:
    """Decode a record of the ledger. Raises ConfigError for one that is no entry."""
    try:
        return decode(value or b"")
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{ledger} at offset {offset} is no entry of a ledger: {error}"
        ) from error

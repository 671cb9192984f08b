"""The entries of a ledger, as a reader of committed records sees them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from streams.errors import ConfigError
from streams.ledger import Entry, decode, ledger_topic
from streams.positions import Partition
from streams.spark.source.access import Access

_TAKE_MAX = 10_000


def read_entries(access: Access, application_id: str, first: int, until: int) -> Iterator[Entry]:
    """Those at offset `first` and above, below `until`, in order. What is below the ledger's last
    stable offset can be read.

    Raises StreamsError where some of them can't be read; ConfigError for what is no entry.
    """
    ledger = Partition(ledger_topic(application_id), 0)
    with closing(access.reader("read_committed")) as reader:
        for lists in reader.read(ledger, first, until, _TAKE_MAX):
            for offset, value in zip(lists.offsets, lists.values, strict=True):
                yield _entry(ledger, offset, value or b"")


def _entry(ledger: Partition, offset: int, value: bytes) -> Entry:
    try:
        return decode(value)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{ledger} at offset {offset} is no entry of a ledger: {error}"
        ) from error

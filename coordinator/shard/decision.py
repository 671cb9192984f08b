"""What a decision returns: the records to append, and the answer once they are in the log.

A decision is a pure function of state, command and time. It never writes state; `Shard.execute`
appends its records and applies them, and only then is its response given out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

R = TypeVar("R", covariant=True)
A = TypeVar("A", covariant=True)


@dataclass(frozen=True, slots=True)
class Producer:
    """Under whose transaction records are written: they count once its marker says commit."""

    producer_id: int
    producer_epoch: int


class Decision(NamedTuple, Generic[R, A]):
    """Records to append as one batch (none is fine), and the response to give afterwards."""

    records: Sequence[R]
    response: A
    producer: Producer | None = None


class Origin(NamedTuple):
    """Where in the log an applied record stands: its offset, and its producer id (-1: none).

    `replaying`: it comes from a log that is being loaded, which may have been compacted.
    """

    offset: int
    producer_id: int = -1
    replaying: bool = False


# As `Origin(...)`, which is a function of Python's and takes three times as long: one is made for
# each record.
origin_of: Callable[[tuple[int, int, bool]], Origin] = partial(tuple.__new__, Origin)


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A marker: the transaction of this producer id is over, for the log that it stands in.

    `transaction_version`: from 2 on the epoch is one that the transaction's data did not have. The
    log doesn't say: there the marker stands already.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0

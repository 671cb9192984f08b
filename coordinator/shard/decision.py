"""Define what a decision returns: the records to append, and what follows once they are in the log.

A decision is a pure function of state, command and time. It writes neither state nor any of its
arguments; `Shard.execute_decision` appends its records and applies them, and only then gives out
its response. What else is to follow (timers to set, pending requests to answer, figures to count)
are its effects: values, which whoever executed the decision carries out afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

R = TypeVar("R", covariant=True)
A = TypeVar("A", covariant=True)


@dataclass(frozen=True, slots=True)
class TransactionalProducer:
    """Identifies the transactional producer that records are written for.

    They count once the marker of its transaction says commit.
    """

    producer_id: int
    producer_epoch: int


class Decision(NamedTuple, Generic[R, A]):
    """Carries the records to append as one batch, the response to give afterwards, and effects.

    No records are fine, too. `effects`: in the order to carry them out, once the records have been
    applied; each kind of coordinator has its own. Kafka's counterpart is CoordinatorResult.
    """

    records: Sequence[R]
    response: A
    effects: Sequence[object] = ()
    producer: TransactionalProducer | None = None


class LogRecordOrigin(NamedTuple):
    """Tells where an applied record stands in the log: its offset and producer id (-1: none).

    `replaying`: it comes from a log that is being loaded, which may have been compacted.
    """

    offset: int
    producer_id: int = -1
    replaying: bool = False


# Does the same as `LogRecordOrigin(...)` in a third of the time, as it skips the constructor that
# Python generates: one is made for each record.
create_record_origin: Callable[[tuple[int, int, bool]], LogRecordOrigin] = partial(
    tuple.__new__, LogRecordOrigin
)


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """Represents a transaction marker: the transaction of a producer id has ended.

    It holds for the log that the marker stands in.

    `transaction_version`: from 2 on the epoch is one that the transaction's data did not have. The
    log doesn't say: there the marker stands already.
    """

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int = 0
    transaction_version: int = 0

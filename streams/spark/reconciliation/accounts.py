"""Define the account: a store or topic with its expected rows at the consistent cut.

Everything is bytes here, as the application's own serdes write them, so that what is compared is
what is there. The expected rows come from a user's function, from a batch plan derived from the
topology, or from the sub-topology run alone; the comparison treats them alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RefusalReason: TypeAlias = str
"""Why rows can't be computed, as a clause for the report."""

ROW = "key BINARY, window_start BIGINT, window_end BIGINT, value BINARY, timestamp BIGINT"
"""What an account's rows are. Windows (null without one) and timestamps in ms since 1970."""
KEY_COLUMNS = ("key", "window_start", "window_end")
"""What makes a row of a table."""
ORIGIN = "key BINARY, topic STRING, partition INT, offset BIGINT"
"""Which record of a source topic went into the rows of a key. With `window_start` and `window_end`
too it went into the rows of that window only, with `value` and `timestamp` into rows with these."""


class AccountKind(StrEnum):
    """Names the kinds of reconciled stores and topics, which decide how rows are compared.

    A table has one row for each key (and window); of a table in a topic the last row of a key
    counts; the rows of a stream all count, in any order.
    """

    STORE = "store"
    UPSERTS = "table in a topic"
    STREAM = "topic"


@dataclass(frozen=True, slots=True)
class Account:
    """Represents a store or topic with the rows that it should have at the consistent cut.

    `name` is the store's or the topic's. `expected` has the columns of ROW; `origins`, with those
    of ORIGIN, is read only for rows that are off. `method` tells people how `expected` was
    computed.
    """

    name: str
    kind: AccountKind
    subtopology: int
    method: str
    expected: DataFrame
    origins: DataFrame | None = None
    compares_timestamps: bool = False
    """Whether timestamps are expected as they are; otherwise they are not compared."""
    expired_rows: DataFrame | None = None
    """Key, window_start and window_end of rows that a store may have expired: they need not be
    there, and are compared where they are."""


@dataclass(frozen=True, slots=True)
class RefusedCheck:
    """Represents something that was not checked, with the reason.

    `name`: of a store, a topic or a step.
    """

    name: str
    subtopology: int
    why: str

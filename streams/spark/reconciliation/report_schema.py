"""Define what `millrace reconcile --json` prints, as the types that `millrace schema` describes.

This module is imported without pyspark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class ReconciledAccountOutput:
    """Shows a store or a topic that was checked, how, and how many records have each verdict."""

    account: str
    kind: Literal["store", "table in a topic", "topic"]
    method: str
    balanced: bool
    ok: int
    missing: int
    unexpected: int
    different: int
    doubled: int


@dataclass(frozen=True)
class UncheckedAccountOutput:
    """Shows a store or a topic that was asked for and not checked; null where it is not known."""

    account: str
    kind: Literal["store", "table in a topic", "topic"]
    why: str
    is_allowed: bool
    records: int | None


@dataclass(frozen=True)
class RefusedStepOutput:
    """Shows a step, an input or an account from which nothing could be derived, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class RecordPlaceOutput:
    """Names a record of an input, of a store's changelog or of an output."""

    topic: str
    partition: int
    offset: int
    role: Literal["input", "state", "output"]


@dataclass(frozen=True)
class OffRowOutput:
    """Shows a row that is off; key and values are text, and windows times in UTC."""

    account: str
    verdict: Literal["missing", "unexpected", "different"]
    key: str | None
    window_start: str | None
    window_end: str | None
    expected: str | None
    found: str | None
    count: int
    why: str | None
    inputs: int | None
    offsets: list[RecordPlaceOutput]


@dataclass(frozen=True)
class DeadLetterTopicOutput:
    """Shows how many dead letters a topic has at the cut, by the topic of their record.

    `topic` is null for those whose topic a function chooses, `counts_by_source` is null with the
    reason in `why_unknown` where they were not counted.
    """

    topic: str | None
    counts_by_source: dict[str, int] | None
    removed_offsets: int
    why_unknown: str | None


@dataclass(frozen=True)
class ReconciliationOutput:
    """Shows the report of a reconciliation with the exit status.

    `error` says why nothing could be checked (status 2), and is null otherwise.

    Records are counted by offsets. `off` has the first rows that are off, `off_records` counts all
    of them. `records_in_transit`: those between sub-topologies at the cut, null if not known.
    """

    status: int
    error: str | None
    application_id: str
    cut_taken_ms: int
    is_exact: bool
    inputs: dict[str, int]
    accounts_checked: int
    accounts_asked: int
    accounts_total: int
    records_checked: int
    records_asked: int
    accounts: list[ReconciledAccountOutput]
    unchecked: list[UncheckedAccountOutput]
    refused: list[RefusedStepOutput]
    dead_letters: list[DeadLetterTopicOutput]
    records_in_transit: int | None
    off_records: int
    off: list[OffRowOutput]

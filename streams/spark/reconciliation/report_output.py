"""Put a report into the object that `millrace reconcile --json` prints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from streams.spark.reconciliation.comparing import OFF_VERDICTS, RowVerdict
from streams.spark.reconciliation.report_schema import (
    DeadLetterTopicOutput,
    OffRowOutput,
    ReconciledAccountOutput,
    ReconciliationOutput,
    RecordPlaceOutput,
    RefusedStepOutput,
    UncheckedAccountOutput,
)
from streams.spark.reconciliation.text_report import ROWS_MAX

if TYPE_CHECKING:
    from pyspark.sql import Row

    from streams.spark.reconciliation.dead_letters import DeadLetterCount
    from streams.spark.reconciliation.result import CheckedAccount, ReconciliationResult


def build_report_output(
    report: ReconciliationResult, status: int, error: str | None = None
) -> dict[str, Any]:
    """Return a report as what JSON has; `status` is the exit status of the command.

    `error` says why nothing could be checked.
    """
    coverage = report.coverage
    return dataclasses.asdict(
        ReconciliationOutput(
            status=status,
            error=error,
            application_id=report.application_id,
            cut_taken_ms=report.cut.taken_ms,
            is_exact=report.cut.exact,
            inputs=dict(report.inputs),
            accounts_checked=coverage.accounts_checked,
            accounts_asked=coverage.accounts_asked,
            accounts_total=coverage.accounts_total,
            records_checked=coverage.records_checked,
            records_asked=coverage.records_asked,
            accounts=[_describe_account(each) for each in report.accounts.values()],
            unchecked=[
                UncheckedAccountOutput(
                    each.name, each.kind.value, each.why, each.is_allowed, each.record_count
                )
                for each in coverage.unchecked
            ],
            refused=[RefusedStepOutput(each.name, each.why) for each in report.refused],
            dead_letters=[_describe_dead_letters(each) for each in report.dead_letters],
            records_in_transit=report.in_flight_count,
            off_records=sum(report.count(verdict) for verdict in OFF_VERDICTS),
            off=[_describe_row(row) for row in report.some_off(ROWS_MAX)],
        )
    )


def _describe_account(checked: CheckedAccount) -> ReconciledAccountOutput:
    """Return an account that was checked, as what JSON has."""
    counts = {verdict.value: checked.counts.get(verdict, 0) for verdict in RowVerdict}
    return ReconciledAccountOutput(
        checked.name, checked.kind.value, checked.account.method, checked.balanced, **counts
    )


def _describe_dead_letters(counted: DeadLetterCount) -> DeadLetterTopicOutput:
    """Return the dead letters of a topic, as what JSON has."""
    return DeadLetterTopicOutput(
        counted.topic,
        None if counted.why_unknown else counted.counts_by_source,
        counted.removed_count,
        counted.why_unknown or None,
    )


def _describe_row(row: Row) -> OffRowOutput:
    """Convert a row whose verdict is not ok to the object that JSON shows."""
    places = [RecordPlaceOutput(at.topic, at.partition, at.offset, at.role) for at in row.offsets]
    return OffRowOutput(
        account=row.account,
        verdict=row.verdict,
        key=row.key,
        window_start=row.window_start,
        window_end=row.window_end,
        expected=row.expected,
        found=row.found,
        count=row["count"],
        why=row.why,
        inputs=row.inputs,
        offsets=places,
    )

"""Check the stores and topics of an application, several of them at a time.

Most of a check of few records is planning on the driver. Meanwhile executors compute what was
planned of another account.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from pyspark import StorageLevel, inheritable_thread_target

from streams.errors import AuthenticationError, AuthorizationError, ConfigError
from streams.spark.reconciliation.accounts import Account, AccountKind, RefusedCheck
from streams.spark.reconciliation.checking import check_account, select_expired_rows
from streams.spark.reconciliation.inputs import TopicRecords
from streams.spark.reconciliation.ledger_check import LedgerRuns, entries_in_cut
from streams.spark.reconciliation.progress import ProgressLines
from streams.spark.reconciliation.result import CheckedAccount
from streams.spark.reconciliation.targets import (
    ReconciliationTarget,
    compare_with_ledger,
    read_actual_rows,
)
from streams.spark.reconciliation.text_report import format_counts
from streams.spark.session import translate_spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ActualRows: TypeAlias = "DataFrame"
LedgerVerdicts: TypeAlias = "DataFrame"

_CHECKS_AT_ONCE = 2

CheckOutcome = CheckedAccount | RefusedCheck


@dataclass(frozen=True, slots=True)
class AccountChecks:
    """Checks accounts as of the consistent cut of `records`, and tells `progress` of each.

    `tolerance`: by how much floats of tables may differ.
    """

    records: TopicRecords
    tolerance: float
    progress: ProgressLines

    def compare_accounts(
        self, pairs: Sequence[tuple[ReconciliationTarget, Account]]
    ) -> list[CheckOutcome]:
        """Compare each account with what its target has; return the outcomes in this order.

        An account that can't be checked is refused. Raises AuthenticationError or
        AuthorizationError, which are errors of the whole, and StreamsError if Spark fails.
        """
        records, ledger_runs = self.records, None
        if records.cut.ledger_end is not None:
            ledger_runs = LedgerRuns(records.spark, entries_in_cut(records.access, records.cut))
        pool = ThreadPoolExecutor(_CHECKS_AT_ONCE, thread_name_prefix="check")
        try:
            outcomes: list[CheckOutcome | Future[CheckOutcome]] = []
            for target, account in pairs:
                # Brokers are asked by this thread alone: their client is not for several.
                read = self._read_target(target, account, ledger_runs)
                if isinstance(read, RefusedCheck):
                    outcomes.append(read)
                else:
                    # Each has properties of its own, so that a job group of the caller holds.
                    check = inheritable_thread_target(records.spark)(self._check_account_or_refuse)
                    rows, verdicts = read
                    outcomes.append(pool.submit(check, target, account, rows, verdicts))
            return [each.result() if isinstance(each, Future) else each for each in outcomes]
        finally:
            pool.shutdown(cancel_futures=True)

    def _read_target(
        self, target: ReconciliationTarget, account: Account, ledger_runs: LedgerRuns | None
    ) -> tuple[ActualRows, LedgerVerdicts | None] | RefusedCheck:
        """Return the actual rows of a target and the ledger's verdicts on them, or a refusal."""
        records = self.records
        if account.kind is AccountKind.STREAM and records.is_compacted(target.name):
            return _refuse_check(
                target, "it is compacted and no table: records that were written may be gone"
            )
        try:
            with translate_spark_errors():
                # Several parts of a check read them.
                rows = read_actual_rows(target, records).persist(StorageLevel.MEMORY_AND_DISK)
                if ledger_runs is None:
                    return rows, None
                return rows, compare_with_ledger(target, rows, records, ledger_runs)
        except (AuthenticationError, AuthorizationError):
            raise  # of the whole, and not of one account
        except ConfigError as error:
            return _refuse_check(target, str(error))

    def _check_account_or_refuse(
        self,
        target: ReconciliationTarget,
        account: Account,
        rows: DataFrame,
        ledger_verdicts: DataFrame | None,
    ) -> CheckOutcome:
        """Compare the expected rows of an account with the actual ones, or refuse the check."""
        began_s = time.monotonic()
        try:
            with translate_spark_errors():
                if account.expired_rows is None and target.spec is not None:
                    positions = self.records.cut.stores[target.name].positions
                    expired_rows = select_expired_rows(
                        account.expected, rows, target, len(positions)
                    )
                    account = replace(account, expired_rows=expired_rows)
                checked = check_account(
                    target,
                    account,
                    rows,
                    tolerance=self.tolerance,
                    ledger_verdicts=ledger_verdicts,
                )
        except (AuthenticationError, AuthorizationError):
            raise
        except ConfigError as error:
            return _refuse_check(target, str(error))
        finally:
            rows.unpersist()
        seconds = time.monotonic() - began_s
        self.progress.report_line(
            f"{target.kind.value} {target.name} compared in {seconds:.1f} s: "
            f"{format_counts(checked)}"
        )
        return checked


def _refuse_check(target: ReconciliationTarget, reason: str) -> RefusedCheck:
    """Return the refusal of a target's check."""
    return RefusedCheck(target.name, target.subtopology, reason)

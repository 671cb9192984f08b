"""Reconcile an application: compare its results with a batch computation, record by record.

A cut is taken, the answer is computed again from the inputs up to it, by the user's own function or
by a plan derived from the topology, and each store and topic is compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, TypeAlias

from pyspark import StorageLevel

from streams.errors import ConfigError, UserError
from streams.spark.application_access import resolve_access
from streams.spark.cuts.cut import Cut
from streams.spark.cuts.members import in_flight
from streams.spark.cuts.named_topics import require_named_topics
from streams.spark.cuts.taking import take_cut
from streams.spark.environment import check_environment
from streams.spark.reconciliation.account_checks import AccountChecks
from streams.spark.reconciliation.accounts import Account, AccountKind, RefusedCheck
from streams.spark.reconciliation.coverage import (
    AccountKey,
    check_allowed_names,
    count_record_offsets,
    create_account_key,
    measure_coverage,
)
from streams.spark.reconciliation.dead_letters import count_dead_letters
from streams.spark.reconciliation.derivation.derive import derive_accounts_at_cut
from streams.spark.reconciliation.expected_by_user import (
    ExpectedFunction,
    compute_expected_accounts,
)
from streams.spark.reconciliation.inputs import Inputs, TopicRecords, explain_unknown_end
from streams.spark.reconciliation.ledger_check import entries_in_cut
from streams.spark.reconciliation.progress import ProgressLines
from streams.spark.reconciliation.report import Report
from streams.spark.reconciliation.result import CheckedAccount
from streams.spark.reconciliation.targets import (
    OpaqueAccount,
    ReconciliationTarget,
    list_opaque_accounts,
    reconcilable_targets,
    select_targets,
    split_account_keys,
)
from streams.topology.build import Topology

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from streams.app import App

RecomputedNames: TypeAlias = frozenset[str]

_POSITIONS = "topic STRING, partition INT, offset BIGINT, key BINARY"


def reconcile(
    spark: SparkSession,
    app: App,
    *,
    expected: ExpectedFunction | None = None,
    cut: Cut | None = None,
    bootstrap_servers: str | None = None,
    kafka: Mapping[str, str] | None = None,
    accounts: Sequence[str] | None = None,
    tolerance: float = 0.0,
    allow_unchecked: Collection[str] = (),
    on_progress: Callable[[str], None] | None = None,
) -> Report:
    """Compare what `app` has computed with what its inputs say, as of one consistent cut.

    The cut is `cut`, or one that is taken now, while the application runs on.

    `expected`: a function of the inputs (`Inputs`) that returns a DataFrame of `key` and `value`,
    or a dict of them by the names of stores and topics; by default the answer follows from the
    topology. `bootstrap_servers`, `kafka` (settings of librdkafka, which override the App's
    `connection`): by default those of the App.
    `accounts`: names of the stores and topics to be checked; by default all, or with `expected`
    those that it returns. `tolerance`: by how much floats of tables may differ. `allow_unchecked`:
    names of those that may go unchecked; if others do, `report.balanced` is false.
    `on_progress`: called with a line of text as each stage ends.

    Raises: NothingChecked, a ConfigError, if nothing of what was asked for could be checked;
    ConfigError for a name that is no account's, and for workers of Spark that lack what they need.
    """
    progress = ProgressLines(on_progress)
    check_environment(spark)
    topology = app.topology()
    require_named_topics(topology)
    check_allowed_names(
        allow_unchecked, [*reconcilable_targets(topology), *list_opaque_accounts(topology)]
    )
    access = resolve_access(app.config, bootstrap_servers=bootstrap_servers, kafka=kafka)
    if cut is None:
        cut = take_cut(app, access)
        progress.report_ended_stage(f"cut of {cut.application_id} taken")
    if cut.application_id != app.application_id:
        raise ConfigError(
            f"the cut is one of {cut.application_id!r}, and the application is "
            f"{app.application_id!r}"
        )
    records = TopicRecords(spark, access, cut)
    reconciliation = _Reconciliation(app, topology, cut, records, progress)
    try:
        return reconciliation.build_report(expected, accounts, tolerance, allow_unchecked)
    except BaseException:
        records.unpersist()
        raise


class NothingChecked(ConfigError):
    """Says why nothing of what was asked for could be checked; `report` has no accounts."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


@dataclass(frozen=True, slots=True)
class _Reconciliation:
    """Reconciles an application with its inputs at one consistent cut.

    `refusals`: what can't be checked, with the reasons, collected on the way.
    """

    app: App
    topology: Topology
    cut: Cut
    records: TopicRecords
    progress: ProgressLines
    refusals: list[RefusedCheck] = field(default_factory=list)

    def build_report(
        self,
        expected: ExpectedFunction | None,
        names: Sequence[str] | None,
        tolerance: float,
        allowed_names: Collection[str],
    ) -> Report:
        """Check what can be checked, and report on it. Raises NothingChecked if nothing can be."""
        targets = reconcilable_targets(self.topology)
        targets_by_key = {create_account_key(each): each for each in targets}
        in_transit, in_transit_count = self._read_and_count_records_in_transit()
        wanted: Sequence[ReconciliationTarget | OpaqueAccount]
        if expected is None:
            wanted, answers, recomputed = self._derive_accounts_and_add_refusals(targets, names)
        else:
            inputs = Inputs(self.topology, self.records)
            answers = compute_expected_accounts(expected, inputs, targets, names)
            wanted = [targets_by_key[create_account_key(each)] for each in answers]
            wanted = [*wanted, *select_targets(targets, names or ())]
            answers = self._select_comparable(answers, in_transit_count)
            recomputed = self.topology.repartition_topics
        pairs = [(targets_by_key[create_account_key(each)], each) for each in answers]
        by_key = {create_account_key(each): each for each in wanted}
        record_counts = count_record_offsets(self.records.admin, self.cut, by_key.values())
        input_count = sum(self._count_input_offsets().values())
        self.progress.report_ended_stage(f"expected rows planned from {input_count:,} inputs")
        checked = _index_by_unique_name(self._compare_accounts_or_refuse(pairs, tolerance))
        keys = {create_account_key(each) for each in checked.values()}
        missed_accounts = [each for key, each in by_key.items() if key not in keys]
        self._add_missing_reasons(missed_accounts, is_derived=expected is None)
        if expected is not None:
            checked = self._add_origins(checked)
        report = Report(
            application_id=self.app.application_id,
            cut=self.cut,
            spark=self.records.spark,
            accounts=checked,
            refused=tuple(self.refusals),
            coverage=measure_coverage(
                by_key,
                keys,
                self.refusals,
                allowed_names=allowed_names,
                record_counts=record_counts,
                account_count=self._count_accounts_to_check(targets, set(by_key), recomputed),
            ),
            in_flight=in_transit,
            in_flight_count=in_transit_count,
            dead_letters=count_dead_letters(self.app.config.handlers, self.records),
            inputs=self._count_input_offsets(),
            release_inputs=self.records.unpersist,
        )
        if not checked:
            raise NothingChecked(self._explain_nothing_checked(), report)
        return report

    def _explain_nothing_checked(self) -> str:
        """Explain why no store or topic could be checked, and what may help."""
        reasons = "; ".join(f"{each.name}: {each.why}" for each in self.refusals)
        if not reasons:
            return "nothing could be checked: there is nothing to check"
        ways = "" if self.cut.ledger_end is not None else "; with ledger=True most can be, and"
        return (
            f"nothing could be checked: {reasons}{ways or ';'} docs/reconciliation-limits.md "
            "says what prevents each"
        )

    def _derive_accounts_and_add_refusals(
        self, targets: list[ReconciliationTarget], names: Sequence[str] | None
    ) -> tuple[list[ReconciliationTarget | OpaqueAccount], list[Account], RecomputedNames]:
        """Derive the expected rows that topology and inputs determine, as of the consistent cut."""
        records, entries = self.records, None
        if self.cut.ledger_end is not None:
            entries = entries_in_cut(records.access, self.cut)
        found = derive_accounts_at_cut(self.app, records, entries)
        targets_by_key = {create_account_key(each): each for each in targets}
        accounts = {
            key: split_account_keys(each, targets_by_key[key])
            for each in found.accounts
            if (key := create_account_key(each)) in targets_by_key
        }
        exempt = {
            create_account_key(each): _explain_exemption(each, found.recomputed) for each in targets
        }
        wanted: list[ReconciliationTarget | OpaqueAccount] = []
        if names:
            known_names = {each.name for each in targets}
            opaque = list_opaque_accounts(self.topology)
            wanted += [each for each in opaque if each.name in {*names} - known_names]
            opaque_names = {each.name for each in wanted}
            wanted += select_targets(targets, (n for n in names if n not in opaque_names))
        else:
            wanted += [each for each in targets if not exempt[create_account_key(each)]]
            wanted += list_opaque_accounts(self.topology)
        missed = [each for each in wanted if create_account_key(each) not in accounts]
        open_in = {each.subtopology for each in missed}
        self.refusals.extend(
            each for each in found.refused if not names or each.subtopology in open_in
        )
        for each in missed:
            if why := exempt.get(create_account_key(each)):
                self._refuse_account(each, why)
        known = [each for each in wanted if isinstance(each, ReconciliationTarget)]
        keys = [create_account_key(each) for each in known if each not in missed]
        return wanted, [accounts[key] for key in keys], found.recomputed

    def _count_accounts_to_check(
        self,
        targets: list[ReconciliationTarget],
        wanted_keys: set[AccountKey],
        recomputed: Collection[str],
    ) -> int:
        """Count the stores and topics that need a check or are in `wanted_keys`."""
        own = {
            create_account_key(each) for each in targets if not _explain_exemption(each, recomputed)
        }
        return len(
            own
            | {create_account_key(each) for each in list_opaque_accounts(self.topology)}
            | wanted_keys
        )

    def _refuse_account(
        self, account: ReconciliationTarget | OpaqueAccount | Account, reason: str
    ) -> None:
        """Note why a store or topic can't be checked."""
        self.refusals.append(RefusedCheck(account.name, account.subtopology, reason))

    def _select_comparable(
        self, accounts: list[Account], in_transit_count: int | None
    ) -> list[Account]:
        """Select the accounts that can be compared despite records in transit; refuse the others.

        Their rows at the cut should be those that are computed from all inputs.
        """
        decided = []
        for each in accounts:
            why = self._explain_not_comparable(each.subtopology, in_transit_count)
            if why is None:
                decided.append(each)
            else:
                self._refuse_account(each, why)
        return decided

    def _explain_not_comparable(self, subtopology: int, in_transit_count: int | None) -> str | None:
        """Explain why records in transit keep a target from comparison, or return None if none do.

        Records in transit to its sub-topology are in that answer and not in its state.
        """
        sub = self.topology.subtopologies[subtopology]
        topics_behind = sorted(self.topology.repartition_topics & sub.sources.keys())
        if not topics_behind or in_transit_count == 0:
            return None
        if in_transit_count is None:
            return explain_unknown_end(topics_behind[0], self.cut)
        return (
            f"{in_transit_count} records were on their way through repartition topics at the cut, "
            "which the answer from the inputs has and the state has not yet: let the application "
            "come to the end of its inputs, or leave expected out, and they are taken off"
        )

    def _compare_accounts_or_refuse(
        self, pairs: list[tuple[ReconciliationTarget, Account]], tolerance: float
    ) -> list[CheckedAccount]:
        """Check stores and topics; return those that could be checked, and refuse the others."""
        checks = AccountChecks(self.records, tolerance, self.progress)
        outcomes = checks.compare_accounts(pairs)
        self.refusals.extend(each for each in outcomes if isinstance(each, RefusedCheck))
        return [each for each in outcomes if isinstance(each, CheckedAccount)]

    def _add_missing_reasons(
        self, missed: list[ReconciliationTarget | OpaqueAccount], *, is_derived: bool
    ) -> None:
        """Refuse each unchecked store or topic that has no reason yet.

        The reason is the steps and inputs of its sub-topology that were refused, or else the other
        accounts.
        """
        names = {each.name for each in missed}
        for each in missed:
            if any(one.name == each.name for one in self.refusals):
                continue
            before = [one.name for one in self.refusals if one.subtopology == each.subtopology]
            steps = [name for name in before if name not in names]
            causes = ", ".join(dict.fromkeys(steps or before)) or "its inputs"
            why = f"it comes of what is not checked: {causes}"
            self._refuse_account(each, why if is_derived else "expected says nothing of it")

    def _add_origins(self, checked: dict[str, CheckedAccount]) -> dict[str, CheckedAccount]:
        """Add to the user's accounts the origins of rows that the topology tells, if any is off."""
        if all(each.balanced for each in checked.values()):
            return checked
        try:
            derived = derive_accounts_at_cut(self.app, self.records)
        except UserError:
            return checked
        derived_accounts = {create_account_key(each): each for each in derived.accounts}
        with_origins = {}
        for name, each in checked.items():
            origins = None
            if (found := derived_accounts.get(create_account_key(each))) is not None:
                origins = split_account_keys(found, each.target).origins
            if origins is not None:  # the user's values may have other bytes
                origins = origins.drop("value", "timestamp")
            with_origins[name] = replace(each, account=replace(each.account, origins=origins))
        return with_origins

    def _read_and_count_records_in_transit(
        self,
    ) -> tuple[DataFrame | None, int | None]:
        """Read the positions and keys of records in transit between sub-topologies at the cut.

        Returns them and their number, both None if the cut doesn't know them.
        """
        cut = self.cut
        if self.topology.repartition_topics and cut.ends is None:
            return None, None
        topics = sorted({each.topic for each in in_flight(cut)}) if cut.ends else []
        if not topics:
            return self.records.spark.createDataFrame([], _POSITIONS), 0
        parts = [
            self.records.read_written_up_to_cut(topic, cut.offsets, plans_now=True).select(
                "topic", "partition", "offset", "key"
            )
            for topic in topics
        ]
        whole = reduce(lambda one, other: one.unionByName(other), parts)
        whole = whole.persist(StorageLevel.MEMORY_AND_DISK)
        return whole, whole.count()

    def _count_input_offsets(self) -> dict[str, int]:
        """Count the offsets of each input topic that are in the consistent cut."""
        offset_counts = dict.fromkeys(self.topology.input_topics, 0)
        for partition, offset in self.cut.offsets.items():
            if partition.topic in offset_counts:
                offset_counts[partition.topic] += offset
        return offset_counts


def _index_by_unique_name(accounts: Iterable[CheckedAccount]) -> dict[str, CheckedAccount]:
    """Index checked stores and topics by name.

    Where a store and a topic have the same name, the topic's says what it is.
    """
    by_name: dict[str, CheckedAccount] = {}
    for each in sorted(accounts, key=lambda one: one.kind is not AccountKind.STORE):
        name = f"{each.name} ({each.kind.value})" if each.name in by_name else each.name
        by_name[name] = each
    return by_name


def _explain_exemption(target: ReconciliationTarget, recomputed: Collection[str]) -> str | None:
    """Explain why a target needs no check of its own, or return None if it needs one.

    `recomputed`: repartition topics that are checked with what is made of them.
    """
    if target.spec is not None and target.spec.source_topic is not None:
        return f"it is restored from {target.spec.source_topic}, its input, which is what it is"
    if target.is_internal and target.name in recomputed:
        return "what was processed of it is deleted from time to time, so not all of it is there"
    return None

"""Derive the expected rows of an application's stores and topics, one sub-topology after another.

Writers of a repartition topic come before its readers where the topic has to be recomputed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from streams.errors import ConfigError
from streams.ledger import LedgerTransaction
from streams.settings.offset_reset import ResetStrategy
from streams.spark.reconciliation.accounts import (
    Account,
    AccountKind,
    RefusalReason,
    RefusedCheck,
)
from streams.spark.reconciliation.derivation.computable_steps import SourceRecords
from streams.spark.reconciliation.derivation.global_topics import plan_topic_read
from streams.spark.reconciliation.derivation.ledger_candidates import (
    LedgerTasks,
    find_ledger_tasks,
)
from streams.spark.reconciliation.derivation.plan import plan_accounts
from streams.topology.build import Subtopology, Topology
from streams.topology.initial_policies import find_initial_policies

if TYPE_CHECKING:
    from streams.app import App
    from streams.spark.reconciliation.inputs import TopicRecords


@dataclass(frozen=True, slots=True)
class DerivedAccounts:
    """Represents the expected rows that a topology determines, and refusals of the others.

    `recomputed`: the repartition topics, purged of processed records, that are checked with what
    their readers make of them.
    """

    accounts: list[Account]
    refused: list[RefusedCheck]
    recomputed: frozenset[str] = frozenset()


def derive_accounts_at_cut(
    app: App, records: TopicRecords, ledger_entries: Iterable[LedgerTransaction] | None = None
) -> DerivedAccounts:
    """Derive the expected rows of `app` as of a consistent cut from its topics' records.

    `ledger_entries`: the transactions of the cut; None if the application keeps no ledger.

    A repartition topic of which processed records were deleted (docs/runtime.md) is recomputed from
    the sub-topology that writes it, without the records that were written at the cut and not read.
    """
    topology = app.topology()
    internal = topology.repartition_topics
    policies = find_initial_policies(topology, app.config)
    counts: dict[str, int] = {}
    refused: list[RefusedCheck] = []
    unknown_topics: set[str] = set()
    compacted_topics: set[str] = set()
    for sub in topology.subtopologies:
        for topic in sub.sources:
            if topic not in internal and records.is_compacted(topic):
                compacted_topics.add(topic)
            strategy = policies.find_policy(topic).strategy
            if topic not in internal and strategy is not ResetStrategy.EARLIEST:
                unknown_topics.add(topic)
                why = (
                    f"with {policies.describe_policy(topic)} it is not known where the "
                    "application began to read it: give expected, which leaves out what came before"
                )
                refused.append(RefusedCheck(topic, sub.number, why))
                continue
            if topic not in internal and not sub.sources[topic].has_record_times:
                unknown_topics.add(topic)
                why = (
                    "its timestamp extractor gives its records other times than their own, which "
                    "is not computed here: give expected"
                )
                refused.append(RefusedCheck(topic, sub.number, why))
                continue
            begins = records.fetch_earliest_offsets(topic)
            if not any(begins.values()):
                continue
            if topic in internal:
                counts[topic] = len(begins)
            else:
                unknown_topics.add(topic)
                why = f"nothing follows from it: {records.explain_removal(topic)}"
                refused.append(RefusedCheck(topic, sub.number, why))

    result = derive_accounts(
        app,
        records.persist_topic,
        recomputed_partition_counts=counts,
        read_in_transit=lambda topic: records.read_written_up_to_cut(topic, records.cut.offsets),
        unknown_topics=unknown_topics,
        compacted_topics=compacted_topics,
        partition_counts=Counter(
            p.topic for p in {**records.cut.offsets, **(records.cut.ends or {})}
        ),
        tasks=find_ledger_tasks(
            ledger_entries,
            topology,
            records.persist_frame,
            partial(plan_topic_read, records.access),
        ),
    )
    other_refusals = [each for each in result.refused if each.name not in unknown_topics]
    return replace(result, refused=[*refused, *other_refusals])


def derive_accounts(
    app: App,
    read_topic: Callable[[str], DataFrame],
    *,
    recomputed_partition_counts: Mapping[str, int] | None = None,
    read_in_transit: Callable[[str], DataFrame] | None = None,
    unknown_topics: Collection[str] = (),
    compacted_topics: Collection[str] = (),
    partition_counts: Mapping[str, int] | None = None,
    tasks: Mapping[int, LedgerTasks] | None = None,
) -> DerivedAccounts:
    """Derive the expected rows of `app`'s stores and topics from all source records.

    `read_topic(topic)`: all that a source topic had, as bytes: `key`, `value`, `topic`,
    `partition`, `offset`, `timestamp`. `recomputed_partition_counts` has those repartition topics,
    with the number of their partitions, of which not all records are there any more: what was in
    them is taken from the sub-topology that wrote it, without the records in transit that
    `read_in_transit(topic)` has. Of `unknown_topics` nothing is known, of `compacted_topics` the
    last record of each key. `partition_counts`: of topics that are written. `tasks`: what the
    ledger says of the tasks, by sub-topology.
    """
    topology = app.topology()
    recomputed_partition_counts = recomputed_partition_counts or {}
    written: dict[str, DataFrame] = {}
    accounts: list[Account] = []
    refused: list[RefusedCheck] = []
    followed: set[str] = set()
    for sub in _order_writers_first(topology, recomputed_partition_counts):
        reads: dict[str, SourceRecords] = {}
        for topic in sub.sources:
            found: SourceRecords | RefusalReason = "not all of its records are there"
            if topic in recomputed_partition_counts:
                found = _recompute_purged_topic(topic, written, read_in_transit)
            elif topic not in unknown_topics:
                found = SourceRecords(_normalize_columns(read_topic(topic)))
            if isinstance(found, str):
                refused.append(RefusedCheck(topic, sub.number, found))
                break
            reads[topic] = found
        if len(reads) < len(sub.sources):
            continue
        followed |= recomputed_partition_counts.keys() & sub.sources.keys()
        planned_accounts = plan_accounts(
            sub,
            reads,
            app.config.handlers,
            {**(partition_counts or {}), **recomputed_partition_counts},
            compacted_topics,
            (tasks or {}).get(sub.number),
        )
        written |= planned_accounts.written_records
        accounts += [
            each
            for each in planned_accounts.accounts
            if each.name not in recomputed_partition_counts
        ]
        refused += planned_accounts.refusals
    return replace(_refuse_shared_topics(accounts, refused), recomputed=frozenset(followed))


def _normalize_columns(frame: DataFrame) -> DataFrame:
    """Convert a source topic's DataFrame to the columns and types of READ."""
    if dict(frame.dtypes)["timestamp"].startswith("timestamp"):
        frame = frame.withColumn("timestamp", f.unix_millis("timestamp"))
    return frame.select(
        "key",
        "value",
        "topic",
        f.col("partition").cast("int").alias("partition"),
        f.col("offset").cast("long").alias("offset"),
        f.col("timestamp").cast("long").alias("timestamp"),
    )


def _recompute_purged_topic(
    topic: str,
    written: Mapping[str, DataFrame],
    read_in_transit: Callable[[str], DataFrame] | None,
) -> SourceRecords | RefusalReason:
    """Recompute the records of a purged repartition topic, except those in transit.

    Their offsets are not known. Returns the reason if they can't be recomputed.
    """
    if topic not in written:
        return "its records were deleted when they had been processed, and can't be recomputed"
    frame = written[topic].select("key", "value", f.col("to").alias("partition"), "timestamp")
    if read_in_transit is not None:
        try:
            left = _normalize_columns(read_in_transit(topic))
        except ConfigError as error:
            return f"what is in transit there is not known: {error}"
        frame = frame.exceptAll(left.select("key", "value", "partition", "timestamp"))
    placed = frame.withColumn("topic", f.lit(topic)).withColumn("offset", f.lit(-1).cast("long"))
    columns = placed.select("key", "value", "topic", "partition", "offset", "timestamp")
    return SourceRecords(columns, is_ordered=False)


def _order_writers_first(
    topology: Topology, recomputed_topics: Collection[str]
) -> list[Subtopology]:
    """Order sub-topologies so that writers of repartition topics come before their readers."""
    left = list(topology.subtopologies)
    ordered: list[Subtopology] = []
    while left:
        waiting = {k.topic for sub in left for k in sub.sinks if isinstance(k.topic, str)}
        wanted = waiting & set(recomputed_topics)
        ready = [sub for sub in left if not wanted & set(sub.sources)] or left[:1]
        ordered += ready
        left = [sub for sub in left if sub not in ready]
    return ordered


def _refuse_shared_topics(accounts: list[Account], refused: list[RefusedCheck]) -> DerivedAccounts:
    """Refuse each topic that several sub-topologies write; keep other stores and topics."""
    by_name: dict[tuple[str, bool], list[Account]] = {}
    for account in accounts:
        by_name.setdefault((account.name, account.kind is AccountKind.STORE), []).append(account)
    joined: list[Account] = []
    for (name, _), same_name in by_name.items():
        if len(same_name) == 1:
            joined += same_name
            continue
        numbers = [part.subtopology for part in same_name]
        why = f"sub-topologies {numbers} write to it"
        refused = [*refused, RefusedCheck(name, same_name[0].subtopology, why)]
    return DerivedAccounts(joined, refused)

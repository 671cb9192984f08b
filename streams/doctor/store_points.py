"""Fetch what the checks of internal topics and stores need, and hand it to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

from streams.commands.plan_changelogs import find_unrestorable_stores
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor import configuration, pattern_checks, stores, topics
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.disk_facts import StoreWithoutWorker, read_stores_without_worker
from streams.doctor.findings import DoctorFinding, create_unknown_finding
from streams.doctor.recreated_input_facts import fetch_input_identity
from streams.doctor.recreated_inputs import INPUTS
from streams.errors import TopologyError
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.assigning.internal_topics import (
    LEDGER_SETTINGS,
    REPARTITION_SETTINGS,
    list_topic_settings,
)
from streams.runtime.offsets.offset_metadata import decode_metadata
from streams.topology.build import Topology
from streams.topology.resolve import resolve_topology


def check_internal_topics(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Find internal topics that are gone."""
    known, committed = facts.topics(), facts.committed()
    read = {each.topic for each in committed} - known.inputs
    return stores.check_internal_topics(
        known.internal,
        read,
        facts.cluster.description().topics,
        has_run=has_run_since_reset(committed),
        foreign_topics={
            topic
            for topic in read - known.internal
            if not topic.startswith(f"{facts.application_id}-")
        },
    )


def has_run_since_reset(committed: Mapping[Partition, OffsetAndMetadata]) -> bool:
    """Return whether workers have committed offsets, other than those that a reset has set.

    `millrace group reset` deletes the internal topics itself, and leaves its mark in the offsets.
    """
    return any(not decode_metadata(each.metadata).is_reset for each in committed.values())


def check_partition_counts(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare partition counts with those that the topology needs, where it is known."""
    if facts.topology is None:
        return
    counts = facts.cluster.clients().partition_counts
    with suppress(TopologyError):  # told by the point on partitions of joins
        topology = resolve_topology(facts.topology, counts)
        needed = derive_needed_counts(topology, counts)
        if any(counts.get(topic, count) != count for topic, count in needed.items()) and (
            resized := fetch_input_identity(facts).list_resized()
        ):
            names = topics.name_partitions(resized)
            yield create_unknown_finding(
                stores.COUNTS, f"{names} is another topic: see the point {INPUTS!r}"
            )
            return
        inputs = topology.input_topics
        yield from stores.check_partition_counts(
            needed, counts, inputs, topology.topics_after_patterns
        )


def check_patterns(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check the patterns of the topics that are read, where the topology is known."""
    if facts.topology is not None:
        counts = facts.cluster.clients().partition_counts
        yield from pattern_checks.check_patterns(facts.topology, counts)


def derive_needed_counts(topology: Topology, partition_counts: dict[str, int]) -> dict[str, int]:
    """Return how many partitions each internal topic has to have. Raises TopologyError."""
    known = {
        topic: partition_counts[topic]
        for topic in topology.input_topics
        if topic in partition_counts
    }
    of_sources = topology.derive_partition_counts(known)
    needed = {
        topic: count for topic, count in of_sources.items() if topic in topology.repartition_topics
    }
    for sub in topology.subtopologies:
        tasks = [of_sources[topic] for topic in sub.sources if topic in of_sources]
        for store in sub.stores:
            if store.logged and store.source_topic is None and tasks:
                changelog = topology.restore_topic_of(store.name)
                left = partition_counts.get(changelog, 0) if sub.reads_patterns else 0
                needed[changelog] = max([*tasks, left])
    return needed


def check_settings(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare settings of internal topics with those that they are created with.

    Without the App those of a changelog follow from its store's kind, which is not known: then
    repartition topics and the ledger alone are compared.
    """
    known = facts.topics()
    if facts.topology is not None:
        wanted = list_topic_settings(
            facts.topology, has_ledger=facts.config.ledger, defaults=facts.config.topic_defaults
        )
    else:
        wanted = {topic: dict(REPARTITION_SETTINGS) for topic in known.repartition}
        if known.ledger:
            wanted[known.ledger] = dict(LEDGER_SETTINGS)
    there = wanted.keys() & facts.cluster.description().topics.keys()
    return stores.check_settings(wanted, facts.cluster.topic_settings(there))


def check_changelogs(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Find stores that could not be rebuilt, as `millrace plan` does."""
    if facts.topology is None:
        return
    clients = facts.cluster.clients()
    fetch_committed = partial(
        fetch_group_offsets,
        *(clients.open_connection, facts.application_id, None),
        require_stable=False,
    )
    review = find_unrestorable_stores(
        *(facts.topology, facts.config, facts.cluster.admin(), fetch_committed),
        clients.partition_counts,
        facts.cluster.now_ms,
    )
    count = sum(each.logged for sub in facts.topology.subtopologies for each in sub.stores)
    yield from stores.check_changelogs(review, count if facts.committed() else 0)


def check_disk_contents(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the stores on this machine's disk with those of the App."""
    if facts.topology is None:
        return
    declared = {store.name for sub in facts.topology.subtopologies for store in sub.stores}
    try:
        on_disk = stores.read_stores_on_disk(facts.state_path)
    except ValueError as error:
        yield from stores.report_damaged_numbers_file(facts.state_path, str(error))
        return
    yield from stores.check_disk_contents(facts.state_path, on_disk, declared)


def check_store_positions(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the positions of stores that no worker uses with their changelogs."""
    there = facts.cluster.clients().partition_counts
    by_store = {store: topic for topic, store in facts.topics().changelogs.items()}
    places: dict[str, tuple[StoreWithoutWorker, Partition]] = {}
    for each in read_stores_without_worker(facts.state_path):
        changelog = Partition(by_store.get(each.store, ""), each.partition_number)
        if changelog.number < there.get(changelog.topic, 0):
            places[f"{each.task}/{each.store}"] = each, changelog
    if places:
        firsts = facts.cluster.admin().fetch_earliest_offsets([p for _, p in places.values()])
        positions = {name: (each.position, firsts[p]) for name, (each, p) in places.items()}
        yield from stores.check_store_positions(positions)


def check_idle_time(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Find how long an application without workers has stood still, by its state here."""
    group = facts.group()
    written = [
        each.written_ms for each in read_stores_without_worker(facts.state_path) if each.written_ms
    ]
    if group is None or group.members or not written:
        return
    brokers = facts.cluster.broker_settings()
    yield from stores.check_idle_time(
        facts.cluster.now_ms - max(written),
        configuration.find_lowest_setting(brokers, "offsets.retention.minutes"),
        configuration.find_lowest_setting(brokers, "transactional.id.expiration.ms"),
    )

"""List the points of an application: machine, settings, topics, group, transactions and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TypeAlias

from streams.doctor import (
    configuration,
    coordinators,
    group,
    input_retention,
    inputs,
    local_workers,
    machine,
    other_topology,
    pattern_checks,
    queries,
    readers,
    recent_errors,
    recreated_input_facts,
    recreated_inputs,
    running_points,
    store_points,
    stores,
    throttling,
    topics,
    transactions,
    uncommitted_inputs,
    worker_clocks,
    workers,
)
from streams.doctor.application_facts import ApplicationFacts, KnownTopics
from streams.doctor.cluster_points import check_transactions
from streams.doctor.findings import RIGHTS, VERSION, DoctorFinding, create_unknown_finding
from streams.doctor.input_facts import (
    count_recent_or_all_records,
    fetch_oldest_unread,
    find_unreadable_records,
    read_keys,
)
from streams.doctor.machine_facts import count_stores, read_disk_usage, read_process_limits
from streams.errors import AuthorizationError, ConfigError, OutcomeUnknown, UserError
from streams.membership.connection import ConnectionLost
from streams.settings.exception_handlers import DeadLetter

PointName: TypeAlias = str

Look = Callable[[ApplicationFacts], Iterable[DoctorFinding]]
TopicSelection: TypeAlias = Callable[[KnownTopics], frozenset[str]]


def list_application_points() -> list[tuple[PointName, Look]]:
    """Return the points of an application, in the order in which they are looked at."""
    return [*_list_machine_points(), *_list_topic_points(), *_list_running_points()]


def _list_machine_points() -> list[tuple[PointName, Look]]:
    return [
        (machine.DISK, _check_disk_space),
        (machine.INODES, _check_inodes),
        (machine.FILES, _check_open_files),
        (machine.MEMORY, _check_memory_limit),
        (configuration.GUARANTEE, _check_settings),
        (configuration.SESSION_TIMEOUT, _check_broker_limits),
    ]


def _list_topic_points() -> list[tuple[PointName, Look]]:
    return [
        ("topics", _check_rights_first(_list_all_topics, _check_topics)),
        (topics.LEADERS, _check_rights_first(_list_all_topics, _check_leaders)),
        (topics.REPLICAS, _check_rights_first(_list_all_topics, _check_replicas)),
        (topics.DURABILITY, _check_rights_first(_list_all_topics, _check_durability)),
        (
            stores.INTERNAL,
            _check_topology_first(
                stores.INTERNAL, _list_read_topics, store_points.check_internal_topics
            ),
        ),
        (
            stores.COUNTS,
            _check_topology_first(
                stores.COUNTS, _list_read_topics, store_points.check_partition_counts
            ),
        ),
        (
            pattern_checks.PATTERNS,
            _check_rights_first(_list_read_topics, store_points.check_patterns),
        ),
        (
            stores.SETTINGS,
            _check_topology_first(
                stores.SETTINGS, _list_internal_topics, store_points.check_settings
            ),
        ),
        (
            stores.CHANGELOGS,
            _check_topology_first(
                stores.CHANGELOGS, _list_read_topics, store_points.check_changelogs
            ),
        ),
        (stores.ON_DISK, store_points.check_disk_contents),
        (VERSION, _check_topology_version),
        (
            stores.POSITIONS,
            _check_rights_first(_list_internal_topics, store_points.check_store_positions),
        ),
        (stores.IDLE, store_points.check_idle_time),
        (
            recreated_inputs.INPUTS,
            _check_topology_first(
                recreated_inputs.INPUTS,
                _list_read_topics,
                recreated_input_facts.check_recreated_inputs,
            ),
        ),
        (
            recreated_inputs.INPUTS,
            _check_topology_first(
                recreated_inputs.INPUTS,
                _list_input_topics,
                uncommitted_inputs.check_uncommitted_inputs,
            ),
        ),
        (inputs.RETENTION, _check_rights_first(_list_input_topics, _check_retention)),
        (
            inputs.COPARTITIONS,
            _check_topology_first(inputs.COPARTITIONS, _list_input_topics, _check_copartitions),
        ),
        (inputs.SKEW, _check_rights_first(_list_input_topics, _check_skew)),
        (inputs.NEXT_RECORDS, _check_rights_first(_list_input_topics, _check_next_records)),
    ]


def _list_all_topics(topics: KnownTopics) -> frozenset[str]:
    return topics.all


def _list_read_topics(topics: KnownTopics) -> frozenset[str]:
    return topics.inputs | topics.internal


def _list_internal_topics(topics: KnownTopics) -> frozenset[str]:
    return topics.internal


def _list_input_topics(topics: KnownTopics) -> frozenset[str]:
    return topics.inputs


def _list_output_topics(topics: KnownTopics) -> frozenset[str]:
    return topics.outputs


def _check_rights_first(select: TopicSelection, look: Look) -> Look:
    """Return a look that raises AuthorizationError where it rests on topics that are hidden.

    To this user they seem not to exist, and what would be said of them would be wrong.
    """

    def look_with_rights(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
        facts.cluster.refuse_hidden_topics(select(facts.topics()))
        yield from look(facts)

    return look_with_rights


def _check_topology_first(point: str, select: TopicSelection, look: Look) -> Look:
    """Return a look that is taken only where no other topology runs by the application's id.

    It rests on the App's topology, and may advise to start over, which would delete the topics of
    the program that runs. Rights on the selected topics are looked at before both.
    """

    def look_if_own(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
        has_app = facts.topology is not None
        found = other_topology.compare_topologies(facts)
        if obstacle := other_topology.describe_obstacle(found, has_app=has_app):
            yield create_unknown_finding(point, obstacle)
        else:
            yield from look(facts)

    return _check_rights_first(select, look_if_own)


def _check_topology_version(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Yield findings where the App's topology differs from the one that workers run."""
    if facts.topology is not None:
        yield from other_topology.check_topology_version(other_topology.compare_topologies(facts))


def _list_running_points() -> list[tuple[PointName, Look]]:
    return [
        (group.FOREIGN, _check_foreign_members),
        # Before the members: where no worker runs, the log of the last one is what says why.
        (recent_errors.RECENT_ERRORS, lambda facts: recent_errors.check_logs(facts.places.logs)),
        (group.MEMBERS, running_points.check_members),
        (group.UNREAD, _check_rights_first(_list_input_topics, _check_unread)),
        (other_topology.VERSIONS, lambda facts: group.check_versions(facts.report())),
        (group.IDENTITY, lambda facts: group.check_identities(facts.report())),
        (group.OFFSETS, _check_rights_first(_list_read_topics, _check_committed_offsets)),
        (workers.BUSY, _check_processing),
        (workers.HEALTH, lambda facts: workers.check_health(facts.workers())),
        (worker_clocks.WORKER_CLOCKS, running_points.check_worker_clocks),
        (throttling.QUOTAS, lambda facts: throttling.check_throttling(facts.workers())),
        (workers.COMMITS, lambda facts: workers.check_commits(facts.workers())),
        (workers.DROPPED, _check_dropped_records),
        (workers.PLACEMENT, _check_key_placement),
        (workers.RECOVERIES, lambda facts: workers.check_recoveries(facts.workers())),
        (queries.QUERIES, _check_endpoints),
        (queries.QUERIES, lambda facts: queries.check_queries(facts.workers())),
        (transactions.TRANSACTIONS, _check_rights_first(_list_all_topics, _check_transactions)),
        (
            readers.ISOLATION,
            _check_rights_first(_list_output_topics, running_points.check_isolation),
        ),
        (coordinators.COORDINATORS, running_points.check_coordinators),
        (RIGHTS, running_points.check_rights),
        (local_workers.ZOMBIES, running_points.check_zombies),
        (local_workers.DIRECTORY, running_points.check_state_directory),
        (local_workers.FENCING, running_points.check_fencing),
        (local_workers.FENCING, running_points.check_epochs),
    ]


def _check_endpoints(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    return queries.check_endpoints(facts.members().subscriptions.values())


def _may_have_state_here(facts: ApplicationFacts) -> bool:
    """Return whether an application has state here, or may have, as its App is at hand."""
    return facts.topology is not None or facts.state_path.is_dir()


def _check_disk_space(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    if _may_have_state_here(facts):
        yield from machine.check_disk_space(read_disk_usage(facts.state_path))


def _check_inodes(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    if _may_have_state_here(facts):
        yield from machine.check_inodes(read_disk_usage(facts.state_path))


def _check_open_files(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    if _may_have_state_here(facts):
        stores_here = count_stores(facts.state_path)
        yield from machine.check_open_files(read_process_limits(), stores_here)


def _check_memory_limit(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check the limit against the budgets, where the settings are the application's."""
    config = facts.config
    if facts.topology is None:
        return
    budgets = config.rocksdb_memory_max_bytes + config.cache_max_bytes
    budgets += max(config.statestore_uncommitted_max_bytes, 0)
    yield from machine.check_memory_limit(read_process_limits(), budgets)


def _check_settings(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check the settings alone, where they are the application's."""
    if facts.topology is None:
        return
    yield from configuration.check_guarantee(facts.config)
    yield from configuration.check_commit_interval(facts.config)


def _check_broker_limits(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check the settings against the brokers', where they are the application's."""
    if facts.topology is not None:
        yield from configuration.check_broker_limits(facts.config, facts.cluster.broker_settings())


def _check_topics(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    found, described = facts.topics(), facts.cluster.description()
    has_state = bool(found.internal & described.topics.keys())
    return topics.check_topics_exist(
        *(described, found.all, found.internal, facts.derive_former_counts),
        found.inputs if has_state else (),
    )


def _check_leaders(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    return topics.check_leaders(facts.cluster.description(), facts.topics().all)


def _check_replicas(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    description, names = facts.cluster.description(), facts.topics().all
    there = [each for each in names if each in description.topics]
    return topics.check_replicas(description, names, facts.cluster.topic_settings(there))


def _check_durability(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    description, names = facts.cluster.description(), facts.topics().all
    there = [each for each in names if each in description.topics]
    return topics.check_durability(description, there, facts.cluster.topic_settings(there))


def _check_transactions(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    interval_ms = None if facts.app is None else facts.config.commit_every_ms
    return check_transactions(
        facts.cluster, sorted(facts.topics().all), facts.application_id, interval_ms
    )


def _check_retention(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the age of the oldest unread records with the retention, where it may matter."""
    progress = facts.progress()
    oldest = fetch_oldest_unread(facts.cluster, progress)
    has_workers = True  # unless it is known that none runs
    with suppress(ConnectionLost, OutcomeUnknown, UserError):
        has_workers = bool(facts.report().members)
    return input_retention.check_retention(
        progress, oldest, facts.cluster.now_ms, has_workers=has_workers
    )


def _check_unread(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    return group.check_unread(facts.report())


def _check_committed_offsets(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check who has committed the offsets; brokers leave out those of topics that are hidden."""
    return group.check_committed_offsets(facts.committed())


def _check_copartitions(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    found, counts = facts.topics(), facts.cluster.clients().partition_counts
    groups = [each - found.repartition for each in found.copartitioned]
    former = facts.derive_former_counts(inputs.list_topics_of_unequal_counts(groups, counts))
    return inputs.check_copartitions(groups, counts, former)


def _check_key_placement(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    has_joins = any(len(each) > 1 for each in facts.topics().copartitioned)
    return workers.check_key_placement(facts.workers(), has_joins=has_joins)


def _check_skew(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare partitions; where one stands out, look at the keys of its newest records."""
    progress = facts.progress()
    sizes, since = count_recent_or_all_records(facts.cluster, progress)
    ends = {p: each.end_offset for p, each in progress.items()}
    yield from inputs.check_skew(sizes, {p: e.lag for p, e in progress.items()}, ends, since)
    for topic in sorted({each.topic for each in sizes}):
        largest = inputs.find_outsized_partition(
            {p: n for p, n in sizes.items() if p.topic == topic}
        )
        if largest is not None:
            found = progress[largest]
            keys = read_keys(facts.cluster, largest, found.first_offset, found.end_offset)
            yield from inputs.check_for_hot_key(largest, keys)


def _check_next_records(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Read the next record of each input, where the App has its serdes."""
    if facts.topology is not None:
        faults, count = find_unreadable_records(facts.cluster, facts.topology, facts.progress())
        handler = facts.config.deserialization_handler
        yield from inputs.check_next_records(faults, count, handler)


def _check_processing(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check how busy threads are, beside what is left to do as far as that is known."""
    found, lag = facts.workers(), 0
    with suppress(ConnectionLost, OutcomeUnknown, UserError):
        lag = sum(each.lag for each in facts.progress().values())
    return workers.check_processing(found, facts.config, lag)


def _check_dropped_records(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look for dropped records; the topics of dead letters are known from the App's settings."""
    handlers = () if facts.topology is None else facts.config.handlers
    topics = {each.topic for each in handlers if isinstance(each, DeadLetter)}
    return workers.check_dropped_records(facts.workers(), topics)


def _check_foreign_members(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look whether the members of the group can be read, and which protocol it has."""
    refusal = ""
    try:
        facts.members()
    except AuthorizationError:
        raise  # it is a ConfigError, and says nothing of the members
    except ConfigError as error:
        refusal = str(error)
    name = facts.application_id
    protocols = {each.protocol for each in facts.cluster.groups() if each.group == name}
    return group.check_foreign_members(refusal, protocols)

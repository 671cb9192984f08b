"""List the points of an application: machine, settings, topics, group, transactions and stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streams.doctor import configuration, group, machine, topics, transactions
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.cluster_points import check_transactions
from streams.doctor.findings import DoctorFinding
from streams.doctor.machine_facts import count_stores, read_disk_usage, read_process_limits

Look = Callable[[ApplicationFacts], Iterable[DoctorFinding]]


def list_points() -> list[tuple[str, Look]]:
    """Return the points of an application, in the order in which they are looked at."""
    return [
        (machine.DISK, lambda facts: machine.check_disk_space(read_disk_usage(facts.state_path))),
        (machine.INODES, lambda facts: machine.check_inodes(read_disk_usage(facts.state_path))),
        (machine.FILES, _check_open_files),
        (machine.MEMORY, _check_memory_limit),
        (configuration.GUARANTEE, _check_settings),
        (configuration.SESSION_TIMEOUT, _check_broker_limits),
        ("topics", _check_topics),
        (topics.LEADERS, _check_leaders),
        (topics.REPLICAS, _check_replicas),
        (topics.DURABILITY, _check_durability),
        (group.MEMBERS, lambda facts: group.check_members(facts.report())),
        (group.UNREAD, lambda facts: group.check_unread(facts.report())),
        ("topology", lambda facts: group.check_versions(facts.report())),
        (group.IDENTITY, lambda facts: group.check_identities(facts.report())),
        (group.OFFSETS, lambda facts: group.check_committed_offsets(facts.committed())),
        (transactions.TRANSACTIONS, _check_transactions),
    ]


def _check_open_files(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    return machine.check_open_files(read_process_limits(), count_stores(facts.state_path))


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
    found = facts.topics()
    return topics.check_topics_exist(facts.cluster.description(), found.all, found.internal)


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
    return check_transactions(facts.cluster, sorted(facts.topics().all))

"""List the points of a cluster: its brokers, the coordinators' topics, and their transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from streams.common.addresses import Address, parse_address, parse_addresses
from streams.common.topic_partitions import Partition
from streams.doctor import (
    broker_disks,
    brokers,
    configuration,
    coordinators,
    running_points,
    security,
    topics,
    transactions,
)
from streams.doctor.broker_probe import measure_clock_skew
from streams.doctor.cluster_facts import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, ClusterFacts
from streams.doctor.findings import (
    CONNECTION,
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_unknown_finding,
)
from streams.doctor.stopped_processes import (
    describe_stopped,
    find_stopped_listeners,
    suggest_continue_command,
)
from streams.doctor.transactions import OpenTransactions
from streams.errors import UserError
from streams.membership.connection import ConnectionLost
from streams.processes.broker_stop import read_broker_status
from streams.settings.config import EMBEDDED

PointName: TypeAlias = str

Look = Callable[[ClusterFacts], Iterable[DoctorFinding]]
_COORDINATORS = (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)


def list_cluster_points(*, is_alone: bool) -> list[tuple[PointName, Look]]:
    """Return the points of a cluster; where it `is_alone`, of all of its topics."""
    found: list[tuple[str, Look]] = [
        (CONNECTION, _check_connection),
        (brokers.BROKERS, _check_reachable),
        (brokers.LATENCY, lambda facts: brokers.check_latency(facts.probes())),
        (
            brokers.RELEASE,
            lambda facts: brokers.check_release(
                facts.probes(), exactly_once=facts.config.exactly_once
            ),
        ),
        (brokers.CLOCK, _check_clock),
        (
            configuration.OFFSET_RETENTION,
            lambda facts: configuration.check_retention(facts.broker_settings()),
        ),
        ("coordinators' topics", _check_coordinator_topics),
        (broker_disks.BROKER_DISKS, _check_broker_disks),
        (coordinators.COORDINATORS, running_points.check_broker_figures),
        (security.CERTIFICATES, running_points.check_certificates),
        (security.TOKEN, running_points.check_token),
    ]
    if is_alone:
        found += [
            (topics.LEADERS, lambda facts: _check_leaders(facts, facts.description().topics)),
            (topics.REPLICAS, lambda facts: _check_replicas(facts, facts.description().topics)),
            (
                transactions.TRANSACTIONS,
                lambda facts: check_transactions(facts, list(facts.description().topics)),
            ),
        ]
    return found


def check_transactions(
    facts: ClusterFacts,
    names: Sequence[str],
    application_id: str = "",
    commit_every_ms: int | None = None,
) -> Iterator[DoctorFinding]:
    """Check the transactions that are open in topics, those of an application by its interval."""
    found = fetch_open_transactions(facts, names)
    yield from transactions.check_hanging_transactions(found)
    yield from transactions.check_long_transactions(found, names, application_id, commit_every_ms)


def fetch_open_transactions(facts: ClusterFacts, names: Sequence[str]) -> OpenTransactions:
    """Ask the logs of those partitions in which something is open, and all coordinators.

    The logs are asked before the coordinators and after them: a transaction that ends in between is
    no longer in the logs then.
    """
    known_topics = facts.description().topics
    partitions = [
        Partition(name, each.number)
        for name in names
        if not name.startswith("__")
        for each in known_topics.get(name, ())
        if each.leader is not None
    ]
    stable = facts.admin().fetch_last_stable_offsets(partitions) if partitions else {}
    ends = facts.admin().fetch_latest_offsets(partitions) if partitions else {}
    blocked = {each: ends[each] - stable[each] for each in partitions if ends[each] > stable[each]}
    before = facts.list_open_producers(list(blocked)) if blocked else ()
    known = facts.transactions()
    owned = {each.producer_id for each in known.open}
    ownerless = [each for each in before if each.producer_id not in owned]
    if ownerless:
        places = sorted({each.partition for each in ownerless})
        after = {
            (each.partition, each.producer_id, each.start_offset)
            for each in facts.list_open_producers(places)
        }
        ownerless = [
            each
            for each in ownerless
            if (each.partition, each.producer_id, each.start_offset) in after
        ]
    return OpenTransactions(ownerless, known, blocked, facts.now_ms)


def _check_reachable(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Check that each broker answers; one of this machine may be stopped by a signal."""
    silent = [each.address for each in facts.probes() if each.failure]
    return brokers.check_reachable(facts.probes(), find_stopped_listeners(silent))


def _check_connection(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Connect to the cluster, or say why that fails."""
    try:
        clients = facts.clients()
    except (UserError, ConnectionLost) as error:
        remedy = "correct what the message says, and run the doctor again"
        if "no embedded broker runs" in str(error):
            remedy = "start a worker, which starts the embedded broker; or name the brokers with "
            remedy += "--bootstrap-servers"
        stopped = find_stopped_listeners(_list_addresses(facts))
        if processes := dict.fromkeys(stopped.values()):
            remedy = "; ".join(
                f"{describe_stopped(p)}: {suggest_continue_command(p)}" for p in processes
            )
        yield create_error_finding(
            CONNECTION, str(error), "no worker on this machine could work either", remedy
        )
        return
    yield create_fine_finding(CONNECTION, f"to {clients.servers}")


def _list_addresses(facts: ClusterFacts) -> list[Address]:
    """Return the addresses of the settings, or that of the embedded broker where it runs."""
    if facts.config.bootstrap_servers != EMBEDDED:
        return parse_addresses(facts.config.bootstrap_servers)
    announced = read_broker_status(facts.config.state_dir).address
    return [] if announced is None else [parse_address(announced)]


def _check_clock(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    skew = measure_clock_skew(facts.clients().open_connection)
    if skew is None:
        yield create_unknown_finding(
            brokers.CLOCK, "the brokers don't tell theirs (KRaft does, from 3.3 on)"
        )
        return
    yield from brokers.check_clock(skew)


def _check_broker_disks(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    addresses = [each.address for each in facts.probes() if not each.failure]
    disks = broker_disks.fetch_broker_disks(addresses, facts.clients().open_connection)
    yield from broker_disks.check_broker_disks(disks)


def _check_coordinator_topics(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Check the coordinators' topics, as far as this user may see them."""
    description = facts.description()
    visible = [name for name in _COORDINATORS if name in description.topics]
    if not visible:
        yield create_unknown_finding(
            "coordinators' topics",
            "they are not there yet, or this user may not describe them (Describe on both)",
        )
        return
    yield from _check_leaders(facts, visible)
    yield from _check_replicas(facts, visible)
    yield from topics.check_durability(description, visible, facts.topic_settings(visible))


def _check_leaders(facts: ClusterFacts, names: Iterable[str]) -> Iterator[DoctorFinding]:
    return topics.check_leaders(facts.description(), list(names))


def _check_replicas(facts: ClusterFacts, names: Iterable[str]) -> Iterator[DoctorFinding]:
    """Check replicas; settings are asked only of topics that have one behind."""
    description = facts.description()
    behind = [
        name
        for name in names
        if any(len(each.in_sync) < len(each.replicas) for each in description.topics.get(name, ()))
    ]
    return topics.check_replicas(description, list(names), facts.topic_settings(behind))

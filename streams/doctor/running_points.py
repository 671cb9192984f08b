"""Fetch what the checks of readers, coordinators, rights and local workers need."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial

from state.directory import LOCK_FILE
from state.linux_calls import find_removed_files
from streams.common.topic_partitions import Partition
from streams.doctor import (
    coordinators,
    group,
    local_workers,
    producer_epochs,
    readers,
    security,
    worker_clocks,
)
from streams.doctor.application_facts import ApplicationFacts
from streams.doctor.cluster_facts import REQUEST_WAIT_S, TRANSACTIONS_TOPIC, ClusterFacts
from streams.doctor.coordinator_facts import (
    measure_coordinator_answer_times,
    scrape_embedded_broker,
)
from streams.doctor.early_commits import find_early_commits
from streams.doctor.findings import DoctorFinding, create_unknown_finding
from streams.doctor.local_workers import find_workers_by_directory_locks
from streams.doctor.request_loggers import find_brokers_with_request_logger
from streams.doctor.security_facts import (
    fetch_broker_certificates,
    find_missing_rights,
    list_bootstrap_addresses,
    read_own_certificates,
)
from streams.errors import AuthorizationError, OutcomeUnknown, UserError
from streams.membership.application_group import fetch_group_description
from streams.membership.connection import ConnectionLost
from streams.membership.group_offsets import fetch_group_offsets
from streams.runtime.access.acls import derive_acls
from streams.runtime.access.resource_names import is_cut_group
from streams.settings.config import EMBEDDED

_GROUPS_MAX = 200
_GROUPS_SHOWN = 3
_MEMBER_ID = re.compile(r"(.+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BETWEEN_LOOKS_S = 1.0


def check_certificates(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Check the certificates of the settings, and those that the brokers show."""
    config = facts.config
    if config.bootstrap_servers == EMBEDDED or not config.connection.uses_tls:
        return
    found = list(read_own_certificates(config.connection))
    try:
        security_in_use = facts.clients().security
    except Exception:  # the certificates of the settings are looked at all the same
        yield from security.check_certificates(found, datetime.now(UTC))
        raise
    addresses = list_bootstrap_addresses(config.bootstrap_servers)
    addresses += sorted(set(facts.description().brokers.values()) - set(addresses))
    found += fetch_broker_certificates(addresses, security_in_use, REQUEST_WAIT_S)
    yield from security.check_certificates(found, datetime.now(UTC))


def check_token(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Fetch a token, where the connection has them, and say how long it is valid."""
    tokens = facts.clients().security.tokens
    if tokens is not None:
        yield from security.check_token(tokens.fetch_token().ends_at_s, time.time())


def check_rights(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the rights of this user with those that the application needs.

    Without the App those are not known: then only topics that may not be described are named.
    """
    if facts.topology is None:
        yield from security.check_rights(_find_hidden_topics(facts), 0)
        return
    needed = derive_acls(facts.topology, facts.config)
    there = facts.cluster.description().topics
    yield from security.check_rights(*find_missing_rights(needed, there, facts.cluster.admin()))


def _find_hidden_topics(facts: ApplicationFacts) -> dict[str, str]:
    """Return the missing right on each known topic that this user may not describe."""
    missing = {}
    for topic in sorted(facts.topics().all):
        try:
            facts.cluster.refuse_hidden_topics([topic])
        except AuthorizationError as error:
            missing[f"topic {topic}"] = error.operation
    return missing


def check_isolation(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look at the offsets of all groups that read the outputs."""
    clients = facts.cluster.clients()
    counts = clients.partition_counts
    topics = sorted(facts.topics().outputs & counts.keys())
    if not topics:
        if facts.topology is None:
            yield create_unknown_finding(
                readers.ISOLATION, "the outputs are known from the App only: give MODULE:APP"
            )
        return
    own = facts.application_id
    groups = [
        each.group
        for each in facts.cluster.groups()
        if each.group != own
        and not is_cut_group(each.group, own)
        and each.protocol in ("classic", "consumer")
    ]
    if len(groups) > _GROUPS_MAX:
        yield create_unknown_finding(
            readers.ISOLATION, f"of {len(groups)} groups the first {_GROUPS_MAX} were looked at"
        )

    def fetch_offsets(group: str) -> dict[Partition, int]:
        found = clients.ask_brokers(
            lambda connect: fetch_group_offsets(connect, group, None, require_stable=False)
        )
        return {p: held.offset for p, held in found.offsets.items()}

    outputs = [Partition(topic, n) for topic in topics for n in range(counts[topic])]
    proven, found = readers.find_uncommitted_reads(
        groups[:_GROUPS_MAX],
        fetch_offsets,
        facts.cluster.admin().fetch_last_stable_offsets,
        outputs,
    )
    others = [each for each in found if each not in proven]
    compared = ""
    if others:
        try:
            early = find_early_commits(facts.cluster, others, outputs)
            proven |= early.proven
            compared = f", and {early.describe_comparison()}"
        except (AuthorizationError, UserError, OutcomeUnknown, ConnectionLost) as error:
            compared = f" (the times of their commits can't be read: {error})"
    loggers = find_brokers_with_request_logger(facts.cluster) if others else []
    yield from readers.check_isolation(
        proven, found, compared, _list_client_ids(facts, others), loggers
    )


def _list_client_ids(facts: ApplicationFacts, groups: Sequence[str]) -> list[str]:
    """Return the client ids of members of the first of these groups, by their member ids.

    Those of the consumer protocol (KIP-848) do not begin with it.
    """
    found: dict[str, None] = {}
    with suppress(AuthorizationError, UserError, OutcomeUnknown, ConnectionLost):
        for group in groups[:_GROUPS_SHOWN]:
            described = facts.cluster.clients().ask_brokers(
                partial(fetch_group_description, group_id=group)
            )
            for member in () if described is None else described.members:
                if match := _MEMBER_ID.fullmatch(member.member_id):
                    found[match[1]] = None
    return list(found)


def check_coordinators(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Measure the coordinators of the group and of an id of the application."""
    committed = facts.committed()
    if not committed:
        return
    has_transactions = TRANSACTIONS_TOPIC in facts.cluster.description().topics
    times = measure_coordinator_answer_times(
        facts.cluster.clients(),
        facts.application_id,
        min(committed),
        f"{facts.application_id}-doctor" if has_transactions else None,
    )
    yield from coordinators.check_answer_times(times)


def check_broker_figures(facts: ClusterFacts) -> Iterator[DoctorFinding]:
    """Check the embedded broker's figures, where it tells them."""
    scrape = scrape_embedded_broker(facts.config)
    if scrape is not None:
        yield from coordinators.check_coordinator_figures(scrape)


def check_worker_clocks(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the clocks of workers with this machine's; those of others by their commits."""
    clocks: Mapping[str, float] = {}
    with suppress(ConnectionLost, OutcomeUnknown, UserError):
        clocks = facts.workers().clocks_ahead_s
    ahead = worker_clocks.find_commits_ahead(facts.committed(), facts.cluster.now_ms)
    owners: Mapping[Partition, str] = {}
    if ahead:
        with suppress(ConnectionLost, OutcomeUnknown, UserError):
            local = find_workers_by_directory_locks(facts.state_path)
            owners = worker_clocks.name_owners(facts.report(), local, facts.state_path)
    topology = facts.topology
    stamped = None if topology is None else worker_clocks.list_stamped_topics(topology)
    if clocks or facts.committed():
        yield from worker_clocks.check_clocks(ahead, clocks, owners, stamped)


def check_members(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Check the members of the group, or name ids that are near one that the cluster lacks."""
    name = facts.application_id
    if facts.app is None and facts.group() is None and not _has_application_topics(facts):
        groups = sorted(each.group for each in facts.cluster.groups())
        near = difflib.get_close_matches(name, groups, n=3)
        yield from group.check_unknown_application(name, near, groups)
    else:
        yield from group.check_members(facts.report())


def _has_application_topics(facts: ApplicationFacts) -> bool:
    """Return whether the cluster has a topic whose name begins as those of the application do."""
    topics = facts.cluster.description().topics
    return any(each.startswith(f"{facts.application_id}-") for each in topics)


def check_zombies(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Compare the workers of this machine with the members of the group."""
    return local_workers.check_zombies(
        find_workers_by_directory_locks(facts.state_path), facts.report()
    )


def check_state_directory(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look for workers of this machine whose state directory was removed."""
    removed = find_removed_files(facts.state_path, LOCK_FILE)
    return local_workers.check_state_directory(facts.state_path, removed)


def check_fencing(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look at the group once more, a second after the first time or later."""
    before = facts.group()
    time.sleep(max(_BETWEEN_LOOKS_S - (time.monotonic() - facts.group_fetched_at_s), 0.0))
    after = facts.cluster.clients().ask_brokers(
        lambda connect: fetch_group_description(connect, facts.application_id)
    )
    return local_workers.check_fencing(before, after)


def check_epochs(facts: ApplicationFacts) -> Iterator[DoctorFinding]:
    """Look twice at the epochs of the application's producers, while it has members."""
    group_now = facts.group()
    if group_now is None or not group_now.members:
        return
    before = facts.cluster.fetch_producer_epochs(facts.application_id)
    time.sleep(_BETWEEN_LOOKS_S)
    after = facts.cluster.fetch_producer_epochs(facts.application_id)
    fought_over = producer_epochs.find_contested_ids(before, after)
    yield from producer_epochs.check_epochs(fought_over, after, facts.report())

"""Test each check with facts that are fine, unwise and wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.doctor import brokers, configuration, group, machine, topics, transactions
from streams.doctor.broker_probe import BrokerProbe, ClockSkew
from streams.doctor.cluster_facts import TransactionFacts
from streams.doctor.findings import DoctorFinding, Verdict
from streams.doctor.machine import DiskUsage, ProcessLimits
from streams.doctor.transactions import OpenTransactions
from streams.membership.transactions import DescribedTransactionState, OpenProducer
from streams.monitoring.group_report import (
    ActiveTask,
    GroupReport,
    MemberReport,
    PartitionLag,
)
from streams.runtime.clients.cluster_admin import ClusterDescription, PartitionDescription
from streams.runtime.offsets.offset_metadata import encode_metadata
from streams.settings.config import StreamsConfig

FINE, WARNING, ERROR = Verdict.FINE, Verdict.WARNING, Verdict.ERROR
NOW_MS = 1_000_000_000


def verdicts(found: Iterable[DoctorFinding]) -> list[Verdict]:
    return [each.verdict for each in found]


def partition(
    number: int = 0, leader: int | None = 1, replicas: int = 3, in_sync: int = 3
) -> PartitionDescription:
    return PartitionDescription(number, leader, list(range(replicas)), list(range(in_sync)))


def cluster(broker_count: int = 3, **topics: PartitionDescription) -> ClusterDescription:
    addresses = {n: ("host", 9092 + n) for n in range(broker_count)}
    return ClusterDescription(addresses, {name: [each] for name, each in topics.items()})


SAFE = {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"}


@pytest.mark.parametrize(
    ("place", "expected"),
    [(partition(), FINE), (partition(leader=None), ERROR)],
)
def test_leaders(place: PartitionDescription, expected: Verdict) -> None:
    (found,) = topics.check_leaders(cluster(lines=place), ["lines", "absent"])
    assert found.verdict is expected
    assert expected is FINE or "lines[0]" in found.what


@pytest.mark.parametrize(("in_sync", "expected"), [(3, FINE), (2, WARNING), (1, ERROR)])
def test_replicas_in_sync(in_sync: int, expected: Verdict) -> None:
    described = cluster(lines=partition(in_sync=in_sync))
    (found,) = topics.check_replicas(described, ["lines"], {"lines": SAFE})
    assert found.verdict is expected
    assert expected is FINE or "lines[0]" in found.what


@pytest.mark.parametrize(
    ("described", "settings", "expected"),
    [
        (cluster(lines=partition()), SAFE, [FINE]),
        (cluster(1, lines=partition(replicas=1)), {}, [FINE]),
        (cluster(lines=partition(replicas=1)), SAFE, [WARNING]),
        (cluster(2, lines=partition(replicas=2)), SAFE, [FINE]),
        (cluster(lines=partition()), SAFE | {"min.insync.replicas": "1"}, [WARNING]),
        (
            cluster(lines=partition()),
            SAFE | {"unclean.leader.election.enable": "true"},
            [WARNING],
        ),
    ],
)
def test_durability(
    described: ClusterDescription, settings: Mapping[str, str], expected: list[Verdict]
) -> None:
    found = list(topics.check_durability(described, ["lines"], {"lines": settings}))
    assert verdicts(found) == expected


def test_topics_that_are_missing() -> None:
    described = cluster(lines=partition())
    (fine,) = topics.check_topics_exist(described, ["lines", "own"], ["own"], lambda _: {})
    assert fine.verdict is FINE
    (found,) = topics.check_topics_exist(
        described, ["lines", "in", "out"], [], lambda missing: {min(missing): 6}
    )
    assert found.verdict is ERROR
    assert "create-topics in --partitions 6" in found.remedy
    assert "create-topics out`, with --partitions if" in found.remedy
    assert "--made-again" not in found.remedy


def test_a_missing_input_is_created_and_then_begun_with() -> None:
    (found,) = topics.check_topics_exist(cluster(), ["in", "out"], [], lambda _: {"in": 6}, ["in"])
    created, begun = (found.remedy.index(each) for each in ("create-topics in", "--made-again in"))
    assert created < begun


def probe(**fields: Any) -> BrokerProbe:
    return BrokerProbe(("host", 9092), **{"api_versions": {28: 6}, **fields})


def test_brokers_that_do_not_answer() -> None:
    assert verdicts(brokers.check_reachable([probe(), probe()])) == [FINE]
    (found,) = brokers.check_reachable([probe(), probe(failure="refused")])
    assert (found.verdict, "host:9092" in found.what) == (ERROR, True)
    (found,) = brokers.check_reachable([probe(failure="unknown name", is_unresolved=True)])
    assert "advertised.listeners" in found.remedy


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"latency_s": 0.01}, [FINE]),
        ({"latency_s": 1.5}, [WARNING]),
        ({"latency_s": 0.01, "throttle_s": 0.3}, [WARNING, FINE]),
        ({"failure": "refused"}, []),
    ],
)
def test_latency_and_throttling(fields: dict[str, Any], expected: list[Verdict]) -> None:
    assert verdicts(brokers.check_latency([probe(**fields)])) == expected


V39, V40, V44 = {1: 17}, {0: 12, 1: 17}, {28: 6}


@pytest.mark.parametrize(
    ("versions", "exactly_once", "expected"),
    [
        ([V44, V44], True, FINE),
        ([V44, V40], True, WARNING),
        ([V40, V40], True, FINE),
        ([V39], True, WARNING),
        ([V39], False, FINE),
        ([{}], True, ERROR),
    ],
)
def test_releases(versions: list[dict[int, int]], exactly_once: bool, expected: Verdict) -> None:
    probes = [probe(api_versions=each) for each in versions]
    (found,) = brokers.check_release(probes, exactly_once=exactly_once)
    assert found.verdict is expected


@pytest.mark.parametrize(
    ("ahead_s", "error_s", "expected"),
    [(0.2, 0.1, FINE), (-7.0, 0.1, WARNING), (7.0, 0.1, WARNING), (7.0, 3.0, FINE)],
)
def test_clocks(ahead_s: float, error_s: float, expected: Verdict) -> None:
    assert verdicts(brokers.check_clock(ClockSkew(ahead_s, error_s))) == [expected]


GIB = 1 << 30
USAGE = DiskUsage(Path("/state"), 50 * GIB, 100 * GIB, 1_000_000, 2_000_000, 10 * GIB)


@pytest.mark.parametrize(
    ("free_bytes", "expected"), [(50 * GIB, FINE), (9 * GIB, WARNING), (90 << 20, ERROR)]
)
def test_disk_space(free_bytes: int, expected: Verdict) -> None:
    found = machine.check_disk_space(replace(USAGE, free_bytes=free_bytes))
    assert verdicts(found) == [expected]


def test_a_small_disk_that_is_nearly_empty_is_fine() -> None:
    small = replace(USAGE, free_bytes=90 << 20, total_bytes=100 << 20, state_bytes=1 << 20)
    assert verdicts(machine.check_disk_space(small)) == [FINE]


def test_a_linked_directory_is_on_the_disk_of_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path.resolve() / "disk"
    (disk / "state").mkdir(parents=True)
    (tmp_path / "state").symlink_to(disk / "state")
    monkeypatch.setattr(Path, "is_mount", lambda each: each == disk)
    assert machine.find_mount_point(tmp_path / "state" / "words") == disk


@pytest.mark.parametrize(
    ("free", "total", "expected"),
    [(1_000_000, 2_000_000, [FINE]), (500, 2_000_000, [ERROR]), (0, 0, [])],
)
def test_inodes(free: int, total: int, expected: list[Verdict]) -> None:
    usage = replace(USAGE, free_inodes=free, total_inodes=total)
    assert verdicts(machine.check_inodes(usage)) == expected


@pytest.mark.parametrize(
    ("limit", "stores", "expected"),
    [(1_024, 4, FINE), (1_024, 40, WARNING), (None, 1_000, FINE)],
)
def test_open_files(limit: int | None, stores: int, expected: Verdict) -> None:
    found = machine.check_open_files(ProcessLimits(limit, None), stores)
    assert verdicts(found) == [expected]


@pytest.mark.parametrize(
    ("limit", "expected"), [(None, FINE), (2 * GIB, FINE), (256 << 20, WARNING)]
)
def test_the_memory_limit(limit: int | None, expected: Verdict) -> None:
    found = machine.check_memory_limit(ProcessLimits(None, limit, "the cgroup"), 300 << 20)
    assert verdicts(found) == [expected]


@pytest.mark.parametrize(
    ("guarantee", "expected"), [("exactly_once_v2", FINE), ("at_least_once", WARNING)]
)
def test_the_guarantee(guarantee: Any, expected: Verdict) -> None:
    config = StreamsConfig(processing_guarantee=guarantee)
    assert verdicts(configuration.check_guarantee(config)) == [expected]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [FINE]),
        ({"commit_interval_ms": 4_001, "transaction_timeout_ms": 10_000}, [WARNING]),
        ({"processing_guarantee": "at_least_once"}, []),
    ],
)
def test_the_commit_interval(settings: dict[str, Any], expected: list[Verdict]) -> None:
    found = configuration.check_commit_interval(StreamsConfig(**settings))
    assert verdicts(found) == expected


LIMITS = {
    "transaction.max.timeout.ms": "900000",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "offsets.retention.minutes": "10080",
    "transactional.id.expiration.ms": "604800000",
}


@pytest.mark.parametrize(
    ("settings", "altered", "expected"),
    [
        ({}, {}, [FINE]),
        ({}, {"transaction.max.timeout.ms": "5000"}, [ERROR, FINE]),
        ({"session_timeout_ms": 5_000}, {}, [ERROR]),
    ],
)
def test_limits_of_the_brokers(
    settings: dict[str, Any], altered: dict[str, str], expected: list[Verdict]
) -> None:
    config = StreamsConfig(**settings)
    found = configuration.check_broker_limits(config, {1: LIMITS, 2: LIMITS | altered})
    assert verdicts(found) == expected


@pytest.mark.parametrize(
    ("altered", "expected"),
    [
        ({}, [FINE]),
        ({"offsets.retention.minutes": "60"}, [WARNING]),
        ({"transactional.id.expiration.ms": "60000"}, [WARNING]),
    ],
)
def test_retention_of_offsets(altered: dict[str, str], expected: list[Verdict]) -> None:
    assert verdicts(configuration.check_retention({1: LIMITS | altered})) == expected


PLACE = Partition("out", 1)


OWN_ID = "app-4be5bd0d-4a29-4d61-b5d0-3c1a9a1a0c52-0"


def describe_open(age_ms: int, timeout_ms: int = 60_000) -> DescribedTransactionState:
    return DescribedTransactionState(OWN_ID, 7, 0, "Ongoing", timeout_ms, NOW_MS - age_ms, [PLACE])


def open_transactions(
    producers: list[OpenProducer], *known: DescribedTransactionState, gap: str | None = None
) -> OpenTransactions:
    return OpenTransactions(producers, TransactionFacts(known, (), gap), {PLACE: 12}, NOW_MS)


PRODUCER = OpenProducer(PLACE, 7, 0, 0, 120, NOW_MS - 3 * 3_600_000)


def test_a_transaction_that_no_coordinator_knows_hangs() -> None:
    (found,) = transactions.check_hanging_transactions(open_transactions([PRODUCER]))
    assert found.verdict is ERROR
    assert "3 h" in found.what
    assert "12 offsets of out[1]" in found.consequence
    assert "txn abort --topic out --partition 1 --start-offset 120" in found.remedy
    assert "it asks first; where there is no terminal add --yes" in found.remedy


def test_a_transaction_that_hangs_in_several_partitions_is_one_finding() -> None:
    other = OpenProducer(Partition("out", 0), 7, 0, 0, 44, NOW_MS - 60_000)
    another = OpenProducer(Partition("out", 0), 8, 0, 0, 45, NOW_MS)
    first, second = transactions.check_hanging_transactions(
        open_transactions([PRODUCER, another, other])
    )
    assert "producer 7 at out[0]@44, out[1]@120 hangs, 60 s after" in first.what
    assert first.remedy.count("txn abort --topic out --partition") == 2
    assert "producer 8 at offset 45 of out[0]" in second.what


def test_a_transaction_whose_owner_may_not_be_seen_is_not_said_to_hang() -> None:
    found = transactions.check_hanging_transactions(open_transactions([PRODUCER], gap="no right"))
    assert verdicts(found) == [Verdict.NOT_LOOKED_AT]
    owned = transactions.check_hanging_transactions(
        open_transactions([PRODUCER], describe_open(10))
    )
    assert verdicts(owned) == []


@pytest.mark.parametrize(
    ("age_ms", "timeout_ms", "expected"),
    [
        (500, 10_000, FINE),
        (90_000, 900_000, WARNING),
        (90_000, 10_000, ERROR),
        (30_000, 10_000, ERROR),
        (30_000, 900_000, FINE),
    ],
)
def test_transactions_that_are_open_for_long(
    age_ms: int, timeout_ms: int, expected: Verdict
) -> None:
    known = open_transactions([], describe_open(age_ms, timeout_ms))
    assert verdicts(transactions.check_long_transactions(known, ["out"])) == [expected]
    assert verdicts(transactions.check_long_transactions(known, ["other"])) == [FINE]


@pytest.mark.parametrize(
    ("age_ms", "interval_ms", "expected"),
    [(30_000, 100, WARNING), (9_000, 100, FINE), (30_000, 30_000, FINE), (30_000, None, FINE)],
)
def test_own_transactions_are_open_for_long_after_several_commit_intervals(
    age_ms: int, interval_ms: int | None, expected: Verdict
) -> None:
    known = open_transactions([], describe_open(age_ms, 900_000))
    found = transactions.check_long_transactions(known, ["out"], "app", interval_ms)
    assert verdicts(found) == [expected]


def test_the_oldest_transaction_is_named_before_it_is_a_fault() -> None:
    young, old = describe_open(12_000, 60_000), describe_open(30_000, 60_000)
    (found,) = transactions.check_long_transactions(open_transactions([], young, old), ["out"])
    assert found.verdict is FINE
    assert f"the oldest for 30 s, by {OWN_ID!r}" in found.what
    assert "out[1]" in found.what
    (quick,) = transactions.check_long_transactions(
        open_transactions([], describe_open(90)), ["out"]
    )
    assert quick.what == "1 transaction open, none for long"


def test_an_id_that_the_cluster_does_not_have() -> None:
    (found,) = group.check_unknown_application("wrods", ["words"], ["others", "words"])
    assert (found.verdict, "'words' meant?" in found.remedy) == (WARNING, True)
    (found,) = group.check_unknown_application("wrods", [], [])
    assert "no group at all" in found.what


def member(name: str = "a", host: str = "h1", **fields: Any) -> MemberReport:
    known: dict[str, Any] = {
        "member_id": name,
        "instance_id": name,
        "host": host,
        "process": "p",
        "directory": "d",
        "tags": {},
        "topology": "t",
        "generation": 1,
        "active": [ActiveTask("0_0", 0, [])],
        "standby": [],
        "warmup": [],
        "revoked": [],
        "rejoin_ms": 0,
        "problem": "",
    }
    return MemberReport(**(known | fields))


def report(*members: MemberReport, state: str = "Stable", unread: int = 0) -> GroupReport:
    lag = [PartitionLag("lines", n, 0, 5, 5) for n in range(unread)]
    return GroupReport("app", state, 1, members, lag)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (report(member()), [FINE]),
        (report(), [WARNING]),
        (report(member(), state="PreparingRebalance"), [WARNING]),
        (report(member(problem="another topology")), [ERROR]),
    ],
)
def test_members(found: GroupReport, expected: list[Verdict]) -> None:
    assert verdicts(group.check_members(found)) == expected


def test_partitions_that_nobody_reads() -> None:
    assert verdicts(group.check_unread(report(member()))) == [FINE]
    assert verdicts(group.check_unread(report(unread=1))) == []
    (found,) = group.check_unread(report(member(), unread=2))
    assert (found.verdict, "lines[0], lines[1]" in found.what) == (WARNING, True)


def test_versions_side_by_side() -> None:
    assert verdicts(group.check_versions(report(member(), member("b")))) == []
    assert verdicts(group.check_versions(report(member(), member("b", topology="u")))) == [WARNING]


def test_a_state_directory_at_two_hosts() -> None:
    assert verdicts(group.check_identities(report(member(), member("b")))) == [FINE]
    (found,) = group.check_identities(report(member(), member("b", host="h2")))
    assert (found.verdict, "h1, h2" in found.what) == (ERROR, True)


def test_offsets_of_another_program() -> None:
    own = {Partition("lines", 0): OffsetAndMetadata(1, encode_metadata({}))}
    assert verdicts(group.check_committed_offsets({})) == []
    assert verdicts(group.check_committed_offsets(own)) == [FINE]
    other = own | {Partition("lines", 1): OffsetAndMetadata(1, "")}
    (found,) = group.check_committed_offsets(other)
    assert (found.verdict, "lines[1]" in found.what) == (ERROR, True)


@pytest.mark.parametrize(
    ("refusal", "protocols", "expected"),
    [
        ("", ["classic"], FINE),
        ("", [], FINE),
        ("no", ["classic"], ERROR),
        ("", ["consumer"], ERROR),
    ],
)
def test_members_of_others(refusal: str, protocols: list[str], expected: Verdict) -> None:
    assert verdicts(group.check_foreign_members(refusal, protocols)) == [expected]

"""Check where partitions are: that each has a leader and its replicas, and how these are set.

The thresholds are those of `streams.runtime.assigning.internal_topic_settings`, which a worker
checks for internal topics; here they hold for inputs, outputs and the coordinators' topics too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeAlias

from streams.command_lines import format_command, format_kafka_command
from streams.common.counted import format_count
from streams.doctor.findings import (
    DoctorFinding,
    create_error_finding,
    create_fine_finding,
    create_warning_finding,
)
from streams.runtime.clients.cluster_admin import ClusterDescription, PartitionDescription
from streams.runtime.offsets.offset_refusals import suggest_new_topics

PartitionName: TypeAlias = str

TOPICS = "topics"
LEADERS, REPLICAS, DURABILITY = "partition leaders", "replicas in sync", "durability"
_SHOWN_MAX = 5
_REPLICAS_WISE = 3
_IN_SYNC, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def name_partitions(partitions: Sequence[str]) -> str:
    """Return the first few of these names, and how many more there are."""
    shown = ", ".join(partitions[:_SHOWN_MAX])
    rest = len(partitions) - _SHOWN_MAX
    return f"{shown} and {rest} more" if rest > 0 else shown


def check_leaders(cluster: ClusterDescription, topics: Collection[str]) -> Iterator[DoctorFinding]:
    """Find partitions of these topics that no broker leads, and topics that are not there."""
    found = _list_partitions(cluster, topics)
    leaderless = [name for name, each in found if each.leader is None]
    if leaderless:
        yield create_error_finding(
            LEADERS,
            f"{format_count(len(leaderless), 'partition')} without a leader: "
            f"{name_partitions(leaderless)}",
            "nobody can read or write them: what needs them waits",
            "start the brokers that have their replicas: "
            + format_kafka_command("kafka-topics.sh", "--describe", "--unavailable-partitions"),
        )
    else:
        yield create_fine_finding(LEADERS, f"all {format_count(len(found), 'partition')} have one")


def check_replicas(
    cluster: ClusterDescription,
    topics: Collection[str],
    settings: Mapping[str, Mapping[str, str]],
) -> Iterator[DoctorFinding]:
    """Find partitions of which a replica is behind, or too many to write to them.

    `settings` may lack topics, whose `min.insync.replicas` is not known then.
    """
    behind: list[str] = []
    unwritable: list[str] = []
    partitions = _list_partitions(cluster, topics)
    for name, each in partitions:
        if len(each.in_sync) >= len(each.replicas):
            continue
        topic = name.rpartition("[")[0]
        needed = int(settings.get(topic, {}).get(_IN_SYNC, 1))
        (unwritable if len(each.in_sync) < needed else behind).append(name)
    if unwritable:
        yield create_error_finding(
            REPLICAS,
            f"{format_count(len(unwritable), 'partition')} with fewer replicas in sync than "
            f"{_IN_SYNC}: {name_partitions(unwritable)}",
            "writes to them are refused (NOT_ENOUGH_REPLICAS), so that nothing commits",
            "start the brokers that are away: "
            + format_kafka_command("kafka-topics.sh", "--describe", "--under-min-isr-partitions"),
        )
    if behind:
        yield create_warning_finding(
            REPLICAS,
            f"{format_count(len(behind), 'partition')} with replicas that are behind: "
            f"{name_partitions(behind)}",
            "the next broker that is lost may stop the writes, or take records with it",
            "look which broker is away or slow: "
            + format_kafka_command(
                "kafka-topics.sh", "--describe", "--under-replicated-partitions"
            ),
        )
    if not behind and not unwritable:
        yield create_fine_finding(REPLICAS, f"all of {format_count(len(partitions), 'partition')}")


def check_durability(
    cluster: ClusterDescription,
    topics: Collection[str],
    settings: Mapping[str, Mapping[str, str]],
) -> Iterator[DoctorFinding]:
    """Find topics of which the loss of one broker loses records."""
    brokers = len(cluster.brokers)
    if brokers == 1:
        yield create_fine_finding(DURABILITY, "one broker: there can be no replicas")
        return
    wise = min(_REPLICAS_WISE, brokers)
    faults = list(_list_durability_faults(cluster, topics, settings, wise))
    yield from faults
    if not faults:
        yield create_fine_finding(
            DURABILITY, f"{format_count(len(topics), 'topic')} with {wise} replicas or more"
        )


def _list_durability_faults(
    cluster: ClusterDescription,
    topics: Collection[str],
    settings: Mapping[str, Mapping[str, str]],
    wise: int,
) -> Iterator[DoctorFinding]:
    few, lone, unclean = [], [], []
    for topic in sorted(topics):
        partitions = cluster.topics.get(topic)
        if not partitions:
            continue
        replicas = min(len(each.replicas) for each in partitions)
        found = settings.get(topic, {})
        if replicas < wise:
            few.append(f"{topic} ({replicas})")
        if replicas >= _REPLICAS_WISE and found.get(_IN_SYNC) == "1":
            lone.append(topic)
        if replicas > 1 and found.get(_UNCLEAN) == "true":
            unclean.append(topic)
    if few:
        yield create_warning_finding(
            DURABILITY,
            f"fewer than {wise} replicas: {name_partitions(few)}",
            "committed records, offsets or the knowledge of transactions are lost with a disk",
            "add replicas with "
            + format_kafka_command("kafka-reassign-partitions.sh", "--execute"),
        )
    for names, setting, value, wrong in (
        (lone, _IN_SYNC, "2", "a record that one broker alone has counts as written"),
        (unclean, _UNCLEAN, "false", "a broker that lacks committed records may become leader"),
    ):
        if names:
            shown = "1" if setting == _IN_SYNC else "true"
            yield create_warning_finding(
                DURABILITY,
                f"{setting}={shown}: {name_partitions(names)}",
                wrong,
                format_kafka_command(
                    *("kafka-configs.sh", "--alter", "--entity-type", "topics"),
                    *("--entity-name", names[0], "--add-config", f"{setting}={value}"),
                )
                + (", and so for the others" if len(names) > 1 else ""),
            )


def check_topics_exist(
    cluster: ClusterDescription,
    needed: Collection[str],
    internal: Collection[str],
    derive_counts: Callable[[Collection[str]], Mapping[str, int]],
    read: Collection[str] = (),
) -> Iterator[DoctorFinding]:
    """Find topics that an application reads or writes and that are not there.

    `internal` are those that it makes itself; that they are missing is a fault only where it has
    run, and is told with the stores. `derive_counts` tells of missing topics how many partitions
    they had, as far as that is known. `read` are the inputs of an application that has run, on
    whose records its state rests.
    """
    missing = sorted(set(needed) - set(internal) - cluster.topics.keys())
    point = TOPICS
    if missing:
        yield create_error_finding(
            point,
            f"there is no topic {name_partitions(missing)}",
            "a start is refused, and a worker that runs waits or ends",
            _advise_creation(missing, derive_counts(missing))
            + _advise_first_offsets(sorted(set(missing) & set(read))),
        )
    else:
        yield create_fine_finding(
            point, f"all {len(set(needed) - set(internal))} that it does not make exist"
        )


def _advise_creation(missing: Sequence[str], former_counts: Mapping[str, int]) -> str:
    """Return the commands that create topics with as many partitions as they had."""
    by_count: dict[int, list[str]] = {}
    for topic in missing:
        by_count.setdefault(former_counts.get(topic, 0), []).append(topic)
    advice = []
    for count, names in sorted(by_count.items(), reverse=True):
        if count:
            command = format_command("create-topics", *names, "--partitions", str(count))
            advice.append(f"{command}, as {name_partitions(names)} had {count} by what is left")
        else:
            advice.append(
                format_command("create-topics", *names) + ", with --partitions if they had others "
                "than 4: how many is not known here"
            )
    return "; ".join(advice)


def _advise_first_offsets(inputs: Sequence[str]) -> str:
    """Return the command that follows the creation of inputs, as their offsets are gone, too."""
    if not inputs:
        return ""
    return f". Then, while no worker runs, {suggest_new_topics(inputs)}"


def _list_partitions(
    cluster: ClusterDescription, topics: Collection[str]
) -> list[tuple[PartitionName, PartitionDescription]]:
    """Return the partitions of topics that are there, with their names."""
    return [
        (f"{topic}[{each.number}]", each)
        for topic in sorted(topics)
        for each in cluster.topics.get(topic, ())
    ]

"""Derive how many partitions a topic had that is not there any more.

Nothing has kept the number itself. It shows in what was made from the topic's partitions:

    witness                                            shows
    committed offsets, partitions of members           a partition with this number was there
    directories of tasks on this machine               the same, of each source of the sub-topology
    changelogs and other sources of a sub-topology     as many partitions as it has tasks
    a repartition topic behind it                      as many partitions

A number so derived may be too low where little is left, and is never too high for a topic that the
application reads as it is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from state.directory import is_task_directory
from streams.common.topic_partitions import Partition
from streams.topology.build import Topology


def derive_former_counts(
    missing: Collection[str],
    witnesses: Iterable[Partition],
    companions: Mapping[str, Collection[str]],
    partition_counts: Mapping[str, int],
) -> dict[str, int]:
    """Return the former partition counts of missing topics, as far as something shows them.

    A topic is missing too if another has its name now. `companions` are the topics that have as
    many partitions as a topic has, if not fewer.
    """
    found: dict[str, int] = {}
    for partition in witnesses:
        if partition.topic in missing:
            found[partition.topic] = max(found.get(partition.topic, 0), partition.number + 1)
    for topic in missing:
        for other in companions.get(topic, ()):
            if other in partition_counts and other not in missing:
                found[topic] = max(found.get(topic, 0), partition_counts[other])
    return found


def list_equally_partitioned_topics(topology: Topology) -> dict[str, set[str]]:
    """Return the topics that have the partition count of each source of an App.

    Those are the topics with the same keys, the changelogs of the stores behind them, and
    repartition topics whose number of partitions follows from theirs.
    """
    found: dict[str, set[str]] = {}
    for sub in topology.subtopologies:
        changelogs = {
            topology.restore_topic_of(store.name)
            for store in sub.stores
            if store.logged and store.source_topic is None
        }
        repartition = {
            sink.topic_name for sink in sub.sinks if sink.internal and sink.partitions is None
        }
        for source in sub.sources:
            found.setdefault(source, set()).update(changelogs | repartition)
    for together in topology.copartitioned:
        for topic in together:
            found.setdefault(topic, set()).update(together - {topic})
    return found


def list_partitions_on_disk(path: Path) -> Iterator[Partition]:
    """Yield the partitions that tasks with a directory on this machine have read.

    Raises: ValueError for a file that is none of ours.
    """
    file = path / "subtopologies.json"
    if not file.is_file():
        return
    kept = json.loads(file.read_text())
    try:
        sources = {number: list(each["sources"]) for number, each in kept.items()}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{file} has no sub-topologies") from error
    for task in path.iterdir():
        number, _, partition = task.name.partition("_")
        if is_task_directory(task.name):
            for source in sources.get(number, ()):
                yield Partition(source, int(partition))

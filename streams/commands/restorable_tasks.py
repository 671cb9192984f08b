"""List the tasks of an application whose offsets a command looks at, by its topics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streams.command_lines import format_command
from streams.commands.offset_evidence import TaskInputs
from streams.common.topic_partitions import Partition
from streams.errors import ConfigError
from streams.runtime.offsets.offset_refusals import explain_lost_between_steps, suggest_reset
from streams.topology.build import Topology
from streams.topology.resolve import resolve_topology


def list_restorable_tasks(
    topology: Topology, partition_counts: Mapping[str, int]
) -> Iterator[TaskInputs]:
    """Yield all tasks of a topology, by the number of partitions of each topic.

    A task whose number is beyond the partitions of its changelogs is left out: its inputs got more
    partitions, and no worker runs it. Raises ConfigError for topics that are not there.
    """
    topology = resolve_topology(topology, partition_counts)
    for sub in topology.subtopologies:
        if not sub.sources:
            continue  # no topic matches a pattern
        stores = [spec.name for spec in sub.stores if spec.logged and spec.source_topic is None]
        changelogs = {name: topology.restore_topic_of(name) for name in stores}
        if missing := sorted(topic for topic in sub.sources if topic not in partition_counts):
            raise ConfigError(
                _explain_missing_topic(topology, partition_counts, missing[0], changelogs.values())
            )
        if lost := sorted(each for each in changelogs.values() if each not in partition_counts):
            raise ConfigError(
                f"there is no changelog {Partition(lost[0], 0)}: the state is gone, and no offset "
                f"accounts for it; start over with {suggest_reset()}"
            )
        task_count = max(partition_counts[topic] for topic in sub.sources)
        for number in range(
            min([task_count, *(partition_counts[each] for each in changelogs.values())])
        ):
            yield TaskInputs(
                f"{sub.number}_{number}",
                sub,
                [Partition(t, number) for t in sorted(sub.sources) if number < partition_counts[t]],
                {name: Partition(topic, number) for name, topic in changelogs.items()},
            )


def _explain_missing_topic(
    topology: Topology, partition_counts: Mapping[str, int], topic: str, changelogs: Iterable[str]
) -> str:
    """Return the message for an input that does not exist."""
    if topic in topology.repartition_topics:
        return f"there is no topic {topic!r}. {explain_lost_between_steps([topic])}"
    numbers = [partition_counts.get(each, 0) for each in changelogs]
    number = ["--partitions", str(max(numbers))] if any(numbers) else []
    return (
        f"there is no topic {topic!r}: create it "
        f"({format_command('create-topics', topic, *number)}) and run this again with "
        f"--made-again {topic}, or start over with {suggest_reset()}"
    )

"""Check that the topics exist which an application does not create itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streams.command_lines import format_command
from streams.errors import ConfigError
from streams.topology.build import Topology
from streams.topology.resolve import resolve_topology


def _describe_missing(kind: str, names: list[str], servers: str) -> str:
    """Say that topics do not exist, and by what command they are created."""
    listed, command = ", ".join(map(repr, names)), format_command("create-topics", *names)
    if len(names) == 1:
        return f"{kind} {listed} does not exist on {servers}: create it ({command})"
    return f"{kind}s {listed} do not exist on {servers}: create them ({command})"


def check_topics(
    topology: Topology,
    partition_counts: Mapping[str, int],
    bootstrap_servers: str,
    dead_letter_topics: Iterable[str] = (),
) -> None:
    """Check that a topology's input, output and dead-letter topics exist on the brokers.

    Raises: ConfigError naming those that don't exist, and TopologyError naming joined inputs whose
    partition counts differ.
    """
    topology = resolve_topology(topology, partition_counts)
    read = (*topology.input_topics, *(table.topic for table in topology.global_tables))
    missing = [topic for topic in read if topic not in partition_counts]
    sinks = {
        s.topic_name
        for sub in topology.subtopologies
        for s in sub.sinks
        if not s.internal and isinstance(s.topic, str)
    }
    missing += sorted(sinks - partition_counts.keys() - set(missing))
    lost = sorted(set(dead_letter_topics) - partition_counts.keys())
    if lost:
        raise ConfigError(
            f"{_describe_missing('dead-letter topic', lost, bootstrap_servers)}, or correct the "
            "handler that names it"
        )
    if missing:
        raise ConfigError(
            f"{_describe_missing('topic', missing, bootstrap_servers)}, or correct the name in the "
            "topology"
        )
    topology.derive_partition_counts(
        {topic: partition_counts[topic] for topic in topology.input_topics}
    )

"""Prepare what a driver runs: the topics that exist, and stores in memory where that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from streams.app import App
from streams.common.names import explain_illegal_name
from streams.errors import ConfigError, TopologyError
from streams.ledger import ledger_topic
from streams.settings.config import StreamsConfig
from streams.testing.cluster import InMemoryCluster
from streams.testing.topic_serdes import TopicSerdes
from streams.topology.build import Topology


def create_topics(
    cluster: InMemoryCluster,
    topology: Topology,
    config: StreamsConfig,
    topic_serdes: TopicSerdes,
    partitions: Mapping[str, int],
    topics: Sequence[str],
    *,
    accepts_new_topics: bool,
) -> None:
    """Create `topics` and those that the application reads and writes, with their partitions.

    With `accepts_new_topics` records may go to topics that are not known before. Those that match a
    pattern of the topology may be among `topics` and `partitions`.
    Raises ConfigError for a topic that the topology doesn't have.
    """
    internal = topology.repartition_topics
    mine = [*topology.input_topics, *(table.topic for table in topology.global_tables)]
    mine += (t for t in topic_serdes.sinks if t not in internal)
    mine += config.handlers.dead_letter_topics()
    if config.ledger:
        mine.append(ledger_topic(topology.application_id))
    for topic in topics:
        if (fault := explain_illegal_name(topic)) is not None:
            raise ConfigError(f"topics: {topic!r} can't be a topic's name: {fault}")
        topic_serdes.try_add_matching_topic(topic)
        mine.append(topic)
    for topic, count in partitions.items():
        if count < 1:
            raise ValueError(f"topic {topic!r} can't have {count} partitions")
        matches = topic_serdes.try_add_matching_topic(topic)
        if topic not in mine and not matches and not accepts_new_topics:
            raise ConfigError(
                f"partitions={{{topic!r}: {count}}}: the topology neither reads nor writes "
                f"such a topic; there are {sorted(mine)}"
            )
    for topic in [*mine, *partitions]:
        cluster.create_topic(topic, partitions.get(topic, 1))


def build_driver_topology(app: App, *, in_memory: bool) -> Topology:
    """Build the topology that a driver runs, on request with all stores in memory.

    Raises TopologyError for what is no App: a topology does not have the settings of its own.
    """
    if not isinstance(app, App):
        shown = "a Topology" if isinstance(app, Topology) else f"{app!r:.200}"
        raise TopologyError(
            f"TopologyTestDriver takes the App itself, with its settings, and not {shown}: write "
            "TopologyTestDriver(app)"
        )
    topology = app.topology()
    return keep_stores_in_memory(topology) if in_memory else topology


def keep_stores_in_memory(topology: Topology) -> Topology:
    """Return the topology with all stores in memory."""
    subtopologies = tuple(
        replace(sub, stores=tuple(replace(spec, persistent=False) for spec in sub.stores))
        for sub in topology.subtopologies
    )
    tables = (
        replace(table, store=replace(table.store, persistent=False))
        for table in topology.global_tables
    )
    return replace(topology, subtopologies=subtopologies, global_tables=tuple(tables))

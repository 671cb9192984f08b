"""Describe what the members of a streams group tell their broker of an application's topology."""

from __future__ import annotations

from streams.membership.streams.topology_request import TopologyToSend
from streams.runtime.assigning.internal_topics import list_topic_settings
from streams.settings.config import StreamsConfig
from streams.topology.build import Topology
from streams.topology.declared import DeclaredTopology
from streams.topology.description import SentSettings


def describe_topology_to_send(
    topology: Topology, declared: DeclaredTopology, config: StreamsConfig
) -> TopologyToSend:
    """Return a topology with the settings of its internal topics, as heartbeats bring it.

    The ledger is not among them: members create it themselves.
    """
    sent = describe_sent_settings(topology, config)
    return TopologyToSend(topology.application_id, declared, sent.topics, sent.replication_factor)


def describe_sent_settings(topology: Topology, config: StreamsConfig) -> SentSettings:
    """Return the settings of the internal topics, as far as a streams group is told of them."""
    topics = list_topic_settings(
        topology, cut_retention_ms=config.cut_retention_ms, defaults=config.topic_defaults
    )
    return SentSettings(topics=topics, replication_factor=config.replication_factor)

"""Let an application's committed offsets account for what another program wrote into changelogs.

An application refuses to start on a changelog with committed records of which its offsets know
nothing. Tests and benchmarks that fill a changelog, or plant an error in it, commit offsets as if
they had been committed with these records.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from streams.commands.cluster_clients import ClusterClients
from streams.common.topic_partitions import OffsetAndMetadata, Partition
from streams.membership.group_offsets import fetch_group_offsets
from streams.processes.cluster import find_or_start_cluster
from streams.runtime.offsets.offset_metadata import decode_metadata, encode_metadata
from streams.settings.config import load_config
from streams.topology.build import Topology

_TIMEOUT_S = 60.0


def account_for_state(servers: str, topology: Topology) -> None:
    """Commit the offsets of all inputs anew, as of the ends of their tasks' changelogs."""
    for sub in topology.subtopologies:
        changelogs = {
            spec.name: topology.restore_topic_of(spec.name)
            for spec in sub.stores
            if spec.logged and spec.source_topic is None
        }
        for source in sub.sources if changelogs else ():
            account_for_changelogs(servers, topology.application_id, source, changelogs)


def account_for_changelogs(
    servers: str, group: str, source: str, changelogs: Mapping[str, str]
) -> None:
    """Commit the group's offsets of `source` anew, as of the ends of `changelogs`, by store.

    The offset of a partition that has none is 0. The group has no members.
    """
    admin = AdminClient({"bootstrap.servers": servers})
    inputs = [
        Partition(source, number)
        for number in admin.list_topics(source, _TIMEOUT_S).topics[source].partitions
    ]
    offsets = []
    committed = _fetch_offsets(servers, group)
    for each_input in inputs:
        held = committed.get(each_input, OffsetAndMetadata(0, ""))
        places = {TopicPartition(each, each_input.number): s for s, each in changelogs.items()}
        ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        positions = {places[p]: end.result(_TIMEOUT_S).offset for p, end in ends.items()}
        # librdkafka has added a NUL to what it committed.
        metadata = _replace_positions(held.metadata.rstrip("\0"), positions)
        offsets.append(TopicPartition(*each_input, held.offset, metadata=metadata))
    (done,) = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, offsets)]
    ).values()
    for each in done.result(_TIMEOUT_S).topic_partitions:
        if each.error is not None:
            raise RuntimeError(f"offsets of {group} were not committed: {each.error}")


def _fetch_offsets(servers: str, group: str) -> Mapping[Partition, OffsetAndMetadata]:
    """Return the group's offsets, once its coordinator, which may be new, has loaded them.

    Over a connection of Millrace's own: where it was asked in a loop, librdkafka 2.16 has ended the
    process of a benchmark with SIGSEGV.
    """
    config = load_config(bootstrap_servers=servers)
    clients = ClusterClients(config, find_or_start_cluster(config))
    return clients.ask_brokers(
        lambda open_connection: fetch_group_offsets(
            open_connection, group, None, require_stable=False
        )
    ).offsets


def _replace_positions(text: str, positions: Mapping[str, int]) -> str:
    """Return the metadata of an offset with other changelog positions, by store name.

    Times and what else is known stay as they are; metadata of a tool have none.
    """
    metadata = decode_metadata(text)
    replaced = encode_metadata(positions, metadata.partition_time_ms)
    names = decode_metadata(replaced).hashed_entries.keys()
    prefix, _, data = replaced.partition(".")
    kept = [each for each in metadata.hashed_entries.items() if each[0] not in names]
    entries = b"".join(struct.pack(">Iq", *each) for each in kept)
    return f"{prefix}.{base64.b64encode(base64.b64decode(data) + entries).decode()}"

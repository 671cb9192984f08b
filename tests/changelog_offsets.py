"""Let an application's committed offsets account for what another program wrote into changelogs.

An application refuses to start on a changelog with committed records of which its offsets know
nothing. Tests and benchmarks that fill a changelog, or plant an error in it, commit offsets as if
they had been committed with these records.
"""

from __future__ import annotations

import base64
import struct
import time
from collections.abc import Mapping

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from streams.runtime.offsets.offset_metadata import decode_metadata, encode_metadata
from streams.topology.build import Topology

_TIMEOUT_S, _PAUSE_S = 60.0, 0.1
_LOADING = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.NOT_COORDINATOR)


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
        TopicPartition(source, number)
        for number in admin.list_topics(source, _TIMEOUT_S).topics[source].partitions
    ]
    offsets = []
    for held in _list_offsets(admin, group, inputs):
        places = {TopicPartition(each, held.partition): s for s, each in changelogs.items()}
        ends = admin.list_offsets(dict.fromkeys(places, OffsetSpec.latest()))
        positions = {places[p]: end.result(_TIMEOUT_S).offset for p, end in ends.items()}
        # librdkafka has added a NUL to what it committed.
        metadata = _replace_positions((held.metadata or "").rstrip("\0"), positions)
        offsets.append(
            TopicPartition(source, held.partition, max(held.offset, 0), metadata=metadata)
        )
    (done,) = admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, offsets)]
    ).values()
    for each in done.result(_TIMEOUT_S).topic_partitions:
        if each.error is not None:
            raise RuntimeError(f"offsets of {group} were not committed: {each.error}")


def _list_offsets(
    admin: AdminClient, group: str, partitions: list[TopicPartition]
) -> list[TopicPartition]:
    """Return the group's offsets, once its coordinator, which may be new, has loaded them."""
    deadline_s = time.monotonic() + _TIMEOUT_S
    while True:
        asked = [ConsumerGroupTopicPartitions(group, partitions)]
        (answer,) = admin.list_consumer_group_offsets(asked).values()
        try:
            return list(answer.result(_TIMEOUT_S).topic_partitions)
        except KafkaException as error:
            if error.args[0].code() not in _LOADING or time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)


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

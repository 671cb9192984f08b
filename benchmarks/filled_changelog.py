"""Commit the offsets of an application whose changelog another program has filled.

An application refuses to start on a changelog with records of which its committed offsets know
nothing.
"""

from __future__ import annotations

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from streams.runtime.offset_metadata import encode_metadata

_TIMEOUT_S = 60.0


def commit_beginnings(
    servers: str, application: str, source: str, store: str, partition_count: int
) -> None:
    """Commit offset 0 of each partition of `source`, as of the end of the store's changelog."""
    changelog = f"{application}-{store}-changelog"
    reader = Consumer({"bootstrap.servers": servers, "group.id": f"{application}-ends"})
    try:
        ends = [
            reader.get_watermark_offsets(TopicPartition(changelog, number), _TIMEOUT_S)[1]
            for number in range(partition_count)
        ]
    finally:
        reader.close()
    offsets = [
        TopicPartition(source, number, 0, metadata=encode_metadata({store: end}))
        for number, end in enumerate(ends)
    ]
    request = [ConsumerGroupTopicPartitions(application, offsets)]
    admin = AdminClient({"bootstrap.servers": servers})
    (answer,) = admin.alter_consumer_group_offsets(request).values()
    for done in answer.result(_TIMEOUT_S).topic_partitions:
        if done.error is not None:
            raise RuntimeError(f"offsets of {application} were not committed: {done.error}")

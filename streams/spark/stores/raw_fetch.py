"""Fetch the undecoded record batches of a partition from its leader.

librdkafka hands out records only, and whether some are gone shows in the batches only
(`raw_batches`).
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from kio.schema.errors import ErrorCode

from streams.common.addresses import Address
from streams.common.topic_partitions import Partition
from streams.errors import StreamsError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    build_entity,
    load_request_classes,
)
from streams.spark.source.broker_access import REQUEST_TIMEOUT_S, BrokerAccess
from streams.spark.source.ranges import OffsetRange
from streams.spark.stores.raw_batches import LogScan

FetchResponse: TypeAlias = Any
PartitionResponse: TypeAlias = Any

_FETCH, _METADATA = 1, 3
_FETCH_VERSION, _METADATA_VERSION = 12, 9  # later versions name topics by id
_BYTES_MAX = 4 << 20
_RETRY_BACKOFF_S = 0.1
_CONSUMER_REPLICA_ID = -1
_LEADER_CHANGED_ERRORS = {
    ErrorCode.not_leader_or_follower,
    ErrorCode.leader_not_available,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.unknown_leader_epoch,
    ErrorCode.replica_not_available,
    ErrorCode.kafka_storage_error,
}


class PartitionLeader(NamedTuple):
    """Represents a partition's leader: its address and its epoch."""

    address: Address
    epoch: int


class LeaderChanged(Exception):
    """Signals that the partition's leader is no longer the one that was assumed."""


def scan_range(
    access: BrokerAccess,
    offset_range: OffsetRange,
    *,
    to_high_watermark: bool = False,
    bytes_max: int = _BYTES_MAX,
) -> LogScan:
    """Scan the batches of an offset range for removed offsets. Raises StreamsError on failure.

    `to_high_watermark`: up to the high watermark of now, whatever the end of the range. The scan
    starts anew when the leader changes, as another leader's log has other segments.
    """
    partition = Partition(offset_range.topic, offset_range.partition)
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        try:
            with ExitStack() as held:
                bootstrap = held.enter_context(closing(access.open_connection(None)))
                leader = require_leader(bootstrap, partition)
                connection = access.open_connection(leader.address)
                held.enter_context(closing(connection))
                scan = LogScan(offset_range.first, offset_range.until, leader.epoch)
                _scan_over_connection(connection, partition, scan, to_high_watermark, bytes_max)
                return scan
        except (LeaderChanged, ConnectionLost) as error:
            if time.monotonic() > deadline_s:
                raise StreamsError(
                    f"the batches of {partition} can't be read from its leader: {error}"
                ) from error
        time.sleep(_RETRY_BACKOFF_S)


def find_last_segment_offset(
    access: BrokerAccess, offset_range: OffsetRange, *, bytes_max: int = _BYTES_MAX
) -> int:
    """Find the first offset of the range from which on no offset was ever compacted.

    From it up to the high watermark of now all is there, in the last segment. Where there is no
    such offset the result is the end of the range or more.

    Raises: StreamsError if the batches can't be read.
    """
    scan = scan_range(access, offset_range, to_high_watermark=True, bytes_max=bytes_max)
    return scan.last_segment_offset


def _scan_over_connection(
    connection: BrokerConnection,
    partition: Partition,
    scan: LogScan,
    to_high_watermark: bool,
    bytes_max: int,
) -> None:
    """Scan over a connection to the leader until done. Raises LeaderChanged."""
    throttled_s = 0.0
    while to_high_watermark or not scan.is_done:
        answer, part = fetch_batches(
            connection, partition, scan.leader_epoch, scan.fetch_offset, bytes_max
        )
        if to_high_watermark:
            scan.end_offset, to_high_watermark = int(part.high_watermark), False
        if not part.records and answer.throttle_time:
            # The broker throttles this client: an empty response doesn't say that there is nothing.
            throttled_s += answer.throttle_time.total_seconds()
            if throttled_s > REQUEST_TIMEOUT_S:
                raise StreamsError(f"{partition}: fetches are held up by a quota")
            time.sleep(min(answer.throttle_time.total_seconds(), 1.0))
        elif not scan.is_done:
            scan.read_batches(bytes(part.records or b""))


def fetch_batches(
    connection: BrokerConnection,
    partition: Partition,
    leader_epoch: int,
    fetch_offset: int,
    bytes_max: int,
) -> tuple[FetchResponse, PartitionResponse]:
    """Fetch batches from `fetch_offset`; return the response and the partition's part of it."""
    classes = load_request_classes(connection, _FETCH, _FETCH_VERSION)
    requested = build_entity(
        classes["FetchPartition"],
        partition=partition.number,
        current_leader_epoch=leader_epoch,
        fetch_offset=fetch_offset,
        partition_max_bytes=bytes_max,
    )
    topic = build_entity(classes["FetchTopic"], topic=partition.topic, partitions=(requested,))
    answer = connection.send_request(
        build_entity(
            classes["FetchRequest"],
            replica_id=_CONSUMER_REPLICA_ID,
            max_wait=timedelta(0),
            min_bytes=0,
            max_bytes=bytes_max,
            isolation_level=0,
            topics=(topic,),
            forgotten_topics_data=(),
        )
    )
    fetched = answer.responses[0].partitions[0] if answer.responses else None
    code = answer.error_code if fetched is None else fetched.error_code
    if code in _LEADER_CHANGED_ERRORS:
        raise LeaderChanged(code.name)
    if fetched is None or code is not ErrorCode.none:
        raise StreamsError(f"the batches of {partition} from offset {fetch_offset} on: {code.name}")
    return answer, fetched


def require_leader(bootstrap: BrokerConnection, partition: Partition) -> PartitionLeader:
    """Find a partition's leader by a Metadata request. Raises LeaderChanged if there is none."""
    classes = load_request_classes(bootstrap, _METADATA, _METADATA_VERSION)
    answer = bootstrap.send_request(
        build_entity(
            classes["MetadataRequest"],
            topics=(build_entity(classes["MetadataRequestTopic"], name=partition.topic),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )
    brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
    for topic in answer.topics:
        for part in topic.partitions:
            if part.partition_index == partition.number and part.leader_id in brokers:
                return PartitionLeader(brokers[part.leader_id], int(part.leader_epoch))
    raise LeaderChanged(
        f"no leader is known ({', '.join(each.error_code.name for each in answer.topics)})"
    )

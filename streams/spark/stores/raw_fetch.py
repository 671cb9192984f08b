"""Fetch the record batches of a partition, undecoded, from its leader.

librdkafka hands out records only, and whether some are gone shows in the batches only
(`raw_batches`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import timedelta
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from streams.errors import StreamsError
from streams.membership.connection import (
    BrokerConnection,
    ConnectionLost,
    build_entity,
    load_request_classes,
)
from streams.spark.source.access import TIMEOUT_S, Access
from streams.spark.source.ranges import OffsetRange
from streams.spark.stores.raw_batches import Scan
from streams.topic_partitions import Partition

_FETCH, _METADATA = 1, 3
_FETCH_VERSION, _METADATA_VERSION = 12, 9  # later versions name topics by id
_BYTES_MAX = 4 << 20
_AGAIN_S = 0.1
_CONSUMER = -1
_MOVED = {
    ErrorCode.not_leader_or_follower,
    ErrorCode.leader_not_available,
    ErrorCode.fenced_leader_epoch,
    ErrorCode.unknown_leader_epoch,
    ErrorCode.replica_not_available,
    ErrorCode.kafka_storage_error,
}


class _Leader(NamedTuple):
    """Represents a partition's leader: its address and its epoch."""

    address: tuple[str, int]
    epoch: int


class _Moved(Exception):
    """Signals that the partition has another leader than was assumed."""


def can_fetch_raw(access: Access) -> bool:
    """Whether batches can be fetched: the connection for it speaks plaintext only."""
    return access.kafka.get("security.protocol", "plaintext").lower() == "plaintext"


def scanned(access: Access, of: OffsetRange, *, bytes_max: int = _BYTES_MAX) -> Scan:
    """Scan the batches of an offset range for what is gone. Raises StreamsError if that fails."""
    where = Partition(of.topic, of.partition)
    return _done(access, where, lambda epoch, _: Scan(of.first, of.until, epoch), bytes_max)


def unbroken_from(access: Access, of: OffsetRange, *, bytes_max: int = _BYTES_MAX) -> int:
    """Return the first offset of the range from which on nothing was ever compacted.

    From it up to the high watermark of now all is there, in the last segment. Where there is no
    such offset the result is the end of the range or more.

    Raises: StreamsError if the batches can't be read.
    """
    where = Partition(of.topic, of.partition)

    def create_scan(epoch: int, high_watermark: int) -> Scan:
        return Scan(of.first, high_watermark, epoch)

    return _done(access, where, create_scan, bytes_max).unbroken_from


def _done(
    access: Access, where: Partition, begun: Callable[[int, int], Scan], bytes_max: int
) -> Scan:
    """Scan from begin to end with one leader, and start again if another one takes over.

    Another leader's log has other segments.
    """
    deadline_s = time.monotonic() + TIMEOUT_S
    while True:
        try:
            with ExitStack() as held:
                bootstrap = held.enter_context(closing(access.dial(None)))
                leader = _leader_of(bootstrap, where)
                connection = access.dial(leader.address)
                held.enter_context(closing(connection))
                return _scanned(connection, where, leader.epoch, begun, bytes_max)
        except (_Moved, ConnectionLost) as error:
            if time.monotonic() > deadline_s:
                raise StreamsError(
                    f"the batches of {where} can't be read from its leader: {error}"
                ) from error
        time.sleep(_AGAIN_S)


def _scanned(
    connection: BrokerConnection,
    where: Partition,
    epoch: int,
    begun: Callable[[int, int], Scan],
    bytes_max: int,
) -> Scan:
    """Scan over a connection to the leader until the scan is done. Raises _LeaderChanged."""
    scan: Scan | None = None
    throttled_s = 0.0
    position = begun(epoch, 0).first
    while scan is None or not scan.is_done:
        answer, part = _fetch(connection, where, epoch, position, bytes_max)
        if scan is None:
            scan = begun(epoch, int(part.high_watermark))
        if not part.records and answer.throttle_time:
            # The broker throttles this client: an empty response doesn't say that there is nothing.
            throttled_s += answer.throttle_time.total_seconds()
            if throttled_s > TIMEOUT_S:
                raise StreamsError(f"{where}: fetches are held up by a quota")
            time.sleep(min(answer.throttle_time.total_seconds(), 1.0))
            continue
        if not scan.is_done:
            scan.feed(bytes(part.records or b""))
        position = scan.position
    return scan


def _fetch(
    connection: BrokerConnection, where: Partition, epoch: int, offset: int, bytes_max: int
) -> tuple[Any, Any]:
    """Fetch batches from an offset on; return the response and the partition's part of it."""
    classes = load_request_classes(connection, _FETCH, _FETCH_VERSION)
    requested = build_entity(
        classes["FetchPartition"],
        partition=where.number,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        partition_max_bytes=bytes_max,
    )
    topic = build_entity(classes["FetchTopic"], topic=where.topic, partitions=(requested,))
    answer = connection.send_request(
        build_entity(
            classes["FetchRequest"],
            replica_id=_CONSUMER,
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
    if code in _MOVED:
        raise _Moved(code.name)
    if fetched is None or code is not ErrorCode.none:
        raise StreamsError(f"the batches of {where} from offset {offset} on: {code.name}")
    return answer, fetched


def _leader_of(bootstrap: BrokerConnection, where: Partition) -> _Leader:
    """Find a partition's leader by a Metadata request. Raises _LeaderChanged if there is none."""
    classes = load_request_classes(bootstrap, _METADATA, _METADATA_VERSION)
    answer = bootstrap.send_request(
        build_entity(
            classes["MetadataRequest"],
            topics=(build_entity(classes["MetadataRequestTopic"], name=where.topic),),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
    )
    brokers = {each.node_id: (each.host, each.port) for each in answer.brokers}
    for topic in answer.topics:
        for part in topic.partitions:
            if part.partition_index == where.number and part.leader_id in brokers:
                return _Leader(brokers[part.leader_id], int(part.leader_epoch))
    raise _Moved(
        f"no leader is known ({', '.join(each.error_code.name for each in answer.topics)})"
    )

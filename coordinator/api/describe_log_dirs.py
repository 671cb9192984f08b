"""Handle DescribeLogDirs, which returns the data directory and its partitions' sizes (KIP-113).

Behaviour: the requested partitions that exist, all if no list of topics is given. A partition's
size is that of its segments without their indexes; the space is that of the file system.
Versions: 2 flexible, 3 top-level error, 4 the space (KIP-827), 5 cordoned directories (KIP-1066).
Simplifications: there is one directory, it is never offline nor cordoned, and nothing is moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from coordinator.api.context import RequestContext
from coordinator.errors import Code
from coordinator.log.partition import PartitionLog

if TYPE_CHECKING:
    from kio.schema.describe_log_dirs.v5.request import DescribeLogDirsRequest
    from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResponse

API_KEY = 35
VERSIONS = range(1, 6)

TopicName: TypeAlias = str


def handle_request(
    request: DescribeLogDirsRequest, context: RequestContext[DescribeLogDirsResponse]
) -> DescribeLogDirsResponse:
    services = context.services
    total_bytes, usable_bytes = services.measure_disk_space()
    directory = {
        "log_dir": str(services.config.data_dir.absolute()),
        "topics": [
            {
                "name": name,
                "partitions": [_describe_partition(partition) for partition in partitions],
            }
            for name, partitions in _find_partitions(request, context)
        ],
        "total_bytes": total_bytes,
        "usable_bytes": usable_bytes,
        "is_cordoned": False,
    }
    return context.build_response(results=[directory])


def build_error_response(
    request: DescribeLogDirsRequest, context: RequestContext[DescribeLogDirsResponse], code: Code
) -> DescribeLogDirsResponse:
    """Return a response with `code` for the directory, and at the top if the version allows."""
    directory = str(context.services.config.data_dir.absolute())
    failed = {"error_code": code, "log_dir": directory, "topics": ()}
    return context.build_response(error_code=code, results=[failed])


def _find_partitions(
    request: DescribeLogDirsRequest, context: RequestContext
) -> Iterator[tuple[TopicName, Iterable[PartitionLog]]]:
    topics = context.services.topics
    if request.topics is None:
        for topic in topics:
            yield topic.name, topic.partitions
        return
    indexes_by_topic: dict[str, set[int]] = {}
    for each in request.topics:
        indexes_by_topic.setdefault(each.topic, set()).update(each.partitions)
    for name, indexes in indexes_by_topic.items():
        found = [topics.find_partition(name, index) for index in sorted(indexes)]
        partitions = [partition for partition in found if partition is not None]
        if partitions:
            yield name, partitions


def _describe_partition(partition: PartitionLog) -> dict[str, Any]:
    return {
        "partition_index": partition.index,
        "partition_size": sum(size for _, size in partition.list_segment_files()),
        "offset_lag": 0,
        "is_future_key": False,
    }

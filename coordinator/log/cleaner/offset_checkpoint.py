"""Write up to which offset each log is clean, for other tools: `cleaner-offset-checkpoint`.

Kafka's file in Kafka's format: a version, 0; how many lines follow; for each partition its topic,
its number and the first offset that is dirty. The broker itself never uses it. A line carries no
topic id, and outlives its log if the broker is killed, or a write fails, before the file without it
is there; and the log's files may have been replaced by another broker's. If the offset of another
log were believed, records below it would count as clean: older values would be kept, and the
tombstones behind them removed. The cleaner uses the offset in each partition's own checkpoint
(`log.checkpoint`).
Source: CheckpointFile, OffsetCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coordinator.log.disk import BrokerDisk

FILE_NAME = "cleaner-offset-checkpoint"
_VERSION = "0"

TopicPartition = tuple[str, int]


def read_first_dirty_offsets(disk: BrokerDisk, directory: Path) -> dict[TopicPartition, int]:
    """Read the first dirty offset of each partition in the file; none if it can't be read."""
    try:
        version, count, *lines = (
            (disk.read_file(directory / FILE_NAME) or b"").decode().splitlines()
        )
        if version != _VERSION or int(count) != len(lines):
            return {}
        fields = [line.split(" ") for line in lines]
        return {(topic, int(index)): int(offset) for topic, index, offset in fields}
    except ValueError:
        return {}


def write_first_dirty_offsets(
    disk: BrokerDisk, directory: Path, offsets: Mapping[TopicPartition, int]
) -> None:
    """Write the checkpoint of first dirty offsets anew; it is flushed on return.

    Raises: OSError.
    """
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    content = "\n".join([_VERSION, str(len(lines)), *lines, ""])
    disk.replace_file(directory / FILE_NAME, content.encode())

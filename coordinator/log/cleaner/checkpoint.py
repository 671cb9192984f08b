"""Up to which offset each log is clean: `cleaner-offset-checkpoint` in the data directory.

Kafka's format: a version, 0; how many lines follow; for each partition its topic, its number and
the first offset that is dirty. It may be behind: what was cleaned is then cleaned again. A file
that can't be read counts for nothing.
Source: CheckpointFile, OffsetCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from coordinator.log.disk import Disk

FILE_NAME = "cleaner-offset-checkpoint"
_VERSION = "0"

TopicPartition = tuple[str, int]


def read_cleaned(disk: Disk, directory: Path) -> dict[TopicPartition, int]:
    """The first dirty offset of each partition that was ever cleaned."""
    try:
        version, count, *lines = (disk.read(directory / FILE_NAME) or b"").decode().splitlines()
        if version != _VERSION or int(count) != len(lines):
            return {}
        fields = [line.split(" ") for line in lines]
        return {(topic, int(index)): int(offset) for topic, index, offset in fields}
    except ValueError:
        return {}


def write_cleaned(disk: Disk, directory: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Durable when this returns. OSError."""
    lines = [f"{topic} {index} {offset}" for (topic, index), offset in offsets.items()]
    content = "\n".join([_VERSION, str(len(lines)), *lines, ""])
    disk.replace(directory / FILE_NAME, content.encode())

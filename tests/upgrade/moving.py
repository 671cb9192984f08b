"""Put the internal topics' files of a stopped broker into the directories of another one.

The directories' `partition.metadata` stay: the topics have ids of their own in each broker.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from uuid import UUID

from coordinator.log.batch import RecordBatch, iterate_batches
from coordinator.log.data_directory import uuid_from_base64, uuid_to_base64
from tests.own_batches import encode_batch

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
PARTITIONS = 2  # of each internal topic
DIRECTORIES = tuple(f"{topic}-{index}" for topic in (GROUPS, TRANSACTIONS) for index in (0, 1))
_KEPT = "partition.metadata"


def move_internal_topics(source: Path, target: Path, suffixes: Iterable[str] | None = None) -> None:
    """Replace the target's files of the internal topics as docs/broker.md says.

    `suffixes`: take only files that end so, as one who takes segments alone does; None: all.
    """
    for name in DIRECTORIES:
        directory = target / name
        directory.mkdir(exist_ok=True)
        for each in directory.iterdir():
            if each.name != _KEPT:
                each.unlink()
        for each in (source / name).glob("*"):
            wanted = suffixes is None or each.suffix in suffixes
            if each.name != _KEPT and wanted:
                shutil.copy(each, directory)
    (target / "cleaner-offset-checkpoint").unlink(missing_ok=True)


def topic_ids(data: Path, names: Iterable[str]) -> dict[str, UUID]:
    """Return the ids of topics, from the files of either broker."""
    found = {}
    for name in names:
        text = (data / f"{name}-0" / _KEPT).read_text()
        found[name] = uuid_from_base64(text.split("topic_id: ")[1].split()[0])
    return found


def list_topics(data: Path, topics: dict[str, tuple[UUID, int]]) -> None:
    """Have a stopped broker of ours take these topics for its own: id and partitions by name."""
    path = data / "topics.json"
    content = json.loads(path.read_text())
    for name, (topic_id, partitions) in topics.items():
        entry = {
            "name": name,
            "id": uuid_to_base64(topic_id),
            "partitions": partitions,
            "configs": {},
        }
        content["topics"].append(entry)
    path.write_text(json.dumps(content))


def log_of(directory: Path) -> list[RecordBatch]:
    """Return all batches of a partition, from its files."""
    return [
        batch
        for path in sorted(directory.glob("*.log"))
        for batch in iterate_batches(path.read_bytes())
    ]


def append_record(directory: Path, key: bytes, value: bytes) -> None:
    """Append one record to a partition's last segment, in the epoch of the last one."""
    path = sorted(directory.glob("*.log"))[-1]
    *_, last = log_of(directory)
    batch = bytearray(encode_batch([(key, value)], timestamp_ms=last.max_timestamp_ms))
    batch[:8] = (last.last_offset + 1).to_bytes(8, "big")
    batch[12:16] = last.data[12:16]
    with path.open("ab") as file:
        file.write(batch)

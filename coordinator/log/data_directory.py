"""Manage the data directory: its lock, the broker's identity, and the list of topics.

    .lock              held while a broker runs, so that two never share a directory
    meta.properties    cluster id and node id, Kafka's format; made once
    topics.json        every topic: id, partitions, configuration
    configs.json       altered settings of the broker and of groups (see `dynamic_config`)
    <topic>-<n>/       a partition's log, with partition.metadata saying which topic id it is of

A topic exists if `topics.json` says so and not before: the file is written anew and put in place by
one rename, so that a broker killed at any moment leaves the old list or the new one. The names of
partition directories that deleted topics leave behind stay in the list until they are gone, and the
names of the topics until no group has offsets of them (see `groups.deleted_topics`).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from coordinator.log.disk import BrokerDisk, DiskLock

_TOPICS = "topics.json"
_CONFIGS = "configs.json"
_META = "meta.properties"
_PARTITION_METADATA = "partition.metadata"


class UnusableDataDirectory(Exception):
    """Reports why the broker can't run on this directory, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicEntry:
    """Represents one topic in `topics.json`."""

    name: str
    topic_id: UUID
    partition_count: int
    configs: Mapping[str, str] = field(default_factory=dict)


class ResourceConfigs(NamedTuple):
    """Represents the settings of a resource that were altered."""

    kind: int
    name: str
    configs: dict[str, str]


class SavedTopics(NamedTuple):
    """Holds the content of `topics.json`: the topics, and three kinds of names of deleted ones."""

    topics: list[TopicEntry]
    leftover_directories: list[str]
    """Directories of deleted topics that may still be there."""
    forgetting: list[str]
    """Deleted topics of which groups may still have offsets."""
    deleted_while_failed: dict[int, set[str]]
    """Topics that were deleted while a partition of `__consumer_offsets`, by its index, was
    damaged."""


def uuid_to_base64(uuid: UUID) -> str:
    """Encode a UUID as Kafka writes it: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()


def uuid_from_base64(text: str) -> UUID:
    """Decode a UUID from Kafka's base64 form."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def write_partition_metadata(disk: BrokerDisk, directory: Path, topic_id: UUID) -> None:
    """Write the topic id of a partition directory to its `partition.metadata`."""
    content = f"version: 0\ntopic_id: {uuid_to_base64(topic_id)}\n".encode()
    file = disk.open_file(directory / _PARTITION_METADATA)
    try:
        file.truncate(0)
        file.write(content, 0)
    finally:
        file.close()


def read_partition_metadata(disk: BrokerDisk, directory: Path) -> UUID | None:
    """Read the topic id that a partition directory was made for; None if that isn't known.

    Raises UnusableDataDirectory for the file of a later broker.
    """
    try:
        content = disk.read_file(directory / _PARTITION_METADATA) or b""
        fields = dict(line.split(": ", 1) for line in content.decode().splitlines())
        _check_version(directory / _PARTITION_METADATA, fields.get("version"), 0)
        return uuid_from_base64(fields["topic_id"])
    except (OSError, ValueError, KeyError):
        return None


def _check_version(path: Path, written: object, newest: int) -> None:
    """Raise UnusableDataDirectory if a file's version is not one that this broker can read."""
    if written is not None and not 0 <= int(str(written)) <= newest:
        raise UnusableDataDirectory(
            f"{path} was written by a later version of the broker (version {written}; this one "
            f"reads {newest}): run that version, or use an empty directory"
        )


def is_data_directory(disk: BrokerDisk, directory: Path) -> bool:
    """Return whether a broker has run on this directory."""
    return disk.file_size(directory / _META) is not None


class DataDirectory:
    """Holds the lock on a data directory, and reads and writes the files at its top.

    Every method that writes may raise OSError.
    """

    def __init__(
        self, directory: Path, node_id: int, new_cluster_id: UUID, disk: BrokerDisk
    ) -> None:
        self.directory = directory
        self._disk = disk
        self._lock = _lock_directory(directory, disk)
        try:
            self.cluster_id = self._read_or_write_cluster_id(
                node_id, uuid_to_base64(new_cluster_id)
            )
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock, so that another broker can have the directory."""
        self._lock.release()

    def build_partition_path(self, topic: str, index: int) -> Path:
        """Return the path of a partition's directory."""
        return self.directory / f"{topic}-{index}"

    def read_topics(self) -> SavedTopics:
        """Read `topics.json`. Raises: UnusableDataDirectory."""
        path = self.directory / _TOPICS
        text = self._disk.read_file(path)
        if text is None:
            self._check_holds_no_topic(path)
            return SavedTopics([], [], [], {})
        try:
            content = json.loads(text)
            _check_version(path, dict(content).get("version"), 1)
            topics = [
                TopicEntry(
                    name=entry["name"],
                    topic_id=uuid_from_base64(entry["id"]),
                    partition_count=entry["partitions"],
                    configs=entry["configs"],
                )
                for entry in content["topics"]
            ]
            while_failed = {
                int(index): set(names)
                for index, names in content.get("deleted_while_failed", {}).items()
            }
            forgetting = content.get("forgetting", [])
            return SavedTopics(topics, content["deleted"], forgetting, while_failed)
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableDataDirectory(
                f"{path} can't be read ({error!r}): restore it, or use an empty directory"
            ) from error

    def _check_holds_no_topic(self, path: Path) -> None:
        """Raise UnusableDataDirectory if there are partitions of topics, but no list of topics.

        A broker that took this for an empty directory would write over them.
        """
        for name in sorted(self.list_names()):
            directory = self.directory / name
            if read_partition_metadata(self._disk, directory) is not None:
                raise UnusableDataDirectory(
                    f"{path} is missing, and {directory} is a topic's: restore it, or use an empty "
                    "directory"
                )

    def write_topics(
        self,
        topics: Iterable[TopicEntry],
        leftover_directories: Iterable[str],
        forgetting_names: Iterable[str] = (),
        deleted_while_failed: Mapping[int, Iterable[str]] = {},
    ) -> None:
        """Replace the list of topics and the names that deleted topics have left.

        See `read_topics`. Raises: OSError.
        """
        content = {
            "version": 1,
            "topics": [
                {
                    "name": topic.name,
                    "id": uuid_to_base64(topic.topic_id),
                    "partitions": topic.partition_count,
                    "configs": dict(topic.configs),
                }
                for topic in topics
            ],
            "deleted": list(leftover_directories),
            "forgetting": list(forgetting_names),
            "deleted_while_failed": {
                str(index): sorted(names) for index, names in deleted_while_failed.items()
            },
        }
        self._disk.replace_file(self.directory / _TOPICS, json.dumps(content, indent=1).encode())

    def read_configs(self) -> list[ResourceConfigs]:
        """Read the configuration of every resource that has one and is no topic.

        Raises: UnusableDataDirectory.
        """
        path = self.directory / _CONFIGS
        text = self._disk.read_file(path)
        if text is None:
            return []
        try:
            content = json.loads(text)
            _check_version(path, dict(content).get("version"), 1)
            return [
                ResourceConfigs(each["type"], each["name"], each["configs"])
                for each in content["resources"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableDataDirectory(
                f"{path} can't be read ({error!r}): restore it, or remove it with all that was set"
            ) from error

    def write_configs(self, resources: Iterable[tuple[int, str, Mapping[str, str]]]) -> None:
        """Replace the configurations of the resources that are no topics."""
        content = {
            "version": 1,
            "resources": [
                {"type": kind, "name": name, "configs": dict(configs)}
                for kind, name, configs in resources
            ],
        }
        self._disk.replace_file(self.directory / _CONFIGS, json.dumps(content, indent=1).encode())

    def remove_partition_directory(self, name: str) -> None:
        """Remove a directory of a deleted topic, if it is there."""
        self._disk.remove_tree(self.directory / name)

    def rename_partition_directory(self, old: str, new: str) -> None:
        self._disk.rename_path(self.directory / old, self.directory / new)

    def list_names(self) -> set[str]:
        """Return the names in the directory."""
        return set(self._disk.list_names(self.directory))

    def _read_or_write_cluster_id(self, node_id: int, new_cluster_id: str) -> str:
        """Return the cluster id in `meta.properties`, which gets the new id if it is missing.

        Raises: UnusableDataDirectory.
        """
        path = self.directory / _META
        text = self._disk.read_file(path)
        if text is None:
            content = f"version=1\nnode.id={node_id}\ncluster.id={new_cluster_id}\n"
            self._disk.replace_file(path, content.encode())
            return new_cluster_id
        try:
            lines = [line for line in text.decode().splitlines() if "=" in line]
            fields = dict(line.split("=", 1) for line in lines)
            _check_version(path, fields.get("version"), 1)
            return fields["cluster.id"]
        except (ValueError, KeyError) as error:
            raise UnusableDataDirectory(
                f"{path} has no cluster.id: restore it, or use an empty directory"
            ) from error


def _lock_directory(directory: Path, disk: BrokerDisk) -> DiskLock:
    """Create and lock the data directory.

    Raises: UnusableDataDirectory.
    """
    try:
        disk.make_directory(directory)
        return disk.lock_file(directory / ".lock")
    except BlockingIOError as error:
        raise UnusableDataDirectory(
            f"the data directory {directory} is used by another broker: "
            "stop that one, or choose another directory"
        ) from error
    except OSError as error:
        raise UnusableDataDirectory(
            f"can't write to the data directory {directory} ({error.strerror}): "
            "choose one that you may write to"
        ) from error

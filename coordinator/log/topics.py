"""Keeps the topics of the broker: creates, finds, alters, deletes and loads them.

`topics.json` is written first and believed always (see `data_directory`), so a topic is whole or
absent. A hidden topic is the broker's alone: look-ups by name or id and the list don't show it, as
with Kafka's metadata log, and `find_including_hidden` is the way to it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from coordinator.clock import Timer
from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.configs import build_log_settings, validate_topic_configs
from coordinator.log.data_directory import (
    DataDirectory,
    TopicEntry,
    UnusableDataDirectory,
    read_partition_metadata,
    uuid_to_base64,
)
from coordinator.log.machine import BrokerMachine
from coordinator.log.partition import PartitionLog
from coordinator.log.recovery import CorruptLog
from coordinator.log.segment import CorruptBatch

logger = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
HIDDEN_TOPICS = frozenset({"__cluster_metadata"})
PARTITIONS_MAX = 10_000
_NAME_CHARACTERS_MAX = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class BrokerTopic:
    """Represents one topic: its entry in `topics.json`, and the logs of its partitions."""

    name: str
    id: UUID
    partitions: Sequence[PartitionLog]
    configs: Mapping[str, str]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class TopicRegistry:
    """Holds all topics of one data directory, by name and by id."""

    def __init__(
        self,
        storage: DataDirectory,
        config: BrokerConfig,
        machine: BrokerMachine,
        new_id: Callable[[], UUID],
    ) -> None:
        self._storage = storage
        self._config = config
        self._machine = machine
        self._new_id = new_id
        self._by_name: dict[str, BrokerTopic] = {}
        self._by_id: dict[UUID, BrokerTopic] = {}
        self._leftovers: list[str] = []
        self.when_deleted: list[Callable[[BrokerTopic], None]] = []
        # Called with the names of deleted topics; calls `release_deleted_name` for each one.
        self.forget_offsets: Callable[[Iterable[str]], None] | None = None
        self.forgetting: dict[str, None] = {}  # topics whose offsets are being forgotten
        self.when_forgotten: list[Callable[[str], None]] = []  # called with each released name
        # Topics that were deleted while a partition of `__consumer_offsets` was damaged.
        self.deleted_while_failed: dict[int, set[str]] = {}
        self._saving: Timer | None = None
        # `version` rises with each topic that is created, deleted or gets more partitions;
        # `created_version` is its value when the last topic was created.
        self.version = 0
        self.created_version = 0

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[BrokerTopic]:
        return iter([topic for topic in self._by_name.values() if topic.name not in HIDDEN_TOPICS])

    def get(self, name: str) -> BrokerTopic | None:
        """Return the topic of this name; None if there is none, or it is hidden."""
        return None if name in HIDDEN_TOPICS else self._by_name.get(name)

    def by_id(self, topic_id: UUID | None) -> BrokerTopic | None:
        """Return the topic with this id; None if there is none, or it is hidden."""
        topic = None if topic_id is None else self._by_id.get(topic_id)
        return None if topic is None or topic.name in HIDDEN_TOPICS else topic

    def find_partition(self, name: str, index: int) -> PartitionLog | None:
        """Return a partition by topic name and index; None if there is none."""
        return partition_of(self.get(name), index)

    def find_including_hidden(self, name: str) -> BrokerTopic | None:
        """Return the topic of this name even if it is one of the broker's hidden ones."""
        return self._by_name.get(name)

    def check_new_name(self, name: str, planned: Sequence[TopicEntry] = ()) -> None:
        """Raise Refused if no topic of this name may be added to the existing and planned ones.

        Raises: Refused (INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS).
        """
        check_topic_name(name)
        if name in self._by_name:
            raise Refused(Code.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if name in self.forgetting:
            raise Refused(Code.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
        # Kafka's rule: its metrics can't tell these two characters apart.
        like = name.replace(".", "_")
        if "_" not in like:
            return
        for other in (*self, *planned):
            if other.name.replace(".", "_") == like:
                raise Refused(
                    Code.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topic: {other.name}",
                )

    def create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str] = {}
    ) -> BrokerTopic:
        """Create one topic, which is on disk when this returns.

        Raises: Refused, see `plan_topic` and `create_planned_topics`.
        """
        [topic] = self.create_planned_topics([self.plan_topic(name, partition_count, configs)])
        return topic

    def plan_topic(
        self,
        name: str,
        partition_count: int,
        configs: Mapping[str, str] = {},
        planned: Sequence[TopicEntry] = (),
    ) -> TopicEntry:
        """Validate a topic to be created together with those planned before, and give it an id.

        Raises: Refused (INVALID_PARTITIONS, INVALID_CONFIG, and see `check_new_name`).
        """
        self.check_new_name(name, planned)
        if not 1 <= partition_count <= PARTITIONS_MAX:
            raise Refused(
                Code.INVALID_PARTITIONS, f"{partition_count} partitions: from 1 to {PARTITIONS_MAX}"
            )
        return TopicEntry(
            name=name,
            topic_id=self._new_id(),
            partition_count=partition_count,
            configs=validate_topic_configs(configs),
        )

    def create_planned_topics(self, planned: Sequence[TopicEntry]) -> list[BrokerTopic]:
        """Create all planned topics in one write; they are on disk when this returns.

        Raises: Refused (KAFKA_STORAGE_ERROR): none of them is created then.
        """
        self._rename_stray_directories(
            f"{entry.name}-{index}" for entry in planned for index in range(entry.partition_count)
        )
        self._write_entries([*self._topic_entries(), *planned], self._leftovers)
        return [self._register_topic(entry) for entry in planned]

    def replace_configs(self, name: str, configs: Mapping[str, str]) -> BrokerTopic:
        """Replace the configuration of a topic, at once and on disk when this returns.

        Raises: Refused (UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG, KAFKA_STORAGE_ERROR).
        """
        topic = replace(self._require_topic(name), configs=validate_topic_configs(configs))
        self._replace_topic(topic)
        settings = build_log_settings(topic.configs, self._config)
        for partition in topic.partitions:
            partition.apply_settings(settings)
        return topic

    def apply_broker_config(self, config: BrokerConfig) -> None:
        """Use these settings of the broker from now on; topics that don't override them follow."""
        self._config = config
        for topic in self._by_name.values():
            settings = build_log_settings(topic.configs, config)
            for partition in topic.partitions:
                partition.apply_settings(settings)

    def add_partitions(self, name: str, partition_count: int) -> BrokerTopic:
        """Raise the number of partitions of a topic; it is on disk when this returns.

        Raises: Refused (UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, KAFKA_STORAGE_ERROR).
        """
        topic = self._require_topic(name)
        now = len(topic.partitions)
        if not now < partition_count <= PARTITIONS_MAX:
            raise Refused(
                Code.INVALID_PARTITIONS,
                f"{partition_count} partitions: {name} has {now}, and may have {PARTITIONS_MAX}",
            )
        self._rename_stray_directories(f"{name}-{index}" for index in range(now, partition_count))
        added = self._make_partitions(_make_entry(topic), range(now, partition_count))
        topic = replace(topic, partitions=[*topic.partitions, *added])
        self._replace_topic(topic)
        self.version += 1
        return topic

    def delete_topic(self, topic: BrokerTopic) -> None:
        """Remove a topic and its logs: at once for everybody, the files a little later.

        Raises: Refused (KAFKA_STORAGE_ERROR): the topic is as it was then.
        """
        names = self._storage.list_names()
        renames = {
            f"{topic.name}-{i}": f"{topic.name}-{i}.{uuid_to_base64(topic.id)}-delete"
            for i in range(len(topic.partitions))
            if f"{topic.name}-{i}" in names
        }
        entries = [entry for entry in self._topic_entries() if entry.topic_id != topic.id]
        if self.forget_offsets is not None:
            self.forgetting[topic.name] = None
        try:
            self._write_entries(entries, [*self._leftovers, *renames.values()])
        except Refused:
            self.forgetting.pop(topic.name, None)
            raise
        del self._by_name[topic.name]
        del self._by_id[topic.id]
        self.version += 1
        for partition in topic.partitions:
            partition.discard_log()
        # A broker killed here leaves directories whose topic id is no topic's; `load_topics` clears
        # them.
        renamed = []
        for old, new in renames.items():
            try:
                self._storage.rename_partition_directory(old, new)
            except OSError as error:
                logger.error("%s stays until the next start: %s", old, error)
            else:
                renamed.append(new)
        self._remove_in_background(renamed)
        for callback in self.when_deleted:
            callback(topic)
        if self.forget_offsets is not None:
            self.forget_offsets([topic.name])

    def release_deleted_name(self, name: str) -> None:
        """Allow topics of a deleted topic's name again, as no group has offsets of it any more.

        The list on disk follows in the loop's next turn, for all names of this one. It is flushed;
        the records that removed the offsets may not be (see `groups.deleted_topics`).
        """
        self.forgetting.pop(name, None)
        if self._saving is None:
            self._saving = self._machine.scheduler.call_later(0, self._write_topic_list_or_warn)
        for callback in tuple(self.when_forgotten):
            callback(name)

    def write_topic_list(self) -> None:
        """Write the list of topics, and the names of those whose offsets are still to be forgotten.

        Raises: Refused (KAFKA_STORAGE_ERROR).
        """
        self._write_entries(self._topic_entries(), self._leftovers)

    def _write_topic_list_or_warn(self) -> None:
        """Write the list of topics, or log a warning if that fails."""
        self._saving = None
        try:
            self.write_topic_list()
        except Refused as refused:  # the next start forgets the offsets of these names once more
            logger.warning("the list of topics is an old one: %s", refused)

    def _remove_in_background(self, directories: list[str]) -> None:
        """Remove directories of deleted topics on another thread, as unlinking may take long."""

        def remove_directories() -> None:
            for name in directories:
                self._storage.remove_partition_directory(name)

        def drop_leftovers(error: Exception | None) -> None:
            if error is None:  # else the next start tries again
                self._leftovers = [name for name in self._leftovers if name not in directories]

        self._machine.background.run_in_background(remove_directories, drop_leftovers)

    def load_topics(self) -> None:
        """Open all topics on disk; a partition whose log is damaged is not served, all others are.

        Raises: UnusableDataDirectory.
        """
        entries, leftovers, forgetting, self.deleted_while_failed = self._storage.read_topics()
        names = {entry.name for entry in entries}
        self.forgetting = dict.fromkeys(name for name in forgetting if name not in names)
        for name in leftovers:
            self._remove_leftover_directory(name)
        present = self._storage.list_names()
        for entry in entries:
            for partition in self._register_topic(entry).partitions:
                if partition.directory.name in present:
                    self._open_partition(partition, entry.topic_id)
        if leftovers:
            self._write_entries(self._topic_entries(), [])

    def close(self) -> None:
        """Close the logs of all topics."""
        if self._saving is not None:
            self._saving.cancel()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.close()

    def all_partitions(self) -> list[PartitionLog]:
        """Return the partitions of every topic, hidden ones as well."""
        return [each for topic in self._by_name.values() for each in topic.partitions]

    def forget_idle_producers(self) -> None:
        """Forget the producers that have written nothing for `producer.id.expiration.ms`."""
        now_ms = self._machine.clock.now_ms()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.producers.forget_idle_producers(
                    now_ms, self._config.producer_id_expiration_ms
                )

    def _register_topic(self, entry: TopicEntry) -> BrokerTopic:
        """Make the topic of an entry, with its partitions, and add it to the topics."""
        partitions = self._make_partitions(entry, range(entry.partition_count))
        topic = BrokerTopic(entry.name, entry.topic_id, partitions, entry.configs)
        self._by_name[entry.name] = topic
        self._by_id[entry.topic_id] = topic
        self.version += 1
        self.created_version = self.version
        return topic

    def _replace_topic(self, topic: BrokerTopic) -> None:
        """Replace a topic by another version of it, on disk and then in memory."""
        entries = [
            _make_entry(topic if each.name == topic.name else each)
            for each in self._by_name.values()
        ]
        self._write_entries(entries, self._leftovers)
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic

    def _require_topic(self, name: str) -> BrokerTopic:
        """Return the topic of this name, or raise Refused (UNKNOWN_TOPIC_OR_PARTITION)."""
        topic = self._by_name.get(name)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return topic

    def _rename_stray_directories(self, new_directories: Iterable[str]) -> None:
        """Rename directories that are in the way of new partitions' directories.

        They are of a deleted topic whose files could not be moved, or of a list of topics that was
        lost. Raises: Refused (KAFKA_STORAGE_ERROR).
        """
        present = self._storage.list_names()
        for old in sorted(present.intersection(new_directories)):
            new = f"{old}.{uuid_to_base64(self._new_id())}-stray"
            logger.warning("%s is no topic's: it is %s from now on", old, new)
            try:
                self._storage.rename_partition_directory(old, new)
            except OSError as error:
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error

    def _make_partitions(self, entry: TopicEntry, indexes: range) -> list[PartitionLog]:
        settings = build_log_settings(entry.configs, self._config)
        return [
            PartitionLog(
                entry.name,
                index,
                entry.topic_id,
                self._storage.partition_directory(entry.name, index),
                settings,
                self._machine,
            )
            for index in indexes
        ]

    def _open_partition(self, partition: PartitionLog, topic_id: UUID) -> None:
        """Open the log of a partition; if that fails, it is not served.

        Raises: UnusableDataDirectory if the directory is another topic's.
        """
        found = read_partition_metadata(self._machine.disk, partition.directory)
        if found not in (None, topic_id):
            raise UnusableDataDirectory(
                f"{partition.directory} is of topic id {uuid_to_base64(found)}, not "
                f"{uuid_to_base64(topic_id)}: move it away, it is another topic's. If its files "
                "are "
                "to be this topic's from now on, remove its partition.metadata"
            )
        try:
            partition.open_log()
        except (CorruptLog, CorruptBatch) as error:
            partition.stop_serving(str(error))
            logger.error(
                "%s-%d is not served until its log is repaired ('Repair' in docs/broker.md): %s",
                *(partition.topic, partition.index, error),
            )
        except OSError as error:
            partition.stop_serving(str(error))
            logger.error(
                "%s-%d is not served until the next start, as its files can't be read: %s",
                *(partition.topic, partition.index, error),
            )
        except Exception as error:  # a mistake of ours: loud, but every other partition is served
            partition.stop_serving(repr(error))
            name = (partition.topic, partition.index, partition.directory)
            logger.exception("%s-%d is not served: opening %s has failed", *name)

    def _remove_leftover_directory(self, name: str) -> None:
        """Remove the directory of a deleted topic, whether it has been renamed already or not."""
        self._storage.remove_partition_directory(name)
        original, _, rest = name.rpartition(".")
        directory = self._storage.directory / original
        found = read_partition_metadata(self._machine.disk, directory)
        if found is not None and rest == f"{uuid_to_base64(found)}-delete":
            self._storage.remove_partition_directory(original)

    def _topic_entries(self) -> Iterator[TopicEntry]:
        return map(_make_entry, self._by_name.values())

    def _write_entries(
        self, entries: Iterator[TopicEntry] | list[TopicEntry], leftovers: list[str]
    ) -> None:
        """Write the list of topics with these entries and leftover directories.

        Raises: Refused (KAFKA_STORAGE_ERROR).
        """
        try:
            self._storage.write_topics(
                entries, leftovers, self.forgetting, self.deleted_while_failed
            )
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error
        self._leftovers = leftovers


def _make_entry(topic: BrokerTopic) -> TopicEntry:
    return TopicEntry(
        name=topic.name,
        topic_id=topic.id,
        partition_count=len(topic.partitions),
        configs=topic.configs,
    )


def partition_of(topic: BrokerTopic | None, index: int) -> PartitionLog | None:
    """Return a topic's partition, None if there is no such topic or partition."""
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index]


def check_topic_name(name: str) -> None:
    """Raise Refused (INVALID_TOPIC_EXCEPTION) for a name that no topic can have."""
    why = _find_name_fault(name)
    if why:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def _find_name_fault(name: str) -> str | None:
    """Return why no topic can have this name; None if one can.

    Source: org.apache.kafka.common.internals.Topic.
    """
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > _NAME_CHARACTERS_MAX:
        return (
            f"the length of '{name}' is longer than the max allowed length {_NAME_CHARACTERS_MAX}"
        )
    if not _LEGAL_NAME.fullmatch(name):
        allowed = "ASCII alphanumerics, '.', '_' and '-'"
        return f"'{name}' contains one or more characters other than {allowed}"
    return None

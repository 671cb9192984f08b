"""Keep the topics of the broker: create, find, alter, delete and load them.

`topics.json` is written first and believed always (see `data_directory`), so a topic is whole or
absent. A hidden topic is the broker's alone: look-ups by name or id and the list don't show it, as
with Kafka's metadata log, and `find_including_hidden` is the way to it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from uuid import UUID

from coordinator.clock import Timer
from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.configs import build_log_settings, validate_topic_configs
from coordinator.log.data_directory import (
    DataDirectory,
    TopicEntry,
)
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog
from coordinator.log.partition_directories import PartitionDirectories
from coordinator.log.topic_names import check_name_collision, check_topic_name

logger = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
HIDDEN_TOPICS = frozenset({"__cluster_metadata"})
PARTITIONS_MAX = 10_000


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
        host: BrokerHost,
        new_id: Callable[[], UUID],
    ) -> None:
        self._storage = storage
        self._config = config
        self._host = host
        self._new_id = new_id
        self._by_name: dict[str, BrokerTopic] = {}
        self._by_id: dict[UUID, BrokerTopic] = {}
        self._directories = PartitionDirectories(storage, host, new_id)
        self.when_deleted: list[Callable[[BrokerTopic], None]] = []
        # Called with the names of deleted topics; calls `free_deleted_name` for each one.
        self.forget_offsets_of_topics: Callable[[Iterable[str]], None] | None = None
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
        return iter(
            [topic for topic in tuple(self._by_name.values()) if topic.name not in HIDDEN_TOPICS]
        )

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
        check_name_collision(
            name, (each.name for each in chain[BrokerTopic | TopicEntry](self, planned))
        )

    def create_topic(
        self, name: str, partition_count: int, configs: Mapping[str, str] = {}
    ) -> BrokerTopic:
        """Create one topic, which is on disk when this returns.

        Raises: Refused, see `plan_topic_or_refuse` and `create_planned_topics`.
        """
        [topic] = self.create_planned_topics(
            [self.plan_topic_or_refuse(name, partition_count, configs)]
        )
        return topic

    def plan_topic_or_refuse(
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
        self._directories.rename_stray_directories(
            f"{entry.name}-{index}" for entry in planned for index in range(entry.partition_count)
        )
        self._write_topic_entries(
            [*map(_to_topic_entry, self._by_name.values()), *planned], self._directories.leftovers
        )
        return [self._create_and_add_topic(entry) for entry in planned]

    def save_and_replace_configs(self, name: str, configs: Mapping[str, str]) -> BrokerTopic:
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
        self._directories.rename_stray_directories(
            f"{name}-{index}" for index in range(now, partition_count)
        )
        added = self._directories.create_unopened_partitions(
            _to_topic_entry(topic), range(now, partition_count), self._config
        )
        topic = replace(topic, partitions=[*topic.partitions, *added])
        self._replace_topic(topic)
        self.version += 1
        return topic

    def delete_topic(self, topic: BrokerTopic) -> None:
        """Remove a topic and its logs: at once for everybody, the files a little later.

        Raises: Refused (KAFKA_STORAGE_ERROR): the topic is as it was then.
        """
        renames = self._directories.plan_directory_renames(
            topic.name, topic.id, len(topic.partitions)
        )
        entries = [_to_topic_entry(each) for each in self._by_name.values() if each.id != topic.id]
        if self.forget_offsets_of_topics is not None:
            self.forgetting[topic.name] = None
        try:
            self._write_topic_entries(entries, [*self._directories.leftovers, *renames.values()])
        except Refused:
            self.forgetting.pop(topic.name, None)
            raise
        del self._by_name[topic.name]
        del self._by_id[topic.id]
        self.version += 1
        for partition in topic.partitions:
            partition.close_for_deletion()
        # A broker killed here leaves directories whose topic id is no topic's; `load_topics` clears
        # them.
        self._directories.rename_and_remove_later(renames)
        for callback in self.when_deleted:
            callback(topic)
        if self.forget_offsets_of_topics is not None:
            self.forget_offsets_of_topics([topic.name])

    def free_deleted_name(self, name: str) -> None:
        """Allow topics of a deleted topic's name again, as no group has offsets of it any more.

        The list on disk follows in the loop's next turn, for all names of this one. It is flushed;
        the records that removed the offsets may not be (see `groups.deleted_topics`).
        """
        self.forgetting.pop(name, None)
        if self._saving is None:
            self._saving = self._host.scheduler.call_later(0, self._write_topic_list_or_warn)
        for callback in tuple(self.when_forgotten):
            callback(name)

    def write_topic_list(self) -> None:
        """Write the list of topics, and the names of those whose offsets are still to be forgotten.

        Raises: Refused (KAFKA_STORAGE_ERROR).
        """
        self._write_topic_entries(
            map(_to_topic_entry, self._by_name.values()), self._directories.leftovers
        )

    def _write_topic_list_or_warn(self) -> None:
        """Write the list of topics, or log a warning if that fails."""
        self._saving = None
        try:
            self.write_topic_list()
        except Refused as refused:  # the next start forgets the offsets of these names once more
            logger.warning("the list of topics is an old one: %s", refused)

    def load_topics(self) -> None:
        """Open all topics on disk; a partition whose log is damaged is not served, all others are.

        Raises: UnusableDataDirectory.
        """
        saved = self._storage.read_topics()
        self.deleted_while_failed = saved.deleted_while_failed
        names = {entry.name for entry in saved.topics}
        self.forgetting = dict.fromkeys(name for name in saved.forgetting if name not in names)
        for name in saved.leftover_directories:
            self._directories.remove_leftover(name)
        present = self._storage.list_names()
        for entry in saved.topics:
            for partition in self._create_and_add_topic(entry).partitions:
                if partition.directory.name in present:
                    self._directories.open_partition(partition, entry.topic_id)
        if saved.leftover_directories:
            self._write_topic_entries(map(_to_topic_entry, self._by_name.values()), [])

    def close(self) -> None:
        """Close the logs of all topics."""
        if self._saving is not None:
            self._saving.cancel()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.close()

    def list_all_partitions(self) -> list[PartitionLog]:
        """Return the partitions of every topic, hidden ones as well."""
        return [each for topic in self._by_name.values() for each in topic.partitions]

    def _create_and_add_topic(self, entry: TopicEntry) -> BrokerTopic:
        """Make the topic of an entry, with its partitions, and add it to the topics."""
        partitions = self._directories.create_unopened_partitions(
            entry, range(entry.partition_count), self._config
        )
        topic = BrokerTopic(entry.name, entry.topic_id, partitions, entry.configs)
        self._by_name[entry.name] = topic
        self._by_id[entry.topic_id] = topic
        self.version += 1
        self.created_version = self.version
        return topic

    def _replace_topic(self, topic: BrokerTopic) -> None:
        """Replace a topic by another version of it, on disk and then in memory."""
        entries = [
            _to_topic_entry(topic if each.name == topic.name else each)
            for each in self._by_name.values()
        ]
        self._write_topic_entries(entries, self._directories.leftovers)
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic

    def _require_topic(self, name: str) -> BrokerTopic:
        """Return the topic of this name, or raise Refused (UNKNOWN_TOPIC_OR_PARTITION)."""
        topic = self._by_name.get(name)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return topic

    def _write_topic_entries(self, entries: Iterable[TopicEntry], leftovers: list[str]) -> None:
        """Write the list of topics with these entries and leftover directories.

        Raises: Refused (KAFKA_STORAGE_ERROR).
        """
        try:
            self._storage.write_topics(
                entries, leftovers, self.forgetting, self.deleted_while_failed
            )
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error
        self._directories.leftovers = leftovers


def _to_topic_entry(topic: BrokerTopic) -> TopicEntry:
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

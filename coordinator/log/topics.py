"""The topics of the broker: made, found by name or id, deleted, and loaded when it starts.

`topics.json` is written first and believed always (see `storage`), so a topic is whole or absent.
A hidden topic is the broker's alone: whoever looks for it by name, by id or in the list finds
nothing, as with Kafka's metadata log, and `own` is the way to it.
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
from coordinator.log.configs import check_configs, settings_of
from coordinator.log.machine import Machine
from coordinator.log.partition import Partition
from coordinator.log.recovery import CorruptLog
from coordinator.log.segment import Damaged
from coordinator.log.storage import (
    Storage,
    TopicEntry,
    UnusableDataDirectory,
    read_partition_metadata,
    to_base64,
)

logger = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state"})
HIDDEN_TOPICS = frozenset({"__cluster_metadata"})
PARTITIONS_MAX = 10_000
_NAME_CHARACTERS_MAX = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic: what `topics.json` says of it, and its logs."""

    name: str
    id: UUID
    partitions: Sequence[Partition]
    configs: Mapping[str, str]

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS


class Topics:
    """All topics of one data directory."""

    def __init__(
        self,
        storage: Storage,
        config: BrokerConfig,
        machine: Machine,
        new_id: Callable[[], UUID],
    ) -> None:
        self._storage = storage
        self._config = config
        self._machine = machine
        self._new_id = new_id
        self._by_name: dict[str, Topic] = {}
        self._by_id: dict[UUID, Topic] = {}
        self._leftovers: list[str] = []
        self.when_deleted: list[Callable[[Topic], None]] = []
        # Called with the names of deleted topics; calls `forgotten` for each one.
        self.forget_offsets: Callable[[Iterable[str]], None] | None = None
        self.forgetting: dict[str, None] = {}  # topics whose offsets are being forgotten
        self.when_forgotten: list[Callable[[str], None]] = []  # called with a name that is free
        # Topics that were deleted while a partition of `__consumer_offsets` was damaged.
        self.deleted_while_failed: dict[int, set[str]] = {}
        self._saving: Timer | None = None
        # Up with each topic that is made, deleted or gets more partitions; and what it was when
        # the last one was made.
        self.version = 0
        self.created_version = 0

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Topic]:
        return iter([topic for topic in self._by_name.values() if topic.name not in HIDDEN_TOPICS])

    def get(self, name: str) -> Topic | None:
        return None if name in HIDDEN_TOPICS else self._by_name.get(name)

    def by_id(self, topic_id: UUID | None) -> Topic | None:
        topic = None if topic_id is None else self._by_id.get(topic_id)
        return None if topic is None or topic.name in HIDDEN_TOPICS else topic

    def partition(self, name: str, index: int) -> Partition | None:
        return partition_of(self.get(name), index)

    def own(self, name: str) -> Topic | None:
        """A topic that the broker itself asks for, hidden or not."""
        return self._by_name.get(name)

    def check_new(self, name: str, planned: Sequence[TopicEntry] = ()) -> None:
        """Whether there may be a topic of this name beside those there are and those planned.
        Refused: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS."""
        check_name(name)
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

    def create(self, name: str, partitions: int, configs: Mapping[str, str] = {}) -> Topic:
        """A new topic, on disk when this returns. Refused: see `plan` and `create_all`."""
        [topic] = self.create_all([self.plan(name, partitions, configs)])
        return topic

    def plan(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] = {},
        planned: Sequence[TopicEntry] = (),
    ) -> TopicEntry:
        """A topic that may be created, together with those planned before. Refused: see
        `check_new`; INVALID_PARTITIONS; INVALID_CONFIG."""
        self.check_new(name, planned)
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise Refused(
                Code.INVALID_PARTITIONS, f"{partitions} partitions: from 1 to {PARTITIONS_MAX}"
            )
        return TopicEntry(
            name=name,
            topic_id=self._new_id(),
            partitions=partitions,
            configs=check_configs(configs),
        )

    def create_all(self, planned: Sequence[TopicEntry]) -> list[Topic]:
        """What was planned, on disk when this returns, in one write however many there are.
        Refused(KAFKA_STORAGE_ERROR): none is there then."""
        self._set_aside(
            f"{entry.name}-{index}" for entry in planned for index in range(entry.partitions)
        )
        self._write([*self._entries(), *planned], self._leftovers)
        return [self._add(entry) for entry in planned]

    def alter(self, name: str, configs: Mapping[str, str]) -> Topic:
        """Give a topic this configuration in place of the one that it has; it holds at once, and
        is on disk when this returns. Refused: UNKNOWN_TOPIC_OR_PARTITION, INVALID_CONFIG,
        KAFKA_STORAGE_ERROR."""
        topic = replace(self._existing(name), configs=check_configs(configs))
        self._put(topic)
        settings = settings_of(topic.configs, self._config)
        for partition in topic.partitions:
            partition.reconfigure(settings)
        return topic

    def reconfigure(self, config: BrokerConfig) -> None:
        """The broker's settings are these from now on; topics that don't say otherwise follow."""
        self._config = config
        for topic in self._by_name.values():
            settings = settings_of(topic.configs, config)
            for partition in topic.partitions:
                partition.reconfigure(settings)

    def add_partitions(self, name: str, count: int) -> Topic:
        """Have `count` partitions in a topic, which has fewer now; on disk when this returns.
        Refused: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, KAFKA_STORAGE_ERROR."""
        topic = self._existing(name)
        now = len(topic.partitions)
        if not now < count <= PARTITIONS_MAX:
            raise Refused(
                Code.INVALID_PARTITIONS,
                f"{count} partitions: {name} has {now}, and may have {PARTITIONS_MAX}",
            )
        self._set_aside(f"{name}-{index}" for index in range(now, count))
        added = self._make_partitions(_entry(topic), range(now, count))
        topic = replace(topic, partitions=[*topic.partitions, *added])
        self._put(topic)
        self.version += 1
        return topic

    def delete(self, topic: Topic) -> None:
        """Remove a topic and its logs: at once for everybody, the files a little later.
        Refused(KAFKA_STORAGE_ERROR) leaves it as it was."""
        names = self._storage.names()
        renames = {
            f"{topic.name}-{i}": f"{topic.name}-{i}.{to_base64(topic.id)}-delete"
            for i in range(len(topic.partitions))
            if f"{topic.name}-{i}" in names
        }
        entries = [entry for entry in self._entries() if entry.topic_id != topic.id]
        if self.forget_offsets is not None:
            self.forgetting[topic.name] = None
        try:
            self._write(entries, [*self._leftovers, *renames.values()])
        except Refused:
            self.forgetting.pop(topic.name, None)
            raise
        del self._by_name[topic.name]
        del self._by_id[topic.id]
        self.version += 1
        for partition in topic.partitions:
            partition.discard()
        # A broker killed here leaves directories whose topic id is no topic's; `load` clears them.
        renamed = []
        for old, new in renames.items():
            try:
                self._storage.rename(old, new)
            except OSError as error:
                logger.error("%s stays until the next start: %s", old, error)
            else:
                renamed.append(new)
        self._remove_aside(renamed)
        for callback in self.when_deleted:
            callback(topic)
        if self.forget_offsets is not None:
            self.forget_offsets([topic.name])

    def forgotten(self, name: str) -> None:
        """Let there be topics of this name again: no group has offsets of the deleted one. The list
        on disk follows in the loop's next turn, for all names of this one. It is flushed; what made
        the offsets go may not be (see `groups.deleted_topics`)."""
        self.forgetting.pop(name, None)
        if self._saving is None:
            self._saving = self._machine.scheduler.call_later(0, self._save)
        for callback in tuple(self.when_forgotten):
            callback(name)

    def save(self) -> None:
        """Write the list of topics, and the names of those whose offsets are still to be forgotten.

        Raises Refused: KAFKA_STORAGE_ERROR.
        """
        self._write(self._entries(), self._leftovers)

    def _save(self) -> None:
        self._saving = None
        try:
            self.save()
        except Refused as refused:  # the next start sweeps once more
            logger.warning("the list of topics is an old one: %s", refused)

    def _remove_aside(self, directories: list[str]) -> None:
        """On another thread: unlinking a gigabyte takes long."""

        def remove() -> None:
            for name in directories:
                self._storage.remove(name)

        def done(error: Exception | None) -> None:
            if error is None:  # else the next start tries again
                self._leftovers = [name for name in self._leftovers if name not in directories]

        self._machine.background.run(remove, done)

    def load(self) -> None:
        """Open what is on disk. A partition whose log is damaged is not served, all others are.
        UnusableDataDirectory."""
        entries, leftovers, forgetting, self.deleted_while_failed = self._storage.read_topics()
        names = {entry.name for entry in entries}
        self.forgetting = dict.fromkeys(name for name in forgetting if name not in names)
        for name in leftovers:
            self._clear_leftover(name)
        present = self._storage.names()
        for entry in entries:
            for partition in self._add(entry).partitions:
                if partition.directory.name in present:
                    self._load(partition, entry.topic_id)
        if leftovers:
            self._write(self._entries(), [])

    def close(self) -> None:
        if self._saving is not None:
            self._saving.cancel()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.close()

    def partitions(self) -> list[Partition]:
        """Of every topic, hidden ones as well."""
        return [each for topic in self._by_name.values() for each in topic.partitions]

    def expire_producers(self) -> None:
        """Forget the producers that have long been silent."""
        now_ms = self._machine.clock.now_ms()
        for topic in self._by_name.values():
            for partition in topic.partitions:
                partition.producers.expire(now_ms, self._config.producer_id_expiration_ms)

    def _add(self, entry: TopicEntry) -> Topic:
        partitions = self._make_partitions(entry, range(entry.partitions))
        topic = Topic(entry.name, entry.topic_id, partitions, entry.configs)
        self._by_name[entry.name] = topic
        self._by_id[entry.topic_id] = topic
        self.version += 1
        self.created_version = self.version
        return topic

    def _put(self, topic: Topic) -> None:
        """This one in the place of the one of the same name, on disk and then here."""
        entries = [
            _entry(topic if each.name == topic.name else each) for each in self._by_name.values()
        ]
        self._write(entries, self._leftovers)
        self._by_name[topic.name] = topic
        self._by_id[topic.id] = topic

    def _existing(self, name: str) -> Topic:
        topic = self._by_name.get(name)
        if topic is None:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"no topic {name}")
        return topic

    def _set_aside(self, new_directories: Iterable[str]) -> None:
        """Rename those of new partitions' directories that are there already: of a deleted topic
        whose files could not be moved, or of a list of topics that was lost.
        Refused(KAFKA_STORAGE_ERROR)."""
        present = self._storage.names()
        for old in sorted(present.intersection(new_directories)):
            new = f"{old}.{to_base64(self._new_id())}-stray"
            logger.warning("%s is no topic's: it is %s from now on", old, new)
            try:
                self._storage.rename(old, new)
            except OSError as error:
                raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error

    def _make_partitions(self, entry: TopicEntry, indexes: range) -> list[Partition]:
        settings = settings_of(entry.configs, self._config)
        return [
            Partition(
                entry.name,
                index,
                entry.topic_id,
                self._storage.partition_directory(entry.name, index),
                settings,
                self._machine,
            )
            for index in indexes
        ]

    def _load(self, partition: Partition, topic_id: UUID) -> None:
        found = read_partition_metadata(self._machine.disk, partition.directory)
        if found not in (None, topic_id):
            raise UnusableDataDirectory(
                f"{partition.directory} is of topic id {to_base64(found)}, not "
                f"{to_base64(topic_id)}: move it away, it is another topic's. If its files are to "
                "be this topic's from now on, remove its partition.metadata"
            )
        try:
            partition.load()
        except (CorruptLog, Damaged) as error:
            partition.fail(str(error))
            logger.error(
                "%s-%d is not served until its log is repaired ('Repair' in docs/broker.md): %s",
                *(partition.topic, partition.index, error),
            )
        except OSError as error:
            partition.fail(str(error))
            logger.error(
                "%s-%d is not served until the next start, as its files can't be read: %s",
                *(partition.topic, partition.index, error),
            )
        except Exception as error:  # a mistake of ours: loud, but every other partition is served
            partition.fail(repr(error))
            name = (partition.topic, partition.index, partition.directory)
            logger.exception("%s-%d is not served: opening %s has failed", *name)

    def _clear_leftover(self, name: str) -> None:
        self._storage.remove(name)
        original, _, rest = name.rpartition(".")
        directory = self._storage.directory / original
        found = read_partition_metadata(self._machine.disk, directory)
        if found is not None and rest == f"{to_base64(found)}-delete":
            self._storage.remove(original)

    def _entries(self) -> Iterator[TopicEntry]:
        return map(_entry, self._by_name.values())

    def _write(
        self, entries: Iterator[TopicEntry] | list[TopicEntry], leftovers: list[str]
    ) -> None:
        try:
            self._storage.write_topics(
                entries, leftovers, self.forgetting, self.deleted_while_failed
            )
        except OSError as error:
            raise Refused(Code.KAFKA_STORAGE_ERROR, str(error)) from error
        self._leftovers = leftovers


def _entry(topic: Topic) -> TopicEntry:
    return TopicEntry(
        name=topic.name,
        topic_id=topic.id,
        partitions=len(topic.partitions),
        configs=topic.configs,
    )


def partition_of(topic: Topic | None, index: int) -> Partition | None:
    """A topic's partition, if there are both."""
    if topic is None or not 0 <= index < len(topic.partitions):
        return None
    return topic.partitions[index]


def check_name(name: str) -> None:
    """Refused(INVALID_TOPIC_EXCEPTION) for a name that no topic can have."""
    why = _fault_of(name)
    if why:
        raise Refused(Code.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")


def _fault_of(name: str) -> str | None:
    """Source: org.apache.kafka.common.internals.Topic."""
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

"""Keep the directories of partitions: open the logs in them, and remove those of deleted topics.

The directory of a deleted topic is renamed at once to `<topic>-<index>.<topic id>-delete`, and
removed on another thread. The list of topics has that name until then, so that a start after a kill
finishes it. Kafka: `LogManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.log.configs import build_log_settings
from coordinator.log.data_directory import (
    DataDirectory,
    TopicEntry,
    UnusableDataDirectory,
    read_partition_metadata,
    uuid_to_base64,
)
from coordinator.log.host import BrokerHost
from coordinator.log.partition import PartitionLog
from coordinator.log.recovery import CorruptLog
from coordinator.log.segment import CorruptBatch

logger = logging.getLogger(__name__)


class PartitionDirectories:
    """Opens, renames and removes the directories of partitions in one data directory.

    `leftovers` are the renamed ones of deleted topics, as the list of topics has them.
    """

    def __init__(
        self, storage: DataDirectory, host: BrokerHost, new_id: Callable[[], UUID]
    ) -> None:
        self.leftovers: list[str] = []
        self._storage = storage
        self._host = host
        self._new_id = new_id

    def plan_directory_renames(
        self, name: str, topic_id: UUID, partition_count: int
    ) -> dict[str, str]:
        """Return the names that the directories of a topic get when it is deleted.

        Only those that are there have one.
        """
        present = self._storage.list_names()
        return {
            f"{name}-{index}": f"{name}-{index}.{uuid_to_base64(topic_id)}-delete"
            for index in range(partition_count)
            if f"{name}-{index}" in present
        }

    def rename_and_remove_later(self, renames: Mapping[str, str]) -> None:
        """Rename directories as planned, and remove them on another thread."""
        renamed = []
        for old, new in renames.items():
            try:
                self._storage.rename_partition_directory(old, new)
            except OSError as error:
                logger.error("%s stays until the next start: %s", old, error)
            else:
                renamed.append(new)
        self._remove_in_background(renamed)

    def _remove_in_background(self, directories: list[str]) -> None:
        """Remove directories of deleted topics on another thread, as unlinking may take long."""

        def remove_directories() -> None:
            for name in directories:
                self._storage.remove_partition_directory(name)

        def drop_leftovers(error: Exception | None) -> None:
            if error is None:  # else the next start tries again
                self.leftovers = [name for name in self.leftovers if name not in directories]

        self._host.background.run_in_background(remove_directories, drop_leftovers)

    def rename_stray_directories(self, new_directories: Iterable[str]) -> None:
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

    def create_unopened_partitions(
        self, entry: TopicEntry, indexes: range, config: BrokerConfig
    ) -> list[PartitionLog]:
        """Make the logs of a topic's partitions with these indexes; they are not opened yet."""
        settings = build_log_settings(entry.configs, config)
        return [
            PartitionLog(
                entry.name,
                index,
                entry.topic_id,
                self._storage.build_partition_path(entry.name, index),
                settings,
                self._host,
            )
            for index in indexes
        ]

    def open_partition(self, partition: PartitionLog, topic_id: UUID) -> None:
        """Open the log of a partition; if that fails, it is not served.

        Raises: UnusableDataDirectory if the directory is another topic's.
        """
        found = read_partition_metadata(self._host.disk, partition.directory)
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

    def remove_leftover(self, name: str) -> None:
        """Remove the directory of a deleted topic, whether it has been renamed already or not."""
        self._storage.remove_partition_directory(name)
        original, _, rest = name.rpartition(".")
        directory = self._storage.directory / original
        found = read_partition_metadata(self._host.disk, directory)
        if found is not None and rest == f"{uuid_to_base64(found)}-delete":
            self._storage.remove_partition_directory(original)

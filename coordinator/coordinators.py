"""Place the coordinators of the broker on the partitions of the internal topics.

`__consumer_offsets` (groups and offsets) and `__transaction_state` have one shard a partition,
`__cluster_metadata` keeps the producer ids. Loading order: groups first, because completing the
transactions that a crash left prepared writes markers into the group shards; then producer ids,
then transactions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from coordinator.clock import Background, Clock, Scheduler
from coordinator.config import BrokerConfig
from coordinator.errors import Code, Refused
from coordinator.features import Features
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from coordinator.groups.consumer.config import ConsumerGroupConfig, ConsumerGroupSettings
from coordinator.groups.deleted_topics import DeletedTopicCleanup
from coordinator.groups.migration.policy import MigrationPolicy
from coordinator.groups.service import GroupService
from coordinator.groups.shard import OFFSETS_TOPIC
from coordinator.groups.streams.config import (
    MIN_TASK_OFFSET_INTERVAL_MS,
    StreamsGroupConfig,
    StreamsGroupSettings,
)
from coordinator.local_markers import LocalMarkers
from coordinator.log.partition import PartitionLog
from coordinator.log.topics import TopicRegistry, partition_of
from coordinator.offsets.config import OffsetConfig
from coordinator.settings import INT32_MAX, split_list
from coordinator.shard.decision import TransactionEnded
from coordinator.shard.loading import ShardLoader
from coordinator.shard.shard import Shard
from coordinator.transactions.config import TransactionConfig
from coordinator.transactions.markers import MarkerDestination
from coordinator.transactions.producer_ids import (
    ProducerIdManager,
    ProducerIdsAllocated,
    ProducerIdsCodec,
    ProducerIdState,
)
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import TopicPartition

GROUP_TOPIC = OFFSETS_TOPIC
TRANSACTION_TOPIC = "__transaction_state"
METADATA_TOPIC = "__cluster_metadata"

COMPACTED_TOPIC_CONFIGS = {"cleanup.policy": "compact", "segment.bytes": str(100 << 20)}
# No default for topics may delete the producer ids: they would be allocated a second time.
UNLIMITED_RETENTION_CONFIGS = {
    "cleanup.policy": "delete",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}


class Coordinators:
    """Owns the group and the transaction coordinator; loaded before the broker listens."""

    def __init__(
        self,
        topics: TopicRegistry,
        config: BrokerConfig,
        features: Features,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        new_id: Callable[[], UUID],
        group_configs: Callable[[str], Mapping[str, str]],
    ) -> None:
        """Open the internal topics, creating missing ones, without replaying them.

        `group_configs` returns what is set for a group, by its id.
        """
        self._topics = topics
        self._local_markers = LocalMarkers(self._write_marker_with_highest_epoch)
        self._loader = ShardLoader(clock, scheduler)
        self._group_configs = group_configs
        self.new_id = new_id
        self.consumer_config = _create_consumer_group_config(config)
        self._streams_config = _create_streams_group_config(config)
        self.groups = self._create_group_service(config, clock, scheduler, background)
        self.deleted_topics = DeletedTopicCleanup(
            self.groups.offsets, self.groups.sliced_executor, scheduler, topics.free_deleted_name
        )
        topics.forget_offsets_of_topics = self.deleted_topics.forget_offsets_of_topics
        self.groups.offsets.deleted_while_failed = topics.deleted_while_failed
        self.groups.offsets.save_deleted_while_failed = topics.write_topic_list
        producer_ids = ProducerIdState()
        self._producer_ids: Shard[ProducerIdsAllocated] = Shard(
            METADATA_TOPIC,
            self._open_metadata_log(),
            ProducerIdsCodec(),
            producer_ids.apply_record,
            clock,
        )
        self.transactions = TransactionService(
            self._open_internal_topic(
                TRANSACTION_TOPIC,
                config.transaction_state_log_num_partitions,
                COMPACTED_TOPIC_CONFIGS,
            ),
            ProducerIdManager(self._producer_ids, producer_ids),
            self._find_marker_destination,
            _create_transaction_config(config),
            features,
            clock,
            scheduler,
        )

    def _create_group_service(
        self, config: BrokerConfig, clock: Clock, scheduler: Scheduler, background: Background
    ) -> GroupService:
        """Create the group coordinator on the partitions of `__consumer_offsets`."""
        return GroupService(
            self._open_internal_topic(
                GROUP_TOPIC, config.offsets_topic_num_partitions, COMPACTED_TOPIC_CONFIGS
            ),
            _create_classic_group_config(config),
            _create_offset_config(config),
            self.consumer_config,
            self._resolve_consumer_group_settings,
            self._streams_config,
            self._resolve_streams_group_settings,
            self._topics,
            clock,
            scheduler,
            background,
            MigrationPolicy.from_name(
                config.group_consumer_migration_policy,
                config.group_consumer_max_size,
                config.group_max_size,
            ),
        )

    def _open_metadata_log(self) -> PartitionLog:
        """Open the hidden log of producer ids, whose records may never be removed."""
        topic = self._topics.find_including_hidden(METADATA_TOPIC)
        if topic is not None and topic.configs != UNLIMITED_RETENTION_CONFIGS:
            self._topics.save_and_replace_configs(METADATA_TOPIC, UNLIMITED_RETENTION_CONFIGS)
        [log] = self._open_internal_topic(METADATA_TOPIC, 1, UNLIMITED_RETENTION_CONFIGS)
        return log

    def load_shards(self) -> None:
        """Replay the internal topics, complete the transactions that are decided, start the timers.

        Long loads go on afterwards, while requests are answered (see `shard.loading`).
        """
        self._producer_ids.replay_log()
        self.deleted_topics.forget_offsets_of_topics(tuple(self._topics.forgetting))
        self._loader.load_shards(
            [*self.groups.list_shard_loaders(), *self.transactions.begin_loading()]
        )

    @property
    def is_loaded(self) -> bool:
        """Return whether no shard is being loaded."""
        return self._loader.is_done

    def update_config(self, config: BrokerConfig) -> None:
        """Use the changed broker settings for consumer and streams groups from now on."""
        self.consumer_config = _create_consumer_group_config(config)
        self._streams_config = _create_streams_group_config(config)

    def resign_shard(self, topic: str, index: int) -> None:
        """Give up the shard of an internal topic's partition: it answers NOT_COORDINATOR then.

        For tests: one broker never loses a shard, but clients must bear brokers that do.
        """
        self._find_coordinator_of_topic(topic).resign_shard(index)

    def elect_shard(self, topic: str, index: int) -> None:
        """Load a resigned shard again; it answers COORDINATOR_LOAD_IN_PROGRESS until then.

        For tests, as `resign_shard`.
        """
        self._loader.load_shards([self._find_coordinator_of_topic(topic).elect_shard(index)])

    def _resolve_consumer_group_settings(self, group_id: str) -> ConsumerGroupSettings:
        configs = self._group_configs(group_id)
        return (
            self.consumer_config.resolve_settings(configs)
            if configs
            else self.consumer_config.defaults
        )

    def _resolve_streams_group_settings(self, group_id: str) -> StreamsGroupSettings:
        configs = self._group_configs(group_id)
        config = self._streams_config
        return config.resolve_settings(configs) if configs else config.defaults

    def _find_coordinator_of_topic(self, topic: str) -> GroupService | TransactionService:
        return self.groups if topic == GROUP_TOPIC else self.transactions

    def close(self) -> None:
        """Cancel loads and timers of all shards."""
        self._loader.stop_loading()
        self.deleted_topics.cancel_retry()
        self.groups.close()
        self.transactions.close()

    def verify_transactional_append(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        partition: TopicPartition,
        *,
        implicit: bool,
    ) -> Code:
        """Return NONE if a transaction has a partition, or adds it (`implicit`); else a code.

        With `implicit` a partition that isn't registered is registered (transactions v2).

        The codes are INVALID_TXN_STATE if the partition isn't registered; INVALID_PRODUCER_EPOCH or
        INVALID_PRODUCER_ID_MAPPING for a producer that doesn't own the id; CONCURRENT_TRANSACTIONS
        while the transaction before is being completed; COORDINATOR_LOAD_IN_PROGRESS or
        NOT_COORDINATOR if the coordinator isn't available.
        """
        if not transactional_id:
            return Code.INVALID_TXN_STATE
        try:
            self.transactions.verify_partition(
                transactional_id, producer_id, producer_epoch, partition, adds_partition=implicit
            )
        except Refused as refused:
            if refused.code is Code.PRODUCER_FENCED:
                return Code.INVALID_PRODUCER_EPOCH
            return refused.code
        return Code.NONE

    def write_marker(self, partition: TopicPartition, ended: TransactionEnded) -> None:
        """End a producer's transaction in one partition, and commit or drop its pending offsets.

        Raises: Refused, UNKNOWN_TOPIC_OR_PARTITION for a partition that doesn't exist, or what the
        log raises. A partition of `__transaction_state` counts as one that doesn't exist: a marker
        among the coordinator's records would keep the broker from loading them.
        """
        topic, index = partition
        if topic == GROUP_TOPIC:
            self.groups.offsets.end_transaction(index, ended)
            return
        partition_log = self._topics.find_partition(topic, index)
        if partition_log is None or topic == TRANSACTION_TOPIC:
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index}")
        partition_log.append_marker(
            ended.producer_id,
            ended.producer_epoch,
            ended.committed,
            ended.coordinator_epoch,
            ended.transaction_version,
        )

    def _write_marker_with_highest_epoch(
        self, partition: TopicPartition, ended: TransactionEnded
    ) -> None:
        """Write a marker of this broker's coordinator, at the highest coordinator epoch seen there.

        No other coordinator could have taken over: a higher epoch that a partition has seen came by
        WriteTxnMarkers, or is from before a restart. If the marker were refused, committed records
        would stay invisible and the last stable offset would not advance.
        """
        topic = self._topics.find_including_hidden(partition[0])
        log = partition_of(topic, partition[1])
        producer = None if log is None else log.producers.find_producer(ended.producer_id)
        if producer is not None and producer.coordinator_epoch > ended.coordinator_epoch:
            ended = replace(ended, coordinator_epoch=producer.coordinator_epoch)
        self.write_marker(partition, ended)

    def _find_marker_destination(self, partition: TopicPartition) -> MarkerDestination | None:
        """Return where markers for a partition are sent: this broker, or None if it takes none.

        None for a partition that `write_marker` refuses: clients may have registered it, but they
        have not written to it.
        """
        topic, index = partition
        if topic == TRANSACTION_TOPIC:
            return None
        if topic == GROUP_TOPIC:
            return self._local_markers if index < len(self.groups.shards) else None
        return None if self._topics.find_partition(topic, index) is None else self._local_markers

    def _open_internal_topic(
        self, name: str, count: int, configs: dict[str, str]
    ) -> list[PartitionLog]:
        """Open or create an internal topic and return its partitions.

        A topic that exists keeps its number of partitions."""
        topic = self._topics.find_including_hidden(name) or self._topics.create_topic(
            name, count, configs
        )
        return list(topic.partitions)


def _create_classic_group_config(config: BrokerConfig) -> ClassicGroupConfig:
    return ClassicGroupConfig(
        initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms=config.group_min_session_timeout_ms,
        max_session_timeout_ms=config.group_max_session_timeout_ms,
        max_size=config.group_max_size,
    )


def _create_offset_config(config: BrokerConfig) -> OffsetConfig:
    return OffsetConfig(
        metadata_max_bytes=config.offset_metadata_max_bytes,
        retention_ms=config.offsets_retention_minutes * 60_000,
        retention_check_interval_ms=config.offsets_retention_check_interval_ms,
    )


def _create_transaction_config(config: BrokerConfig) -> TransactionConfig:
    return TransactionConfig(
        transaction_max_timeout_ms=config.transaction_max_timeout_ms,
        transactional_id_expiration_ms=config.transactional_id_expiration_ms,
        expiry_check_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        abort_retry_ms=config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
    )


def _create_consumer_group_config(config: BrokerConfig) -> ConsumerGroupConfig:
    return ConsumerGroupConfig(
        max_size=config.group_consumer_max_size,
        assignors=tuple(split_list(config.group_consumer_assignors)),
        regex_refresh_interval_ms=config.group_consumer_regex_refresh_interval_ms,
        defaults=ConsumerGroupSettings(
            config.group_consumer_session_timeout_ms,
            config.group_consumer_heartbeat_interval_ms,
            config.group_consumer_assignment_interval_ms,
        ),
        min_settings=ConsumerGroupSettings(
            config.group_consumer_min_session_timeout_ms,
            config.group_consumer_min_heartbeat_interval_ms,
            config.group_consumer_min_assignment_interval_ms,
        ),
        max_settings=ConsumerGroupSettings(
            config.group_consumer_max_session_timeout_ms,
            config.group_consumer_max_heartbeat_interval_ms,
            config.group_consumer_max_assignment_interval_ms,
        ),
    )


def _create_streams_group_config(config: BrokerConfig) -> StreamsGroupConfig:
    return StreamsGroupConfig(
        max_size=config.group_streams_max_size,
        defaults=StreamsGroupSettings(
            config.group_streams_session_timeout_ms,
            config.group_streams_heartbeat_interval_ms,
            config.group_streams_assignment_interval_ms,
            config.group_streams_initial_rebalance_delay_ms,
            config.group_streams_num_standby_replicas,
        ),
        min_settings=StreamsGroupSettings(
            config.group_streams_min_session_timeout_ms,
            config.group_streams_min_heartbeat_interval_ms,
            config.group_streams_min_assignment_interval_ms,
            0,
            0,
            task_offset_interval_ms=MIN_TASK_OFFSET_INTERVAL_MS,
        ),
        max_settings=StreamsGroupSettings(
            config.group_streams_max_session_timeout_ms,
            config.group_streams_max_heartbeat_interval_ms,
            config.group_streams_max_assignment_interval_ms,
            INT32_MAX,
            config.group_streams_max_standby_replicas,
            task_offset_interval_ms=INT32_MAX,
        ),
    )

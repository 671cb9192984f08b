"""Provide both coordinators on logs in memory that tests drive and restart."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.features import Features
from coordinator.groups.classic.group_transition import ClassicGroupConfig
from coordinator.groups.consumer.config import ConsumerGroupConfig, ConsumerGroupSettings
from coordinator.groups.migration.policy import BIDIRECTIONAL
from coordinator.groups.service import GroupService
from coordinator.groups.streams.config import StreamsGroupConfig, StreamsGroupSettings
from coordinator.local_markers import LocalMarkers
from coordinator.offsets.commit import CommittingMember, OffsetCommitCommand, OffsetToCommit
from coordinator.offsets.config import OffsetConfig
from coordinator.offsets.fetch import FetchedOffset
from coordinator.shard.decision import TransactionalProducer, TransactionEnded
from coordinator.shard.loading import LoadSlice
from coordinator.shard.shard import Shard
from coordinator.shard.slices import run_to_completion
from coordinator.transactions.add_partitions import AddPartitionsCommand
from coordinator.transactions.config import TransactionConfig
from coordinator.transactions.end_transaction import EndTransactionCommand
from coordinator.transactions.markers import MarkerDestination
from coordinator.transactions.producer_ids import (
    ProducerIdManager,
    ProducerIdsAllocated,
    ProducerIdsCodec,
    ProducerIdState,
)
from coordinator.transactions.service import TransactionService
from coordinator.transactions.state import V0, ProducerIdAndEpoch, TopicPartition
from tests.unit.coordinator.fakes import FakeBackground, FakeClock, FakeLog, FakeTopicList

GROUP_TOPIC = "__consumer_offsets"
TIMEOUT_MS = 60_000


class World:
    """Represents two shards of each coordinator and a topic `words` with two partitions.

    `restart` forgets all that is in memory and loads the logs again, as after kill -9.
    """

    def __init__(
        self,
        group_config: ClassicGroupConfig | None = None,
        offset_config: OffsetConfig | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.group_config = group_config or ClassicGroupConfig(initial_rebalance_delay_ms=0)
        self.offset_config = offset_config or OffsetConfig()
        self.group_settings: dict[str, ConsumerGroupSettings] = {}
        self.streams_settings: dict[str, StreamsGroupSettings] = {}
        self.policy = BIDIRECTIONAL
        self.topics = FakeTopicList({"words": 2})
        self.background = FakeBackground()
        self.group_logs = [FakeLog(), FakeLog()]
        self.transaction_logs = [FakeLog(), FakeLog()]
        self.metadata_log = FakeLog()
        self.features = Features()
        self.local_markers = LocalMarkers(self.write_marker)
        self.words = {("words", 0): FakeLog(), ("words", 1): FakeLog()}
        self._start()

    def _start(self) -> None:
        clock: Clock = self.clock
        self.groups = GroupService(
            self.group_logs,
            self.group_config,
            self.offset_config,
            ConsumerGroupConfig(),
            lambda group_id: self.group_settings.get(group_id, ConsumerGroupSettings()),
            StreamsGroupConfig(),
            lambda group_id: self.streams_settings.get(group_id, StreamsGroupSettings()),
            self.topics,
            clock,
            self.clock,
            self.background,
            self.policy,
        )
        ids = ProducerIdState()
        id_shard: Shard[ProducerIdsAllocated] = Shard(
            "__cluster_metadata", self.metadata_log, ProducerIdsCodec(), ids.apply_record, clock
        )
        self.producer_ids = ProducerIdManager(id_shard, ids)
        self.transactions = TransactionService(
            self.transaction_logs,
            self.producer_ids,
            self.locate,
            TransactionConfig(),
            self.features,
            clock,
            self.clock,
        )
        load_whole(self.groups.list_shard_loaders())
        id_shard.replay_log()
        load_whole(self.transactions.begin_loading())

    def restart(self) -> None:
        self.groups.close()
        self.transactions.close()
        self._start()

    def logs(self) -> list[FakeLog]:
        return [*self.group_logs, *self.transaction_logs, self.metadata_log, *self.words.values()]

    def group_log(self, group_id: str = "counts") -> FakeLog:
        """Return the log of the shard that has a group."""
        return self.group_logs[self.groups.partition_of(group_id)]

    def locate(self, partition: TopicPartition) -> MarkerDestination | None:
        there = partition[0] == GROUP_TOPIC or partition in self.words
        return self.local_markers if there else None

    def write_marker(self, partition: TopicPartition, ended: TransactionEnded) -> None:
        if partition[0] == GROUP_TOPIC:
            self.groups.offsets.end_transaction(partition[1], ended)
            return
        self.words[partition].append_marker(
            ended.producer_id,
            ended.producer_epoch,
            ended.committed,
            ended.coordinator_epoch,
            ended.transaction_version,
        )

    # Requests of a client, one call each.

    def init(
        self,
        transactional_id: str | None = "app",
        owner: ProducerIdAndEpoch | None = None,
        timeout_ms: int = TIMEOUT_MS,
    ) -> ProducerIdAndEpoch:
        return self.transactions.init_producer_id(
            transactional_id,
            timeout_ms,
            -1 if owner is None else owner.producer_id,
            -1 if owner is None else owner.producer_epoch,
        )

    def add(
        self,
        owner: ProducerIdAndEpoch,
        *partitions: TopicPartition,
        id_: str = "app",
        version: int = V0,
    ) -> None:
        wanted = frozenset(partitions or {("words", 0)})
        self.transactions.add_partitions(
            AddPartitionsCommand(id_, owner.producer_id, owner.producer_epoch, wanted, version)
        )

    def add_group(
        self, owner: ProducerIdAndEpoch, group_id: str = "counts", id_: str = "app"
    ) -> None:
        self.add(owner, (GROUP_TOPIC, self.groups.partition_of(group_id)), id_=id_)

    def end(
        self,
        owner: ProducerIdAndEpoch,
        *,
        committed: bool = True,
        id_: str = "app",
        version: int = V0,
    ) -> ProducerIdAndEpoch:
        """End a transaction as EndTxn does, and let its markers be written, which is next."""
        command = EndTransactionCommand(
            id_, owner.producer_id, owner.producer_epoch, committed, version
        )
        afterwards = self.transactions.end_transaction(command)
        self.clock.advance(0)
        return afterwards

    def stage(
        self,
        owner: ProducerIdAndEpoch,
        offset: int,
        *,
        partition: int = 0,
        group_id: str = "counts",
        committer: CommittingMember | None = None,
        id_: str = "app",
    ) -> None:
        """Stage an offset as TxnOffsetCommit does, with the checks of the API file."""
        group_partition = (GROUP_TOPIC, self.groups.partition_of(group_id))
        self.transactions.verify_partition(
            id_, owner.producer_id, owner.producer_epoch, group_partition, adds_partition=False
        )
        producer = TransactionalProducer(owner.producer_id, owner.producer_epoch)
        self._commit(group_id, partition, offset, producer, committer)

    def commit(
        self,
        offset: int,
        *,
        partition: int = 0,
        group_id: str = "counts",
        committer: CommittingMember | None = None,
    ) -> None:
        """Commit an offset outside any transaction, as OffsetCommit does."""
        self._commit(group_id, partition, offset, None, committer)

    def _commit(
        self,
        group_id: str,
        partition: int,
        offset: int,
        producer: TransactionalProducer | None,
        committer: CommittingMember | None,
    ) -> None:
        command = OffsetCommitCommand(
            group_id, [OffsetToCommit("words", partition, offset)], producer
        )
        codes = self.groups.offsets.commit_offsets(
            command, committer or CommittingMember(), unknown_group_code=Code.ILLEGAL_GENERATION
        )
        assert codes == [Code.NONE]

    def fetch(self, group_id: str = "counts", partition: int = 0) -> FetchedOffset:
        [fetched] = self.groups.offsets.fetch_offsets(
            group_id, [("words", partition, None)], require_stable=True
        )
        return fetched

    def offset(self, group_id: str = "counts", partition: int = 0) -> int:
        return self.fetch(group_id, partition).offset

    def delete_group(self, group_id: str) -> None:
        """Delete a group and its offsets without a pause."""
        run_to_completion(self.groups.offsets.delete_group_in_slices(group_id))

    def forget_topic(self, topic: str) -> None:
        """Delete the offsets of a deleted topic without a pause."""
        run_to_completion(self.groups.offsets.forget_topics_in_slices({topic}))


def load_whole(loaders: Iterable[LoadSlice]) -> None:
    """Load shards to their ends, one after the other."""
    for load_slice in loaders:
        while not load_slice():
            pass


def code_of(call: object, *arguments: object, **named: object) -> Code:
    """Return the code with which a call is refused, or NONE."""
    assert callable(call)
    try:
        call(*arguments, **named)
    except Refused as refused:
        return refused.code
    return Code.NONE

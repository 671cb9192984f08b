"""The offsets of groups: who may commit is the group's to say, what is committed the offsets'.

A request finds: api file -> this -> a decision of `offsets` -> shard -> apply.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from uuid import UUID

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.validate import validate_offset_commit
from coordinator.groups.consumer import validate as consumer
from coordinator.groups.holding import holding_of, tombstones
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.offsets.commit import CommitOffsets, Committer, commit_offsets, fits
from coordinator.offsets.config import OffsetConfig
from coordinator.offsets.fetch import FetchedOffset, fetch_all_offsets, fetch_offsets
from coordinator.offsets.forget import delete_offsets, forget_topic
from coordinator.offsets.holding import Holding
from coordinator.shard.decision import TransactionEnded
from coordinator.shard.life import Life

logger = logging.getLogger(__name__)


class GroupOffsets:
    """What the api files of offsets call. Refused carries the code of a refusal."""

    def __init__(
        self,
        shards: GroupShards,
        classic: ClassicMembership,
        config: OffsetConfig,
        clock: Clock,
    ) -> None:
        self._shards = shards
        self._classic = classic
        self._config = config
        self._clock = clock

    def commit(
        self, command: CommitOffsets, committer: Committer, *, unknown_group: Code
    ) -> list[Code]:
        """One code an offset. `unknown_group`: the code for a generation of a group that isn't.

        A simple group is one: its generation may be anything, the member is unknown.
        """
        shard = self._shards.of(command.group_id)
        group = shard.groups.get(command.group_id)
        transactional = command.producer is not None
        of_consumers = shard.state.consumer.get(command.group_id)
        if of_consumers is not None:
            most = self._config.metadata_max_bytes
            fitting = (offset for offset in command.offsets if fits(offset.metadata, most))
            consumer.validate_offset_commit(
                of_consumers, committer, fitting, transactional=transactional
            )
        else:
            if command.group_id in shard.state.offsets.groups:
                unknown_group = Code.UNKNOWN_MEMBER_ID
            validate_offset_commit(
                group, committer, transactional=transactional, unknown_group=unknown_group
            )
        now_ms = self._clock.now_ms()
        decision = commit_offsets(command, self._config.metadata_max_bytes, now_ms)
        codes = shard.log.execute(decision)
        shard.offset_counters.commits += len(decision.records)
        if group is not None and command.producer is None:
            self._classic.prolong_session(group, committer.member_id)
        return codes

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int, UUID | None]] | None,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> list[FetchedOffset]:
        """The committed offsets of these partitions; of all that have one if None. Refuses a member
        of a consumer group that isn't one at this epoch."""
        shard = self._shards.of(group_id)
        of_consumers = shard.state.consumer.get(group_id)
        if of_consumers is not None:
            consumer.validate_offset_fetch(of_consumers, member_id, member_epoch)
        state = shard.state.offsets
        if partitions is None:
            return fetch_all_offsets(state, group_id, require_stable=require_stable)
        return fetch_offsets(state, group_id, partitions, require_stable=require_stable)

    def delete(self, group_id: str, partitions: Sequence[tuple[str, int]]) -> list[Code]:
        """OffsetDelete: one code a partition. Refuses with 69 if there is no such group, with 68 if
        it is in use by others than consumers."""
        shard = self._shards.of(group_id)
        holding = self._holding(shard, group_id)
        decision = delete_offsets(shard.state.offsets, group_id, holding, partitions)
        shard.log.append_all(decision.records)
        shard.offset_counters.deletions += len(decision.records)
        return decision.response

    def delete_group(self, group_id: str) -> None:
        """The group and all its offsets. Refuses with 69 if there is none, 68 if it isn't empty."""
        shard = self._shards.of(group_id)
        if not self._holding(shard, group_id).is_empty:
            raise Refused(Code.NON_EMPTY_GROUP, f"{group_id} has members")
        shard.log.append_all(tombstones(shard, group_id))
        shard.drop(group_id)

    def _holding(self, shard: GroupShard, group_id: str) -> Holding:
        holding = holding_of(shard, group_id)
        if holding is None:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        return holding

    def forget_topic(self, topic: str) -> None:
        """The topic has been deleted: no group has offsets there any more. A shard that is being
        loaded forgets it as soon as it can be written to, before its namesake gets offsets there.
        """
        for shard in self._shards.all:
            if shard.log.life is Life.ACTIVE:
                self._forget_topic(shard, topic)
            else:
                shard.deleted_topics.append(topic)

    def loaded(self, shard: GroupShard) -> None:
        """The shard is active."""
        for topic in shard.deleted_topics:
            self._forget_topic(shard, topic)
        shard.deleted_topics.clear()

    def _forget_topic(self, shard: GroupShard, topic: str) -> None:
        try:
            shard.log.append_all(forget_topic(shard.state.offsets, topic))
        except Refused as refused:
            logger.warning("some offsets of the deleted topic %s are kept: %s", topic, refused)

    def end_transaction(self, partition: int, ended: TransactionEnded) -> None:
        """A marker for one partition of `__consumer_offsets`.

        When this returns, the pending offsets of the producer are committed or gone.
        """
        if not 0 <= partition < len(self._shards.all):
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"__consumer_offsets-{partition}")
        self._shards.all[partition].log.end_transaction(ended)

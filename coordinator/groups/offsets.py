"""Serve the offset requests of groups: the group validates the member, `offsets` decides the rest.

Where a request goes: api file -> this -> a decision of `offsets` -> shard -> apply.

Deletions may be of tens of thousands of offsets: they are made in slices, in as many batches as it
takes, and each tombstone is true for itself. If an append in the middle fails, or the broker is
killed there, some offsets are gone:
- of OffsetDelete and DeleteGroups, some that the client wanted to be gone; it is told the error, or
  nothing, and asks again. The group ends with the last batch. Until then, or until the deletion has
  failed, it is served to nobody, so that no member ever starts from half of its offsets.
- of a deleted topic, some that are nobody's any more; the others follow (see `deleted_topics`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from uuid import UUID

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.validate import validate_offset_commit
from coordinator.groups.consumer import validate as consumer
from coordinator.groups.offset_policy import build_tombstones_of_emptied_group, find_offset_policy
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.streams import validate as streams
from coordinator.offsets.commit import (
    CommittingMember,
    OffsetCommitCommand,
    OffsetToCommit,
    decide_offset_commit,
    is_metadata_within_limit,
)
from coordinator.offsets.config import OffsetConfig
from coordinator.offsets.deletion import (
    build_offset_tombstones_up_to,
    build_topic_offset_tombstones,
    decide_offset_deletion,
)
from coordinator.offsets.fetch import FetchedOffset, fetch_all_offsets, fetch_offsets
from coordinator.offsets.policy import GroupOffsetPolicy
from coordinator.offsets.state import OffsetForgotten, TopicPartition
from coordinator.shard.coordinator_state import CoordinatorState
from coordinator.shard.decision import TransactionEnded
from coordinator.shard.slices import Sliced, run_to_completion

logger = logging.getLogger(__name__)

# Each step takes about a millisecond.
TOMBSTONES_PER_STEP = 250
CHECKED_PER_STEP = 5_000
_NAMES_LOGGED = 10


class GroupOffsets:
    """Commits, fetches and deletes the offsets of groups; Refused carries the code of a refusal."""

    def __init__(
        self,
        shards: GroupShards,
        classic_membership: ClassicMembership,
        config: OffsetConfig,
        clock: Clock,
    ) -> None:
        self._shards = shards
        self._classic_membership = classic_membership
        self._config = config
        self._clock = clock
        # Called with the names of topics that were deleted while a shard was not active.
        self.on_deleted_topics: Callable[[Collection[str]], None] = self._forget_topics_at_once
        # Topics that were deleted while a shard was damaged, by its index, and the function that
        # makes their names durable. The broker sets both (see `deleted_topics`).
        self.deleted_while_failed: dict[int, set[str]] = {}
        self.save_deleted_while_failed: Callable[[], None] = lambda: None

    def commit_offsets(
        self,
        command: OffsetCommitCommand,
        committing_member: CommittingMember,
        *,
        unknown_group_code: Code,
    ) -> list[Code]:
        """Commit offsets of a group; return one code for each of them.

        `unknown_group_code`: the code for a generation of a group that doesn't exist. A simple
        group exists: its generation may be anything, the member is unknown.
        """
        shard = self._shards.require_shard(command.group_id)
        group = shard.state.classic.get(command.group_id)
        transactional = command.producer is not None
        consumer_group = shard.state.consumer.get(command.group_id)
        streams_group = shard.state.streams.get(command.group_id)
        if consumer_group is not None:
            consumer.validate_offset_commit(
                consumer_group,
                committing_member,
                self._iterate_accepted_offsets(command),
                transactional=transactional,
            )
        elif streams_group is not None:
            streams.validate_streams_offset_commit(
                streams_group,
                committing_member,
                self._iterate_accepted_offsets(command),
                transactional=transactional,
            )
        else:
            if command.group_id in shard.state.offsets.groups:
                unknown_group_code = Code.UNKNOWN_MEMBER_ID
            validate_offset_commit(
                group,
                committing_member,
                transactional=transactional,
                unknown_group_code=unknown_group_code,
            )
        now_ms = self._clock.now_ms()
        decision = decide_offset_commit(command, self._config.metadata_max_bytes, now_ms)
        codes = shard.log.execute_decision(decision)
        counters = shard.offset_counters
        if transactional:
            counters.transaction_commits += len(decision.records)
        elif committing_member.claims_membership:
            counters.member_commits += len(decision.records)
        else:
            counters.simple_commits += len(decision.records)
        if group is not None and command.producer is None:
            self._classic_membership.restart_session(group, committing_member.member_id)
        return codes

    def _iterate_accepted_offsets(self, command: OffsetCommitCommand) -> Iterator[OffsetToCommit]:
        """Yield the offsets of a request whose metadata are not too long."""
        max_length = self._config.metadata_max_bytes
        for offset in command.offsets:
            if is_metadata_within_limit(offset.metadata, max_length):
                yield offset

    def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int, UUID | None]] | None,
        *,
        require_stable: bool,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> list[FetchedOffset]:
        """Return the committed offsets of these partitions, or of all that have one if None.

        Raises Refused if the group is a consumer or streams group and has no such member at this
        epoch.
        """
        shard = self._shards.require_shard(group_id)
        consumer_group = shard.state.consumer.get(group_id)
        if consumer_group is not None:
            consumer.validate_offset_fetch(consumer_group, member_id, member_epoch)
        streams_group = shard.state.streams.get(group_id)
        if streams_group is not None:
            streams.validate_streams_offset_fetch(streams_group, member_id, member_epoch)
        state = shard.state.offsets
        if partitions is None:
            return fetch_all_offsets(state, group_id, require_stable=require_stable)
        return fetch_offsets(state, group_id, partitions, require_stable=require_stable)

    def delete_offsets_in_slices(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> Sliced[list[Code]]:
        """Delete a group's offsets of these partitions in slices; return one code for each.

        Raises Refused: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP if the group is in use by others than
        consumers. It may become so in between: those before are gone then.
        """
        codes: list[Code] = []
        for start in range(0, max(1, len(partitions)), TOMBSTONES_PER_STEP):
            if start:
                yield
            some = partitions[start : start + TOMBSTONES_PER_STEP]
            shard = self._shards.require_shard(group_id)
            holding = self._require_offset_policy(shard, group_id)
            decision = decide_offset_deletion(shard.state.offsets, group_id, holding, some)
            shard.log.append_in_batches(decision.records)
            shard.offset_counters.deletions += len(decision.records)
            codes += decision.response
        return codes

    def delete_group_in_slices(self, group_id: str) -> Sliced[None]:
        """Delete a group and all its offsets in slices.

        Raises Refused: GROUP_ID_NOT_FOUND; NON_EMPTY_GROUP if it has members.
        """
        shard = self._shards.require_shard(group_id)
        if not self._require_offset_policy(shard, group_id).is_empty:
            raise Refused(Code.NON_EMPTY_GROUP, f"{group_id} has members")
        shard.deleting_group_ids.add(group_id)
        try:
            while True:
                some = build_offset_tombstones_up_to(
                    shard.state.offsets, group_id, TOMBSTONES_PER_STEP
                )
                if len(some) < TOMBSTONES_PER_STEP:
                    break
                shard.log.append_in_batches(some)
                yield
            before = shard.count_members(group_id)
            shard.log.append_in_batches(
                [*some, *build_tombstones_of_emptied_group(shard, group_id)]
            )
            shard.count_member_changes_since(group_id, before)
            shard.drop_transient_states(group_id)
        finally:
            shard.deleting_group_ids.discard(group_id)

    def _require_offset_policy(self, shard: GroupShard, group_id: str) -> GroupOffsetPolicy:
        holding = find_offset_policy(shard, group_id)
        if holding is None:
            raise Refused(Code.GROUP_ID_NOT_FOUND, f"there is no group {group_id}")
        return holding

    def _forget_topics_at_once(self, topics: Collection[str]) -> None:
        run_to_completion(self.forget_topics_in_slices(topics))

    def forget_topics_in_slices(self, topics: Collection[str]) -> Sliced[None]:
        """Delete the offsets of deleted topics in all groups.

        None of the topics may be made again before this is done: offsets that are committed for it
        meanwhile might go as well. A shard that is being loaded or has resigned keeps their names
        (see `forget_topics_deleted_during_load`), and so does one whose log refuses a tombstone
        (see `pop_topics_with_refused_tombstones`). A damaged shard serves no offsets: it deletes
        them when it loads again (see `forget_topics_deleted_while_failed`).
        """
        for index, shard in enumerate(self._shards.all):
            if shard.log.coordinator_state is CoordinatorState.ACTIVE:
                try:
                    yield from self._forget_topics(shard, topics)
                    continue
                except Refused as refused:
                    if (
                        shard.log.coordinator_state is CoordinatorState.ACTIVE
                        and not shard.deleted_topics
                    ):
                        some = ", ".join(sorted(topics)[:_NAMES_LOGGED])
                        logger.warning(
                            "%s: the names of %d deleted topics (%s) are not free until their"
                            " offsets can be removed, which is tried again and again: %s",
                            *(shard.log.name, len(topics), some, refused),
                        )
            if shard.log.coordinator_state is CoordinatorState.FAILED:
                self.deleted_while_failed.setdefault(index, set()).update(topics)
            else:
                shard.deleted_topics.update(topics)

    def forget_topics_deleted_during_load(self, shard: GroupShard) -> None:
        """Delete the offsets of topics that were deleted while the shard was being loaded.

        It is active now, or has failed.
        """
        names, shard.deleted_topics = shard.deleted_topics, set()
        if names:
            self.on_deleted_topics(names)

    def forget_topics_deleted_while_failed(self, shard_index: int) -> None:
        """Delete the offsets of topics that were deleted while a shard was damaged.

        This comes before the shard serves anything.

        All its offsets of them are older than the deletion, as nothing was written to it since. If
        they can't be removed for good, the shard fails again.
        """
        topics = self.deleted_while_failed.get(shard_index)
        if topics is None:
            return
        shard = self._shards.all[shard_index]
        try:
            run_to_completion(self._forget_topics(shard, topics))
            del self.deleted_while_failed[shard_index]
            self.save_deleted_while_failed()
        except Refused as refused:
            self.deleted_while_failed[shard_index] = topics
            shard.log.mark_failed(
                "it is not damaged, but the offsets of topics that were deleted while it was can't "
                f"be removed now (see to the disk, then start the broker again): {refused}"
            )
            shard.clear_state()

    def has_offsets_to_forget(self, topic: str) -> bool:
        """Return whether a shard has still to delete the offsets of this deleted topic."""
        return any(topic in shard.deleted_topics for shard in self._shards.all)

    def pop_topics_with_refused_tombstones(self) -> set[str]:
        """Return, and remove, the names of topics whose tombstones active shards have refused."""
        names: set[str] = set()
        for shard in self._shards.all:
            if shard.deleted_topics and shard.log.coordinator_state is CoordinatorState.ACTIVE:
                names |= shard.deleted_topics
                shard.deleted_topics = set()
        return names

    def has_topics_with_refused_tombstones(self) -> bool:
        """Return whether an active shard has refused the tombstones of a deleted topic."""
        return any(
            shard.deleted_topics and shard.log.coordinator_state is CoordinatorState.ACTIVE
            for shard in self._shards.all
        )

    def _forget_topics(self, shard: GroupShard, topics: Collection[str]) -> Sliced[None]:
        """Append tombstones for all offsets of these topics in a shard, in slices.

        Raises Refused if the log refuses an append.
        """
        offsets = shard.state.offsets
        pending = [each for each in offsets.pending_producers if each not in offsets.committed]
        groups = [*offsets.committed, *pending]
        records: list[OffsetForgotten] = []
        looked_at = 0
        for group_id in groups:
            looked_at += 1 + len(offsets.committed.get(group_id, ()))
            records += build_topic_offset_tombstones(offsets, group_id, topics)
            while len(records) >= TOMBSTONES_PER_STEP or looked_at >= CHECKED_PER_STEP:
                shard.log.append_in_batches(records[:TOMBSTONES_PER_STEP])
                del records[:TOMBSTONES_PER_STEP]
                looked_at = 0
                yield
        shard.log.append_in_batches(records)

    def end_transaction(self, partition: int, ended: TransactionEnded) -> None:
        """Append a transaction marker to one partition of `__consumer_offsets` and apply it.

        When this returns, the pending offsets of the producer are committed or gone.
        """
        if not 0 <= partition < len(self._shards.all):
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"__consumer_offsets-{partition}")
        self._shards.all[partition].log.end_transaction(ended)

"""The offsets of groups: who may commit is the group's to say, what is committed the offsets'.

A request finds: api file -> this -> a decision of `offsets` -> shard -> apply.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from uuid import UUID

from coordinator.clock import Clock
from coordinator.errors import Code, Refused
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.classic.validate import Committer, validate_offset_commit
from coordinator.groups.shard import GroupShards
from coordinator.offsets.commit import CommitOffsets, commit_offsets
from coordinator.offsets.fetch import FetchedOffset, fetch_all_offsets, fetch_offsets
from coordinator.offsets.forget import forget_topic
from coordinator.shard.decision import TransactionEnded

logger = logging.getLogger(__name__)


class GroupOffsets:
    """What the api files of offsets call. Refused carries the code of a refusal."""

    def __init__(
        self,
        shards: GroupShards,
        classic: ClassicMembership,
        metadata_max_bytes: int,
        clock: Clock,
    ) -> None:
        self._shards = shards
        self._classic = classic
        self._metadata_max_bytes = metadata_max_bytes
        self._clock = clock

    def commit(
        self, command: CommitOffsets, committer: Committer, *, unknown_group: Code
    ) -> list[Code]:
        """One code an offset. `unknown_group`: the code for a generation of a group that isn't.

        A group that has only offsets is one: its generation may be anything, the member is unknown.
        """
        shard = self._shards.of(command.group_id)
        group = shard.groups.get(command.group_id)
        if shard.state.offsets.has_group(command.group_id):
            unknown_group = Code.UNKNOWN_MEMBER_ID
        validate_offset_commit(
            group,
            committer,
            transactional=command.producer is not None,
            unknown_group=unknown_group,
        )
        now_ms = self._clock.now_ms()
        decision = commit_offsets(command, self._metadata_max_bytes, now_ms)
        codes = shard.log.execute(decision)
        if group is not None and command.producer is None:
            self._classic.prolong_session(group, committer.member_id)
        return codes

    def fetch(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int, UUID | None]] | None,
        *,
        require_stable: bool,
    ) -> list[FetchedOffset]:
        """The committed offsets of these partitions; of all that have one if None."""
        state = self._shards.of(group_id).state.offsets
        if partitions is None:
            return fetch_all_offsets(state, group_id, require_stable=require_stable)
        return fetch_offsets(state, group_id, partitions, require_stable=require_stable)

    def forget_topic(self, topic: str) -> None:
        """The topic has been deleted: no group has offsets there any more."""
        for shard in self._shards.all:
            try:
                shard.log.execute(forget_topic(shard.state.offsets, topic))
            except Refused as refused:
                logger.warning("some offsets of the deleted topic %s are kept: %s", topic, refused)

    def end_transaction(self, partition: int, ended: TransactionEnded) -> None:
        """A marker for one partition of `__consumer_offsets`.

        When this returns, the pending offsets of the producer are committed or gone.
        """
        if not 0 <= partition < len(self._shards.all):
            raise Refused(Code.UNKNOWN_TOPIC_OR_PARTITION, f"__consumer_offsets-{partition}")
        self._shards.all[partition].log.end_transaction(ended)

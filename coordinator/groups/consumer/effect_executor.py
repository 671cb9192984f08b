"""Execute decisions about consumer groups: append, apply, then carry out the effects.

It keeps what a group has beside its records: the timers of its members, its transient state, and
the expressions that are being resolved in the background. What they come to is decided elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from coordinator.clock import Background, Clock, Scheduler
from coordinator.errors import Code, Refused
from coordinator.groups.classic.effects import ClassicRebalanceCause
from coordinator.groups.classic.membership import ClassicMembership
from coordinator.groups.consumer.advance import TransientGroupState
from coordinator.groups.consumer.effects import (
    AdoptClassicGroup,
    CancelMemberTimer,
    CancelMemberTimers,
    ConsumerTimer,
    CountEpochSettled,
    CountEpochStart,
    CountTargetAssignment,
    DropClassicGroup,
    DropConsumerGroup,
    RememberTopicsVersion,
    ResolveRegexes,
    SetMemberTimer,
    StartMemberTimer,
)
from coordinator.groups.consumer.regex import resolve_regexes, save_resolved_regexes
from coordinator.groups.consumer.topics import TopicList
from coordinator.groups.counters import AssignorCounters
from coordinator.groups.epoch_counting import count_epoch_settled, count_epoch_start
from coordinator.groups.shard import GroupShard, GroupShards
from coordinator.groups.state import Record
from coordinator.shard.decision import Decision
from coordinator.shard.timers import KeyedTimers

logger = logging.getLogger(__name__)

A = TypeVar("A")

ConsumerTimerKey: TypeAlias = tuple[ConsumerTimer, str, str]  # kind, group id, member id


class ConsumerEffectExecutor:
    """Executes decisions about consumer groups, in their shards, with their effects."""

    def __init__(
        self,
        shards: GroupShards,
        topics: TopicList,
        clock: Clock,
        scheduler: Scheduler,
        background: Background,
        classic_membership: ClassicMembership,
        on_expiry: Callable[[ConsumerTimerKey], None],
    ) -> None:
        """Create the executor; `on_expiry` is called with the key of each timer that fires."""
        self._shards = shards
        self._topics = topics
        self._clock = clock
        self._background = background
        self._classic_membership = classic_membership
        self._timers: KeyedTimers[ConsumerTimerKey] = KeyedTimers(clock, scheduler, on_expiry)

    def execute_decision(
        self, shard: GroupShard, group_id: str, decision: Decision[Record, A]
    ) -> A:
        """Append a decision's records, apply them, carry out its effects, return its response.

        Raises Refused if the append failed: then nothing has changed, and no effect is carried out.
        """
        before = shard.count_members(group_id) if decision.records else None
        response = shard.log.execute_decision(decision)
        for effect in decision.effects:
            if type(effect) is SetMemberTimer:  # of every heartbeat
                timer_key = (effect.timer, group_id, effect.member_id)
                self._timers.set_timer(timer_key, effect.timeout_ms)
            else:
                self.carry_out_effect(shard, group_id, effect)
        if before is not None:
            shard.count_member_changes_since(group_id, before)
        return response

    def carry_out_effect(self, shard: GroupShard, group_id: str, effect: object) -> None:
        """Carry out one effect of a decision about a group."""
        match effect:
            case SetMemberTimer(timer, member_id, timeout_ms):
                self._timers.set_timer((timer, group_id, member_id), timeout_ms)
            case StartMemberTimer(timer, member_id, timeout_ms):
                if (timer, group_id, member_id) not in self._timers:
                    self._timers.set_timer((timer, group_id, member_id), timeout_ms)
            case CancelMemberTimer(timer, member_id):
                self._timers.cancel_timer((timer, group_id, member_id))
            case CancelMemberTimers(member_ids):
                self._cancel_member_timers(group_id, member_ids)
            case RememberTopicsVersion(topics_version):
                transient_state = _get_or_create_transient_state(shard, group_id)
                transient_state.hashed_topics_version = topics_version
            case CountEpochStart(cause, member_ids):
                count_epoch_start(
                    shard.consumer_counters,
                    shard.state.consumer[group_id],
                    _get_or_create_transient_state(shard, group_id),
                    cause.value,
                    member_ids,
                    self._clock.now_ms(),
                )
            case CountTargetAssignment(assignor, moved_count, began_ns):
                counters = shard.assignor_counters.setdefault(assignor, AssignorCounters())
                counters.times.record_ns(self._clock.monotonic_ns() - began_ns)
                counters.partitions_moved += moved_count
            case CountEpochSettled():
                group, start = shard.state.consumer[group_id], shard.transient_states.get(group_id)
                count_epoch_settled(shard.consumer_counters, group, start, self._clock)
            case ResolveRegexes(regexes):
                self._resolve_regexes(shard, group_id, regexes)
            case _:
                self._convert_group(shard, group_id, effect)

    def cancel_timers_and_drop_state(
        self, shard: GroupShard, group_id: str, member_ids: Iterable[str] = ()
    ) -> None:
        """Cancel a group's timers and drop its transient state.

        It is no consumer group any more, or not this broker's.
        """
        self._cancel_member_timers(group_id, member_ids)
        shard.transient_states.pop(group_id, None)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self._timers.cancel_all_timers()

    def _convert_group(self, shard: GroupShard, group_id: str, effect: object) -> None:
        """Carry out an effect of a group's conversion from or to a classic one."""
        match effect:
            case DropConsumerGroup(member_ids):
                self.cancel_timers_and_drop_state(shard, group_id, member_ids)
            case DropClassicGroup(classic_group):
                logger.info("%s is a consumer group from now on", group_id)
                self._classic_membership.cancel_timers_and_answer_pending(
                    classic_group, Code.REBALANCE_IN_PROGRESS
                )
            case AdoptClassicGroup(classic_group, must_rebalance):
                logger.info("%s is a classic group from now on", group_id)
                cause = ClassicRebalanceCause.CONVERTED if must_rebalance else None
                self._classic_membership.adopt_downgraded_group(shard, classic_group, cause)
            case _:
                raise AssertionError(f"{effect!r} is no effect of a consumer group's decision")

    def _cancel_member_timers(self, group_id: str, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            for timer in ConsumerTimer:
                self._timers.cancel_timer((timer, group_id, member_id))

    # Regular expressions

    def _resolve_regexes(self, shard: GroupShard, group_id: str, regexes: frozenset[str]) -> None:
        """Resolve a group's regular expressions in the background, then write the outcome."""
        transient_state = _get_or_create_transient_state(shard, group_id)
        transient_state.is_resolving = True
        topics_version, started_at_ms = self._topics.version, self._clock.now_ms()
        names = [topic.name for topic in self._topics]
        topics_by_regex: dict[str, frozenset[str]] = {}

        def on_resolved(error: Exception | None) -> None:
            transient_state.is_resolving = False
            if error is not None:
                logger.error("%s: its expressions can't be resolved: %s", group_id, error)
            elif self._try_save_resolved_regexes(
                group_id, topics_by_regex, topics_version, started_at_ms
            ):
                transient_state.resolved_topics_version = topics_version

        self._background.run_in_background(
            lambda: topics_by_regex.update(resolve_regexes(regexes, names)), on_resolved
        )

    def _try_save_resolved_regexes(
        self,
        group_id: str,
        topics_by_regex: dict[str, frozenset[str]],
        topics_version: int,
        started_at_ms: int,
    ) -> bool:
        """Append records of resolved expressions, and return whether that was possible."""
        shard = self._shards.find_shard(group_id)
        group = shard.state.consumer.get(group_id)
        if group is None:
            return False
        decision = save_resolved_regexes(
            group, topics_by_regex, topics_version, self._topics, started_at_ms
        )
        try:
            self.execute_decision(shard, group_id, decision)
        except Refused as refused:
            logger.warning("%s stays unresolved for now: %s", group_id, refused)
            return False
        return True


def _get_or_create_transient_state(shard: GroupShard, group_id: str) -> TransientGroupState:
    """Return the transient state of a group, which is made if it has none yet."""
    transient_state = shard.transient_states.get(group_id)
    if transient_state is None:
        transient_state = shard.transient_states[group_id] = TransientGroupState()
    return transient_state

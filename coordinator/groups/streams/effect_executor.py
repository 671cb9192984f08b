"""Execute decisions about streams groups: append, apply, then carry out the effects.

It keeps what a group has beside its records: timers and transient state. What they come to is
decided elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from coordinator.clock import Clock, Scheduler
from coordinator.groups.counters import AssignorCounters
from coordinator.groups.epoch_counting import count_epoch_settled, count_epoch_start
from coordinator.groups.shard import GroupShard
from coordinator.groups.state import Record
from coordinator.groups.streams.command import TransientStreamsState
from coordinator.groups.streams.effects import (
    CancelStreamsTimer,
    CountStreamsEpoch,
    CountStreamsSettled,
    CountStreamsTarget,
    DropStreamsMember,
    DropTaskOffsets,
    KeepTaskOffsets,
    RememberTopology,
    RequestShutdown,
    SetEndpointEpoch,
    SetStreamsTimer,
    StartInitialDelay,
    StreamsTimer,
)
from coordinator.shard.decision import Decision
from coordinator.shard.timers import KeyedTimers

logger = logging.getLogger(__name__)

A = TypeVar("A")

StreamsTimerKey: TypeAlias = tuple[StreamsTimer, str, str]  # kind, group id, member id
ASSIGNOR = "sticky tasks"  # the assignor's name in metrics, where consumer groups have others


class StreamsEffectExecutor:
    """Executes decisions about streams groups, in their shards, with their effects."""

    def __init__(
        self, clock: Clock, scheduler: Scheduler, on_expiry: Callable[[StreamsTimerKey], None]
    ) -> None:
        """Create the executor; `on_expiry` is called with the key of each timer that fires."""
        self._clock = clock
        self._timers: KeyedTimers[StreamsTimerKey] = KeyedTimers(clock, scheduler, on_expiry)

    def is_delayed(self, group_id: str) -> bool:
        """Return whether the initial delay of a group is running."""
        return (StreamsTimer.INITIAL_DELAY, group_id, "") in self._timers

    def execute_decision(
        self, shard: GroupShard, group_id: str, decision: Decision[Record, A]
    ) -> A:
        """Append a decision's records, apply them, carry out its effects, return its response.

        Raises Refused if the append failed: then nothing has changed, and no effect is carried out.
        """
        before = shard.count_members(group_id) if decision.records else None
        response = shard.log.execute_decision(decision)
        for effect in decision.effects:
            self.carry_out_effect(shard, group_id, effect)
        if before is not None:
            shard.count_member_changes_since(group_id, before)
            group = shard.state.streams.get(group_id)
            if group is not None and not group.members:
                get_or_create_transient_streams_state(shard, group_id).shutdown_requester = None
        return response

    def carry_out_effect(self, shard: GroupShard, group_id: str, effect: object) -> None:
        """Carry out one effect of a decision about a group."""
        match effect:
            case SetStreamsTimer(timer, member_id, timeout_ms):
                self._timers.set_timer((timer, group_id, member_id), timeout_ms)
            case CancelStreamsTimer(timer, member_id):
                self._timers.cancel_timer((timer, group_id, member_id))
            case StartInitialDelay(timeout_ms):
                if not self.is_delayed(group_id):
                    self._timers.set_timer((StreamsTimer.INITIAL_DELAY, group_id, ""), timeout_ms)
            case DropStreamsMember(member_id):
                self._cancel_member_timers(group_id, [member_id])
                self.carry_out_effect(shard, group_id, DropTaskOffsets(member_id))
            case CountStreamsEpoch(cause, member_id):
                count_epoch_start(
                    shard.streams_counters,
                    shard.state.streams[group_id],
                    get_or_create_transient_streams_state(shard, group_id),
                    cause.value,
                    [member_id],
                    self._clock.now_ms(),
                )
            case CountStreamsTarget(moved_count, began_ns):
                counters = shard.assignor_counters.setdefault(ASSIGNOR, AssignorCounters())
                counters.times.record_ns(self._clock.monotonic_ns() - began_ns)
                counters.partitions_moved += moved_count
            case CountStreamsSettled():
                start = shard.transient_streams_states.get(group_id)
                group = shard.state.streams[group_id]
                count_epoch_settled(shard.streams_counters, group, start, self._clock)
            case _:
                _apply_effect_to_transient_state(
                    get_or_create_transient_streams_state(shard, group_id), effect
                )

    def cancel_timers_and_drop_state(
        self, shard: GroupShard, group_id: str, member_ids: Iterable[str] = ()
    ) -> None:
        """Cancel a group's timers and drop its transient state.

        It is no streams group any more, or not this broker's.
        """
        self._cancel_member_timers(group_id, member_ids)
        self._timers.cancel_timer((StreamsTimer.INITIAL_DELAY, group_id, ""))
        shard.transient_streams_states.pop(group_id, None)

    def cancel_all_timers(self) -> None:
        """Cancel all timers."""
        self._timers.cancel_all_timers()

    def _cancel_member_timers(self, group_id: str, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            for timer in StreamsTimer:
                self._timers.cancel_timer((timer, group_id, member_id))


def get_or_create_transient_streams_state(
    shard: GroupShard, group_id: str
) -> TransientStreamsState:
    """Return the transient state of a streams group, which is made if it has none yet."""
    transient_state = shard.transient_streams_states.get(group_id)
    if transient_state is None:
        transient_state = shard.transient_streams_states[group_id] = TransientStreamsState()
    return transient_state


def _apply_effect_to_transient_state(
    transient_state: TransientStreamsState, effect: object
) -> None:
    """Apply an effect to the part of a streams group's state that no record of the log keeps."""
    match effect:
        case RememberTopology(configured, topics_version):
            transient_state.configured = configured
            transient_state.topics_version = topics_version
            transient_state.refused_topology = None
        case DropTaskOffsets(member_id):
            transient_state.task_offsets.pop(member_id, None)
            transient_state.task_end_offsets.pop(member_id, None)
        case RequestShutdown(member_id):
            transient_state.shutdown_requester = member_id
        case SetEndpointEpoch(epoch):
            transient_state.endpoint_epoch = epoch
        case KeepTaskOffsets(member_id, offsets, end_offsets):
            if offsets is not None:
                transient_state.task_offsets[member_id] = offsets
            if end_offsets is not None:
                transient_state.task_end_offsets[member_id] = end_offsets
        case _:
            raise AssertionError(f"{effect!r} is no effect of a streams group's decision")

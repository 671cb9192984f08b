"""Run one partition of an internal topic as a replicated state machine.

Decide, append, apply, answer: a decision's records are appended to the log first, then `apply`
changes the state by them, then the answer goes out. Loading replays the same log through the same
`apply` (see `replay`).

- A failed append is a `Refused` from the log. Nothing was written, so nothing is applied.
- A shard that is being loaded, or has resigned, refuses (see `coordinator_state`).
- A log that can't be replayed whole, because a batch or a record of it is damaged, fails this shard
  alone: it refuses with NOT_COORDINATOR, and nothing is written to its log or compacted in it until
  a person has repaired it. Every other shard goes on, as in Kafka.
- An exception of `apply` after an append is a broken invariant: the log and the state have parted.
  The shard raises `BrokenInvariant` for that and for every later call, so that no further record is
  appended on top of a state that is not the log's.

Kafka's counterpart is CoordinatorRuntime with its CoordinatorShard.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from coordinator.clock import Clock
from coordinator.errors import Refused
from coordinator.log.batch_encoding import encode_batch_of, encode_records
from coordinator.shard.coordinator_state import (
    REFUSAL_CODES,
    VALID_PREVIOUS_STATES,
    CoordinatorState,
)
from coordinator.shard.counters import ShardCounters
from coordinator.shard.decision import (
    Decision,
    LogRecordOrigin,
    TransactionalProducer,
    TransactionEnded,
    create_record_origin,
)
from coordinator.shard.replay import LogReplay, describe_apply_failure
from coordinator.shard.shard_log import RecordCodec, ShardLog
from coordinator.shard.unknown_records import UnknownRecordIndex

AppliedCount: TypeAlias = int

IsLastSlice: TypeAlias = bool

logger = logging.getLogger(__name__)

R = TypeVar("R")
A = TypeVar("A")

LOAD_READ_BYTES = 1 << 20
SLICE_BYTES = 1 << 16  # a few milliseconds of decoding
RECORD_OVERHEAD_BYTES = 24  # at most, beside key and value
BATCH_OVERHEAD_BYTES = 61
_ACTIVE = CoordinatorState.ACTIVE  # every request compares with it, and an enum looks it up slowly


class BrokenInvariant(Exception):
    """Signals that state and log disagree, so that the broker has to stop and answer nobody."""


class Shard(Generic[R]):
    """Appends the records of decisions to a log and applies them; replays the log when it loads.

    The state itself belongs to the owner of `apply`.
    """

    def __init__(
        self,
        name: str,
        log: ShardLog,
        codec: RecordCodec[R],
        apply: Callable[[R | TransactionEnded, LogRecordOrigin], None],
        clock: Clock,
        try_apply_together: Callable[[Sequence[R], int], bool] = lambda records, base_offset: False,
    ) -> None:
        """Create a shard; `try_apply_together` may apply records that no producer has written.

        It is given them with the offset of the first, and does just what `apply` does for each, or
        nothing and returns False.
        """
        self.name = name
        self._log = log
        self._codec = codec
        self._apply = apply
        self._try_apply_together = try_apply_together
        self._clock = clock
        self._broken_reason: str | None = None
        self.coordinator_state = (
            CoordinatorState.ACTIVE
            if log.start_offset >= log.end_offset
            else CoordinatorState.LOADING
        )
        self.coordinator_epoch = 0  # One higher after each election.
        self.counters = ShardCounters()
        self.unknown_records = UnknownRecordIndex(name)
        self._replay = LogReplay(log, codec, apply, self.counters, self.unknown_records)
        if log.damage is not None:
            self.mark_failed(log.damage)

    @property
    def end_offset(self) -> int:
        """Return the offset that the next record of the log gets."""
        return self._log.end_offset

    def execute_decision(self, decision: Decision[R, A]) -> A:
        """Append a decision's records, apply them to the state, then return its response.

        Raises Refused if the append failed (nothing has changed) or the shard isn't active,
        `BrokenInvariant` if the state can't be trusted any more.
        """
        if self._broken_reason is not None:
            self._raise_if_broken()
        self.check_active()
        records = decision.records
        if records:
            encoded = self._codec.encode_together(records)
            if encoded is None:
                encoded = encode_records([self._codec.encode_record(each) for each in records])
            self._append_batch(records, encoded, decision.producer)
        return decision.response

    def append_in_batches(self, records: Sequence[R]) -> None:
        """Append and apply independent records, such as tombstones, in as many batches as needed.

        Each record must be true without the others. Raises as `execute_decision` does; the batches
        before a failed one have been applied then.
        """
        self._raise_if_broken()
        self.check_active()
        encoded: list[tuple[bytes | None, bytes | None]] = []
        batch_bytes = self._log.batch_bytes_max
        batch_size, appended_count = BATCH_OVERHEAD_BYTES, 0
        for record in records:
            key, value = self._codec.encode_record(record)
            record_size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
            if encoded and batch_size + record_size > batch_bytes:
                batch_records = records[appended_count : appended_count + len(encoded)]
                self._append_batch(batch_records, encode_records(encoded), None)
                appended_count += len(encoded)
                encoded, batch_size = [], BATCH_OVERHEAD_BYTES
            encoded.append((key, value))
            batch_size += record_size
        if encoded:
            self._append_batch(records[appended_count:], encode_records(encoded), None)

    def _append_batch(
        self,
        records: Sequence[R],
        encoded: bytes,
        producer: TransactionalProducer | None,
    ) -> None:
        """Append records as one batch, then apply them."""
        producer_id = -1 if producer is None else producer.producer_id
        record_count = len(records)
        batch = encode_batch_of(
            encoded,
            record_count,
            timestamp_ms=self._clock.now_ms(),
            producer_id=producer_id,
            producer_epoch=-1 if producer is None else producer.producer_epoch,
            transactional=producer is not None,
        )
        read_ns = self._clock.monotonic_ns
        begin_ns = read_ns()
        base_offset = self._log.append_internal(batch)
        appended_ns = read_ns()
        if producer is not None or not self._try_apply_together_or_mark_broken(
            records, base_offset
        ):
            self._apply_appended(records, base_offset, producer_id)
        self.counters.count_append(record_count, begin_ns, appended_ns, read_ns())

    def end_transaction(self, marker: TransactionEnded) -> None:
        """Append a transaction marker and apply it.

        What was pending in the transaction is committed or dropped when this returns.
        """
        self._raise_if_broken()
        self.check_active()
        read_ns = self._clock.monotonic_ns
        begin_ns = read_ns()
        offset = self._log.append_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.committed,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        appended_ns = read_ns()
        self._apply_appended([marker], offset, marker.producer_id)
        self.counters.count_append(1, begin_ns, appended_ns, read_ns())

    # Life

    def check_active(self) -> None:
        """Raise Refused unless the shard is active.

        Raises Refused: COORDINATOR_LOAD_IN_PROGRESS while it is being loaded, NOT_COORDINATOR if it
        has failed or resigned.
        """
        if self.coordinator_state is not _ACTIVE:
            raise Refused(
                REFUSAL_CODES[self.coordinator_state],
                f"{self.name} is {self.coordinator_state.name}",
            )

    def replay_log(self) -> AppliedCount:
        """Replay the whole log; return the number of records and markers applied."""
        while not self.load_next_slice(LOAD_READ_BYTES):
            pass
        return self.counters.loaded

    def load_next_slice(self, max_bytes: int = SLICE_BYTES) -> IsLastSlice:
        """Replay at most `max_bytes` more of the log; return True if nothing is left to replay.

        The shard is active then, or has failed, or has resigned while its next slice was waiting.
        """
        if self.coordinator_state is not CoordinatorState.LOADING:
            return True
        begin_ms = self._clock.monotonic_ms()
        try:
            self._replay.replay_slice(max_bytes)
        except Exception as error:  # Whatever it is, the state is not what the log says.
            self.mark_failed(f"{self._log.describe_damage_at(self._replay.next_offset)}: {error}")
            return True
        self.counters.load_ms += self._clock.monotonic_ms() - begin_ms
        if self._replay.remaining_offset_count > 0:
            return False
        self._transition_to(CoordinatorState.ACTIVE)
        self.unknown_records.log_warnings()
        return True

    def mark_failed(self, damage: str) -> None:
        """Stop serving this shard and protect its log, which can't be replayed whole."""
        self.coordinator_state = CoordinatorState.FAILED
        self.unknown_records.clear_records()
        self._log.refuse_writes_until_repaired(damage)
        logger.error(
            "%s can't be loaded. It answers NOT_COORDINATOR and is not written to until its log is"
            " repaired ('Repair' in docs/broker.md): %s",
            *(self.name, damage),
        )

    @property
    def unreplayed_offset_count(self) -> int:
        """Return the number of offsets of the log that are still to be replayed."""
        is_loading = self.coordinator_state is CoordinatorState.LOADING
        return self._replay.remaining_offset_count if is_loading else 0

    def mark_resigned(self) -> None:
        """Mark the shard as resigned, so that it refuses requests; the caller clears the state."""
        self._transition_to(CoordinatorState.RESIGNED)

    def restart_loading_as_leader(self) -> None:
        """Begin to load the log anew after a resignation; the caller has cleared the state."""
        self._transition_to(CoordinatorState.LOADING)
        self.coordinator_epoch += 1
        self._replay.rewind_to_start()
        if self._log.damage is not None:
            self.mark_failed(self._log.damage)

    def _transition_to(self, coordinator_state: CoordinatorState) -> None:
        if self.coordinator_state not in VALID_PREVIOUS_STATES[coordinator_state]:
            raise ValueError(
                f"{self.name}: {coordinator_state.name} can't follow {self.coordinator_state.name}"
            )
        self.coordinator_state = coordinator_state

    def _try_apply_together_or_mark_broken(self, records: Sequence[R], base_offset: int) -> bool:
        """Return whether the records have been applied in one call.

        Raises `BrokenInvariant` if that call raises.
        """
        try:
            return self._try_apply_together(records, base_offset)
        except Exception as error:
            failure = describe_apply_failure(base_offset, records[0], error)
            raise self._mark_broken_and_create_error(failure) from error

    def _apply_appended(
        self, records: Sequence[R | TransactionEnded], base_offset: int, producer_id: int
    ) -> None:
        """Apply records that have been appended, the first of them at `base_offset`.

        Raises `BrokenInvariant` if `apply` raises.
        """
        apply = self._apply
        for record in records:
            try:
                apply(record, create_record_origin((base_offset, producer_id, False)))
            except Exception as error:
                raise self._mark_broken_and_create_error(
                    describe_apply_failure(base_offset, record, error)
                ) from error
            base_offset += 1

    def _mark_broken_and_create_error(self, reason: str) -> BrokenInvariant:
        self._broken_reason = f"{self.name}: {reason}"
        return BrokenInvariant(self._broken_reason)

    def _raise_if_broken(self) -> None:
        if self._broken_reason is not None:
            raise BrokenInvariant(self._broken_reason)

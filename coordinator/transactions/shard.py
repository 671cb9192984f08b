"""Hold the shards of `__transaction_state`, and count what is done with their transactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from coordinator.clock import Clock
from coordinator.features import Features
from coordinator.histogram import Histogram
from coordinator.shard.decision import Decision
from coordinator.shard.shard import Shard
from coordinator.shard.shard_log import ShardLog
from coordinator.transactions.apply import apply_record
from coordinator.transactions.records import TransactionCodec
from coordinator.transactions.state import TransactionRecord, TransactionShardState

A = TypeVar("A")


@dataclass(slots=True)
class TransactionCounters:
    """Counts the ends of transactions since the broker started, aborts by cause."""

    commits: int = 0
    aborts_by_client: int = 0
    aborts_by_init: int = 0
    aborts_by_timeout: int = 0
    # From the decision of the end to the last marker.
    commit_times: Histogram = field(default_factory=Histogram)
    abort_times: Histogram = field(default_factory=Histogram)
    decided_ns: dict[str, int] = field(default_factory=dict)  # monotonic times, by transactional id
    unlogged_ends: set[str] = field(default_factory=set)  # ids whose Complete* the log has refused

    def count_completion(self, transactional_id: str, *, committed: bool, now_ns: int) -> None:
        """Count a transaction whose markers are all written, with its time since the decision.

        One that was decided by an earlier process has no time.
        """
        self.unlogged_ends.discard(transactional_id)
        decided_ns = self.decided_ns.pop(transactional_id, None)
        if decided_ns is not None:
            times = self.commit_times if committed else self.abort_times
            times.record_ns(now_ns - decided_ns)

    def forget_transaction(self, transactional_id: str) -> None:
        """Forget a transaction whose coordinator has resigned."""
        self.decided_ns.pop(transactional_id, None)
        self.unlogged_ends.discard(transactional_id)


class TransactionShard:
    """Holds one partition of `__transaction_state`: its log and the state replayed from it."""

    def __init__(self, name: str, log: ShardLog, features: Features, clock: Clock) -> None:
        self.state = TransactionShardState()
        codec = TransactionCodec(features.transaction_version)
        self.log: Shard[TransactionRecord] = Shard(
            name, log, codec, partial(apply_record, self.state), clock
        )

    def execute_decision(self, decision: Decision[TransactionRecord, A]) -> A:
        """Make a decision durable, apply it, and return its response."""
        return self.log.execute_decision(decision)

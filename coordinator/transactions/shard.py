"""Holds the shards of `__transaction_state`, and counts what is done with their transactions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from coordinator.clock import Clock
from coordinator.features import Features
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

"""The marker channel's destination on this broker: the partitions' own logs.

A partition of `__consumer_offsets` goes through its group shard, which has made the pending offsets
true, or dropped them, before its code is given (KAFKA-17507).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.errors import Code, Refused
from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.markers import Answers, Marker
from coordinator.transactions.state import TopicPartition

# Writes one marker, or is refused with a code.
WriteMarker = Callable[[TopicPartition, TransactionEnded], None]


class LocalMarkers:
    """Answers before `send` returns."""

    def __init__(self, write: WriteMarker) -> None:
        self._write = write

    def send(self, markers: Sequence[Marker], answer: Callable[[Answers], None]) -> None:
        answer(
            [
                [self.code_of(partition, marker.ended) for partition in marker.partitions]
                for marker in markers
            ]
        )

    def code_of(self, partition: TopicPartition, ended: TransactionEnded) -> Code:
        try:
            self._write(partition, ended)
        except Refused as refused:
            return refused.code
        return Code.NONE

"""Write transaction markers to the logs of this broker's own partitions.

It is the marker channel's one destination. A marker for a partition of `__consumer_offsets` goes
through its group shard, which has committed or dropped the pending offsets before the code is
returned (KAFKA-17507).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator.errors import Code, Refused
from coordinator.shard.decision import TransactionEnded
from coordinator.transactions.markers import MarkerAnswers, TransactionMarker
from coordinator.transactions.state import TopicPartition

# Writes one marker, or raises Refused.
WriteMarker = Callable[[TopicPartition, TransactionEnded], None]


class LocalMarkers:
    """Writes markers to this broker's partitions; answers before `send_markers` returns."""

    def __init__(self, write_marker: WriteMarker) -> None:
        self._write_marker = write_marker

    def send_markers(
        self, markers: Sequence[TransactionMarker], on_answer: Callable[[MarkerAnswers], None]
    ) -> None:
        """Write the markers, and call `on_answer` with a code for each partition of each marker."""
        on_answer(
            [
                [self.try_write_marker(partition, marker.ended) for partition in marker.partitions]
                for marker in markers
            ]
        )

    def try_write_marker(self, partition: TopicPartition, ended: TransactionEnded) -> Code:
        """Write one marker to one partition and return NONE, or the code of its refusal."""
        try:
            self._write_marker(partition, ended)
        except Refused as refused:
            return refused.code
        return Code.NONE

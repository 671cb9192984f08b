"""Provide a transactional producer that sends any call once, in any order, with any epoch.

Each call returns the code that the broker gave. Only CONCURRENT_TRANSACTIONS (the last transaction
is still being completed) is waited out, unless a case wants to see it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Self

from coordinator.errors import Code
from tests.conformance import batches
from tests.conformance.calls import produce, settled
from tests.conformance.wire import Api, Client
from tests.processes import UNREACHED_MS


def init_producer_id(
    client: Client,
    transactional_id: str | None,
    *,
    producer_id: int = -1,
    epoch: int = -1,
    timeout_ms: int = UNREACHED_MS,
    version: int = 4,
) -> Any:
    fields: dict[str, Any] = {} if version < 3 else {"producer_id": producer_id}
    if version >= 3:
        fields["producer_epoch"] = epoch
    return settled(
        lambda: client.send(
            Api.INIT_PRODUCER_ID,
            version,
            transactional_id=transactional_id,
            transaction_timeout=timeout_ms,
            **fields,
        )
    )


@dataclass
class Producer:
    """Represents one incarnation: a transactional id, a producer id and an epoch."""

    client: Client
    transactional_id: str
    producer_id: int
    epoch: int
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)

    @classmethod
    def init(cls, client: Client, transactional_id: str, timeout_ms: int = UNREACHED_MS) -> Self:
        response = init_producer_id(client, transactional_id, timeout_ms=timeout_ms)
        assert response.error_code == Code.NONE, response
        return cls(client, transactional_id, response.producer_id, response.producer_epoch)

    def _identity(self) -> dict[str, Any]:
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
        }

    def add_partitions(
        self, *topics: str, partitions: Iterable[int] = (0,), version: int = 0
    ) -> dict[str, Code]:
        """Add partitions to the transaction; return the code of each topic's first one."""
        prefixed = {f"v3_and_below_{name}": value for name, value in self._identity().items()}
        named = [{"name": topic, "partitions": tuple(partitions)} for topic in topics]
        response = settled(
            lambda: self.client.send(
                Api.ADD_PARTITIONS_TO_TXN, version, **prefixed, v3_and_below_topics=named
            )
        )
        return {
            each.name: Code(each.results_by_partition[0].partition_error_code)
            for each in response.results_by_topic_v3_and_below
        }

    def add(self, *topics: str) -> None:
        """Add partition 0 of these topics to the transaction, which must succeed."""
        assert set(self.add_partitions(*topics).values()) == {Code.NONE}

    def write(self, topic: str, *values: bytes, version: int = 10) -> Any:
        """Write one batch to partition 0; return the partition's part of the response."""
        sequence = self.sequences.get((topic, 0), 0)
        data = batches.encode(
            *values,
            producer_id=self.producer_id,
            epoch=self.epoch,
            sequence=sequence,
            transactional=True,
        )
        answer = produce(
            self.client, topic, data, transactional_id=self.transactional_id, version=version
        )
        if answer.error_code == Code.NONE:
            self.sequences[topic, 0] = sequence + len(values)
        return answer

    def add_offsets(self, group: str, version: int = 0) -> Code:
        response = settled(
            lambda: self.client.send(
                Api.ADD_OFFSETS_TO_TXN, version, **self._identity(), group_id=group
            )
        )
        return Code(response.error_code)

    def stage_offset(
        self,
        group: str,
        topic: str,
        offset: int,
        *,
        generation: int = -1,
        member_id: str = "",
        instance_id: str | None = None,
        metadata: str | None = "",
        version: int = 3,
    ) -> Code:
        """Send TxnOffsetCommit for one partition and return its code."""
        part: dict[str, Any] = {
            "partition_index": 0,
            "committed_offset": offset,
            "committed_leader_epoch": -1,
            "committed_metadata": metadata,
        }
        member: dict[str, Any] = {
            "generation_id": generation,
            "member_id": member_id,
            "group_instance_id": instance_id,
        }
        if version < 3:
            member = {}
        if version < 2:
            del part["committed_leader_epoch"]
        response = settled(
            lambda: self.client.send(
                Api.TXN_OFFSET_COMMIT,
                version,
                **self._identity(),
                **member,
                group_id=group,
                topics=[{"name": topic, "partitions": [part]}],
            )
        )
        return Code(response.topics[0].partitions[0].error_code)

    def end(self, committed: bool, version: int = 1) -> Code:
        """Send EndTxn, whose response says that the outcome is decided.

        Markers may still be in transit.
        """
        response = settled(
            lambda: self.client.send(Api.END_TXN, version, **self._identity(), committed=committed)
        )
        if response.error_code == Code.NONE and version >= 5:
            self.take(response)
        return Code(response.error_code)

    def take(self, response: Any) -> None:
        """Take over a response's producer id and epoch; new ones start with new sequences."""
        owner = (response.producer_id, response.producer_epoch)
        if owner != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = owner
            self.sequences.clear()

    def commit(self) -> None:
        """Commit, and send EndTxn again, which succeeds once the transaction is complete."""
        assert self.end(committed=True) == Code.NONE
        assert self.end(committed=True) == Code.NONE

    def abort(self) -> None:
        assert self.end(committed=False) == Code.NONE
        assert self.end(committed=False) == Code.NONE

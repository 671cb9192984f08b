"""Stand in for confluent-kafka's Producer, with transactions as librdkafka runs them.

    state       call                    next
    INIT        init_transactions       READY
    READY       begin_transaction       IN_TXN
    IN_TXN      commit_, abort_         READY
    IN_TXN      an abortable error      ABORTABLE   only an abort is left
    ABORTABLE   abort_transaction       READY       with another epoch if batches may still arrive
    any         a fatal error           FATAL       nothing is left

Which error is which is in the table of `sender`. What was begun goes on in the background when a
call's time is up, until the producer is given up (`purge`). Another call of `init_transactions`
waits for what the first has begun.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.simulation.runtime.clients.client import Failed, raised
from tests.simulation.runtime.clients.sender import (
    ADD_OFFSETS,
    END_TXN,
    TXN_OFFSET_COMMIT,
    Record,
    Sender,
    State,
)

QUEUE_MAX = 2_000


class SimProducer(Sender):
    """Stands in for confluent-kafka's Producer on the simulated network."""

    _initialisation: Any = None

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        callback: Callable[[Any, Any], None] | None = None,
        on_delivery: Callable[[Any, Any], None] | None = None,
        timestamp: int = 0,
        headers: Any = None,
    ) -> None:
        self._process.check_alive()
        if self._state is State.FATAL:
            raise raised(KafkaError._FATAL, "a fatal error has been raised", fatal=True)
        if self._id is not None and self._state is not State.IN_TXN:
            raise raised(KafkaError._STATE, "not in a transaction")
        if len(self._waiting) + self._sending >= QUEUE_MAX:
            raise BufferError("Local: Queue full")
        report = callback or on_delivery or self._on_delivery
        now_ms = self._loop.now_ms()
        self._waiting.append(Record(topic, partition, key, value, timestamp or now_ms, report))
        self._wake()

    def poll(self, timeout: float = 0) -> int:
        self._process.yield_turn()
        return self._serve()

    def flush(self, timeout: float = -1) -> int:
        deadline_ms = self._loop.elapsed_ms + max(timeout, 0) * 1_000
        self._process.yield_turn()
        self._is_flushing = True
        while len(self) and self._loop.elapsed_ms < deadline_ms:
            self._wake()
            idle = self._loop.create_future()
            self._loop.after_ms(2, _done, idle)
            self._process.wait_for(idle, None)
        self._is_flushing = False
        self._serve()
        return len(self)

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """Drop undelivered records and stop the background work."""
        self._process.yield_turn()
        self._is_given_up = True
        self._fail_waiting(KafkaError._PURGE_QUEUE)
        self._wake()
        self._loop.after_ms(self._process.random.uniform(0, 5), self._destroy)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        return self._client.list_topics(topic, timeout)

    def init_transactions(self, timeout: float = -1) -> None:
        self._process.yield_turn()
        if self._initialisation is None:
            self._initialisation = self._begin(self._init(-1, -1))
        self._await(self._initialisation, timeout)
        self._state = State.READY

    def begin_transaction(self) -> None:
        self._process.yield_turn()
        self._require(State.READY)
        self._state = State.IN_TXN
        self._registered, self._has_offsets, self._may_arrive = set(), False, False

    def send_offsets_to_transaction(
        self, positions: Iterable[TopicPartition], group_metadata: bytes, timeout: float = -1
    ) -> None:
        self._process.yield_turn()
        self._require(State.IN_TXN)
        sent = [each for each in positions if each.offset >= 0]
        if sent:
            self._call(self._send_offsets(sent, *_group(group_metadata)), timeout)

    def commit_transaction(self, timeout: float = -1) -> None:
        self._process.yield_turn()
        self._require(State.IN_TXN)
        began_ms = self._loop.elapsed_ms
        if self.flush(timeout):
            raise raised(KafkaError._TIMED_OUT, "not all was delivered in time", retriable=True)
        self._require(State.IN_TXN)
        left = timeout if timeout < 0 else timeout - (self._loop.elapsed_ms - began_ms) / 1_000
        self._call(self._end(committed=True), left)

    def abort_transaction(self, timeout: float = -1) -> None:
        self._process.yield_turn()
        self._require(State.IN_TXN, State.ABORTABLE)
        self._fail_waiting(KafkaError._PURGE_QUEUE)
        self._call(self._abort(), timeout)
        self._serve()

    def _call(self, work: Coroutine[Any, Any, None], timeout_s: float) -> None:
        self._await(self._begin(work), timeout_s)

    def _await(self, task: Any, timeout_s: float) -> None:
        if not self._process.wait_for(task, None if timeout_s < 0 else max(timeout_s, 0)):
            raise raised(KafkaError._TIMED_OUT, "no answer in time", retriable=True)
        try:
            task.result()
        except Failed:
            assert self._error is not None
            raise KafkaException(self._error) from None

    def _require(self, *states: State) -> None:
        if self._state in states:
            return
        if self._error is not None and self._state in (State.FATAL, State.ABORTABLE):
            raise KafkaException(self._error)
        raise raised(KafkaError._STATE, f"not in state {self._state.name}")

    def _serve(self) -> int:
        served = 0
        while self._reports:
            report, error, message = self._reports.popleft()
            report(error, message)
            served += 1
        return served

    def _destroy(self) -> None:
        for task in self._work:
            task.cancel()
        self._work.clear()

    async def _send_offsets(
        self, offsets: list[TopicPartition], generation: int, group: str, member: str, instance: Any
    ) -> None:
        identity: dict[str, Any] = {
            "transactional_id": self._id,
            "producer_id": self._producer_id,
            "producer_epoch": self._epoch,
        }
        if not self._has_offsets:
            given = {**identity, "group_id": group}
            await self._ask(ADD_OFFSETS, 0, given, lambda answer: answer.error_code)
            self._has_offsets = True
        topics: dict[str, list[dict[str, Any]]] = {}
        for each in offsets:
            topics.setdefault(each.topic, []).append(
                {
                    "partition_index": each.partition,
                    "committed_offset": each.offset,
                    "committed_leader_epoch": -1,
                    # With the NUL at the end that librdkafka sends along.
                    "committed_metadata": (each.metadata or "") + "\0",
                }
            )
        given = {
            **identity,
            "group_id": group,
            "generation_id": generation,
            "member_id": member,
            "group_instance_id": instance,
            "topics": [{"name": name, "partitions": each} for name, each in topics.items()],
        }
        await self._ask(
            TXN_OFFSET_COMMIT,
            3,
            given,
            lambda answer: next(
                (p.error_code for t in answer.topics for p in t.partitions if p.error_code), 0
            ),
        )

    async def _end(self, *, committed: bool) -> None:
        if self._registered or self._has_offsets:
            given = {
                "transactional_id": self._id,
                "producer_id": self._producer_id,
                "producer_epoch": self._epoch,
                "committed": committed,
            }
            await self._ask(END_TXN, 1, given, lambda answer: answer.error_code)
        self._state = State.READY

    async def _abort(self) -> None:
        while self._sending:
            await self._process.sleep_ms(2)
        if self._registered or self._has_offsets:
            given = {
                "transactional_id": self._id,
                "producer_id": self._producer_id,
                "producer_epoch": self._epoch,
                "committed": False,
            }
            await self._ask(END_TXN, 1, given, lambda answer: answer.error_code)
        if self._may_arrive:
            await self._init(self._producer_id, self._epoch)
        self._state, self._error = State.READY, None


def _group(metadata: bytes) -> tuple[int, str, str, str | None]:
    """Read generation, group, member and instance of librdkafka's group metadata (CGMDv2)."""
    assert metadata.startswith(b"CGMDv2:"), metadata
    [generation] = struct.unpack_from("=i", metadata, 7)
    group, _, rest = metadata[11:].partition(b"\0")
    member, _, rest = rest.partition(b"\0")
    instance = None if rest == b"\x01" else rest[1:-1].decode()
    return generation, group.decode(), member.decode(), instance


def _done(future: Any) -> None:
    if not future.done():
        future.set_result(None)

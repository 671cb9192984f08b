"""confluent-kafka's Producer: records in the background, transactions as librdkafka leads them.

    state       call                    next
    INIT        init_transactions       READY
    READY       begin_transaction       IN_TXN
    IN_TXN      commit_, abort_         READY
    IN_TXN      an abortable error      ABORTABLE   only an abort is left
    ABORTABLE   abort_transaction       READY       with another epoch if batches may still arrive
    any         a fatal error           FATAL       nothing is left

Which error is which is in the tables below: librdkafka 2.16's, transactions v1. What was begun goes
on in the background when a call's time is up, until the producer is given up (`purge`).
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from enum import Enum, auto
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from coordinator.errors import Code
from tests.conformance.batches import encode
from tests.simulation.loop import Unanswered
from tests.simulation.runtime.clients.client import RETRIABLE, RETRY_MS, Client, Failed, raised
from tests.simulation.runtime.clients.partitioner import partition_of
from tests.simulation.runtime.process import Process

PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS, ADD_OFFSETS, END_TXN = 0, 22, 24, 25, 26
TXN_OFFSET_COMMIT = 28
QUEUE_MAX = 2_000
BATCH_RECORDS = 50
Place = tuple[str, int]

FENCED = frozenset({Code.INVALID_PRODUCER_EPOCH, Code.PRODUCER_FENCED})
FATAL = {
    INIT_PRODUCER_ID: FENCED
    | {
        Code.INVALID_TRANSACTION_TIMEOUT,
        Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
    },
    ADD_PARTITIONS: FENCED | {Code.INVALID_TXN_STATE},
    ADD_OFFSETS: {Code.INVALID_PRODUCER_EPOCH, Code.INVALID_TXN_STATE},
    TXN_OFFSET_COMMIT: {
        Code.INVALID_PRODUCER_EPOCH,
        Code.INVALID_TXN_STATE,
        Code.INVALID_PRODUCER_ID_MAPPING,
    },
    END_TXN: FENCED | {Code.INVALID_TXN_STATE},
    PRODUCE: {Code.INVALID_PRODUCER_EPOCH, Code.OUT_OF_ORDER_SEQUENCE_NUMBER},
}
TAKEN = frozenset({Code.NONE, Code.DUPLICATE_SEQUENCE_NUMBER})


class State(Enum):
    INIT = auto()
    READY = auto()
    IN_TXN = auto()
    ABORTABLE = auto()
    FATAL = auto()


class Record(NamedTuple):
    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    report: Callable[[Any, Any], None] | None


class SimProducer:
    """See the module."""

    def __init__(self, process: Process, settings: dict[str, Any]) -> None:
        self._client = Client(process, str(settings["client.id"]))
        self._process = process
        self._loop = process.world.loop
        self._id: str | None = settings.get("transactional.id")
        self._timeout_ms = int(settings.get("transaction.timeout.ms", 60_000))
        self._linger_ms = float(settings.get("linger.ms", 5))
        self._on_delivery = settings.get("on_delivery")
        self._reports_failures_only = bool(settings.get("delivery.report.only.error"))
        self._state = State.INIT
        self._error: KafkaError | None = None
        self._producer_id = self._epoch = -1
        self._sequences: dict[Place, int] = {}
        self._registered: set[Place] = set()
        self._has_offsets = False
        self._may_arrive = False  # a batch whose answer never came
        self._waiting: deque[Record] = deque()
        self._sending = 0
        self._reports: deque[tuple[Callable[[Any, Any], None], KafkaError | None, Message]] = (
            deque()
        )
        self._counts: dict[str, int] = {}
        self._is_flushing = False
        self._is_given_up = False
        self._changed = self._loop.create_future()
        self._work: list[Any] = []
        self._begin(self._send())

    # Records

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
        self._process.breathe()
        return self._serve()

    def flush(self, timeout: float = -1) -> int:
        deadline_ms = self._loop.elapsed_ms + max(timeout, 0) * 1_000
        self._process.breathe()
        self._is_flushing = True
        while len(self) and self._loop.elapsed_ms < deadline_ms:
            self._wake()
            idle = self._loop.create_future()
            self._loop.after_ms(2, _done, idle)
            self._process.wait_for(idle, None)
        self._is_flushing = False
        self._serve()
        return len(self)

    def __len__(self) -> int:
        return len(self._waiting) + self._sending

    def purge(self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True) -> None:
        """What is not delivered won't be; and soon there is nobody who does anything."""
        self._process.breathe()
        self._is_given_up = True
        self._fail_waiting(KafkaError._PURGE_QUEUE)
        self._wake()
        self._loop.after_ms(self._process.random.uniform(0, 5), self._destroy)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
        raise NotImplementedError

    # Transactions

    def init_transactions(self, timeout: float = -1) -> None:
        self._process.breathe()
        self._call(self._init(-1, -1), timeout)
        self._state = State.READY

    def begin_transaction(self) -> None:
        self._process.breathe()
        self._require(State.READY)
        self._state = State.IN_TXN
        self._registered, self._has_offsets, self._may_arrive = set(), False, False

    def send_offsets_to_transaction(
        self, positions: Iterable[TopicPartition], group_metadata: bytes, timeout: float = -1
    ) -> None:
        self._process.breathe()
        self._require(State.IN_TXN)
        sent = [each for each in positions if each.offset >= 0]
        if sent:
            self._call(self._send_offsets(sent, *_group(group_metadata)), timeout)

    def commit_transaction(self, timeout: float = -1) -> None:
        self._process.breathe()
        self._require(State.IN_TXN)
        began_ms = self._loop.elapsed_ms
        if self.flush(timeout):
            raise raised(KafkaError._TIMED_OUT, "not all was delivered in time", retriable=True)
        self._require(State.IN_TXN)
        left = timeout if timeout < 0 else timeout - (self._loop.elapsed_ms - began_ms) / 1_000
        self._call(self._end(committed=True), left)

    def abort_transaction(self, timeout: float = -1) -> None:
        self._process.breathe()
        self._require(State.IN_TXN, State.ABORTABLE)
        self._fail_waiting(KafkaError._PURGE_QUEUE)
        self._call(self._abort(), timeout)
        self._serve()

    # Inside

    def _begin(self, work: Coroutine[Any, Any, None]) -> Any:
        task = self._process.begin(work)
        self._work.append(task)
        return task

    def _call(self, work: Coroutine[Any, Any, None], timeout_s: float) -> None:
        task = self._begin(work)
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

    def _wake(self) -> None:
        if not self._changed.done():
            self._changed.set_result(None)

    def _refused(self, api_key: int, code: Code) -> None:
        """By librdkafka's table: the producer is done for, or the transaction is."""
        if self._state is State.FATAL:
            return
        if code in FATAL[api_key]:
            self._state = State.FATAL
            fenced = code in FENCED
            self._error = KafkaError(
                KafkaError._FENCED if fenced else int(code), code.name, fatal=True
            )
        elif self._id is not None and self._state is not State.ABORTABLE:
            self._state = State.ABORTABLE
            self._error = KafkaError(int(code), code.name, txn_requires_abort=True)
        self._fail_waiting(KafkaError._PURGE_QUEUE)

    def _fail_waiting(self, code: int) -> None:
        while self._waiting:
            self._report(self._waiting.popleft(), KafkaError(code), -1, 0)

    def _report(self, record: Record, error: KafkaError | None, offset: int, number: int) -> None:
        if record.report is not None and (error is not None or not self._reports_failures_only):
            message = Message(
                topic=record.topic, partition=number, offset=offset, key=record.key, error=error
            )
            self._reports.append((record.report, error, message))

    async def _ask(
        self,
        api_key: int,
        version: int,
        given: dict[str, Any],
        code_of: Callable[[Any], int],
        *,
        retry_ms: float = RETRY_MS,
        may_be_late: bool = False,
    ) -> Any:
        try:
            return await self._client.ask(
                api_key, version, given, code_of, retry_ms=retry_ms, may_be_late=may_be_late
            )
        except Failed as error:
            self._refused(api_key, error.code)
            raise

    async def _init(self, producer_id: int, epoch: int) -> None:
        given = {
            "transactional_id": self._id,
            "transaction_timeout": self._timeout_ms,
            "producer_id": producer_id,
            "producer_epoch": epoch,
        }
        # Whatever else it is told, it asks again.
        while True:
            try:
                answer = await self._client.ask(
                    INIT_PRODUCER_ID, 4, given, lambda answer: answer.error_code, may_be_late=True
                )
                break
            except Failed as error:
                if error.code in FATAL[INIT_PRODUCER_ID] or producer_id >= 0:
                    self._refused(INIT_PRODUCER_ID, error.code)
                    raise
            await self._process.sleep_ms(500)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences = {}

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

    # The background

    async def _send(self) -> None:
        while not self._is_given_up:
            if not self._waiting:
                self._changed = self._loop.create_future()
                await self._process.asked(self._changed)
                continue
            if not self._is_flushing:
                await self._process.sleep_ms(self._linger_ms)
            if self._producer_id < 0:
                await self._init(-1, -1)
            batches = await self._batches()
            for place, records in batches.items():
                if self._id is not None and self._state is not State.IN_TXN:
                    self._drop(records, place)
                    continue
                await self._deliver(place, records)

    async def _batches(self) -> dict[Place, list[Record]]:
        """What waits, by partition, up to a batch for each; the rest waits on."""
        taken = list(self._waiting)
        self._waiting.clear()
        self._sending = len(taken)
        batches: dict[Place, list[Record]] = {}
        left: list[Record] = []
        for record in taken:
            number = record.partition
            if number < 0:
                count = self._counts.get(record.topic) or await self._count(record.topic)
                number = partition_of(record.key or b"", count)
            batch = batches.setdefault((record.topic, number), [])
            (batch if len(batch) < BATCH_RECORDS else left).append(record)
        self._waiting.extendleft(reversed(left))
        self._sending -= len(left)
        return batches

    async def _count(self, topic: str) -> int:
        while True:
            found = (await self._client.metadata([topic])).get(topic)
            if found is not None:
                self._counts[topic] = len(found.partitions)
                return self._counts[topic]
            await self._process.sleep_ms(RETRY_MS)

    def _drop(self, records: list[Record], place: Place) -> None:
        for record in records:
            self._report(record, KafkaError(KafkaError._PURGE_QUEUE), -1, place[1])
        self._sending -= len(records)

    async def _deliver(self, place: Place, records: list[Record]) -> None:
        try:
            if self._id is not None and place not in self._registered:
                await self._register(place)
            base_offset = await self._produce(place, records)
        except Failed:
            self._drop(records, place)
            return
        for index, record in enumerate(records):
            offset = base_offset + index if base_offset >= 0 else -1
            self._report(record, None, offset, place[1])
        self._sending -= len(records)

    async def _register(self, place: Place) -> None:
        given = {
            "v3_and_below_transactional_id": self._id,
            "v3_and_below_producer_id": self._producer_id,
            "v3_and_below_producer_epoch": self._epoch,
            "v3_and_below_topics": [{"name": place[0], "partitions": [place[1]]}],
        }
        await self._ask(
            ADD_PARTITIONS,
            0,
            given,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
            retry_ms=20,
            may_be_late=True,
        )
        self._registered.add(place)

    async def _produce(self, place: Place, records: list[Record]) -> int:
        """The offset of the first; -1 where the broker took it for a repetition and forgot."""
        sequence = self._sequences.get(place, 0)
        data = encode(
            *[(record.key, record.value) for record in records],
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=sequence,
            transactional=self._id is not None,
            timestamps_ms=[record.timestamp_ms for record in records],
        )
        given: dict[str, Any] = {
            "transactional_id": self._id,
            "acks": -1,
            "timeout": 1_000,
            "topic_data": [
                {"name": place[0], "partition_data": [{"index": place[1], "records": data}]}
            ],
        }
        while not self._is_given_up:
            try:
                answer = await self._client.once(PRODUCE, 10, given, may_be_late=True)
            except Unanswered:
                self._may_arrive = True
            else:
                found = answer.responses[0].partition_responses[0]
                code = Code(found.error_code)
                if code in TAKEN:
                    self._sequences[place] = sequence + len(records)
                    return int(found.base_offset)
                if code not in RETRIABLE:
                    self._refused(PRODUCE, code)
                    raise Failed(code)
            await self._process.sleep_ms(RETRY_MS)
        raise Failed(Code.REQUEST_TIMED_OUT)


def _group(metadata: bytes) -> tuple[int, str, str, str | None]:
    """Generation, group, member and instance, as librdkafka writes them (CGMDv2)."""
    assert metadata.startswith(b"CGMDv2:"), metadata
    [generation] = struct.unpack_from("=i", metadata, 7)
    group, _, rest = metadata[11:].partition(b"\0")
    member, _, rest = rest.partition(b"\0")
    instance = None if rest == b"\x01" else rest[1:-1].decode()
    return generation, group.decode(), member.decode(), instance


def _done(future: Any) -> None:
    if not future.done():
        future.set_result(None)
